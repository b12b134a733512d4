//! A program in phases, for the shared rates: stretches of steady work, and short ones between them.

use super::asks::{Batch, batches};
use super::code::{Answer, Compiler, Length, Op, with_laws};
use super::core::Core;
use crate::device::Device;
use crate::records::{State, States};
use crate::workload::poll::polls;
use crate::workload::{Poll, Segment, SharedKind, Since};

/// A turn of a loop that takes a lone warp no longer than this many cycles is steady work. Longer ones are taken apart.
const LONGEST_TURN: f64 = 6_000.0;
/// What lies between steady work is a delay, without competition for issue slots, if it takes a lone warp no longer than
/// this many cycles and this share of the program.
const LONGEST_DELAY: f64 = 300.0;
const DELAY_SHARE: f64 = 0.02;
/// The same before the first spin-wait: mostly it passes during the wait, which counts from the start.
const LONGEST_BEGINNING: f64 = 1_000.0;

/// One step of a CTA.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// So many turns of a steady program; `together` if the CTA's warps meet at a barrier in each.
    Steady { program: u32, turns: f64, together: bool },
    /// Turns of a steady program until so much time has passed, and then so many more.
    Poll { program: u32, cycles: Length, since: Since, more: f64 },
    /// So many cycles, with what all its warps do meanwhile; `together` if they meet at a barrier. `asks` is the number of what
    /// they ask of memory, if they do.
    Delay { cycles: f64, states: States, together: bool, asks: Option<u32> },
    /// Back to step `to`, until it was run through `times` times.
    Back { to: u32, times: u64, depth: usize },
}

/// Endless programs, and how many instructions a turn of each has.
#[derive(Debug, Default)]
pub(super) struct Steady {
    pub(super) code: Vec<Vec<Op>>,
    pub(super) turn: Vec<u64>,
    /// The warps of a CTA that runs it.
    pub(super) warps: Vec<u32>,
    /// Whether these meet at a barrier in each turn.
    pub(super) together: Vec<bool>,
    /// Whether it stands for another one at the latencies that its loads see for a while.
    pub(super) stands_in: Vec<bool>,
    /// The longest latency in a turn of each, and what a lone warp takes for the turn, in cycles.
    pub(super) latency: Vec<u64>,
    pub(super) alone: Vec<f64>,
    /// The same if what it loads through accesses were there at once.
    pub(super) busy: Vec<f64>,
    /// What a turn of each asks of memory.
    pub(super) asks: Vec<Vec<Batch>>,
    /// What delays ask of it.
    pub(super) delays: Vec<Vec<Batch>>,
}

impl Steady {
    /// Whether any of it asks memory.
    pub(super) fn asks_memory(&self) -> bool {
        !self.delays.is_empty() || self.asks.iter().any(|asks| !asks.is_empty())
    }

    /// The accesses that a turn of a program loads through, each as often as it does.
    pub(super) fn loads(&self, program: u32) -> impl Iterator<Item = u32> + '_ {
        self.asks[program as usize].iter().flat_map(Batch::loads)
    }

    /// The same program with a law for what it loads (a mean and how far from it), as another one.
    pub(super) fn with_laws(&mut self, program: u32, law: impl Fn(u32) -> (f64, f64)) -> u32 {
        let program = program as usize;
        let code = with_laws(&self.code[program], law);
        self.latency.push(code.iter().map(latency).max().unwrap_or(0));
        self.code.push(code);
        self.turn.push(self.turn[program]);
        self.warps.push(self.warps[program]);
        self.alone.push(self.alone[program]);
        self.busy.push(self.busy[program]);
        self.together.push(self.together[program]);
        self.stands_in.push(true);
        self.asks.push(Vec::new());
        self.code.len() as u32 - 1
    }
}

/// Makes the steps of a program whose CTAs have so many warps.
pub(super) struct Planner<'a> {
    pub(super) device: &'a Device,
    pub(super) compiler: Compiler<'a>,
    pub(super) warps: u32,
    pub(super) steady: &'a mut Steady,
    pub(super) steps: Vec<Step>,
    /// What a lone warp takes for the whole program.
    whole: f64,
    /// Whether it has spin-waits.
    polls: bool,
}

