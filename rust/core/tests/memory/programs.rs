//! Warp programs whose loads and stores go through L2, against arithmetic and against what they ask for.

use proptest::prelude::*;
use wavesim::device::Device;
use wavesim::records::Records;
use wavesim::workload::{
    Access, Item, Kernel, Launch, Pattern, Pipe, Program, Segment, Source, Span, Times, Warps, Work,
};
use wavesim::{Dispatcher, Error, IssueMode, Options, simulate};

use super::{DRAM, FAR, LINE, LINES, NEAR, access, chase, device, homes, last, last_took};

const MODES: [IssueMode; 2] = [IssueMode::Rates, IssueMode::Exact];
const SECTOR: u64 = 32;

fn load(instructions: u64, bytes: u32, access: usize, wait: bool) -> Segment {
    Segment::Load { instructions, bytes, from: Source::Access(access), wait }
}

fn store(instructions: u64, bytes: u32, access: usize) -> Segment {
    Segment::Store { instructions, bytes, access: Some(access) }
}

fn fmas(instructions: u64) -> Segment {
    Segment::Arithmetic { instructions, latency_cycles: None, chains: 1, pipe: Pipe::Fma }
}

fn unrolled(count: u64, body: Vec<Segment>) -> Segment {
    Segment::Loop { count, body, unrolled: true }
}

fn kernel(ctas: u32, warps: u32, program: Vec<Segment>, accesses: Vec<Access>) -> Kernel {
    let none = Span::Ns(0.0);
    let work = Warps { programs: vec![program], accesses, order: None, startup: none, finish: none };
    Kernel { work: Work::Warps(work), ..Kernel::of(ctas, 32 * warps) }
}

fn launched(device: &Device, kernel: &Kernel, times: usize, issue: IssueMode) -> Result<Records, Error> {
    let launch = Launch { kernel: 0, stream: 0, at_ns: None, dependent: false, trigger: false };
    let items = vec![Item::Launch(launch); times];
    let program = Program { items, kernels: vec![kernel.clone()], ..Program::default() };
    let options = Options { dispatcher: Dispatcher::Ideal, issue, ..Options::default() };
    simulate(device, &program, &[], &options, &mut || false)
}

#[test]
fn loads_that_wait_for_each_other_take_the_latency_of_where_their_lines_are() {
    // Some cycles pass until the last one is issued, and the program ends. Rates are taken between those at two latencies.
    let around = |cycles: u64| 12 + cycles / 100;
    for issue in MODES {
        let chased = kernel(1, 1, vec![unrolled(LINES, vec![load(1, 32, 0, true)])], vec![chase(LINES, LINES)]);
        let cold = launched(&device(), &chased, 1, issue).unwrap();
        let (_, elsewhere) = homes(LINES);
        let misses = LINES * (NEAR + DRAM) + elsewhere * FAR;
        assert!(last_took(&cold).abs_diff(misses) < around(misses), "{issue:?}: {} cycles", last_took(&cold));
        assert_eq!((last(&cold).dram_read, last(&cold).fabric, last(&cold).hits), (LINES * SECTOR, elsewhere, 0));
        let warm = launched(&device(), &chased, 2, issue).unwrap();
        let hits = LINES * NEAR;
        assert!(last_took(&warm).abs_diff(hits) < around(hits), "{issue:?}: {} cycles", last_took(&warm));
        assert_eq!((last(&warm).dram_read, last(&warm).hits), (0, LINES));
    }
}

#[test]
fn a_load_hides_behind_arithmetic_and_arithmetic_behind_a_load() {
    // A chain of multiply-adds takes 4 cycles for each; a near line takes 100.
    for (count, turn) in [(10, NEAR), (50, 200)] {
        for issue in MODES {
            let body = vec![load(1, 32, 0, false), fmas(count), Segment::Wait];
            let program = kernel(1, 1, vec![unrolled(LINES, body)], vec![chase(LINES, LINES)]);
            let warm = launched(&device(), &program, 2, issue).unwrap();
            let expected = LINES * turn;
            let took = last_took(&warm);
            assert!(took.abs_diff(expected) < expected / 50 + 12, "{issue:?}: {took} cycles, not {expected}");
        }
    }
}

