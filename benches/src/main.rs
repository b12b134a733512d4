//! Throughput of the engine beside the bare limits of the same run: CTAs a second with kernel detail and with CTA detail, and a
//! binary-heap list scheduler with nothing recorded. Each is the best of several turns, taken in rotation, so that what else
//! the machine does falls on all of them. Then what recording a CTA costs in memory, and what warps cost.

mod warps;

mod l2;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use wavesim::device::{Device, catalogue};
use wavesim::records::{CtaColumns, Records};
use wavesim::workload::{Duration, Kernel, Program, Span, Work};
use wavesim::{Detail, Options, simulate};

const TURNS: usize = 5;
const SLOTS: u32 = 1_056;

/// Xorshift (Marsaglia 2003): the cheapest source of durations, so that it is the scheduler that is measured.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        5_000_000 + self.0 % 10_000_000
    }
}

/// List scheduling on a heap: whoever is free first takes the next CTA.
fn heap(ctas: u64) -> u64 {
    let mut draws = Draws(88_172_645_463_325_252);
    let mut heap: BinaryHeap<Reverse<(u64, u32)>> = (0..SLOTS).map(|slot| Reverse((draws.next(), slot))).collect();
    for _ in u64::from(SLOTS)..ctas {
        if let Some(Reverse((time, slot))) = heap.pop() {
            heap.push(Reverse((time + draws.next(), slot)));
        }
    }
    heap.into_iter().map(|Reverse((time, _))| time).max().unwrap_or(0)
}

fn run(device: &Device, program: &Program, detail: Detail) -> Records {
    let options = Options { detail, ..Options::default() };
    simulate(device, program, &[], &options, &mut || false).expect("the kernel launches")
}

fn engine(device: &Device, program: &Program, detail: Detail) -> u64 {
    run(device, program, detail).makespan.0
}

/// What the columns hold, in bytes.
fn held(ctas: &CtaColumns) -> usize {
    size_of_val(ctas.kernel.as_slice())
        + size_of_val(ctas.cta.as_slice())
        + size_of_val(ctas.sm.as_slice())
        + size_of_val(ctas.slot.as_slice())
        + size_of_val(ctas.start.as_slice())
        + size_of_val(ctas.end.as_slice())
}

/// A line of `/proc/self/status` in bytes, where there is one.
fn status(line: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let value = text.lines().find_map(|found| found.strip_prefix(line))?;
    Some(value.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().ok()? * 1024)
}

fn memory(device: &Device, program: &Program) {
    let before = status("VmRSS:");
    let records = run(device, program, Detail::Ctas);
    let Some(columns) = &records.ctas else { return };
    let rows = columns.cta.len();
    print!("  a recorded CTA: {} bytes", held(columns) / rows);
    // The peak only says something where this run is the largest so far.
    if let (Some(before), Some(peak)) = (before, status("VmHWM:"))
        && peak > before
    {
        print!(", {:.0} at the peak of the process", (peak - before) as f64 / rows as f64);
    }
    println!();
}

fn main() {
    let counts: Vec<u64> = std::env::args().skip(1).filter_map(|count| count.parse().ok()).collect();
    let device = catalogue::device("h200").expect("the catalogue has it");
    for ctas in if counts.is_empty() { vec![1_000_000, 10_000_000] } else { counts } {
        let work = Work::Duration(Duration::Uniform { low: Span::Ns(5_000.0), high: Span::Ns(15_000.0) });
        let program = Program::of(Kernel { work, ..Kernel::of(ctas as u32, 256) });
        println!("{ctas} CTAs on 132 SMs, 8 an SM, in millions a second (and as a ratio to the heap)");
        memory(&device, &program);
        let mut best = [f64::INFINITY; 3];
        for _ in 0..TURNS {
            let runs: [&dyn Fn() -> u64; 3] = [&|| heap(ctas), &|| engine(&device, &program, Detail::Kernels), &|| {
                engine(&device, &program, Detail::Ctas)
            }];
            for (best, run) in best.iter_mut().zip(runs) {
                let start = Instant::now();
                assert!(std::hint::black_box(run()) > 0);
                *best = best.min(start.elapsed().as_secs_f64());
            }
        }
        let [heap, kernels, with_ctas] = best.map(|seconds| ctas as f64 / seconds / 1e6);
        println!("  bare heap scheduler   {heap:6.1}");
        println!("  engine, kernel detail {kernels:6.1}  {:.2}", kernels / heap);
        println!("  engine, CTA detail    {with_ctas:6.1}  {:.2}", with_ctas / heap);
    }
    l2::compare();
    l2::walls();
    warps::print(&device);
}
