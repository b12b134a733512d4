//! One SM, cycle by cycle: its warps, the issue slots and pipes of its sub-partitions, its memory unit.
//!
//! Cycles in which nothing can be issued are skipped. A warp issues when the stall count of its instruction before has passed,
//! what it waits for has come, the pipe is free, and the policy picks it.

use std::collections::VecDeque;

use super::code::{Answer, Length, MEMORY, OTHER, Op, PIPES, TICKS};
use super::unit::MemoryUnit;
use super::walk::Warp;
use crate::device::Device;
use crate::gpu::policy::issue::{Issue, WarpId, policy};
use crate::records::warps::{State, States};

/// Not before something else happens.
const NEVER: u64 = u64::MAX;

/// From so many cycles of stall on, compilers mark an arithmetic instruction as one behind which another warp is preferred.
const YIELDS: u64 = 3;

/// What all SMs of a device have in common.
#[derive(Clone, Debug)]
pub(super) struct Timings {
    branch: u64,
    branch_slots: u64,
    untaken: u64,
    memory_interval: u64,
    barrier_service: u64,
    barrier: u64,
}

impl Timings {
    pub(super) fn new(device: &Device) -> Self {
        let issue = &device.issue;
        Self {
            branch: issue.branch_cycles.into(),
            branch_slots: issue.branch_slots.into(),
            untaken: issue.untaken_branch_cycles.into(),
            memory_interval: issue.memory_interval_cycles.into(),
            barrier_service: (issue.barrier_service_cycles * TICKS).round() as u64,
            barrier: issue.barrier_latency_cycles.into(),
        }
    }
}

/// One SM.
#[derive(Clone, Debug)]
pub(super) struct Core {
    timings: Timings,
    parts: Vec<Part>,
    warps: Vec<Warp>,
    ctas: Vec<Cta>,
    free_warps: Vec<u32>,
    /// CTAs that have ended and were not reported, by the tag that they came with.
    ended: VecDeque<u32>,
    /// The next cycle to look at.
    now: u64,
    arrivals: u32,
    memory: MemoryUnit,
    /// When the unit that counts arrivals at barriers is free, in ticks.
    barrier_unit: u64,
    /// The sub-partition that comes first in a cycle: they take turns at the memory unit.
    served_next: usize,
    /// What was asked of the simulated memory in the last cycle, and not answered yet.
    asked: Vec<Asked>,
}

/// A load or store that goes through the simulated memory: its warp goes on with the reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Of its CTA.
    pub(super) tag: u32,
    pub(super) warp: u32,
    /// The number of the access among those of all kernels.
    pub(super) access: u32,
    place: u32,
    store: bool,
}

