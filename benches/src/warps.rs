//! Warp programs on a full die: shared rates beside stepping each SM cycle by cycle.

use std::time::Instant;

use wavesim::device::Device;
use wavesim::workload::{Item, Kernel, Launch, Pipe, Program, Segment, Source, Span, Warps, Work};
use wavesim::{IssueMode, Options, simulate};

/// Waves of 8 CTAs an SM.
const WAVES: u32 = 2;

fn kernel(ctas: u32, threads: u32, program: Vec<Segment>) -> Kernel {
    let none = Span::Ns(0.0);
    let work =
        Work::Warps(Warps { programs: vec![program], accesses: vec![], order: None, startup: none, finish: none });
    Kernel { work, ..Kernel::of(ctas, threads) }
}

fn load(footprint: u64) -> Segment {
    Segment::Load { instructions: 1, bytes: 128, from: Source::FootprintBytes(footprint), wait: true }
}

fn chain(instructions: u64, chains: u32) -> Segment {
    Segment::Arithmetic { instructions, latency_cycles: None, chains, pipe: Pipe::Fma }
}

fn turns(count: u64, body: Vec<Segment>) -> Segment {
    Segment::Loop { count, body, unrolled: false }
}

/// Two kernels of several loops in two streams, of CTAs of one and two warps: hardly two SMs have the same residents.
fn pair() -> Program {
    let first = vec![turns(12, vec![load(16 << 20), chain(32, 1)]), turns(20, vec![chain(48, 4)])];
    let second = vec![turns(20, vec![chain(40, 2), Segment::Barrier]), turns(10, vec![load(1 << 30), chain(20, 1)])];
    let kernels = vec![kernel(4_000, 32, first), kernel(4_000, 64, second)];
    let launch = |kernel: usize| {
        Item::Launch(Launch { kernel, stream: kernel as u32, at_ns: None, dependent: false, trigger: false })
    };
    Program { kernels, items: vec![launch(0), launch(1)], ..Program::default() }
}

/// Prints how long both modes take, and how far their makespans are apart.
pub(crate) fn print(device: &Device) {
    let body = vec![load(16 << 20), chain(32, 1), Segment::Barrier];
    println!("{WAVES} waves of 8 CTAs with 8 warps an SM, 100 turns of load, 32 multiply-adds and a barrier");
    compare(device, &Program::of(kernel(8 * WAVES * device.sm_count() as u32, 256, vec![turns(100, body)])));
    println!("two kernels of two loops in two streams, 4,000 CTAs of one warp and 4,000 of two");
    compare(device, &pair());
}

fn compare(device: &Device, program: &Program) {
    let [rates, exact] = [IssueMode::Rates, IssueMode::Exact].map(|issue| {
        let options = Options { issue, ..Options::default() };
        let start = Instant::now();
        let records = simulate(device, program, &[], &options, &mut || false).expect("the kernels launch");
        (start.elapsed().as_secs_f64(), records.makespan.ns())
    });
    println!("  shared rates          {:8.3} s", rates.0);
    println!("  cycle by cycle        {:8.3} s, {:.0} times as long", exact.0, exact.0 / rates.0);
    println!("  makespan by rates     {:+8.2} %", (rates.1 / exact.1 - 1.0) * 100.0);
}
