//! Streaming kernels against arithmetic, and against the access patterns that they share with.
//!
//! A cycle is a nanosecond, L2 is one part of 100 cycles without bandwidth limits, and DRAM takes 300 more. An SM has 128 lanes
//! in four sub-partitions.

use proptest::prelude::*;
use wavesim::device::{Device, catalogue};
use wavesim::records::Records;
use wavesim::workload::streaming::{Array, Share};
use wavesim::workload::{Access, Item, Kernel, Launch, Pattern, Program, Span, Streaming, Times, Work};
use wavesim::{Dispatcher, Error, Options, simulate};

mod small;
use small::{DRAM, NEAR, device};

fn array(bytes: u64, buffer: u16) -> Array {
    Array { bytes, buffer, offset_bytes: 0 }
}

/// Reads 4 bytes an element and stores as many.
fn copy(elements: u64) -> Streaming {
    Streaming {
        elements,
        inputs: vec![array(4, 0)],
        outputs: vec![array(4, 1)],
        operations: 0.0,
        result: None,
        share: Share::Contiguous,
        thread_elements: None,
        times: Times::default(),
    }
}

fn reduction(elements: u64) -> Streaming {
    Streaming { outputs: vec![], ..copy(elements) }
}

fn kernel(ctas: u32, threads: u32, work: Streaming) -> Kernel {
    Kernel { work: Work::Streaming(work), ..Kernel::of(ctas, threads) }
}

fn one_after_the_other(device: &Device, kernels: Vec<Kernel>) -> Records {
    let launch = |kernel| Item::Launch(Launch { kernel, stream: 0, at_ns: None, dependent: false, trigger: false });
    let program = Program { items: (0..kernels.len()).map(launch).collect(), kernels, ..Program::default() };
    let options = Options { dispatcher: Dispatcher::Ideal, ..Options::default() };
    simulate(device, &program, &[], &options, &mut || false).unwrap()
}

/// What the last launch took, in cycles.
fn took(run: &Records) -> u64 {
    let last = run.kernels.end.len() - 1;
    run.kernels.end[last].since(run.kernels.start[last]).0 / 1000
}

#[test]
fn an_iteration_takes_its_loads_its_arithmetic_and_its_stores_and_the_next_one_follows() {
    // 128 threads with 4 elements each: 512 elements an iteration. Ten instructions for each on 128 lanes are 40 cycles.
    let work = Streaming {
        operations: 10.0,
        times: Times { overhead: Span::Cycles(7.0), ..Times::default() },
        ..copy(3 * 512)
    };
    let run = one_after_the_other(&device(1), vec![kernel(1, 128, work.clone()), kernel(1, 128, work)]);
    let once = |last: usize| run.kernels.end[last].since(run.kernels.start[last]).0 / 1000;
    assert_eq!((once(0), once(1)), (3 * (NEAR + DRAM + 7 + 40), 3 * (NEAR + 7 + 40)));
}

#[test]
fn ctas_of_an_sm_take_turns_at_its_lanes() {
    let work = |ctas: u64| Streaming { operations: 1000.0, ..reduction(512 * ctas) };
    let run = one_after_the_other(&device(1), vec![kernel(4, 128, work(4))]);
    assert_eq!(took(&run), NEAR + DRAM + 4 * 4000);
}

#[test]
fn one_warp_reaches_the_lanes_of_one_sub_partition() {
    // Its 128 elements would take 1,000 cycles on all lanes; four such CTAs share an SM without being in each other's way.
    for ctas in 1..=4 {
        let work = Streaming { operations: 1000.0, ..reduction(128 * ctas) };
        let run = one_after_the_other(&device(1), vec![kernel(ctas as u32, 32, work)]);
        assert_eq!(took(&run), NEAR + DRAM + 4000);
    }
}

#[test]
fn loads_of_one_cta_hide_behind_the_arithmetic_of_others() {
    // Eight CTAs of two iterations of 4,000 cycles each: the lanes never wait behind the first loads.
    let work = Streaming { operations: 1000.0, ..reduction(8 * 2 * 512) };
    let run = one_after_the_other(&device(1), vec![kernel(8, 128, work)]);
    assert_eq!(took(&run), NEAR + DRAM + 16 * 4000);
}

#[test]
fn a_thread_with_more_elements_has_more_loads_on_their_way() {
    let work = Streaming { thread_elements: Some(16), ..reduction(4 * 512) };
    let run = one_after_the_other(&device(1), vec![kernel(1, 128, work)]);
    assert_eq!(took(&run), NEAR + DRAM);
}

