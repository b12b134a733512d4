//! Programs as the issue model runs them: flat, with the device's numbers in place of what a segment leaves open.

use crate::device::Device;
use crate::workload::{Cycles, Pipe, Poll, Segment, SharedKind, Since, Source};

/// Parts of a cycle in which the SM's memory unit and its share of memory count.
pub(super) const TICKS: f64 = 64.0;

/// One thing that a warp does; most are instructions that it issues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Op {
    /// `count` instructions: each takes its pipe for `interval` cycles; the next one follows after one cycle, and after
    /// `stall` cycles behind each group of `chains`.
    Run { count: u64, chains: u32, stall: u32, pipe: usize, interval: u32 },
    /// `count` memory instructions, of `service` ticks of the memory unit each; `answer` is what comes back.
    Memory { count: u64, service: u32, answer: Answer },
    /// Until all that was asked for has come.
    Wait,
    /// Until all warps of the CTA are here.
    Barrier,
    /// A taken branch.
    Branch,
    /// Behind the body of a loop: back to `to` until it was run through `times` times.
    Back { to: u32, times: u64, depth: usize, branch: bool },
    /// The next instruction reads the clock.
    Clock,
    /// Behind the body of a spin-wait: back to `to` unless the clock that was read there is late enough.
    Until { to: u32, cycles: Length, since: Since },
    /// Back to the first one, for ever: what rates are measured on.
    Again { branch: bool },
    /// The last instruction.
    Exit,
}

/// How long a spin-wait lasts, in cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Length {
    Constant(u64),
    /// What the list with this number has for the CTA.
    OfCta(usize),
}

impl Length {
    pub(super) fn new(cycles: Cycles) -> Self {
        match cycles {
            Cycles::Constant(cycles) => Self::Constant(cycles.ceil() as u64),
            Cycles::PerCta(list) => Self::OfCta(list),
        }
    }
}

/// What a memory instruction answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Answer {
    /// Nothing that a warp could wait for; `data` ticks of the SM's way to memory.
    None { data: u32 },
    /// After so many cycles.
    Short { latency: u32 },
    /// From memory.
    Long(Latency),
    /// What stands for an access while rates are measured: uniform about a mean, up to so far from it. Each warp's draws are
    /// even.
    Even { mean: f64, spread: f64 },
    /// Of the access with this number among those of all kernels: what is loaded through it comes when the simulated memory
    /// says so, or what is stored has been taken in.
    Access { number: u32, store: bool },
}

/// The law of a load's latency, in cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Latency {
    /// One of two levels: how often the first, in 2^32 parts.
    pub(super) first: u64,
    pub(super) levels: [Level; 2],
}

impl Latency {
    pub(super) fn mean(&self) -> f64 {
        let share = self.first as f64 / ALL as f64;
        self.levels[0].mean * share + self.levels[1].mean * (1.0 - share)
    }
}

/// Where data is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    pub(super) mean: f64,
    /// Uniform up to so far from the mean.
    pub(super) spread: f64,
    /// Ticks of the SM's way to it.
    pub(super) data: u32,
}

/// The pipes of a sub-partition, as indices.
pub(super) const TENSOR: usize = 2;
pub(super) const OTHER: usize = 3;
/// Memory instructions of a sub-partition follow each other as through a pipe.
pub(super) const MEMORY: usize = 4;
pub(super) const PIPES: usize = 5;

const fn pipe_of(pipe: Pipe) -> usize {
    match pipe {
        Pipe::Alu => 0,
        Pipe::Heavy => 1,
        // A lane for each thread: as fast as instructions are issued.
        Pipe::Fma | Pipe::Other => OTHER,
    }
}

/// All loads, in parts of [`Latency::first`].
const ALL: u64 = 1 << 32;

