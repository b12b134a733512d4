//! Memory work against arithmetic: a cache of two parts whose numbers are small enough to work everything out by hand.
//!
//! A cycle is a nanosecond. A line near the reader takes 100 cycles, one at home in the other part 160 (60 more), and DRAM
//! 200 on top. Each part has 8 sets of 4 lines of 128 bytes.

use proptest::prelude::*;
use wavesim::device::{Device, Gpc, Replacement, Topology, WritePolicy, catalogue};
use wavesim::ids::SmId;
use wavesim::records::{Records, Traffic};
use wavesim::workload::{Access, Item, Kernel, Launch, Pattern, Program, Times, Work};
use wavesim::{Dispatcher, Error, Options, simulate};

const NEAR: u64 = 100;
const FAR: u64 = 60;
const DRAM: u64 = 200;
const LINE: u64 = 128;
/// Lines of one part.
const LINES: u64 = 32;

mod gathered;
mod policies;
mod programs;
mod recorded;
mod stores;

/// Four SMs in two GPCs, one near to each part; bandwidths without end.
fn device() -> Device {
    let mut device = catalogue::device("h200").unwrap();
    let gpc = |sms: [u16; 2], half| Gpc::of(sms.map(SmId), half);
    device.topology = Topology { gpcs: vec![gpc([0, 1], 0), gpc([2, 3], 1)] };
    device.clock.sm_mhz = 1000.0;
    device.dispatch.setup_cycles = 0.0;
    device.dispatch.setup_warp_cycles = 0.0;
    let l2 = &mut device.l2;
    (l2.bytes, l2.halves, l2.slices, l2.line_bytes) = (2 * LINES * LINE, 2, 4, 128);
    (l2.ways, l2.banks, l2.reserved_bytes, l2.replacement) = (4, 1, 0, Replacement::Lru);
    (l2.dirty_ways, l2.dirty_stays) = (4, 0.0);
    device.issue.l2_spread_cycles = 0.0;
    device.issue.gpc_clock_spread = 0.0;
    (l2.near_latency_cycles, l2.far_latency_cycles) = (NEAR as f64, (NEAR + FAR) as f64);
    (l2.bandwidth_gb_s, l2.write_bandwidth_gb_s, l2.port_bytes_per_cycle) = (1e9, 1e9, 1e9);
    l2.fabric_bandwidth_gb_s = 1e9;
    (l2.cold_cycles, l2.softness) = (0.0, 0.0);
    let dram = &mut device.dram;
    (dram.bandwidth_gb_s, dram.reached_gb_s) = (1e9, 1e9);
    dram.latency_cycles = (NEAR + DRAM) as f64 + 0.5 * FAR as f64;
    (dram.burst_cycles, dram.spread, dram.softness, dram.turnaround) = (0.0, 0.0, 0.0, 0.0);
    device
}

fn access(pattern: Pattern) -> Access {
    let (write, buffer, buffer_bytes) = (false, 0, None);
    Access { pattern, write, buffer, buffer_bytes, times: Times::default() }
}

fn chase(lines: u64, loads: u64) -> Access {
    access(Pattern::Chase { bytes: lines * LINE, stride_bytes: LINE, loads })
}

/// Kernels one after the other, of so many CTAs of a warp.
fn run(device: &Device, kernels: impl IntoIterator<Item = (u32, Access)>) -> Records {
    let kernels: Vec<Kernel> = kernels
        .into_iter()
        .map(|(ctas, access)| Kernel { work: Work::Access(access), ..Kernel::of(ctas, 32) })
        .collect();
    let launch = |kernel| Item::Launch(Launch { kernel, stream: 0, at_ns: None, dependent: false, trigger: false });
    let program = Program { items: (0..kernels.len()).map(launch).collect(), kernels, ..Program::default() };
    let options = Options { dispatcher: Dispatcher::Ideal, ..Options::default() };
    simulate(device, &program, &[], &options, &mut || false).unwrap()
}

