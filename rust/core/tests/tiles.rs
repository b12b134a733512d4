//! Tiled kernels against arithmetic.
//!
//! A cycle is a nanosecond and L2 is one part of 100 cycles without bandwidth limits. A step of a 64 x 64 x 64 tile is
//! 524,288 operations, at 4,096 a cycle 128 cycles.

use proptest::prelude::*;
use wavesim::device::{Device, Gpc, catalogue};
use wavesim::ids::SmId;
use wavesim::records::Records;
use wavesim::workload::{Access, Item, Kernel, Launch, Pattern, Program, Span, Tiles, Times, Work};
use wavesim::{Dispatcher, Error, Options, simulate};

mod small;
use small::{DRAM, NEAR, device};

const STEP: u64 = 128;

fn product(m: u64, n: u64, k: u64) -> Tiles {
    Tiles {
        m,
        n,
        k,
        tile: [64, 64, 64],
        element_bytes: 2,
        output_bytes: 2,
        stages: 2,
        order: None,
        buffer: 0,
        times: Times::default(),
    }
}

fn kernel(ctas: u32, work: Tiles) -> Kernel {
    Kernel { work: Work::Tiles(work), shared_memory: 49_152, ..Kernel::of(ctas, 128) }
}

/// The same kernel so many times: after the first, its operands are in L2.
fn runs(device: &Device, kernel: Kernel, times: usize) -> Records {
    let launch = Item::Launch(Launch { kernel: 0, stream: 0, at_ns: None, dependent: false, trigger: false });
    let program = Program { kernels: vec![kernel], items: vec![launch; times], ..Program::default() };
    let options = Options { dispatcher: Dispatcher::Ideal, ..Options::default() };
    simulate(device, &program, &[], &options, &mut || false).unwrap()
}

/// What the last launch took, from the first start to the last end, in cycles.
fn took(run: &Records) -> u64 {
    let kernels = &run.kernels;
    let last = kernels.end.len() - 1;
    kernels.end[last].since(kernels.start[last]).0 / 1000
}

#[test]
fn loads_hide_behind_arithmetic_that_takes_longer() {
    // Ten steps: the first waits for its loads, 100 cycles; those of the others come while the tensor cores work, 128.
    assert_eq!(took(&runs(&device(1), kernel(1, product(64, 64, 640)), 2)), NEAR + 10 * STEP);
}

#[test]
fn arithmetic_hides_behind_loads_that_take_longer() {
    // From DRAM a step's loads take 400 cycles, and are issued when the step before begins.
    assert_eq!(took(&runs(&device(1), kernel(1, product(64, 64, 640)), 1)), 10 * (NEAR + DRAM) + STEP);
}

#[test]
fn more_stages_have_more_loads_on_their_way() {
    // Two steps ahead: in the time of one latency of 400 cycles two steps come.
    let work = Tiles { stages: 3, ..product(64, 64, 640) };
    assert_eq!(took(&runs(&device(1), kernel(1, work), 1)), 5 * (NEAR + DRAM) + 2 * STEP);
}

#[test]
fn ctas_of_an_sm_take_turns_at_its_tensor_cores() {
    // Two CTAs with two steps each: the four steps follow each other.
    assert_eq!(took(&runs(&device(1), kernel(2, product(128, 64, 128)), 2)), NEAR + 4 * STEP);
}

#[test]
fn what_a_step_costs_beside_its_arithmetic_keeps_nobody_else_from_the_tensor_cores() {
    let times = Times { overhead: Span::Cycles(50.0), finish: Span::Cycles(7.0), ..Times::default() };
    let work = Tiles { times, ..product(64, 64, 128) };
    assert_eq!(took(&runs(&device(1), kernel(1, work.clone()), 2)), NEAR + 2 * STEP + 50 + 7);
    let two = Tiles { m: 128, ..work };
    assert_eq!(took(&runs(&device(1), kernel(2, two), 2)), NEAR + 4 * STEP + 7);
}

/// When the CTAs of the last launch end, in cycles from its start.
fn ends(device: &Device, kernel: Kernel, seed: u64) -> Vec<u64> {
    let ctas = kernel.ctas() as usize;
    let launch = Item::Launch(Launch { kernel: 0, stream: 0, at_ns: None, dependent: false, trigger: false });
    let program = Program { kernels: vec![kernel], items: vec![launch; 2], ..Program::default() };
    let options = Options { dispatcher: Dispatcher::Ideal, seed, ..Options::default() };
    let run = simulate(device, &program, &[], &options, &mut || false).unwrap();
    let of_it = run.ctas.unwrap();
    let last = (0..2 * ctas).filter(|&i| of_it.kernel[i].0 == 1);
    let mut ends: Vec<(u32, u64)> =
        last.map(|i| (of_it.cta[i].0, of_it.end[i].since(run.kernels.start[1]).0 / 1000)).collect();
    ends.sort_unstable();
    ends.into_iter().map(|(_, end)| end).collect()
}

