//! One warp on its way through its program.

use super::code::Op;
use crate::gpu::policy::issue::WarpId;
use crate::records::warps::{State, States};
use crate::workload::Since;
use crate::workload::warps::MAX_DEPTH;

#[derive(Clone, Debug)]
pub(super) struct Warp {
    pub(super) id: WarpId,
    /// Its CTA and its sub-partition.
    pub(super) cta: u32,
    pub(super) part: u32,
    pub(super) program: u32,
    /// Its next op, and how much of it is done.
    pub(super) at: u32,
    pub(super) done: u64,
    /// Of each loop around where it is, and of the one that measuring adds, the turns that are done.
    pub(super) loops: [u64; MAX_DEPTH + 1],
    /// When it can issue, as far as it alone decides; until when for the stall of its last instruction.
    pub(super) ready: u64,
    pub(super) stalled: u64,
    /// What it waited for behind that.
    pub(super) reason: State,
    /// Of what state the stall is.
    pub(super) stall: State,
    /// Since when it has not issued.
    pub(super) since: u64,
    /// From when until when its next instruction finds its pipe or queue full, as last seen; and for how many cycles before.
    pub(super) blocked: (u64, u64),
    pub(super) full: u64,
    /// When it issued its first instruction, when it read the clock first in the spin-wait that it is in, and when last: none
    /// yet, each.
    pub(super) began: Option<u64>,
    pub(super) waits_from: Option<u64>,
    pub(super) clock: Option<u64>,
    /// Its next instruction reads the clock.
    reads: bool,
    /// When what it has asked for will have come.
    pub(super) short: u64,
    pub(super) long: u64,
    /// Loads from memory so far.
    pub(super) loads: u64,
    /// What it did, and how many instructions it has issued.
    pub(super) states: States,
    pub(super) issued: u64,
    /// Turns of an endless program: how many ended, and when the first and the last one did.
    pub(super) turns: u64,
    pub(super) first_turn: u64,
    pub(super) last_turn: u64,
}

impl Warp {
    /// A warp that can issue its first instruction at `start`, and came at `now`.
    pub(super) fn new(id: WarpId, (cta, part): (u32, u32), program: u32, now: u64, start: u64, code: &[Op]) -> Self {
        let mut warp = Self {
            id,
            cta,
            part,
            program,
            at: 0,
            done: 0,
            loops: [0; MAX_DEPTH + 1],
            ready: start,
            stalled: start,
            reason: State::Wait,
            stall: State::NoInstruction,
            since: now.min(start),
            blocked: (0, 0),
            full: 0,
            began: None,
            waits_from: None,
            clock: None,
            reads: false,
            short: 0,
            long: 0,
            states: States::default(),
            loads: 0,
            issued: 0,
            turns: 0,
            first_turn: 0,
            last_turn: 0,
        };
        warp.settle(code);
        warp
    }

    /// Goes on from an op that is done.
    pub(super) fn leave(&mut self, op: Op) {
        self.done = 0;
        match op {
            Op::Back { to, times, depth, .. } => {
                self.loops[depth] += 1;
                if self.loops[depth] < times {
                    self.at = to;
                } else {
                    self.loops[depth] = 0;
                    self.at += 1;
                }
            }
            Op::Again { .. } => {
                if self.turns == 0 {
                    self.first_turn = self.ready;
                }
                self.turns += 1;
                self.last_turn = self.ready;
                self.at = 0;
            }
            _ => self.at += 1,
        }
    }

    /// Goes on from the branch of a spin-wait: back to op `to`, or on.
    pub(super) fn leave_wait(&mut self, to: u32, over: bool) {
        if over {
            self.waits_from = None;
            self.at += 1;
        } else {
            self.at = to;
        }
    }

    /// It issues an instruction at `now`, which reads the clock if that is its turn.
    pub(super) fn issues(&mut self, now: u64) {
        self.issued += 1;
        self.began.get_or_insert(now);
        if std::mem::take(&mut self.reads) {
            self.clock = Some(now);
            self.waits_from.get_or_insert(now);
        }
    }