impl<'a> Planner<'a> {
    pub(super) fn new(device: &'a Device, compiler: Compiler<'a>, warps: u32, steady: &'a mut Steady) -> Self {
        Self { device, compiler, warps, steady, steps: Vec::new(), whole: 0.0, polls: false }
    }

    pub(super) fn plan(mut self, segments: &[Segment]) -> Vec<Step> {
        self.whole = self.compiler.alone(segments);
        self.polls = polls(segments);
        self.cut(segments, 0);
        self.steps
    }

    fn cut(&mut self, segments: &[Segment], depth: usize) {
        let mut short: Vec<Segment> = Vec::new();
        for segment in segments {
            let alone = self.compiler.alone(std::slice::from_ref(segment));
            let polls = self.polls && polls(std::slice::from_ref(segment));
            if alone <= LONGEST_TURN && !polls {
                short.push(segment.clone());
                if self.compiler.alone(&short) > LONGEST_TURN {
                    self.between(&mut short);
                }
                continue;
            }
            match segment {
                Segment::Loop { count, body, unrolled } => {
                    self.between(&mut short);
                    if alone / *count as f64 <= LONGEST_TURN && !polls {
                        self.steady(body, !unrolled, *count as f64);
                    } else {
                        let to = self.steps.len() as u32;
                        let mut whole = body.clone();
                        if !unrolled {
                            whole.push(Segment::Branch);
                        }
                        self.cut(&whole, depth + 1);
                        self.steps.push(Step::Back { to, times: *count, depth });
                    }
                }
                Segment::Poll(poll) => {
                    self.between(&mut short);
                    self.poll(poll);
                }
                long => {
                    self.between(&mut short);
                    self.long(long);
                }
            }
        }
        self.between(&mut short);
    }

    /// Many equal instructions: turns of some of them.
    fn long(&mut self, segment: &Segment) {
        const TURN: u64 = 256;
        let mut turn = segment.clone();
        let (Segment::Arithmetic { instructions, .. }
        | Segment::Tensor { instructions, .. }
        | Segment::Shared { instructions, .. }
        | Segment::Load { instructions, .. }
        | Segment::Store { instructions, .. }) = &mut turn
        else {
            return self.steady(&[turn], false, 1.0);
        };
        let chains = match segment {
            Segment::Arithmetic { chains, .. } | Segment::Tensor { chains, .. } => u64::from(*chains),
            _ => 1,
        };
        let all = *instructions;
        *instructions = TURN.next_multiple_of(chains).min(all);
        let (mut turns, mut rest) = (all as f64 / *instructions as f64, 0);
        if !batches(self.compiler, std::slice::from_ref(segment)).is_empty() {
            // What goes through an access is counted.
            (turns, rest) = ((all / *instructions) as f64, all % *instructions);
        }
        if let Segment::Shared { wait, .. } | Segment::Load { wait, .. } = &mut turn {
            *wait = false;
        }
        self.steady(std::slice::from_ref(&turn), false, turns);
        if rest > 0 {
            if let Segment::Load { instructions, .. } | Segment::Store { instructions, .. } = &mut turn {
                *instructions = rest;
            }
            self.steady(&[turn], false, 1.0);
        }
        // What it asked for and has to wait for.
        let timings = &self.device.issue;
        let (state, cycles) = match *segment {
            Segment::Load { from, bytes, wait: true, .. } => {
                (State::LongScoreboard, self.compiler.latency(from, bytes).mean())
            }
            Segment::Shared { kind: SharedKind::Load, wait: true, .. } => {
                (State::ShortScoreboard, timings.shared_latency_cycles.into())
            }
            Segment::Shared { kind: SharedKind::Constant, wait: true, .. } => {
                (State::ShortScoreboard, timings.constant_latency_cycles.into())
            }
            _ => return,
        };
        let mut states = States::default();
        states.0[state as usize] = cycles as u64 * u64::from(self.warps);
        self.steps.push(Step::Delay { cycles, states, together: false, asks: None });
    }

    fn poll(&mut self, poll: &Poll) {
        let program = self.endless(&poll.body, true);
        let timings = &self.device.issue;
        let body = self.compiler.alone(&poll.body);
        // The turn in which it is over ends with a branch that is not taken.
        let more = (body + f64::from(timings.untaken_branch_cycles)) / (body + f64::from(timings.branch_cycles));
        let (cycles, since) = (Length::new(poll.cycles), poll.since);
        self.steps.push(Step::Poll { program: program as u32, cycles, since, more });
    }