#[test]
fn stores_are_no_faster_than_l2_takes_them_in() {
    let mut device = device();
    // 8 bytes a cycle.
    device.l2.write_bandwidth_gb_s = 8.0;
    let write = Access { write: true, ..access(Pattern::Stream { bytes: 512 * 512 }) };
    // The program ends with some stores on their way to L2: 192 cycles of them and the last one, or 93 of them.
    for (issue, on_their_way) in MODES.into_iter().zip([300, 93 * 512 / 8 + 12]) {
        let program = kernel(1, 1, vec![unrolled(512, vec![store(1, 512, 0), fmas(1)])], vec![write.clone()]);
        let run = launched(&device, &program, 1, issue).unwrap();
        assert_eq!(last(&run).written, 512 * 512 / SECTOR);
        let (most, took) = (512 * 512 / 8, last_took(&run));
        assert!((most - on_their_way..=most + 12).contains(&took), "{issue:?}: {took} cycles of {most}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// What programs ask for is counted, all of it and once, and each lookup hits, or fetches its sector.
    #[test]
    fn sectors_counted_are_sectors_asked_for(
        ctas in 1..12_u32, warps in 1..5_u32, turns in 1..40_u64, loads in 1..4_u64, stores in 0..3_u64, lines in 1..4_u32,
        which in 0..4_u8, arithmetic in 0..300_u64, wait in any::<bool>(), barrier in any::<bool>(),
    ) {
        let bytes = 128 * lines;
        let step = u64::from(bytes * warps);
        let moved = step * loads * turns;
        let pattern = match which {
            0 => Pattern::Stream { bytes: moved },
            1 => Pattern::Random { bytes: 64 * LINE, piece_bytes: LINE, pieces: moved / LINE },
            2 => Pattern::Broadcast { bytes: moved, skew_bytes: LINE },
            _ => Pattern::Strided {
                piece_bytes: LINE, pieces: moved / LINE, stride_bytes: 3 * LINE, cta_stride_bytes: LINE,
            },
        };
        let mut body = vec![load(loads, bytes, 0, wait)];
        let mut accesses = vec![access(pattern)];
        if arithmetic > 0 {
            body.push(fmas(arithmetic));
        }
        if barrier {
            body.push(Segment::Barrier);
        }
        if stores > 0 {
            body.push(store(stores, bytes, 1));
            let pattern = Pattern::Stream { bytes: step * stores * turns };
            accesses.push(Access { write: true, buffer: 1, ..access(pattern) });
        }
        let program = kernel(ctas, warps, vec![Segment::Loop { count: turns, body, unrolled: false }], accesses);
        for issue in MODES {
            let run = launched(&device(), &program, 1, issue).unwrap();
            let got = last(&run);
            prop_assert_eq!(got.requested, u64::from(ctas) * moved / SECTOR);
            prop_assert_eq!(got.written, u64::from(ctas) * step * stores * turns / SECTOR);
            prop_assert_eq!(got.requested, got.coalesced + got.sectors);
            // Each lookup in vain is one over the fabric, or fetches its sector.
            prop_assert_eq!(got.sectors + got.fabric, got.hits + got.fabric + got.dram_read / SECTOR);
        }
    }
}

#[test]
fn an_access_that_a_program_cannot_walk_through_is_refused() {
    let read = || access(Pattern::Stream { bytes: 1024 });
    let write = || Access { write: true, ..read() };
    let said = |program: Vec<Segment>, accesses: Vec<Access>| {
        let refused = launched(&device(), &kernel(3, 2, program, accesses), 1, IssueMode::Rates);
        refused.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let at = "program.kernels[0].work.warps.";
    for (program, accesses, expected) in [
        (
            vec![load(1, 128, 1, true)],
            vec![read()],
            "programs[0][0].load.from.access: the kernel has 1 accesses (got 1)",
        ),
        (
            vec![load(1, 128, 0, true)],
            vec![write()],
            "programs[0][0].load.from.access: a load through an access that writes (got 0)",
        ),
        (
            vec![store(1, 128, 0)],
            vec![read()],
            "programs[0][0].store.access: a store through an access that reads (got 0)",
        ),
        (vec![fmas(1)], vec![read()], "accesses: no load or store names the access of this number (got 0)"),
        (
            vec![load(5, 128, 0, true)],
            vec![read()],
            "accesses[0].pattern: CTA 0 walks through it in 5 steps of 256 bytes, and it ends after 4 (got 5)",
        ),
        (
            vec![load(1, 128, 0, true)],
            vec![Access { buffer_bytes: Some(3071), ..read() }],
            "accesses[0].buffer_bytes: the pattern leaves its buffer: it reaches 3072 bytes (got 3071)",
        ),
        (
            vec![load(1, 128, 0, true)],
            vec![access(Pattern::Stream { bytes: 0 })],
            "accesses[0].pattern.stream.bytes: must be at least 1 (got 0)",
        ),
        (
            vec![load(1, 128, 0, true)],
            vec![Access { times: Times { overhead: Span::Cycles(4.0), ..Times::default() }, ..read() }],
            "accesses[0].times.overhead: in a warp program, what takes time beside accesses is segments (got 4)",
        ),
    ] {
        assert_eq!(said(program, accesses), format!("{at}{expected}"));
    }
}

#[test]
fn ctas_whose_patterns_end_earlier_run_a_program_that_does() {
    // Of 5 chunks, CTA 0 of 2 has 3 and CTA 1 has 2.
    let chunks = access(Pattern::Reuse { chunk_bytes: 512, chunks: 5, passes: 1, shift: 0 });
    let turns = |count| vec![unrolled(count, vec![load(1, 512, 0, true)])];
    let mut two = kernel(2, 1, turns(3), vec![chunks]);
    let refused = launched(&device(), &two, 1, IssueMode::Rates).unwrap_err().to_string();
    assert!(refused.contains("CTA 1 walks through it in 3 steps of 512 bytes, and it ends after 2"), "{refused}");
    if let Work::Warps(warps) = &mut two.work {
        warps.programs.push(turns(2));
    }
    assert_eq!(last(&launched(&device(), &two, 1, IssueMode::Rates).unwrap()).requested, 5 * 512 / SECTOR);
}