#[test]
fn tiles_that_are_stored_at_the_same_time_share_what_takes_them_in() {
    let mut device = device(4);
    device.l2.write_bandwidth_gb_s = 1.0;
    // Four tiles of two pages, at a byte a cycle: each CTA's second page is behind everybody's first.
    let expected = [5, 6, 7, 8].map(|pages| NEAR + STEP + pages * 4096);
    assert_eq!(ends(&device, kernel(4, product(64, 256, 64)), 0), expected);
}

#[test]
fn gpcs_whose_tensor_cores_are_busy_run_at_clocks_of_their_own() {
    let mut device = device(4);
    device.topology.gpcs = vec![Gpc::of((0..2).map(SmId), 0), Gpc::of((2..4).map(SmId), 0)];
    device.issue.gpc_clock_spread = 0.1;
    let steps = 100;
    for seed in 0..8 {
        let ends = ends(&device, kernel(4, product(64, 256, 64 * steps)), seed);
        let off = |end: u64| (end - NEAR) as f64 / (steps * STEP) as f64 - 1.0;
        assert_eq!((ends[0], ends[2]), (ends[1], ends[3]), "those of a GPC have the same one");
        assert_ne!(ends[0], ends[2]);
        assert!(ends.iter().all(|&end| off(end).abs() <= 0.101), "{ends:?}");
    }
}

#[test]
fn smaller_elements_are_worked_on_faster() {
    let work = Tiles { element_bytes: 1, ..product(64, 64, 640) };
    // 64 cycles a step are less than the 100 that its loads take.
    assert_eq!(took(&runs(&device(1), kernel(1, work), 2)), 10 * NEAR + STEP / 2);
}

#[test]
fn a_persistent_grid_takes_every_tile_once_in_strides() {
    let work = product(64, 640, 64);
    let plain = runs(&device(4), kernel(10, work.clone()), 1);
    let persistent = runs(&device(4), kernel(4, work), 1);
    for run in [&plain, &persistent] {
        let moved = run.l2.traffic[0];
        // Ten tiles of 8 KiB of A and as many of B; ten of 8 KiB are stored.
        assert_eq!((moved.requested, moved.written), (10 * 512, 10 * 256));
    }
    // Three rounds of loads from L2 and one step; A comes from DRAM once, B each time.
    assert_eq!(took(&persistent), 3 * (NEAR + DRAM + STEP));
}

#[test]
fn operands_that_tiles_share_are_read_from_dram_once() {
    let run = runs(&device(8), kernel(16, product(256, 256, 256)), 1);
    assert_eq!(run.l2.traffic[0].dram_read, 2 * 256 * 256 * 2);
}

#[test]
fn tiles_find_what_an_earlier_kernel_left_in_their_buffer() {
    let read = Access {
        pattern: Pattern::Stream { bytes: 65_536 },
        write: false,
        buffer: 0,
        buffer_bytes: None,
        times: Times::default(),
    };
    let reads = Kernel { work: Work::Access(read), ..Kernel::of(1, 128) };
    let launch = |kernel| Item::Launch(Launch { kernel, stream: 0, at_ns: None, dependent: false, trigger: false });
    let program = Program {
        kernels: vec![reads, kernel(1, product(64, 64, 256))],
        items: vec![launch(0), launch(1)],
        ..Program::default()
    };
    let run = simulate(&device(1), &program, &[], &Options::default(), &mut || false).unwrap();
    assert_eq!(run.l2.traffic[1].dram_read, 0);
    assert_eq!(run.l2.traffic[1].hits, run.l2.traffic[1].sectors);
}

