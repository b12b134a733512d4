//! How a run ends that can't go on, or that its caller stops.

use wavesim::device::{Device, catalogue};
use wavesim::workload::work::Needs;
use wavesim::workload::{Duration, Item, Kernel, Launch, Program, Span, Stream, Work};
use wavesim::{Dispatcher, Error, Options, simulate};

use super::cases::Case;

fn short() -> Duration {
    Duration::Constant(Span::Ns(1_000.0))
}

fn barrier(name: &str, ctas: u32) -> Kernel {
    let work = Work::GridSync { rounds: 1, duration: short() };
    // So much shared memory that an SM holds one.
    Kernel { name: name.to_owned(), work, cooperative: true, shared_memory: 200 * 1024, ..Kernel::of(ctas, 256) }
}

/// An H200 cut down to this many SMs.
fn small(sms: usize) -> Device {
    catalogue::device("h200").unwrap().scaled(sms).unwrap()
}

fn error_of(case: &Case) -> Error {
    case.simulate_with(&case.options).map(|run| run.makespan).unwrap_err()
}

fn launch(kernel: usize, stream: u32, at_ns: f64) -> Item {
    Item::Launch(Launch { kernel, stream, at_ns: Some(at_ns), dependent: false, trigger: false })
}

#[test]
fn a_grid_barrier_for_more_ctas_than_fit_is_a_deadlock_that_says_how_many() {
    let barrier = |name, ctas| Kernel { cooperative: false, ..barrier(name, ctas) };
    Case::ideal(small(4), barrier("fits", 4)).simulate();
    let error = error_of(&Case::ideal(small(4), barrier("wide", 5)));
    let Error::Deadlock { at_ns: None, who } = &error else { panic!("{error}") };
    assert!(error.to_string().starts_with("deadlock: kernel `wide`"), "{error}");
    assert!(
        who.contains("`wide`") && who.contains("all 5 CTAs") && who.contains("holds 4 (1 on each of 4 SMs)"),
        "{who}"
    );
}

#[test]
fn a_cooperative_launch_of_more_ctas_than_fit_is_refused_whatever_its_work() {
    let plain = Kernel { work: Work::Duration(short()), ..barrier("plain", 5) };
    for kernel in [plain, barrier("barrier", 5)] {
        let error = error_of(&Case::ideal(small(4), kernel));
        let Error::CannotLaunch { field, value, why, .. } = &error else { panic!("{error}") };
        assert_eq!((field.as_str(), value), ("program.kernels[0].grid", &5_u32.into()));
        assert!(why.contains("of 5 CTAs, and 4 are the most that it holds at once (1 on each of 4 SMs)"), "{why}");
    }
}

#[test]
fn a_grid_barrier_is_held_against_the_clusters_that_fit_not_against_all_sms() {
    // 132 SMs, and 15 clusters of 8 at once: 120 CTAs.
    let clustered = |ctas| Kernel { cluster: 8, ..barrier("clustered", ctas) };
    let device = catalogue::device("h200").unwrap();
    Case::ideal(device.clone(), clustered(120)).simulate();
    let error = error_of(&Case::ideal(device, clustered(128)));
    assert!(matches!(error, Error::CannotLaunch { .. }), "{error}");
}

#[test]
fn a_grid_barrier_on_xcds_of_uneven_size_is_held_against_the_smallest() {
    // Dealt by number, every second of 5 CTAs goes to the second XCD, which has 2 CUs.
    let mut device = catalogue::device("mi300x").unwrap().scaled(40).unwrap();
    assert_eq!(device.topology.gpcs.iter().map(wavesim::device::Gpc::sm_count).collect::<Vec<_>>(), [38, 2]);
    device.name = "uneven".to_owned();
    let kernel = |ctas| Kernel { shared_memory: 60 * 1024, ..barrier("dealt", ctas) };
    Case::ideal(device.clone(), kernel(4)).simulate();
    let error = error_of(&Case::ideal(device, kernel(40)));
    assert!(matches!(error, Error::CannotLaunch { .. }), "{error}");
}