#[test]
fn a_reduction_stores_one_result_a_cta() {
    let work = Streaming { result: Some(array(64, 7)), ..reduction(10 * 512) };
    let run = one_after_the_other(&device(4), vec![kernel(10, 128, work)]);
    let moved = run.l2.traffic[0];
    assert_eq!((moved.requested, moved.written), (10 * 64, 10 * 2));
}

#[test]
fn a_cta_without_elements_ends_at_once() {
    // Two iterations for three CTAs.
    let run = one_after_the_other(&device(3), vec![kernel(3, 128, copy(600))]);
    assert_eq!(took(&run), NEAR + DRAM);
    assert_eq!(run.l2.traffic[0].requested, 75);
}

#[test]
fn a_kernel_finds_what_the_one_before_has_stored_where_it_says_that_this_lies() {
    let reads =
        |buffer, offset_bytes| Streaming { inputs: vec![Array { offset_bytes, ..array(4, buffer) }], ..copy(4096) };
    let stored = |work: Streaming| {
        let run = one_after_the_other(&device(4), vec![kernel(8, 128, copy(4096)), kernel(8, 128, work)]);
        (run.l2.traffic[1].hits, run.l2.traffic[1].dram_read)
    };
    assert_eq!(stored(reads(1, 0)), (512, 0));
    assert_eq!(stored(reads(1, 8192)), (256, 8192));
    assert_eq!(stored(reads(2, 0)), (0, 16_384));
}

#[test]
fn a_kernel_takes_between_the_longer_of_its_memory_and_arithmetic_and_their_sum() {
    // The roofline: DRAM at 1,000 GB/s, 16,896 lanes; four iterations of 1,024 elements for each of eight CTAs an SM.
    let mut device = catalogue::device("h200").unwrap();
    (device.dram.bandwidth_gb_s, device.dram.reached_gb_s) = (1000.0, 1000.0);
    let elements = 4 * 1024 * 1056;
    let ns = |operations: f64| {
        let work = Streaming { operations, ..reduction(elements) };
        let run = one_after_the_other(&device, vec![kernel(1056, 256, work)]);
        run.kernels.end[0].since(run.kernels.start[0]).ns()
    };
    let dram = elements as f64 * 4.0 / 1000.0;
    // What comes before the first load, and its latency.
    let apart = ns(0.0) - dram;
    assert!((0.0..0.1 * dram).contains(&apart), "{apart}");
    for operations in [1.0, 10.0, 30.0, 66.0, 100.0, 300.0, 2000.0] {
        let (lanes, took) = (elements as f64 * operations / 16_896.0 / 1.98, ns(operations));
        assert!(took >= lanes.max(dram), "{operations}: {took}");
        assert!(took <= lanes + dram + apart, "{operations}: {took}");
    }
    assert!(ns(4.0) < 1.01 * ns(0.0));
    assert!(ns(2000.0) < 1.02 * elements as f64 * 2000.0 / 16_896.0 / 1.98);
}

#[test]
fn what_is_loaded_and_what_stores_drive_out_share_the_bandwidth_of_dram() {
    let device = catalogue::device("h200").unwrap();
    let took = |work: Streaming| {
        let run = one_after_the_other(&device, vec![kernel(8 * 1056, 256, work)]);
        let moved = run.l2.traffic[0];
        let ns = run.kernels.end[0].since(run.kernels.start[0]).ns();
        (ns, (moved.dram_read + moved.dram_written) as f64 / device.dram.bandwidth_gb_s)
    };
    let elements = 8 * 8 * 1024 * 1056;
    let ((copied, dram), (read, _)) = (took(copy(elements)), took(reduction(elements)));
    assert!((dram..1.1 * dram).contains(&copied), "{copied} {dram}");
    // All is stored, and 31 MB of it are left in L2.
    assert!(copied > 1.7 * read, "{copied} {read}");
}