fn refusal(kernel: Kernel, arrays: &[&[f64]]) -> String {
    match simulate(&device(1), &Program::of(kernel), arrays, &Options::default(), &mut || false) {
        Err(error @ Error::Invalid { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_field() {
    let refused = |change: fn(&mut Tiles), field: &str| {
        let mut work = product(128, 128, 64);
        change(&mut work);
        let text = refusal(kernel(4, work), &[&[0.0, 1.0], &[0.0, 1.0, 2.0, 2.0], &[0.0, 1.0, 2.0, 4.0]]);
        assert!(text.starts_with(&format!("program.kernels[0].work.tiles.{field}: ")), "{text}");
    };
    refused(|work| work.m = 0, "m");
    refused(|work| work.k = 0, "k");
    refused(|work| work.n = u64::MAX, "n");
    refused(|work| work.tile[1] = 0, "tile[1]");
    refused(|work| work.element_bytes = 0, "element_bytes");
    refused(|work| work.output_bytes = 17, "output_bytes");
    refused(|work| work.stages = 1, "stages");
    refused(|work| work.stages = 65, "stages");
    refused(|work| work.times.overhead = Span::Cycles(-1.0), "times.overhead");
    refused(|work| work.times.finish = Span::Ns(f64::NAN), "times.finish");
    refused(|work| work.order = Some(7), "order");
    refused(|work| work.order = Some(0), "order");
    refused(|work| (work.m, work.n, work.k) = (1 << 32, 1 << 32, 1 << 32), "tiles");
}

#[test]
fn operands_that_do_not_fit_shared_memory_are_refused_with_what_they_need() {
    let text = refusal(Kernel { shared_memory: 32_767, ..kernel(1, product(64, 64, 64)) }, &[]);
    assert_eq!(
        text,
        "program.kernels[0].work.tiles.stages: 32768 bytes of operands do not fit into the CTA's 32767 of shared memory \
         (got 2)"
    );
}

#[test]
fn more_ctas_than_tiles_are_refused() {
    let text = refusal(kernel(5, product(128, 128, 64)), &[]);
    assert!(text.contains("the grid of 5 CTAs has more than the 2 x 2 tiles"), "{text}");
}

#[test]
fn an_order_that_leaves_a_tile_out_is_refused_at_the_place() {
    let ordered = || kernel(4, Tiles { order: Some(0), ..product(128, 128, 64) });
    assert!(refusal(ordered(), &[&[0.0, 1.0, 2.0, 2.0]]).contains("tiles.order[3]: this tile has come before"));
    assert!(refusal(ordered(), &[&[0.0, 1.0, 2.0, 4.0]]).contains("tiles.order[3]: a tile is one of 0 to 3"));
}

proptest! {
    /// Whole blocks and single lines tell the same, whatever is merged: another kernel whose accesses are lines makes blocks
    /// small.
    #[test]
    fn panels_counted_block_by_block_are_panels_counted_line_by_line(
        rows in 1..6_u64, columns in 1..6_u64, steps in 1..6_u64, ctas in 1..37_u32, lines in 1..400_u32,
    ) {
        let mut device = catalogue::device("h200").unwrap().scaled(6).unwrap();
        (device.dram.spread, device.dram.burst_cycles, device.l2.coalesced_lines) = (0.0, 0.0, 32 * lines.div_ceil(32));
        let ctas = ctas.min((rows * columns) as u32);
        let program = Program::of(kernel(ctas, product(64 * rows, 64 * columns, 64 * steps)));
        let coarse = simulate(&device, &program, &[], &Options::default(), &mut || false).unwrap();
        let chase = Access {
            pattern: Pattern::Chase { bytes: 128, stride_bytes: 128, loads: 1 },
            write: false,
            buffer: 1,
            buffer_bytes: None,
            times: Times::default(),
        };
        let mut program = program;
        program.kernels.push(Kernel { work: Work::Access(chase), ..Kernel::of(1, 1) });
        program.items.push(Item::Launch(Launch { kernel: 1, stream: 0, at_ns: None, dependent: false, trigger: false }));
        let fine = simulate(&device, &program, &[], &Options::default(), &mut || false).unwrap();
        prop_assert_eq!(coarse.l2.traffic[0], fine.l2.traffic[0]);
        prop_assert_eq!(coarse.kernels.end[0], fine.kernels.end[0]);
    }

    #[test]
    fn every_tile_is_worked_on_once_and_a_product_takes_no_less_than_its_arithmetic(
        rows in 1..9_u64, columns in 1..9_u64, steps in 1..5_u64, ctas in 1..65_u32, stages in 2..4_u64, seed in 0..9_u64,
    ) {
        let device = catalogue::device("h200").unwrap().scaled(8).unwrap();
        let tiles = rows * columns;
        let ctas = ctas.min(tiles as u32);
        let work = Tiles { stages, ..product(64 * rows, 64 * columns, 64 * steps) };
        let options = Options { seed, ..Options::default() };
        let run = simulate(&device, &Program::of(kernel(ctas, work)), &[], &options, &mut || false).unwrap();
        let moved = run.l2.traffic[0];
        prop_assert_eq!(moved.requested, tiles * steps * 512);
        prop_assert_eq!(moved.requested, moved.coalesced + moved.sectors);
        prop_assert_eq!(moved.written, tiles * 256);
        prop_assert!(moved.dram_read >= (rows + columns) * steps * 8192);
        let arithmetic = device.clock.cycles_to_ns((tiles * steps * STEP) as f64) / 8.0;
        prop_assert!(run.kernels.end[0].since(run.kernels.start[0]).ns() >= arithmetic - 1.0);
    }
}