/// How long the last kernel took, in cycles.
fn last_took(run: &Records) -> u64 {
    let last = run.kernels.end.len() - 1;
    run.kernels.end[last].since(run.kernels.start[last]).0 / 1000
}

fn last(run: &Records) -> Traffic {
    *run.l2.traffic.last().unwrap()
}

/// Of a buffer that fills whole sets, half of the lines are at home in each part.
fn homes(lines: u64) -> (u64, u64) {
    (lines / 2, lines - lines / 2)
}

#[test]
fn miss_latency_is_near_plus_dram_and_half_the_misses_go_over_the_fabric() {
    let run = run(&device(), [(1, chase(LINES, LINES))]);
    let (_, elsewhere) = homes(LINES);
    assert_eq!(last_took(&run), LINES * (NEAR + DRAM) + elsewhere * FAR);
    assert_eq!(last(&run).fabric, elsewhere);
    assert_eq!(last(&run).hits, 0);
    assert_eq!(last(&run).dram_read, LINES * 32);
}

#[test]
fn hit_latency_is_near_for_all_lines_that_were_read_before_because_a_copy_is_kept() {
    let run = run(&device(), [(1, chase(LINES, LINES)), (1, chase(LINES, LINES))]);
    assert_eq!(last_took(&run), LINES * NEAR);
    assert_eq!((last(&run).hits, last(&run).fabric, last(&run).dram_read), (LINES, 0, 0));
}

#[test]
fn a_line_at_home_in_the_other_part_is_far_when_its_copy_is_gone() {
    // Twice a part: the reader's part thrashes, the other still has its own half of the lines.
    let lines = 2 * LINES;
    let run = run(&device(), [(1, chase(lines, lines)), (1, chase(lines, lines))]);
    let (near, elsewhere) = homes(lines);
    assert_eq!(last_took(&run), near * (NEAR + DRAM) + elsewhere * (NEAR + FAR));
    assert_eq!(last(&run).hits, elsewhere);
}

#[test]
fn what_one_kernel_leaves_in_l2_is_there_for_the_next_that_names_its_buffer_and_for_no_other() {
    let other = Access { buffer: 1, ..chase(LINES / 2, LINES / 2) };
    let run = run(&device(), [(1, chase(LINES / 2, LINES / 2)), (1, chase(LINES / 2, LINES / 2)), (1, other)]);
    let hits: Vec<u64> = run.l2.traffic.iter().map(|traffic| traffic.hits).collect();
    assert_eq!(hits, [0, LINES / 2, 0]);
}

#[test]
fn coalesce_requests_of_one_gpc_for_a_line_on_its_way_are_one_request_and_come_with_it() {
    let mut device = device();
    device.topology = Topology { gpcs: vec![Gpc::of((0..8).map(SmId), 0)] };
    // Eight CTAs read the same line at the same time; four SMs share a request.
    let all = access(Pattern::Broadcast { bytes: 512, skew_bytes: 0 });
    let run = run(&device, [(8, all)]);
    assert_eq!((last(&run).requested, last(&run).coalesced, last(&run).sectors), (8 * 16, 6 * 16, 2 * 16));
    // The second request finds the line on its way from DRAM.
    assert_eq!((last(&run).hits, last(&run).merged, last(&run).dram_read), (16, 16, 512));
}

#[test]
fn merge_a_lookup_of_a_line_on_its_way_is_served_by_the_same_miss_and_comes_with_it() {
    let mut device = device();
    device.topology = Topology { gpcs: vec![Gpc::of([SmId(0)], 0), Gpc::of([SmId(1)], 0)] };
    device.dispatch.visit_cycles = 0.0;
    // Two GPCs near to one part: nothing joins on the way, and the second lookup meets the first one's miss.
    let all = access(Pattern::Broadcast { bytes: 4 * LINE, skew_bytes: 0 });
    let run = run(&device, [(2, all)]);
    let moved = last(&run);
    assert_eq!((moved.requested, moved.coalesced, moved.sectors), (32, 0, 32));
    // Of four lines in a page each part has all or none; either way one of two lookups in the readers' part misses.
    assert_eq!((moved.hits, moved.merged, moved.dram_read), (16, 16, 4 * LINE));
    let alone = NEAR + DRAM + if moved.fabric > 0 { FAR } else { 0 };
    assert_eq!(last_took(&run), alone);
}

