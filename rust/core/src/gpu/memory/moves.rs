//! Launches with memory work: what their CTAs move, and what of their code takes time beside it.

use rand_core::Rng;

use super::latency::Timings;
use super::loads::Accessed;
use super::streaming::Streamed;
use super::tiles::Tiled;
use crate::device::Device;
use crate::engine::{Time, rng};
use crate::records::Traffic;
use crate::simulate::{IssueMode, Options};
use crate::workload::access::Pattern;
use crate::workload::tiles::Plan;
use crate::workload::walk::Walk;
use crate::workload::{Kernel, Times, Work};

/// A launch whose CTAs move memory.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    pub(super) moves: Moves<'a>,
    pub(super) buffer: u16,
    pub(super) write: bool,
    pub(super) startup: Time,
    pub(super) cold: Time,
    /// What an iteration takes beside its accesses, in cycles and as a time.
    pub(super) overhead: f64,
    pub(super) turn: Time,
    /// An iteration takes as long as its slowest part, and not as long as its parts on average.
    pub(super) together: bool,
    pub(super) uneven: Uneven,
    pub(super) finish: Time,
    pub(super) traffic: Traffic,
    /// No byte is asked for twice, in all of the program: then nothing has to be looked up.
    pub(super) read_once: bool,
}

/// What the CTAs of a launch do.
#[derive(Debug)]
pub(super) enum Moves<'a> {
    /// They move runs of bytes one after the other.
    Walk(Walk<'a>),
    /// They compute tiles.
    Tiles(Tiled<'a>),
    /// They stream through arrays.
    Stream(Streamed<'a>),
    /// Their warps run programs, which walk through these.
    Programs(Vec<Accessed<'a>>),
}

impl<'a> Launch<'a> {
    /// Of the kernel with this number in the program; none if it has no memory work.
    pub(super) fn new(
        number: usize,
        kernel: &'a Kernel,
        device: &Device,
        timings: &Timings,
        arrays: &[&'a [f64]],
        options: &Options,
    ) -> Option<Self> {
        let warps = kernel.threads().div_ceil(device.limits.warp_size);
        let uneven = |iterations| Uneven::new(timings, warps, iterations);
        // A kernel that is launched again moves the same bytes.
        let key = rng::stream(options.seed, "places", number as u64).next_u64();
        let overhead = |times: &Times| times.overhead.ps(timings.cycle_ps) / timings.cycle_ps;
        let launch = |moves, times: &Times, uneven| Self {
            moves,
            buffer: 0,
            write: false,
            startup: timings.time(times.startup),
            cold: times.cold.map_or(timings.cold, |span| timings.time(span)),
            overhead: overhead(times),
            turn: timings.cycles(overhead(times)),
            together: false,
            uneven,
            finish: timings.time(times.finish),
            traffic: Traffic::default(),
            read_once: false,
        };
        match &kernel.work {
            Work::Access(access) => {
                let walk = Walk::new(&access.pattern, kernel.ctas(), kernel.threads(), arrays, key);
                let uneven = uneven(access.pattern.iterations_to_barrier(kernel.threads()));
                Some(Self {
                    buffer: access.buffer,
                    write: access.write,
                    together: access.pattern.together(),
                    read_once: !access.write && matches!(access.pattern, Pattern::Stream { .. }),
                    ..launch(Moves::Walk(walk), &access.times, uneven)
                })
            }
            Work::Tiles(tiles) => {
                let moves = Moves::Tiles(Tiled::new(tiles, Plan::new(tiles, arrays), kernel, device));
                // What a step needs is there when the last warp's part is. Its overhead is no part of the loads.
                let uneven = uneven(Some(1));
                Some(Self {
                    buffer: tiles.buffer,
                    overhead: 0.0,
                    turn: Time::ZERO,
                    together: true,
                    ..launch(moves, &tiles.times, uneven)
                })
            }
            Work::Streaming(work) => {
                let moves = Moves::Stream(Streamed::new(work, kernel, device));
                Some(Self { read_once: work.reads_once(), ..launch(moves, &work.times, uneven(None)) })
            }
            Work::Warps(programs) if !programs.accesses.is_empty() => {
                let moves = Moves::Programs(Accessed::all_of(programs, kernel, device, arrays, key));
                // Stepped warps ask one by one.
                let uneven = match options.issue {
                    IssueMode::Exact => Uneven::new(timings, 1, None),
                    IssueMode::Rates => uneven(None),
                };
                // What L2 takes is drawn for each warp.
                Some(launch(moves, &Times::default(), Uneven { near: 0.0, ..uneven }))
            }
            _ => None,
        }
    }
}

/// What it makes of a CTA's loads that each of its warps waits a time of its own for DRAM, and each line of L2 takes its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uneven {
    /// How far an iteration's latency from DRAM is from its mean, at most, as a fraction of it.
    pub(super) spread: f64,
    /// By how much more an iteration takes on average, likewise: at a barrier, the CTA waits for its last warp.
    pub(super) later: f64,
    /// How far the latency of a line in L2 is from the mean, at most, in cycles.
    pub(super) near: f64,
}

/// Of 1, 2, 4 ... independent normal times with a standard deviation of 1: the mean of the last one (Tippett 1925).
const LAST_OF: [f64; 6] = [0.0, 0.564, 1.029, 1.424, 1.766, 2.070];

impl Uneven {
    /// `iterations`: from one barrier to the next, if there are any; without, the CTA is as far as its warps are on average.
    fn new(timings: &Timings, warps: u32, iterations: Option<u64>) -> Self {
        let (spread, near) = (timings.dram_spread, timings.l2_spread);
        let Some(iterations) = iterations else {
            return Self { spread: spread / f64::from(warps).sqrt(), later: 0.0, near };
        };
        // Draws are uniform: `spread` is the square root of 3 times their standard deviation. Those of one warp's iterations
        // add up as their root.
        let last = LAST_OF[(warps.max(1).ilog2() as usize).min(LAST_OF.len() - 1)];
        Self { spread, later: last * spread / (3.0 * iterations as f64).sqrt(), near }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::device::catalogue;
    use crate::gpu::groups::Groups;
    use crate::gpu::machine::Machine;
    use crate::gpu::policy::hardware::Hardware;
    use crate::records::Records;
    use crate::simulate::Options;
    use crate::workload::{Access, Kernel, Pattern, Program, Span, Times, Work};

    fn outcome(program: &Program, look_up: bool) -> Records {
        let device = catalogue::device("h200").expect("the catalogue has it");
        let options = Options::default();
        let (policy, groups) = (Hardware::new(&device, &options), Groups::new(&device));
        let mut machine =
            Machine::new(&device, program, &[], &options, policy, groups, &mut || false).expect("the program is valid");
        if look_up {
            machine.memory.as_mut().expect("it has memory work").look_everything_up();
        }
        machine.run(&device, &mut || false).expect("the program runs")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// A stream that is read once, by one launch alone, has its lines looked up for nothing.
        #[test]
        fn what_is_read_once_needs_no_lookup(
            ctas in 1..4_000_u32, warps in 1..9_u32, pieces in 1..40_u64, uneven in 0..3_u64, overhead in 0.0..100.0,
        ) {
            let access = Access {
                pattern: Pattern::Stream { bytes: pieces * 1024 + uneven * 64 },
                write: false,
                buffer: 0,
                buffer_bytes: None,
                times: Times { overhead: Span::Cycles(overhead), ..Times::default() },
            };
            let program = Program::of(Kernel { work: Work::Access(access), ..Kernel::of(ctas, 32 * warps) });
            let (short, long) = (outcome(&program, false), outcome(&program, true));
            prop_assert_eq!(short.digest, long.digest);
            prop_assert_eq!(short.makespan, long.makespan);
            prop_assert_eq!(short.l2.traffic, long.l2.traffic);
        }
    }
}