    /// Whether the clock that it read last is `cycles` later than what its spin-wait counts from.
    pub(super) fn is_over(&self, cycles: u64, since: Since) -> bool {
        let from = match since {
            Since::Here => self.waits_from,
            Since::Start => self.began,
        };
        self.clock.zip(from).is_none_or(|(clock, from)| clock >= from.saturating_add(cycles))
    }

    /// Does at once what is no instruction; whether it has to wait for memory now.
    pub(super) fn settle(&mut self, program: &[Op]) -> bool {
        let mut waits = false;
        loop {
            match program[self.at as usize] {
                Op::Wait => {
                    self.at += 1;
                    let until = self.short.max(self.long);
                    if until > self.ready {
                        self.ready = until;
                        waits = self.long >= self.short;
                        self.reason = if waits { State::LongScoreboard } else { State::ShortScoreboard };
                    }
                }
                Op::Clock => {
                    self.at += 1;
                    self.reads = true;
                }
                op @ (Op::Back { branch: false, .. } | Op::Again { branch: false }) => self.leave(op),
                _ => return waits,
            }
        }
    }

    /// At `now` it is seen whether the pipe or queue of its next instruction is full, until `free`: then true.
    pub(super) fn blocks(&mut self, now: u64, free: u64) -> bool {
        let (from, until) = std::mem::take(&mut self.blocked);
        self.full += until.min(now).saturating_sub(from);
        if free > now {
            self.blocked = (now, free);
        }
        free > now
    }

    /// Enters what a warp did since it issued last, up to the instruction that it issues now.
    ///
    /// Of the time behind a branch, what passes when it is not taken counts as its fixed latency.
    pub(super) fn account(&mut self, now: u64, throttle: (State, (u64, u64)), untaken: u64) {
        self.waited(now, throttle, untaken);
        self.states.0[State::Selected as usize] += 1;
        self.since = now + 1;
    }

    /// What it did up to cycle `now`, in which it may still wait for the pipe or queue of its next instruction.
    pub(super) fn states_at(&self, now: u64, throttle: State, untaken: u64) -> States {
        if self.since > now {
            return self.states;
        }
        let mut until = self.clone();
        until.blocks(now, 0);
        until.waited(now, (throttle, (0, 0)), untaken);
        until.states
    }

    fn waited(&mut self, now: u64, (throttle, (busy, free)): (State, (u64, u64)), untaken: u64) {
        let states = &mut self.states;
        let mut from = self.since;
        let mut upto = |until: u64, state: State| {
            let until = until.min(now);
            if until > from {
                states.0[state as usize] += until - from;
                from = until;
            }
        };
        if self.stall == State::BranchResolving {
            upto(self.stalled.min(self.since + untaken - 1), State::Wait);
        }
        upto(self.stalled, self.stall);
        upto(self.ready, self.reason);
        let seized = busy.max(self.ready).max(self.stalled).max(from);
        let throttled = free.min(now).saturating_sub(seized).max(std::mem::take(&mut self.full)).min(now - from);
        states.0[throttle as usize] += throttled;
        states.0[State::NotSelected as usize] += now - from - throttled;
    }

    /// Begins to count turns, instructions and states anew at cycle `now`.
    pub(super) fn count_from(&mut self, now: u64) {
        self.states = States::default();
        (self.turns, self.issued, self.full) = (0, 0, 0);
        self.blocked.0 = self.blocked.0.max(now);
        self.since = self.since.max(now);
    }

    /// The turns that it made in a cycle since then, `elapsed` cycles ago; a turn has so many instructions.
    pub(super) fn rate(&self, now: u64, elapsed: u64, turn: u64) -> f64 {
        /// From so many turns on, the time between the first end of one and the last tells more than instructions do, if the
        /// warp still gets on as it did.
        const ENOUGH: u64 = 2;
        let turns = self.turns.saturating_sub(1);
        let (in_turns, idle) = (self.last_turn - self.first_turn, now.saturating_sub(self.last_turn));
        if turns >= ENOUGH && in_turns > 0 && idle * turns < 2 * in_turns {
            turns as f64 / in_turns as f64
        } else {
            self.issued as f64 / turn as f64 / elapsed as f64
        }
    }
}
