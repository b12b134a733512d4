//! What CTAs wait for beside a slot: atomic counters and grid barriers.
//!
//! Both are one word in L2, and that word is a serial server: requests from the whole die reach it after half a round trip,
//! are served one at a time, and answer after the other half. SMs of the half of L2 that the word lies in are nearer.

use super::barrier::Barrier;
use super::sm::Place;
use super::word::Word;
use super::work::Sampler;
use crate::device::Device;
use crate::engine::Time;
use crate::error::{Error, Result};
use crate::ids::SmId;
use crate::workload::{Kernel, Needs, Span, Tasks, Work};

/// What the CTAs of one kernel do, step by step.
#[derive(Debug)]
pub(crate) enum Sync {
    /// Each runs for its time.
    None,
    /// Each works off its own share of a list of tasks.
    Static(StaticTasks),
    /// Each takes its next task from a counter.
    Counter(Counter),
    /// All meet at a barrier behind each round.
    Barrier(Barrier),
    /// Each waits for the flags of others.
    Chain(Chain),
    /// Each moves memory.
    Memory,
    /// The warps of each run a program.
    Warps,
}

/// What a CTA does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It has ended.
    End,
    /// Its next step is then.
    At(Time),
    /// The end of another CTA will let it go on.
    Waits,
    /// Memory says when.
    Memory,
    /// What else is on its SM says when.
    Warps,
}

impl Sync {
    pub(crate) fn new(
        kernel: &Kernel,
        device: &Device,
        arrays: &[&[f64]],
        sampler: &mut Sampler<'_>,
        second: Option<Sampler<'_>>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        let time = |span: Span| Time(span.ps(device.clock.cycles_to_ps(1.0)).round() as u64);
        Ok(match kernel.work {
            Work::Duration(_) => Self::None,
            Work::Persistent { tasks, schedule: Tasks::Static, overhead, startup, .. } => {
                let (overhead, startup) = (time(overhead), time(startup));
                Self::Static(StaticTasks::new(tasks, kernel.ctas(), overhead, startup, sampler, interrupted)?)
            }
            Work::Persistent { tasks, schedule: Tasks::Atomic, overhead, startup, .. } => Self::Counter(Counter {
                word: Word::new(device),
                tasks,
                taken: 0,
                overhead: time(overhead),
                startup: time(startup),
                leaving: vec![false; kernel.ctas() as usize],
                waited_ps: 0,
            }),
            Work::Chain { ref needs, .. } => {
                let ctas = kernel.ctas() as usize;
                let after = second.map_or_else(Vec::new, |mut second| (0..ctas).map(|_| second.next()).collect());
                Self::Chain(Chain::new(after, needs, arrays, Word::new(device)))
            }
            Work::Access(_) | Work::Tiles(_) | Work::Streaming(_) => Self::Memory,
            Work::Warps(_) => Self::Warps,
            Work::GridSync { rounds, .. } => Self::Barrier(Barrier::new(rounds, kernel.ctas(), device)),
        })
    }

    /// The next CTA's own time, as far as it is drawn for each CTA.
    #[inline]
    pub(crate) fn work(&self, sampler: &mut Sampler<'_>) -> Time {
        match self {
            Self::None | Self::Barrier(_) | Self::Chain(_) => sampler.next(),
            Self::Static(_) | Self::Counter(_) | Self::Memory | Self::Warps => Time::LONGEST,
        }
    }

    /// A CTA on `sm` begins its work at `at`: when its first step is due.
    #[inline]
    pub(crate) fn begin(&mut self, cta: u32, sm: SmId, at: Time, work: Time) -> Time {
        match self {
            Self::None | Self::Chain(_) => at + work,
            Self::Memory | Self::Warps => at,
            Self::Static(tasks) => at + tasks.of(cta),
            Self::Counter(counter) => at + counter.startup + counter.word.way(sm),
            Self::Barrier(barrier) => barrier.begin(cta, sm, at, work),
        }
    }

    /// A CTA's step is due. Puts into `woken` what that lets others do.
    #[inline]
    pub(crate) fn next(
        &mut self,
        cta: u32,
        place: Place,
        now: Time,
        sampler: &mut Sampler<'_>,
        woken: &mut Vec<(Time, Place)>,
    ) -> Next {
        match self {
            Self::None | Self::Static(_) => Next::End,
            Self::Counter(counter) => counter.next(cta, place.sm(), now, sampler),
            Self::Barrier(barrier) => barrier.next(cta, place, now, woken),
            Self::Chain(chain) => chain.next(cta, place, now),
            Self::Memory => Next::Memory,
            Self::Warps => Next::Warps,
        }
    }