/// Turns segments into ops, for a kernel that runs on `sms` SMs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compiler<'a> {
    device: &'a Device,
    sms: f64,
    /// The lists of numbers that spin-waits may name.
    arrays: &'a [&'a [f64]],
    /// The number of the kernel's first access among those of all kernels, and how many it has.
    pub(super) accesses: (u32, u32),
    /// What loads through these take, for want of knowing better before the run: the least.
    least: f64,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(device: &'a Device, ctas: u64, accesses: (u32, u32), arrays: &'a [&'a [f64]]) -> Self {
        let least = device.l2.near_latency_cycles;
        Self { device, sms: (device.sm_count() as u64).min(ctas).max(1) as f64, arrays, accesses, least }
    }

    /// The number of one of the kernel's accesses.
    pub(super) fn access(&self, of_kernel: usize) -> u32 {
        self.accesses.0 + of_kernel as u32
    }

    /// The ops of a list of segments, without an end; `depth` loops are around it.
    pub(super) fn ops(&self, segments: &[Segment], depth: usize, into: &mut Vec<Op>) {
        for segment in segments {
            self.op(segment, depth, into);
        }
    }

    fn op(&self, segment: &Segment, depth: usize, into: &mut Vec<Op>) {
        let timings = &self.device.issue;
        let ticks = |cycles: f64| (cycles * TICKS).round() as u32;
        match *segment {
            Segment::Arithmetic { instructions, latency_cycles, chains, pipe } => {
                let interval = if pipe_of(pipe) == OTHER { 0 } else { timings.alu_interval_cycles };
                let latency = latency_cycles.unwrap_or(timings.fma_latency_cycles);
                into.push(run(instructions, chains, latency, pipe_of(pipe), interval));
            }
            Segment::Tensor { instructions, interval_cycles, latency_cycles, chains } => {
                let latency = latency_cycles.unwrap_or(timings.tensor_latency_cycles);
                let interval = interval_cycles.unwrap_or(timings.tensor_interval_cycles);
                into.push(run(instructions, chains, latency, TENSOR, interval));
            }
            Segment::Shared { instructions, kind, ways, wait } => {
                let (service, answer) = match kind {
                    SharedKind::Load => {
                        let latency = timings.shared_latency_cycles;
                        (timings.shared_service_cycles, Answer::Short { latency })
                    }
                    SharedKind::Store => (timings.shared_service_cycles, Answer::None { data: 0 }),
                    SharedKind::Constant => {
                        let latency = timings.constant_latency_cycles;
                        (timings.constant_service_cycles, Answer::Short { latency })
                    }
                };
                into.push(Op::Memory { count: instructions, service: ticks(service * f64::from(ways)), answer });
                if wait && kind != SharedKind::Store {
                    into.push(Op::Wait);
                }
            }
            Segment::Load { instructions, bytes, from, wait } => {
                let answer = match from {
                    Source::Access(access) => Answer::Access { number: self.access(access), store: false },
                    _ => Answer::Long(self.latency(from, bytes)),
                };
                into.push(Op::Memory { count: instructions, service: ticks(timings.global_service_cycles), answer });
                if wait {
                    into.push(Op::Wait);
                }
            }
            Segment::Store { instructions, bytes, access } => {
                let cycles = f64::from(bytes) / self.share(self.device.l2.write_bandwidth_gb_s);
                let answer = match access {
                    Some(access) => Answer::Access { number: self.access(access), store: true },
                    None => Answer::None { data: ticks(cycles) },
                };
                into.push(Op::Memory { count: instructions, service: ticks(timings.global_service_cycles), answer });
            }
            Segment::Wait => into.push(Op::Wait),
            Segment::Barrier => into.push(Op::Barrier),
            Segment::Branch => into.push(Op::Branch),
            Segment::Poll(Poll { cycles, since, ref body }) => {
                let to = into.len() as u32;
                into.push(Op::Clock);
                self.ops(body, depth, into);
                into.push(Op::Until { to, cycles: Length::new(cycles), since });
            }
            Segment::Loop { count, ref body, unrolled } => {
                let to = into.len() as u32;
                self.ops(body, depth + 1, into);
                into.push(Op::Back { to, times: count, depth, branch: !unrolled });
            }
        }
    }

    /// An SM's share of a bandwidth of the device when all that run the kernel use it, in bytes a cycle, and no more than
    /// its port takes.
    fn share(&self, gb_s: f64) -> f64 {
        (gb_s / self.sms * 1e3 / self.device.clock.sm_mhz).min(self.device.l2.port_bytes_per_cycle)
    }

    /// Where data is found that all CTAs read again and again, in the same order each time: what fits into one part of L2
    /// is near for every reader; what fits into all of it is at home in one part and drives out the others' copies, so that
    /// every other load finds it far and the rest miss; and what is larger is never found again.
    pub(super) fn latency(&self, from: Source, bytes: u32) -> Latency {
        let (l2, dram) = (&self.device.l2, &self.device.dram);
        let data = |gb_s: f64| (f64::from(bytes) / self.share(gb_s) * TICKS).round() as u32;
        let of_l2 = |mean| Level { mean, spread: self.device.issue.l2_spread_cycles, data: data(l2.bandwidth_gb_s) };
        let of_dram = Level {
            mean: dram.latency_cycles,
            // The standard deviation of a uniform law is its half width over the root of 3.
            spread: dram.latency_cycles * dram.spread * 3.0_f64.sqrt(),
            data: data(dram.reached_gb_s),
        };
        let (first, levels) = match from {
            Source::LatencyCycles(mean) => {
                let level = Level { mean, spread: 0.0, data: data(f64::INFINITY) };
                (ALL, [level; 2])
            }
            Source::FootprintBytes(footprint) => {
                // What is read again and again stays up to two thirds of L2, and none of it when it is larger than L2.
                let usable = (l2.bytes - l2.reserved_bytes) as f64;
                let stays = ((usable - footprint as f64) / (usable / 3.0)).clamp(0.0, 1.0);
                ((stays * ALL as f64).round() as u64, [of_l2(l2.near_latency_cycles), of_dram])
            }
            Source::Access(_) => (ALL, [of_l2(self.least); 2]),
        };
        Latency { first, levels }
    }

    /// What loads through an access take at least.
    pub(super) fn least(&self) -> f64 {
        self.least
    }

    /// How long a lone warp takes for segments, about, if what it loads through accesses were there at once.
    pub(super) fn busy(&self, segments: &[Segment]) -> f64 {
        Self { least: 0.0, ..*self }.alone(segments)
    }

    /// How long a lone warp takes for segments, about: what no one competes for.
    pub(super) fn alone(&self, segments: &[Segment]) -> f64 {
        self.alone_after(segments, &mut 0.0)
    }

    /// The same for one whose outstanding data comes in `pending` cycles; and in how many it comes behind the segments.
    fn alone_after(&self, segments: &[Segment], pending: &mut f64) -> f64 {
        let timings = &self.device.issue;
        let memory = |instructions: u64, interval: u32| instructions as f64 * f64::from(interval);
        let mut sum = 0.0;
        for segment in segments {
            // What it takes, and how long behind it the data comes that it asked for, if it asked for any.
            let (cycles, asked, waits) = match *segment {
                Segment::Arithmetic { .. } | Segment::Tensor { .. } => {
                    let mut ops = Vec::new();
                    self.op(segment, 0, &mut ops);
                    let Op::Run { count, chains, stall, interval, .. } = ops[0] else { continue };
                    let group = f64::from(chains - 1 + stall).max(f64::from(interval * chains));
                    (count as f64 / f64::from(chains) * group, 0.0, false)
                }
                Segment::Shared { instructions, kind, ways, wait } => {
                    let latency = match kind {
                        SharedKind::Load => timings.shared_latency_cycles,
                        SharedKind::Constant => timings.constant_latency_cycles,
                        SharedKind::Store => 0,
                    };
                    let waits = wait && kind != SharedKind::Store;
                    (memory(instructions, timings.memory_interval_cycles.max(ways)), f64::from(latency), waits)
                }
                Segment::Load { instructions, bytes, from, wait } => {
                    let mean = self.latency(from, bytes).mean();
                    (memory(instructions, timings.memory_interval_cycles), mean, wait)
                }
                Segment::Store { instructions, .. } => {
                    (memory(instructions, timings.memory_interval_cycles), 0.0, false)
                }
                Segment::Wait => (0.0, 0.0, true),
                Segment::Barrier => (f64::from(timings.barrier_latency_cycles), 0.0, false),
                Segment::Branch => (f64::from(timings.branch_cycles), 0.0, false),
                Segment::Poll(Poll { cycles, ref body, .. }) => {
                    let cycles = match cycles {
                        Cycles::Constant(cycles) => cycles,
                        Cycles::PerCta(list) => {
                            let each = self.arrays[list];
                            each.iter().sum::<f64>() / each.len().max(1) as f64
                        }
                    };
                    let turn = self.alone(body) + f64::from(timings.branch_cycles);
                    (cycles.max(turn), 0.0, false)
                }
                Segment::Loop { count, ref body, unrolled } => {
                    let branch = if unrolled { 0.0 } else { f64::from(timings.branch_cycles) };
                    let mut turn = self.alone_after(body, pending) + branch;
                    let mut all = turn;
                    *pending = (*pending - branch).max(0.0);
                    if count > 1 {
                        // Later turns find what the first one left outstanding.
                        if *pending > 0.0 {
                            turn = self.alone_after(body, pending) + branch;
                            *pending = (*pending - branch).max(0.0);
                        }
                        all += (count - 1) as f64 * turn;
                    }
                    sum += all;
                    continue;
                }
            };
            sum += cycles;
            *pending = (*pending - cycles).max(asked);
            if waits {
                sum += std::mem::take(pending);
            }
        }
        sum
    }
}

/// The same ops when what is loaded through an access has a law, a mean and how far from it; stores through one cost nothing
/// beside their issue.
pub(super) fn with_laws(ops: &[Op], law: impl Fn(u32) -> (f64, f64)) -> Vec<Op> {
    let of = |&op: &Op| match op {
        Op::Memory { count, service, answer: Answer::Access { store: true, .. } } => {
            Op::Memory { count, service, answer: Answer::None { data: 0 } }
        }
        Op::Memory { count, service, answer: Answer::Access { number, .. } } => {
            let (mean, spread) = law(number);
            Op::Memory { count, service, answer: Answer::Even { mean, spread } }
        }
        op => op,
    };
    ops.iter().map(of).collect()
}

fn run(count: u64, chains: u32, latency: u32, pipe: usize, interval: u32) -> Op {
    Op::Run { count, chains, stall: latency.saturating_sub(chains - 1).max(1), pipe, interval }
}