    fn steady(&mut self, body: &[Segment], branch: bool, turns: f64) {
        let program = self.endless(body, branch);
        let together = self.steady.together[program];
        self.steps.push(Step::Steady { program: program as u32, turns, together });
    }

    /// The endless program that does the same again and again.
    fn endless(&mut self, body: &[Segment], branch: bool) -> usize {
        let mut code = Vec::new();
        self.compiler.ops(body, 1, &mut code);
        let instructions = issued(&code, 0) + u64::from(branch);
        code.push(Op::Again { branch });
        let known = self.steady.code.iter().zip(&self.steady.warps).position(|(c, &w)| *c == code && w == self.warps);
        known.unwrap_or_else(|| {
            self.steady.latency.push(code.iter().map(latency).max().unwrap_or(0));
            self.steady.alone.push(self.compiler.alone(body));
            self.steady.busy.push(self.compiler.busy(body));
            self.steady.together.push(code.contains(&Op::Barrier));
            self.steady.stands_in.push(false);
            self.steady.asks.push(batches(self.compiler, body));
            self.steady.code.push(code);
            self.steady.turn.push(instructions.max(1));
            self.steady.warps.push(self.warps);
            self.steady.code.len() - 1
        })
    }

    /// What lies between steady work.
    fn between(&mut self, short: &mut Vec<Segment>) {
        let segments = std::mem::take(short);
        if segments.iter().all(|segment| *segment == Segment::Wait) {
            return;
        }
        let alone = self.compiler.alone(&segments);
        let longest = if !self.polls {
            LONGEST_DELAY.min(DELAY_SHARE * self.whole)
        } else if self.steps.is_empty() {
            LONGEST_BEGINNING
        } else {
            LONGEST_DELAY
        };
        if alone > longest {
            return self.steady(&segments, false, 1.0);
        }
        let mut code = Vec::new();
        self.compiler.ops(&segments, 0, &mut code);
        let together = code.contains(&Op::Barrier);
        code.push(Op::Exit);
        let least = self.compiler.least();
        let code = [with_laws(&code, |_| (least, 0.0))];
        let mut core = Core::new(self.device);
        core.add(&code, 0, (0..self.warps).map(|warp| (warp, 0)), 0, 0);
        core.run(&code, u64::MAX);
        let mut cycles = core.now() as f64;
        let mut states = core.remove(0);
        // The program does not end here.
        let selected = &mut states.0[State::Selected as usize];
        *selected = selected.saturating_sub(self.warps.into());
        let asks = batches(self.compiler, &segments);
        let asks = (!asks.is_empty()).then(|| {
            self.steady.delays.push(asks);
            self.steady.delays.len() as u32 - 1
        });
        if let Some(Step::Poll { program, more, .. }) = self.steps.last_mut() {
            // Who has waited goes on where others still wait: it gets on as with further turns.
            let turn = self.steady.alone[*program as usize] + f64::from(self.device.issue.branch_cycles);
            *more += std::mem::take(&mut cycles) / turn;
            states = States::default();
        }
        self.steps.push(Step::Delay { cycles, states, together, asks });
    }
}

/// How long an op may keep the warp that issues it, in cycles.
fn latency(op: &Op) -> u64 {
    match *op {
        Op::Run { stall, interval, .. } => stall.max(interval).into(),
        Op::Memory { answer: Answer::Short { latency }, .. } => latency.into(),
        Op::Memory { answer: Answer::Long(law), .. } => law.mean() as u64,
        Op::Memory { answer: Answer::Even { mean, .. }, .. } => mean as u64,
        _ => 0,
    }
}

/// Instructions of a list of ops, of which the first has number `from`.
fn issued(ops: &[Op], from: usize) -> u64 {
    let mut sum = 0;
    for (at, op) in ops.iter().enumerate() {
        sum += match *op {
            Op::Run { count, .. } | Op::Memory { count, .. } => count,
            Op::Wait | Op::Clock | Op::Again { .. } => 0,
            Op::Barrier | Op::Branch | Op::Until { .. } | Op::Exit => 1,
            Op::Back { to, times, branch, .. } => {
                let first = to as usize - from;
                issued(&ops[first..at], to as usize) * (times - 1) + u64::from(branch) * times
            }
        };
    }
    sum
}
