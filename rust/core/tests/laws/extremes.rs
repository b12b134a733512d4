//! The ends of what is allowed: no input makes the core panic.

use wavesim::device::{Device, catalogue};
use wavesim::workload::{Copy, Duration, Item, Kernel, Launch, Program, Record, Span, Work};
use wavesim::{Detail, Error, Options};

use super::cases::Case;

/// 50 days, in nanoseconds.
const LONGEST: f64 = 4.32e15;

fn h200() -> Device {
    catalogue::device("h200").unwrap()
}

fn launch(kernel: usize) -> Item {
    Item::Launch(Launch { kernel, stream: 0, at_ns: None, dependent: false, trigger: false })
}

/// It ends, or it is refused as a value that can't be.
fn ends_or_is_refused(case: &Case) {
    match case.simulate_with(&case.options) {
        Ok(run) => assert!(run.makespan.ns() >= LONGEST),
        Err(error) => assert!(matches!(error, Error::Invalid { .. }), "{error}"),
    }
}

fn of(kernel: Kernel, items: Vec<Item>) -> Case {
    let program = Program { kernels: vec![kernel], items, ..Program::default() };
    Case { device: h200(), program, arrays: vec![], options: Options::default() }
}

#[test]
fn a_stream_of_the_longest_kernels_does_not_overflow_time() {
    let work = Work::Duration(Duration::Constant(Span::Ns(LONGEST)));
    ends_or_is_refused(&of(Kernel { work, ..Kernel::of(1, 32) }, (0..6).map(|_| launch(0)).collect()));
}

#[test]
fn waves_of_the_longest_ctas_do_not_overflow_time() {
    let work = Work::Duration(Duration::Constant(Span::Ns(LONGEST)));
    ends_or_is_refused(&of(Kernel { work, ..Kernel::of(132 * 2 * 6, 1024) }, vec![launch(0)]));
}

#[test]
fn a_persistent_kernel_of_the_longest_tasks_does_not_overflow_time() {
    for schedule in [wavesim::workload::work::Tasks::Static, wavesim::workload::work::Tasks::Atomic] {
        let work = Work::Persistent {
            tasks: 10,
            duration: Duration::Constant(Span::Ns(LONGEST)),
            schedule,
            overhead: Span::Ns(LONGEST),
            startup: Span::Ns(LONGEST),
        };
        ends_or_is_refused(&of(Kernel { work, ..Kernel::of(1, 32) }, vec![launch(0)]));
    }
}

#[test]
fn cycles_of_the_slowest_clock_do_not_overflow_time() {
    let copy = Item::Copy(Copy { duration: Span::Cycles(LONGEST), stream: 0, at_ns: Some(LONGEST) });
    let work = Work::Duration(Duration::Constant(Span::Cycles(LONGEST)));
    let mut case = of(Kernel { work, ..Kernel::of(1, 32) }, vec![launch(0), copy]);
    case.device.clock.sm_mhz = 1.0;
    ends_or_is_refused(&case);
}

#[test]
fn a_device_may_hold_as_many_ctas_an_sm_as_slots_are_simulated_and_no_more() {
    let mut device = h200().scaled(3).unwrap();
    (device.limits.ctas, device.limits.warps, device.limits.threads) = (64, 100, 3_200);
    device.limits.barriers = None;
    device.validate().unwrap();
    let work = Work::Duration(Duration::Constant(Span::Ns(5_000.0)));
    let kernel = Kernel { work, registers: 16, ..Kernel::of(1_000, 32) };
    assert_eq!(Case::ideal(device.clone(), kernel.clone()).simulate().slots, 3 * 64);
    device.limits.ctas = 65;
    let case = Case::ideal(device, kernel);
    let error = case.simulate_with(&case.options).map(|run| run.slots).unwrap_err();
    assert!(matches!(&error, Error::Invalid { field, .. } if field == "device.limits.ctas"), "{error}");
}