#[test]
fn hit_under_miss_a_hit_does_not_wait_for_a_miss_of_another_sm() {
    // CTA 0 chases what it has read before, CTA 1 what nobody has; both take what they take alone.
    let warm = chase(4, 4);
    let stream = access(Pattern::Stream { bytes: 512 });
    let run = run(&device(), [(1, warm.clone()), (2, stream), (1, warm)]);
    assert_eq!(last_took(&run), 4 * NEAR);
}

#[test]
fn bandwidth_of_dram_is_reached_and_not_passed_when_much_is_in_flight() {
    let mut device = device();
    device.dram.bandwidth_gb_s = 10.0;
    device.dram.reached_gb_s = 10.0;
    // 8 CTAs of a warp have 4,096 bytes in flight: 410 ns at 10 bytes a ns, more than the 300 of latency.
    let run = run(&device, [(8, access(Pattern::Stream { bytes: 512 * 256 }))]);
    let floor = 8 * 512 * 256 / 10;
    let took = last_took(&run);
    // Loads that take turns being near and far hold Little's law on average: within half a percent.
    assert!((floor - floor / 200..floor + floor / 20).contains(&took), "{took} of at least {floor}");
}

#[test]
fn bandwidth_of_l2_is_reached_and_not_passed_by_loads_that_it_does_not_have() {
    let mut device = device();
    device.l2.bandwidth_gb_s = 80.0;
    // 64 CTAs of a warp have 32 KiB in flight: of the 410 ns that a load then takes, 200 are DRAM's, 60 or none the fabric's; what is left is L2's.
    let run = run(&device, [(64, access(Pattern::Stream { bytes: 512 * 256 }))]);
    let floor = 64 * 512 * 256 / 80;
    let took = last_took(&run);
    assert!((floor - floor / 200..floor + floor / 20).contains(&took), "{took} of at least {floor}");
}

#[test]
fn write_back_a_line_is_written_to_dram_once_when_it_is_driven_out() {
    // 64 lines are written and fill both parts; reading as many others drives all of them out.
    let bytes = 2 * LINES * LINE;
    let run = run(&device(), written_then_driven_out(bytes));
    assert_eq!(run.l2.traffic[0].written, bytes / 32);
    let back: u64 = run.l2.traffic.iter().map(|traffic| traffic.dram_written).sum();
    assert_eq!(back, bytes);
}

#[test]
fn write_through_everything_is_written_to_dram_at_once_and_nothing_when_it_is_driven_out() {
    let mut device = device();
    device.l2.write_policy = WritePolicy::WriteThrough;
    let bytes = 2 * LINES * LINE;
    let run = run(&device, written_then_driven_out(bytes));
    assert_eq!((run.l2.traffic[0].dram_written, run.l2.traffic[1].dram_written), (bytes, 0));
    // It is kept as well: half of it, what the reads behind it have not driven out yet, is no concern of DRAM's.
    assert_eq!(run.l2.traffic[1].dram_read, 2 * LINES * 32);
}

#[test]
fn write_through_stores_are_as_fast_as_dram_and_write_back_stores_as_l2() {
    let mut device = device();
    (device.dram.bandwidth_gb_s, device.dram.reached_gb_s, device.l2.write_bandwidth_gb_s) = (10.0, 10.0, 40.0);
    let write = Access { write: true, ..access(Pattern::Stream { bytes: 4096 }) };
    // Bytes over bytes a nanosecond.
    assert_eq!(last_took(&run(&device, [(1, write.clone())])), 4096 / 40);
    device.l2.write_policy = WritePolicy::WriteThrough;
    assert_eq!(last_took(&run(&device, [(1, write)])), 4096 / 10);
}