/// A sub-partition.
#[derive(Clone, Debug)]
struct Part {
    policy: Box<dyn Issue>,
    /// Its warps, oldest first.
    warps: Vec<(WarpId, u32)>,
    last: Option<WarpId>,
    /// When each pipe is free, and since when it has been in use without a pause.
    pipes: [u64; PIPES],
    busy: [u64; PIPES],
    /// No warp can issue before.
    next: u64,
    /// Warps that can issue, while one is picked.
    ready: Vec<WarpId>,
    places: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Cta {
    tag: u32,
    warps: Vec<u32>,
    /// Warps that have not ended.
    running: u32,
    /// Warps at its barrier.
    arrived: u32,
    /// How long it waits where lists say so: what the list of each number has for it, in cycles.
    lengths: Vec<(usize, u64)>,
}

impl Core {
    pub(super) fn new(device: &Device) -> Self {
        let part = Part {
            policy: policy(device.issue.policy),
            warps: Vec::new(),
            last: None,
            pipes: [0; PIPES],
            busy: [0; PIPES],
            next: NEVER,
            ready: Vec::new(),
            places: Vec::new(),
        };
        Self {
            timings: Timings::new(device),
            parts: vec![part; device.limits.sub_partitions.max(1) as usize],
            warps: Vec::new(),
            ctas: Vec::new(),
            free_warps: Vec::new(),
            ended: VecDeque::new(),
            now: 0,
            arrivals: 0,
            memory: MemoryUnit::default(),
            barrier_unit: 0,
            served_next: 0,
            asked: Vec::new(),
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.now
    }

    pub(super) fn sub_partitions(&self) -> u32 {
        self.parts.len() as u32
    }

    pub(super) fn is_idle(&self) -> bool {
        self.ctas.is_empty() && self.ended.is_empty()
    }

    /// The sub-partition to which the first warp of the next CTA goes: the one with the fewest.
    pub(super) fn emptiest(&self) -> usize {
        (0..self.parts.len()).min_by_key(|&part| self.parts[part].warps.len()).unwrap_or(0)
    }

    /// A CTA comes, with warps that can issue from `start` on: their numbers, and the program of each. Warp 0 has, or would
    /// have, its place in sub-partition `first`.
    pub(super) fn add(
        &mut self,
        code: &[Vec<Op>],
        tag: u32,
        warps: impl Iterator<Item = (u32, u32)>,
        first: usize,
        start: u64,
    ) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        let start = start.max(self.now);
        let cta = self.ctas.len() as u32;
        let mut own = Vec::with_capacity(warps.size_hint().0);
        for (number, program) in warps {
            let part = (first + number as usize) % self.parts.len();
            let id = WarpId { cta: arrival, warp: number };
            let warp = Warp::new(id, (cta, part as u32), program, self.now, start, &code[program as usize]);
            let place = if let Some(place) = self.free_warps.pop() {
                self.warps[place as usize] = warp;
                place
            } else {
                self.warps.push(warp);
                self.warps.len() as u32 - 1
            };
            own.push(place);
            let part = &mut self.parts[part];
            part.warps.push((id, place));
            part.next = part.next.min(start);
        }
        self.ctas.push(Cta { tag, running: own.len() as u32, warps: own, arrived: 0, lengths: Vec::new() });
    }

    /// Says how long the CTA that came last waits, by the number of each list that its program names.
    pub(super) fn set_lengths(&mut self, lengths: Vec<(usize, u64)>) {
        if let Some(cta) = self.ctas.last_mut() {
            cta.lengths = lengths;
        }
    }

    /// Goes on until a CTA ends, and gives its tag; or to the end of a cycle in which memory is asked; or until cycle `until`,
    /// before anything happens in it.
    pub(super) fn run(&mut self, programs: &[Vec<Op>], until: u64) -> Option<u32> {
        while self.ended.is_empty() && self.asked.is_empty() {
            let next = self.parts.iter().map(|part| part.next).min().unwrap_or(NEVER);
            if next >= until {
                if until != NEVER {
                    self.now = self.now.max(until);
                }
                return None;
            }
            self.now = next;
            let first = self.served_next;
            for part in (first..self.parts.len()).chain(0..first) {
                if self.parts[part].next <= next {
                    self.issue(part, programs);
                }
            }
        }
        self.ended.pop_front()
    }

    /// A cycle of a sub-partition in which a warp may issue.
    fn issue(&mut self, at: usize, programs: &[Vec<Op>]) {
        let now = self.now;
        let part = &mut self.parts[at];
        part.ready.clear();
        part.places.clear();
        let mut next = NEVER;
        for &(id, place) in &part.warps {
            let warp = &mut self.warps[place as usize];
            if warp.ready > now {
                next = next.min(warp.ready);
                continue;
            }
            let free = match programs[warp.program as usize][warp.at as usize] {
                Op::Run { pipe, .. } => part.pipes[pipe],
                Op::Memory { answer, .. } => part.pipes[MEMORY].max(self.memory.has_room(answer)),
                Op::Barrier => part.pipes[MEMORY],
                _ => 0,
            };
            if warp.blocks(now, free) {
                next = next.min(free);
                continue;
            }
            part.ready.push(id);
            part.places.push(place);
        }
        let Some(picked) = (!part.ready.is_empty()).then(|| part.policy.pick(&part.ready, part.last)).flatten() else {
            part.next = next;
            return;
        };
        part.last = Some(part.ready[picked]);
        let place = part.places[picked];
        let others = part.ready.len() > 1;
        part.next = NEVER;
        let lost = self.execute(place, programs);
        let free = now + 1 + lost;
        let ready = self.warps[place as usize].ready;
        let part = &mut self.parts[at];
        // A barrier may have let warps of this sub-partition go on meanwhile.
        let next = next.min(ready).min(part.next);
        part.next = if others { free } else { next.max(free) };
    }

