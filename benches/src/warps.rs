//! Warp programs on a full die: shared rates beside stepping each SM cycle by cycle.

use std::time::Instant;

use wavesim::device::Device;
use wavesim::workload::{Kernel, Pipe, Program, Segment, Source, Span, Warps, Work};
use wavesim::{IssueMode, Options, simulate};

/// Waves of 8 CTAs an SM.
const WAVES: u32 = 2;

fn kernel(device: &Device) -> Kernel {
    let load = Segment::Load { instructions: 1, bytes: 128, from: Source::FootprintBytes(16 << 20), wait: true };
    let chain = Segment::Arithmetic { instructions: 32, latency_cycles: None, chains: 1, pipe: Pipe::Fma };
    let turns = Segment::Loop { count: 100, body: vec![load, chain, Segment::Barrier], unrolled: false };
    let none = Span::Ns(0.0);
    let work =
        Work::Warps(Warps { programs: vec![vec![turns]], accesses: vec![], order: None, startup: none, finish: none });
    Kernel { work, ..Kernel::of(8 * WAVES * device.sm_count() as u32, 256) }
}

/// Prints how long both modes take, and how far their makespans are apart.
pub(crate) fn print(device: &Device) {
    let program = Program::of(kernel(device));
    let [rates, exact] = [IssueMode::Rates, IssueMode::Exact].map(|issue| {
        let options = Options { issue, ..Options::default() };
        let start = Instant::now();
        let records = simulate(device, &program, &[], &options, &mut || false).expect("the kernel launches");
        (start.elapsed().as_secs_f64(), records.makespan.ns())
    });
    println!("{WAVES} waves of 8 CTAs with 8 warps an SM, 100 turns of load, 32 multiply-adds and a barrier");
    println!("  shared rates          {:8.3} s", rates.0);
    println!("  cycle by cycle        {:8.3} s, {:.0} times as long", exact.0, exact.0 / rates.0);
    println!("  makespan by rates     {:+8.2} %", (rates.1 / exact.1 - 1.0) * 100.0);
}