/// A kernel writes so many bytes, and another reads as many lines as L2 has.
fn written_then_driven_out(bytes: u64) -> [(u32, Access); 2] {
    let write = Access { write: true, ..access(Pattern::Stream { bytes }) };
    [(1, write), (1, Access { buffer: 1, ..chase(2 * LINES, 2 * LINES) })]
}

#[test]
fn set_independence_a_set_that_overflows_leaves_the_others_alone() {
    // One line more than a part holds lies in one set: only that set's 5 lines miss, the other 28 hit.
    let lines = LINES + 1;
    let run = run(&one_part(), [(1, chase(lines, lines)), (1, chase(lines, lines))]);
    assert_eq!(last(&run).hits, LINES - 4);
}

/// How many lines of a chase are not found near, which depends on where it lies: at the beginning of two allocations, and once all
/// lines miss (`reference/h200_holdout/settle/chases.parquet`).
#[test]
fn a_chase_over_more_and_more_misses_the_lines_of_one_bank_first_and_all_of_them_in_the_end() {
    let device = catalogue::device("h200").unwrap();
    for (mb, least, most) in
        [(24, 0.0, 0.014), (26, 0.0, 0.034), (28, 0.12, 0.23), (30, 0.22, 0.25), (31, 0.44, 0.52), (36, 1.0, 1.0)]
    {
        let lines = mb * 8192;
        let run = run(&device, [(1, chase(lines, lines)), (1, chase(lines, lines))]);
        // What is not found near goes over the fabric if it is at home there, as half of the lines are.
        let missed = 2.0 * last(&run).fabric as f64 / lines as f64;
        assert!(
            (least - 0.03..=most + 0.03).contains(&missed),
            "{mb} MB: {missed} of the lines, measured {least} to {most}"
        );
    }
}

/// The same with a single part, and DRAM 200 behind it.
fn one_part() -> Device {
    let mut device = device();
    device.topology = Topology { gpcs: vec![Gpc::of([SmId(0)], 0)] };
    (device.l2.halves, device.l2.bytes) = (1, LINES * LINE);
    device.dram.latency_cycles = (NEAR + DRAM) as f64;
    device
}

/// How many of the second pass over `lines` hit in an LRU cache, by stack distance: a line hits if its set has no more lines
/// than ways. Contiguous lines lie in sets in turn.
fn stack_distance_hits(lines: u64, sets: u64, ways: u64) -> u64 {
    (0..sets).map(|set| (lines + sets - 1 - set) / sets).filter(|&held| held <= ways).sum()
}

fn total(run: &Records, of: fn(&Traffic) -> u64) -> u64 {
    run.l2.traffic.iter().map(of).sum()
}