    /// Whether the end of a CTA can let others go on.
    #[inline]
    pub(crate) fn wakes(&self) -> bool {
        matches!(self, Self::Chain(_))
    }

    /// A CTA has ended: who goes on, and when.
    pub(crate) fn ended(&mut self, cta: u32, sm: SmId, now: Time, woken: &mut Vec<(Time, Place)>) {
        if let Self::Chain(chain) = self {
            chain.ended(cta, sm, now, woken);
        }
    }

    /// CTAs that poll a grid barrier, and whether one of them is about to pass; none without a barrier.
    pub(crate) fn polls(&self) -> Option<(u64, bool)> {
        match self {
            Self::Barrier(barrier) => Some(barrier.polls()),
            _ => None,
        }
    }

    /// CTAs that wait at a grid barrier, and how many it takes; none without a barrier.
    pub(crate) fn at_barrier(&self) -> Option<(u64, u64)> {
        match self {
            Self::Barrier(barrier) => Some(barrier.arrived()).filter(|&(arrived, _)| arrived > 0),
            _ => None,
        }
    }

    /// When the last of those CTAs that wait for others came to its wait; zero if none waits.
    pub(crate) fn waits_since(&self) -> Time {
        match self {
            Self::Chain(chain) => chain.waits_since(),
            Self::Barrier(barrier) => barrier.came,
            _ => Time::ZERO,
        }
    }

    /// How long CTAs waited for each other, or for their turn at a counter; added up.
    pub(crate) fn waited_ps(&self) -> u128 {
        match self {
            Self::Counter(counter) => counter.waited_ps,
            Self::Barrier(barrier) => barrier.waited_ps,
            Self::Chain(chain) => chain.waited_ps,
            Self::None | Self::Static(_) | Self::Memory | Self::Warps => 0,
        }
    }

    /// Who waits for whom, for a report: the first few.
    pub(crate) fn waiting(&self) -> Vec<(u32, u32)> {
        match self {
            Self::Chain(chain) => chain.waiting(),
            _ => Vec::new(),
        }
    }
}

/// Task `t` goes to CTA `t mod n`, so each CTA's time is known before it starts.
#[derive(Debug)]
pub(crate) struct StaticTasks {
    of: Vec<Time>,
}

impl StaticTasks {
    fn new(
        tasks: u64,
        ctas: u64,
        overhead: Time,
        startup: Time,
        sampler: &mut Sampler<'_>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        const TASKS_BETWEEN_CHECKS: u64 = 1 << 20;
        let mut of = vec![startup; ctas as usize];
        if let Some(constant) = sampler.constant() {
            let task = constant + overhead;
            for (cta, time) in of.iter_mut().enumerate() {
                let own = (tasks + ctas - 1 - cta as u64) / ctas;
                *time += Time(task.0.saturating_mul(own));
            }
            return Ok(Self { of });
        }
        for task in 0..tasks {
            if task % TASKS_BETWEEN_CHECKS == 0 && interrupted() {
                return Err(Error::Interrupted);
            }
            of[(task % ctas) as usize] += sampler.next() + overhead;
        }
        Ok(Self { of })
    }

    fn of(&self, cta: u32) -> Time {
        self.of[cta as usize]
    }
}

/// A counter from which CTAs take the number of their next task.
#[derive(Debug)]
pub(crate) struct Counter {
    word: Word,
    tasks: u64,
    taken: u64,
    overhead: Time,
    startup: Time,
    /// CTAs that have been told that no task is left.
    leaving: Vec<bool>,
    waited_ps: u128,
}

impl Counter {
    /// A CTA's request has reached the counter, or a CTA that found no task left has ended.
    #[inline]
    fn next(&mut self, cta: u32, sm: SmId, now: Time, sampler: &mut Sampler<'_>) -> Next {
        let leaving = &mut self.leaving[cta as usize];
        if *leaving {
            return Next::End;
        }
        let way = self.word.way(sm);
        let answer = self.word.serve(now) + way;
        self.waited_ps += u128::from((answer + way).since(now).0);
        if self.taken == self.tasks {
            *leaving = true;
            return Next::At(answer);
        }
        self.taken += 1;
        Next::At(answer + self.overhead + sampler.next() + way)
    }
}