    /// A warp issues its next instruction; the issue slots that this costs its sub-partition beside its own.
    fn execute(&mut self, place: u32, programs: &[Vec<Op>]) -> u64 {
        let now = self.now;
        let timings = &self.timings;
        let warp = &mut self.warps[place as usize];
        let program = &programs[warp.program as usize];
        let op = program[warp.at as usize];
        let part = &mut self.parts[warp.part as usize];
        let mut occupy = |pipe: usize, cycles: u64| {
            let (busy, free) = (part.busy[pipe], part.pipes[pipe]);
            if now > free {
                part.busy[pipe] = now;
            }
            part.pipes[pipe] = now + cycles;
            (busy, free)
        };
        let mut stall = 1;
        let mut lost = 0;
        let mut throttle = (State::NotSelected, (0, 0));
        let mut stall_state = State::Wait;
        let mut done = true;
        // Whether a branch is, if it is one.
        let mut taken = None;
        match op {
            Op::Run { count, chains, stall: last, pipe, interval } => {
                if pipe != OTHER {
                    throttle = (State::MathPipeThrottle, occupy(pipe, u64::from(interval)));
                }
                warp.done += 1;
                if warp.done.is_multiple_of(u64::from(chains)) || warp.done == count {
                    stall = u64::from(last);
                }
                done = warp.done == count;
            }
            Op::Memory { count, service, answer } => {
                throttle = (State::MioThrottle, occupy(MEMORY, timings.memory_interval));
                self.served_next = (warp.part as usize + 1) % self.parts.len();
                self.memory.serve(warp, service, answer, now);
                warp.done += 1;
                done = warp.done == count;
            }
            Op::Barrier => {
                throttle = (State::Barrier, (part.busy[MEMORY], part.pipes[MEMORY]));
                let served = self.barrier_unit.max(now * TICKS as u64);
                self.barrier_unit = served + timings.barrier_service;
            }
            Op::Branch | Op::Again { branch: true } => taken = Some(true),
            Op::Back { times, depth, .. } => taken = Some(warp.loops[depth] + 1 < times),
            Op::Until { cycles, since, .. } => {
                taken = Some(!warp.is_over(self.ctas[warp.cta as usize].length(cycles), since));
            }
            Op::Again { branch: false } | Op::Clock | Op::Wait | Op::Exit => {}
        }
        match taken {
            Some(true) => {
                stall = timings.branch;
                stall_state = State::BranchResolving;
                lost = timings.branch_slots;
            }
            Some(false) => stall = timings.untaken,
            None => {}
        }
        warp.account(now, throttle, timings.untaken);
        let yields = matches!(op, Op::Run { .. }) && stall >= YIELDS;
        self.parts[warp.part as usize].policy.issued(warp.id, yields);
        warp.issues(now);
        warp.stall = stall_state;
        warp.stalled = now + stall;
        warp.ready = warp.stalled;
        match op {
            Op::Memory { answer: Answer::Access { number, store }, .. } => {
                let (tag, warp) = (self.ctas[warp.cta as usize].tag, warp.id.warp);
                self.asked.push(Asked { tag, warp, access: number, place, store });
                return lost;
            }
            Op::Exit => {
                self.exit(place);
                return 0;
            }
            Op::Barrier => {
                warp.leave(op);
                warp.ready = NEVER;
                self.arrive(place, program);
                return 0;
            }
            _ => {}
        }
        if done {
            match op {
                Op::Until { to, .. } => warp.leave_wait(to, taken == Some(false)),
                _ => warp.leave(op),
            }
            if warp.settle(program) {
                self.parts[warp.part as usize].policy.waits(warp.id);
            }
        }
        lost
    }

    /// What memory was asked for in the last cycle: each wants a reply before the SM goes on.
    pub(super) fn take_asked(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.asked)
    }