proptest! {
    #[test]
    fn second_passes_hit_as_the_stack_distance_of_lru_says(lines in 1..200_u64) {
        let run = run(&one_part(), [(1, chase(lines, lines)), (1, chase(lines, lines))]);
        prop_assert_eq!(last(&run).hits, stack_distance_hits(lines, 8, 4));
    }

    #[test]
    fn what_is_requested_is_coalesced_or_read_and_misses_at_home_are_what_dram_reads(
        ctas in 1..20_u32, chunks in 1..40_u64, passes in 1..4_u64, shift in 0..9_u64, skewed in any::<bool>(),
    ) {
        let device = catalogue::device("h200").unwrap().scaled(6).unwrap();
        let pattern = if skewed {
            Pattern::Broadcast { bytes: chunks * 512, skew_bytes: shift * 512 }
        } else {
            Pattern::Reuse { chunk_bytes: 1024, chunks, passes, shift }
        };
        let wanted = if skewed { u64::from(ctas) * chunks * 16 } else { chunks * passes * 32 };
        let kernel = Kernel { work: Work::Access(access(pattern)), ..Kernel::of(ctas, 32) };
        let run = simulate(&device, &Program::of(kernel), &[], &Options::default(), &mut || false).unwrap();
        let traffic = last(&run);
        prop_assert_eq!(traffic.requested, wanted);
        prop_assert_eq!(traffic.requested, traffic.coalesced + traffic.sectors);
        prop_assert!(traffic.merged <= traffic.hits);
        let misses = traffic.sectors + traffic.fabric - traffic.hits;
        // A read that misses near and at home fills both from one DRAM read.
        prop_assert!(traffic.dram_read / 32 <= misses);
        prop_assert!(misses <= 2 * (traffic.dram_read / 32) + traffic.fabric);
        prop_assert!(traffic.fabric <= traffic.sectors);
        prop_assert_eq!(traffic.written, 0);
    }

    /// Whole blocks and single lines tell the same: another kernel whose accesses are lines makes blocks small.
    #[test]
    fn large_blocks_move_the_same_bytes_as_lines_one_by_one(chunks in 1..600_u64, shift in 0..50_u64) {
        let device = {
            let mut device = catalogue::device("h200").unwrap().scaled(1).unwrap();
            (device.dram.spread, device.dram.burst_cycles) = (0.0, 0.0);
            device
        };
        let pattern = Pattern::Reuse { chunk_bytes: 4096, chunks, passes: 2, shift };
        let wide = Kernel { work: Work::Access(access(pattern)), ..Kernel::of(1, 256) };
        let mut program = Program::of(wide);
        let coarse = simulate(&device, &program, &[], &Options::default(), &mut || false).unwrap();
        program.kernels.push(Kernel { work: Work::Access(chase(1, 1)), ..Kernel::of(1, 1) });
        program.items.push(Item::Launch(Launch { kernel: 1, stream: 0, at_ns: None, dependent: false, trigger: false }));
        let fine = simulate(&device, &program, &[], &Options::default(), &mut || false).unwrap();
        prop_assert_eq!(coarse.l2.traffic[0], fine.l2.traffic[0]);
        prop_assert_eq!(total(&coarse, |traffic| traffic.requested), 2 * chunks * 128);
    }

    #[test]
    fn what_is_written_is_written_back_once(pages in 1..400_u64) {
        let device = catalogue::device("h200").unwrap().scaled(1).unwrap();
        let write = Access { write: true, ..access(Pattern::Stream { bytes: pages * 4096 }) };
        // Nothing stays for so many rounds.
        let read = Access { buffer: 1, ..access(Pattern::Stream { bytes: 32 * device.l2.bytes }) };
        let kernels = [write, read].map(|work| Kernel { work: Work::Access(work), ..Kernel::of(1, 256) });
        let launch = |kernel| Item::Launch(Launch { kernel, stream: 0, at_ns: None, dependent: false, trigger: false });
        let program = Program { kernels: kernels.into(), items: vec![launch(0), launch(1)], ..Program::default() };
        let run = simulate(&device, &program, &[], &Options::default(), &mut || false).unwrap();
        prop_assert_eq!(total(&run, |traffic| traffic.written), pages * 128);
        prop_assert_eq!(total(&run, |traffic| traffic.dram_written), pages * 4096);
    }
}