#[test]
fn two_grid_barriers_that_hold_each_others_slots_are_a_deadlock_and_not_a_hang() {
    // `first` gets 2 of its 4 SMs, then the more urgent `second` comes and takes those that `long` gives back, and waits for
    // one of the 2 that `first` holds.
    let long = Kernel {
        work: Work::Duration(Duration::Constant(Span::Ns(50_000.0))),
        cooperative: false,
        ..barrier("long", 2)
    };
    let program = Program {
        kernels: vec![long, barrier("first", 4), barrier("second", 3)],
        items: vec![launch(0, 0, 0.0), launch(1, 1, 10_000.0), launch(2, 2, 20_000.0)],
        streams: [(2, Stream { priority: -1 })].into(),
    };
    // Whether all polls find room in the words' queues or wait outside.
    for queued_requests in [1, 1_000] {
        let mut device = small(4);
        device.sync.queued_requests = queued_requests;
        for dispatcher in [Dispatcher::Ideal, Dispatcher::Hardware] {
            let options = Options { dispatcher, ..Options::default() };
            let case = Case { device: device.clone(), program: program.clone(), arrays: vec![], options };
            let error = error_of(&case);
            let Error::Deadlock { at_ns: Some(at_ns), .. } = &error else { panic!("{error}") };
            // `long` ends after 50 us and hands its SMs to `second`, whose CTAs arrive at their barrier after a further one.
            assert!((51_000..60_000).contains(at_ns), "{error}");
        }
    }
}

#[test]
fn a_barrier_whose_polls_take_no_time_still_ends() {
    let mut device = small(4);
    device.sync.barrier_poll_cycles = 0.0;
    device.sync.atomic_latency_cycles = 0.0;
    device.sync.atomic_half_cycles = 0.0;
    device.sync.atomic_service_cycles = 0.0;
    let work = Work::GridSync { rounds: 2, duration: Duration::PerCta { array: 0, unit: Span::Ns(1.0) } };
    let kernel = Kernel { work, ..barrier("uneven", 4) };
    let case = Case { arrays: vec![vec![10.0, 20.0, 30.0, 40.0]], ..Case::ideal(device, kernel) };
    match case.simulate_with(&case.options) {
        Ok(run) => assert!(run.makespan.ns() >= 80.0),
        Err(error) => assert!(matches!(error, Error::Invalid { .. }), "{error}"),
    }
}

fn chain(ctas: u32) -> Kernel {
    let needs = Needs::Lists { arrays: vec![0] };
    let work = Work::Chain { before: short(), after: short(), needs };
    Kernel { cooperative: false, work, ..barrier("chain", ctas) }
}

#[test]
fn a_cta_that_waits_for_one_without_a_slot_is_a_deadlock_that_names_both() {
    // CTA 0 waits for the last CTA; three others wait with it until the four SMs are full.
    let needs = |ctas: u32| (0..ctas).map(|cta| if cta < 4 { f64::from(ctas - 1) } else { -1.0 }).collect();
    let fits = Case { arrays: vec![needs(5)], ..Case::ideal(small(5), chain(5)) };
    fits.simulate();
    for dispatcher in [Dispatcher::Ideal, Dispatcher::Hardware] {
        let mut stuck = Case { arrays: vec![needs(9)], ..Case::ideal(small(4), chain(9)) };
        stuck.options.dispatcher = dispatcher;
        let error = error_of(&stuck);
        let Error::Deadlock { at_ns: Some(at_ns), who } = &error else { panic!("{error}") };
        assert!(who.contains("CTA 0 of `chain` waits for CTA 8"), "{who}");
        assert!(who.contains("(`chain`): 5 of 9 CTAs wait for a slot"), "{who}");
        // No CTA has ended: the last one came to its wait 1 us after the launch had reached the dispatcher.
        assert!((3_400..4_000).contains(at_ns), "{at_ns}");
    }
}

#[test]
fn ctas_that_wait_for_each_other_in_a_circle_are_refused_before_the_run() {
    let case = Case { arrays: vec![vec![1.0, 2.0, 0.0]], ..Case::ideal(small(4), chain(3)) };
    let error = error_of(&case);
    assert!(
        matches!(&error, Error::Invalid { field, .. } if field == "program.kernels[0].work.chain.needs"),
        "{error}"
    );
    assert!(error.to_string().contains("0 -> 1 -> 2 -> 0"), "{error}");
}

#[test]
fn a_caller_who_asks_to_stop_is_heard_and_one_who_does_not_changes_nothing() {
    let device = catalogue::device("h200").unwrap();
    let program = Program::of(Kernel { work: Work::Duration(short()), ..Kernel::of(500_000, 256) });
    let options = Options::default();
    let error = simulate(&device, &program, &[], &options, &mut || true).map(|run| run.digest).unwrap_err();
    assert_eq!(error, Error::Interrupted);
    let mut asked = 0;
    let mut after_some = || {
        asked += 1;
        asked > 5
    };
    let error = simulate(&device, &program, &[], &options, &mut after_some).map(|run| run.digest).unwrap_err();
    assert_eq!(error, Error::Interrupted);
    let mut asked = 0;
    let mut never = || {
        asked += 1;
        false
    };
    let whole = simulate(&device, &program, &[], &options, &mut never).unwrap();
    assert!(asked > 5);
    assert_eq!(whole.digest, simulate(&device, &program, &[], &options, &mut || false).unwrap().digest);
}