/// CTAs that wait for the flags of others.
#[derive(Debug)]
pub(crate) struct Chain {
    word: Word,
    ctas: Vec<InChain>,
    /// The CTAs that wait for CTA `i` are `waiters[first[i]..first[i + 1]]`.
    waiters: Vec<u32>,
    first: Vec<usize>,
    waited_ps: u128,
}

/// One CTA's state.
#[derive(Clone, Copy, Debug)]
struct InChain {
    after: Time,
    /// Flags that it waits for and that are not set.
    unset: u32,
    /// When it knows of the last one that was.
    known: Time,
    /// It has come to the wait and stands there, since then.
    stands: Option<(Place, Time)>,
    /// Nothing holds it any more.
    goes_on: bool,
}

impl Chain {
    fn new(after: Vec<Time>, needs: &Needs, arrays: &[&[f64]], word: Word) -> Self {
        let count = after.len();
        let needed: Vec<(u32, u32)> = match needs {
            Needs::Previous { distance } => {
                let distance = usize::try_from(*distance).unwrap_or(usize::MAX);
                (distance.min(count)..count).map(|cta| (cta as u32, (cta - distance) as u32)).collect()
            }
            Needs::Lists { arrays: lists } => lists
                .iter()
                .flat_map(|&list| arrays[list].iter().enumerate())
                .filter(|&(_, &needed)| needed >= 0.0)
                .map(|(cta, &needed)| (cta as u32, needed as u32))
                .collect(),
        };
        let mut first = vec![0; count + 1];
        for &(_, on) in &needed {
            first[on as usize + 1] += 1;
        }
        (0..count).for_each(|i| first[i + 1] += first[i]);
        let mut fill = first.clone();
        let mut waiters = vec![0; needed.len()];
        let state = |after| InChain { after, unset: 0, known: Time::ZERO, stands: None, goes_on: false };
        let mut ctas: Vec<InChain> = after.into_iter().map(state).collect();
        for &(cta, on) in &needed {
            waiters[fill[on as usize]] = cta;
            fill[on as usize] += 1;
            ctas[cta as usize].unset += 1;
        }
        Self { word, ctas, waiters, first, waited_ps: 0 }
    }

    fn next(&mut self, cta: u32, place: Place, now: Time) -> Next {
        let state = &mut self.ctas[cta as usize];
        if state.goes_on {
            return Next::End;
        }
        if state.unset > 0 {
            state.stands = Some((place, now));
            return Next::Waits;
        }
        state.goes_on = true;
        self.waited_ps += u128::from(state.known.since(now).0);
        Next::At(now.max(state.known) + state.after)
    }

    /// A CTA's flag is set at `now`: it reaches L2 and is read there by those that wait for it.
    fn ended(&mut self, cta: u32, sm: SmId, now: Time, woken: &mut Vec<(Time, Place)>) {
        let set = now + self.word.way(sm);
        for &waiter in &self.waiters[self.first[cta as usize]..self.first[cta as usize + 1]] {
            let state = &mut self.ctas[waiter as usize];
            state.unset -= 1;
            let reader = state.stands.map_or(sm, |(place, _)| place.sm());
            state.known = state.known.max(set + self.word.way(reader));
            if state.unset == 0
                && let Some((place, since)) = state.stands.take()
            {
                state.goes_on = true;
                self.waited_ps += u128::from(state.known.since(since).0);
                woken.push((state.known + state.after, place));
            }
        }
    }

    fn waits_since(&self) -> Time {
        let since = self.ctas.iter().filter_map(|cta| cta.stands).map(|(_, since)| since);
        since.max().unwrap_or(Time::ZERO)
    }

    fn waiting(&self) -> Vec<(u32, u32)> {
        const SHOWN: usize = 4;
        let stand = |&(_, &waiter): &(usize, &u32)| self.ctas[waiter as usize].stands.is_some();
        let on = |i: usize| (self.first.partition_point(|&first| first <= i) - 1) as u32;
        let set = |cta: u32| self.ctas[cta as usize].goes_on;
        let waiting = self.waiters.iter().enumerate().filter(stand).map(|(i, &waiter)| (waiter, on(i)));
        waiting.filter(|&(_, needed)| !set(needed)).take(SHOWN).collect()
    }
}