fn refusal(device: &Device, access: Access) -> String {
    let kernel = Kernel { work: Work::Access(access), ..Kernel::of(4, 32) };
    match simulate(device, &Program::of(kernel), &[], &Options::default(), &mut || false) {
        Err(error @ Error::Invalid { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pattern_that_leaves_its_buffer_is_refused_by_how_far_it_reaches() {
    let outside = Access { buffer_bytes: Some(4000), ..access(Pattern::Stream { bytes: 1024 }) };
    assert_eq!(
        refusal(&device(), outside),
        "program.kernels[0].work.access.buffer_bytes: the pattern leaves its buffer: it reaches 4096 bytes (got 4000)"
    );
}

#[test]
fn sizes_of_nothing_and_sizes_beyond_any_memory_are_refused() {
    for bytes in [0, u64::MAX] {
        let text = refusal(&device(), access(Pattern::Stream { bytes }));
        assert!(text.starts_with("program.kernels[0].work.access.pattern.stream.bytes: "), "{text}");
    }
    let text =
        refusal(&device(), access(Pattern::Reuse { chunk_bytes: 1 << 40, chunks: 1 << 40, passes: 1, shift: 0 }));
    assert!(text.contains("a pattern reaches at most"), "{text}");
    let text = refusal(&device(), access(Pattern::Chase { bytes: 64, stride_bytes: 128, loads: 1 }));
    assert!(text.contains("chase.stride_bytes: must be from 32 (a sector) to the 64 bytes"), "{text}");
}

#[test]
fn caches_that_cannot_be_are_refused_with_the_field() {
    let refused = |change: fn(&mut Device)| {
        let mut device = device();
        change(&mut device);
        device.validate().unwrap_err().to_string()
    };
    assert!(refused(|device| device.l2.bytes = 0).starts_with("l2.bytes: "));
    assert!(refused(|device| device.l2.ways = 0).starts_with("l2.ways: "));
    assert!(refused(|device| device.l2.ways = 3).contains("no whole number of sets"));
    assert!(refused(|device| device.l2.banks = 0).starts_with("l2.banks: from 1 to 64 banks are simulated"));
    assert!(refused(|device| device.l2.reserved_bytes = device.l2.bytes).starts_with("l2.reserved_bytes: "));
    assert!(refused(|device| device.l2.coalesced_requests = 0).starts_with("l2.coalesced_requests: "));
    assert!(refused(|device| device.l2.ways = 1024).starts_with("l2.ways: a set holds 1 to 256 lines"));
    assert!(refused(|device| device.l2.line_bytes = 96).starts_with("l2.line_bytes: "));
    assert!(refused(|device| device.l2.line_bytes = 96).starts_with("l2.line_bytes: "));
    assert!(refused(|device| device.l2.sector_bytes = 64).contains("only sectors of 32 bytes are simulated (got 64)"));
    for (slices, near) in [(0, "2"), (3, "2 or 4"), (2 * LINES as u32, "16")] {
        let mut device = device();
        device.l2.slices = slices;
        let text = device.validate().unwrap_err().to_string();
        let said = format!("a multiple of 2 up to 16, such as {near} (got {slices})");
        assert!(text.starts_with("l2.slices: each of the 2 part(s) of L2") && text.ends_with(&said), "{text}");
    }
    let all_protected = |device: &mut Device| {
        (device.l2.replacement, device.l2.protected_ways) = (Replacement::Protected, 4);
    };
    let mut device = device();
    all_protected(&mut device);
    let text = device.validate().unwrap_err().to_string();
    assert_eq!(text, "l2.protected_ways: must leave one of 4 ways to lines that are new (got 4)");
    assert!(refused(|device| device.l2.bandwidth_gb_s = -1.0).starts_with("l2.bandwidth_gb_s: "));
    assert!(refused(|device| device.l2.fabric_bandwidth_gb_s = 0.0).starts_with("l2.fabric_bandwidth_gb_s: "));
    assert!(refused(|device| device.l2.write_bandwidth_gb_s = f64::NAN).starts_with("l2.write_bandwidth_gb_s: "));
    assert!(refused(|device| device.l2.port_bytes_per_cycle = f64::INFINITY).starts_with("l2.port_bytes_per_cycle: "));
    assert!(refused(|device| device.dram.bandwidth_gb_s = -4800.0).starts_with("dram.bandwidth_gb_s: "));
    assert!(refused(|device| device.l2.far_latency_cycles = 1.0).starts_with("l2.far_latency_cycles: "));
    assert!(refused(|device| device.dram.latency_cycles = 1e300).starts_with("dram.latency_cycles: "));
    assert!(refused(|device| device.dram.spread = f64::NAN).starts_with("dram.spread: "));
    assert!(refused(|device| device.l2.near_latency_cycles = -1.0).starts_with("l2.near_latency_cycles: "));
}