#[test]
fn workgroups_of_one_wave_take_no_barrier_from_those_beside_them() {
    // A CU of CDNA has 16 barriers, and a workgroup of one wave needs none: 16 of them leave room for others.
    let device = catalogue::device("mi300x").unwrap().scaled(1).unwrap();
    let work = Work::Duration(Duration::Constant(Span::Ns(50_000.0)));
    let waves = Kernel { work: work.clone(), registers: 16, ..Kernel::of(16, 64) };
    let groups = Kernel { work, registers: 16, ..Kernel::of(4, 128) };
    let mut items = vec![launch(0)];
    items.push(Item::Launch(Launch { kernel: 1, stream: 1, at_ns: None, dependent: false, trigger: false }));
    let program = Program { kernels: vec![waves, groups], items, ..Program::default() };
    let case = Case { device, program, arrays: vec![], options: Options::default() };
    let run = case.simulate();
    assert!(run.kernels.start[1] < run.kernels.end[0], "32 waves and 16 barriers hold both at once");
}

#[test]
fn a_program_that_runs_nothing_takes_no_time() {
    let items = vec![Item::Record(Record { event: "e".to_owned(), stream: 0 })];
    let case = of(Kernel::of(1, 32), items);
    let run = case.simulate();
    assert_eq!((run.makespan.0, run.kernels.ctas.len()), (0, 0));
}

#[test]
fn one_cta_without_work_still_takes_its_launch() {
    let run = of(Kernel::of(1, 1), vec![launch(0)]).simulate();
    assert!(run.kernels.start[0].ns() > 2_400.0);
    assert_eq!(run.kernels.busy_ps[0], 0);
}

#[test]
fn a_thousand_streams_of_kernels_that_all_fit_run() {
    let items = (0..1_000).map(|stream| {
        Item::Launch(Launch { kernel: 0, stream, at_ns: None, dependent: stream % 2 == 0, trigger: stream % 3 == 0 })
    });
    let case = of(Kernel::of(3, 64), items.collect());
    let run = case.simulate_with(&Options { detail: Detail::Kernels, ..case.options }).unwrap();
    assert_eq!(run.kernels.ctas, vec![3; 1_000]);
}

#[test]
fn random_durations_of_the_longest_kind_end_with_an_error_and_not_in_a_hang() {
    let work = Work::Duration(Duration::Exponential { mean: Span::Ns(4.32e15) });
    let program = Program::of(Kernel { work, ..Kernel::of(10_000, 256) });
    let device = wavesim::device::catalogue::device("h200").unwrap();
    let options = wavesim::Options { detail: wavesim::Detail::Kernels, ..wavesim::Options::default() };
    let error = wavesim::simulate(&device, &program, &[], &options, &mut || false).unwrap_err();
    assert!(error.to_string().contains("days of simulated time"), "{error}");
}

#[test]
fn more_rows_than_memory_holds_are_refused_before_the_run() {
    let program = Program::of(Kernel::of(1_000_000_000, 256));
    let device = wavesim::device::catalogue::device("h200").unwrap();
    let error = wavesim::simulate(&device, &program, &[], &wavesim::Options::default(), &mut || false).unwrap_err();
    assert!(error.to_string().starts_with("detail: a row for each of 1000000000 CTAs takes"), "{error}");
}

#[test]
fn four_billion_equal_tasks_of_a_static_schedule_need_no_loop() {
    let work = Work::Persistent {
        tasks: u64::from(u32::MAX),
        duration: Duration::Constant(Span::Ns(1.0)),
        schedule: wavesim::workload::Tasks::Static,
        overhead: Span::Ns(0.0),
        startup: Span::Ns(0.0),
    };
    let program = Program::of(Kernel { work, ..Kernel::of(132, 256) });
    let device = wavesim::device::catalogue::device("h200").unwrap();
    let run = wavesim::simulate(&device, &program, &[], &wavesim::Options::default(), &mut || false).unwrap();
    let busy: u128 = run.kernels.busy_ps[0];
    assert!(busy >= u128::from(u32::MAX) * 1000);
}
