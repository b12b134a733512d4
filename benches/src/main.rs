//! Throughput of the engine beside the bare limits of the same run.
use std::time::Instant;
use wavesim::device::catalogue;
use wavesim::workload::{Duration, Kernel, Program, Span, Work};
use wavesim::{Detail, Options, simulate};
fn main() {
    let device = catalogue::device("h200").unwrap();
    for detail in [Detail::Kernels, Detail::Ctas] {
        let work = Work::Duration(Duration::Uniform { low: Span::Ns(5_000.0), high: Span::Ns(15_000.0) });
        let program = Program::of(Kernel { work, ..Kernel::of(1_000_000, 256) });
        let t = Instant::now();
        let run = simulate(&device, &program, &[], &Options { detail, ..Options::default() }, &mut || false).unwrap();
        println!("{:?} {:.1} ns/cta makespan {} digest {:x}", detail, t.elapsed().as_nanos() as f64 / 1e6, run.makespan, run.digest);
        for a in wavesim::records::Account::ALL { print!("{} {:.4} ", a.name(), run.ledger.total(a) as f64 / run.slots as f64 / run.makespan.0 as f64); }
        let sum: i128 = wavesim::records::Account::ALL.iter().map(|&a| run.ledger.total(a)).sum();
        println!(" exact {}", sum == run.slots as i128 * run.makespan.0 as i128);
    }
    // bare heap
    let mut heap = std::collections::BinaryHeap::new();
    let t = Instant::now();
    let mut x = 88172645463325252_u64;
    let mut dur = || { x ^= x << 13; x ^= x >> 7; x ^= x << 17; 5_000_000 + x % 10_000_000 };
    for s in 0..1056u32 { heap.push(std::cmp::Reverse((dur(), s))); }
    for _ in 0..1_000_000 - 1056 { let std::cmp::Reverse((t, s)) = heap.pop().unwrap(); heap.push(std::cmp::Reverse((t + dur(), s))); }
    let last = heap.into_iter().map(|r| r.0.0).max();
    println!("heap {:.1} ns/cta {:?}", t.elapsed().as_nanos() as f64 / 1e6, last);
}