    /// What was asked for comes, or has been taken in, at cycle `at`.
    pub(super) fn reply(&mut self, programs: &[Vec<Op>], asked: Asked, at: u64) {
        let warp = &mut self.warps[asked.place as usize];
        if asked.store {
            self.memory.taken(at);
        } else {
            warp.long = warp.long.max(at);
        }
        let program = &programs[warp.program as usize];
        let op = program[warp.at as usize];
        if matches!(op, Op::Memory { count, .. } if warp.done == count) {
            warp.leave(op);
            if warp.settle(program) {
                self.parts[warp.part as usize].policy.waits(warp.id);
            }
        }
    }

    /// A warp has come to its CTA's barrier; the last one lets all go on.
    fn arrive(&mut self, place: u32, program: &[Op]) {
        let warp = &self.warps[place as usize];
        self.parts[warp.part as usize].policy.waits(warp.id);
        let cta = &mut self.ctas[warp.cta as usize];
        cta.arrived += 1;
        if (cta.arrived as usize) < cta.warps.len() {
            return;
        }
        cta.arrived = 0;
        let served = self.barrier_unit.saturating_sub(self.timings.barrier_service).div_ceil(TICKS as u64);
        let open = served.max(self.now) + self.timings.barrier;
        for &place in &cta.warps {
            let warp = &mut self.warps[place as usize];
            warp.ready = open.max(warp.stalled);
            warp.reason = State::Barrier;
            let part = &mut self.parts[warp.part as usize];
            if warp.settle(program) {
                part.policy.waits(warp.id);
            }
            part.next = part.next.min(warp.ready);
        }
    }

    fn exit(&mut self, place: u32) {
        let warp = &mut self.warps[place as usize];
        warp.ready = NEVER - 1;
        let (id, at, cta) = (warp.id, warp.part as usize, warp.cta as usize);
        let part = &mut self.parts[at];
        part.policy.ended(id);
        part.warps.retain(|&(_, other)| other != place);
        self.ctas[cta].running -= 1;
        if self.ctas[cta].running > 0 {
            return;
        }
        self.ended.push_back(self.ctas[cta].tag);
    }

    /// Takes a CTA that has ended off the SM: what its warps did.
    pub(super) fn remove(&mut self, tag: u32) -> States {
        let Some(at) = self.ctas.iter().position(|cta| cta.tag == tag && cta.running == 0) else {
            return States::default();
        };
        let cta = self.ctas.remove(at);
        for later in &self.ctas[at..] {
            for &place in &later.warps {
                self.warps[place as usize].cta -= 1;
            }
        }
        let mut states = States::default();
        for &place in &cta.warps {
            states.add(&self.warps[place as usize].states);
        }
        self.free_warps.extend(&cta.warps);
        states
    }
}

impl Cta {
    /// How many cycles one of its spin-waits lasts.
    fn length(&self, of: Length) -> u64 {
        match of {
            Length::Constant(cycles) => cycles,
            Length::OfCta(list) => {
                self.lengths.iter().find(|(number, _)| *number == list).map_or(0, |(_, cycles)| *cycles)
            }
        }
    }
}

/// What rates are measured by, when all programs are endless.
impl Core {
    /// The warps of all CTAs, oldest first.
    pub(super) fn warps(&self) -> impl Iterator<Item = &Warp> {
        self.ctas.iter().flat_map(|cta| &cta.warps).map(|&place| &self.warps[place as usize])
    }

    /// What each warp did up to now, those of the oldest CTA first.
    pub(super) fn states(&self, programs: &[Vec<Op>]) -> impl Iterator<Item = States> {
        self.warps().map(|warp| {
            let throttle = match programs[warp.program as usize][warp.at as usize] {
                Op::Run { pipe, .. } if pipe != OTHER => State::MathPipeThrottle,
                Op::Memory { .. } => State::MioThrottle,
                Op::Barrier => State::Barrier,
                _ => State::NotSelected,
            };
            warp.states_at(self.now, throttle, self.timings.untaken)
        })
    }

    /// Begins to count turns, instructions and states anew.
    pub(super) fn count_from_here(&mut self) {
        self.warps.iter_mut().for_each(|warp| warp.count_from(self.now));
    }
}