fn refusal(work: Streaming) -> String {
    match simulate(&device(1), &Program::of(kernel(4, 128, work)), &[], &Options::default(), &mut || false) {
        Err(error @ Error::Invalid { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_field() {
    let refused = |change: fn(&mut Streaming), field: &str| {
        let mut work = copy(4096);
        change(&mut work);
        let text = refusal(work);
        assert!(text.starts_with(&format!("program.kernels[0].work.streaming.{field}: ")), "{text}");
    };
    refused(|work| work.elements = 0, "elements");
    refused(|work| work.elements = 1 << 45, "elements");
    refused(|work| (work.inputs, work.outputs) = (vec![], vec![]), "inputs");
    refused(|work| work.inputs = vec![array(4, 0); 65], "inputs");
    refused(|work| work.inputs[0].bytes = 0, "inputs[0].bytes");
    refused(|work| work.outputs.push(array(4_097, 0)), "outputs[1].bytes");
    refused(|work| work.outputs[0].offset_bytes = 1 << 40, "outputs[0].offset_bytes");
    refused(|work| work.result = Some(array(0, 0)), "result.bytes");
    refused(|work| work.result = Some(array(65_537, 0)), "result.bytes");
    refused(|work| work.thread_elements = Some(1025), "thread_elements");
    refused(|work| work.result = Some(Array { offset_bytes: u64::MAX, ..array(1, 0) }), "result.offset_bytes");
    refused(|work| work.operations = -1.0, "operations");
    refused(|work| work.operations = f64::NAN, "operations");
    refused(|work| work.operations = f64::INFINITY, "operations");
    refused(|work| work.thread_elements = Some(0), "thread_elements");
    refused(|work| work.times.startup = Span::Cycles(-1.0), "times.startup");
    refused(|work| work.times.cold = Some(Span::Ns(f64::NAN)), "times.cold");
    refused(|work| work.times.overhead = Span::Ns(1e20), "times.overhead");
    refused(|work| work.times.finish = Span::Ns(-1.0), "times.finish");
}

fn outcome(device: &Device, kernel: Kernel, seed: u64) -> Records {
    simulate(device, &Program::of(kernel), &[], &Options { seed, ..Options::default() }, &mut || false).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Without arithmetic and stores it is the kernel that `Access` describes; without loads it is that one's stores.
    #[test]
    fn a_kernel_that_only_loads_or_only_stores_is_the_access_stream_of_the_same_bytes(
        ctas in 1..3_000_u32, warps in 1..9_u32, iterations in 1..12_u64, write: bool, overhead in 0.0..100.0, seed in 0..9_u64,
    ) {
        let device = catalogue::device("h200").unwrap();
        let bytes = iterations * u64::from(warps) * 512;
        let (startup, overhead) = (Span::Cycles(100.0), Span::Cycles(overhead));
        let times = Times { startup, overhead, ..Times::default() };
        let work = Streaming { times, ..copy(u64::from(ctas) * bytes / 4) };
        let work = if write { Streaming { inputs: vec![], ..work } } else { Streaming { outputs: vec![], ..work } };
        let buffer = u16::from(write);
        let pattern = Pattern::Stream { bytes };
        let access = Access { pattern, write, buffer, buffer_bytes: None, times };
        let access = Kernel { work: Work::Access(access), ..Kernel::of(ctas, 32 * warps) };
        let (stream, access) = (outcome(&device, kernel(ctas, 32 * warps, work), seed), outcome(&device, access, seed));
        prop_assert_eq!(stream.digest, access.digest);
        prop_assert_eq!(stream.makespan, access.makespan);
        prop_assert_eq!(stream.l2.traffic, access.l2.traffic);
    }

    #[test]
    fn all_bytes_go_in_and_out_once_and_no_faster_than_dram_and_lanes_allow(
        elements in 1..400_000_u64, ctas in 1..300_u32, warps in 1..9_u32, inputs in 0..3_u16, outputs in 0..3_u16,
        operations in 0.0..300.0, stride: bool, seed in 0..9_u64,
    ) {
        prop_assume!(inputs + outputs > 0);
        let device = catalogue::device("h200").unwrap().scaled(8).unwrap();
        // Whole sectors, which no two CTAs share.
        let elements = elements.next_multiple_of(8);
        let share = if stride { Share::GridStride } else { Share::Contiguous };
        let work = Streaming {
            inputs: (0..inputs).map(|i| array(4, i)).collect(),
            outputs: (0..outputs).map(|i| array(4, 10 + i)).collect(),
            operations, share, ..copy(elements)
        };
        let run = outcome(&device, kernel(ctas, 32 * warps, work), seed);
        let moved = run.l2.traffic[0];
        prop_assert_eq!(moved.requested, elements / 8 * u64::from(inputs));
        prop_assert_eq!(moved.written, elements / 8 * u64::from(outputs));
        prop_assert_eq!(moved.dram_read, elements * 4 * u64::from(inputs));
        let took = run.kernels.end[0].since(run.kernels.start[0]).ns();
        let lanes = device.clock.cycles_to_ns(elements as f64 * operations / (8.0 * 128.0));
        let dram = (moved.dram_read + moved.dram_written) as f64 / device.dram.bandwidth_gb_s;
        prop_assert!(took >= lanes.max(dram) - 1.0, "{took} {lanes} {dram}");
    }
}
