//! Turns of warps that ask memory: what they asked for last decides how long their turn takes.
//!
//! Rates say how long a turn takes when all warps of an SM see the latencies that loads have seen lately. If the loads of a
//! CTA took more or less than that, its turn takes more or less, as far as turns do not hide it. So a CTA has in flight what it
//! asked for and no more, and whoever waits longer asks later.
//!
//! A CTA asks for whole iterations of its patterns. Where its warps do not get on alike, those ask that are ahead.

use super::asks::Batch;
use super::rates::Rate;
use super::seen::{RATIO, Seen, beyond};
use super::unit::DATA_QUEUE;
use crate::engine::Time;
use crate::gpu::memory::Memory;
use crate::gpu::memory::Request;
use crate::gpu::sm::Place;
use crate::ids::KernelId;
use crate::records::State;

/// How far a CTA is in the accesses that its program names.
#[derive(Clone, Debug)]
pub(super) struct CtaAccesses {
    pub(super) kernel: KernelId,
    pub(super) cta: u32,
    pub(super) place: Place,
    /// The first access of its kernel among those of all kernels.
    pub(super) first: u32,
    /// Iterations that it has asked for, by access of its kernel; and batches in all.
    iterations: Vec<u64>,
    batches: u64,
    /// When there is room for further stores.
    room: Time,
}

/// What some of its warps have asked for, and when they have it: what their turns wait for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scoreboard {
    /// Batches that they have asked for.
    asked: u64,
    /// Those that they will ask for in this stretch of work.
    todo: u64,
    /// The batch of a turn whose loads they asked for last, and what these took.
    batch: usize,
    took: f64,
    room: Time,
}

/// What memory told of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    /// What its loads took: the sum over the accesses, in cycles.
    pub(super) took: f64,
    /// When there is room for further stores.
    pub(super) room: Time,
}

/// The load/store unit at a moment: the way to memory, and what loads have seen of it.
#[derive(Debug)]
pub(super) struct Lsu<'a, 'm> {
    pub(super) now: Time,
    pub(super) cycle_ps: f64,
    /// There is one if a program asks.
    pub(super) memory: Option<&'a mut Memory<'m>>,
    pub(super) seen: &'a mut Seen,
}

impl CtaAccesses {
    pub(super) fn new(kernel: KernelId, cta: u32, place: Place, first: u32) -> Self {
        Self { kernel, cta, place, first, iterations: Vec::new(), batches: 0, room: Time::ZERO }
    }

    /// Some of its warps, which have asked for so many batches, ask for a further one. Who comes after others is told what
    /// loads have seen lately.
    fn ask(&mut self, asked: &mut u64, batch: &Batch, lsu: &mut Lsu<'_, '_>) -> Told {
        *asked += 1;
        if *asked <= self.batches {
            return Told { took: batch.loads().map(|access| lsu.seen.mean(access)).sum(), room: self.room };
        }
        self.batches = *asked;
        let Lsu { now, cycle_ps, ref mut memory, ref mut seen } = *lsu;
        let memory = memory.as_mut().expect("a program with accesses has a memory");
        let queue = Time((DATA_QUEUE as f64 * cycle_ps) as u64);
        let mut took = 0.0;
        for ask in &batch.asks {
            let access = (ask.access - self.first) as usize;
            if self.iterations.len() <= access {
                self.iterations.resize(access + 1, 0);
            }
            let (mut cycles, mut variance) = (0.0, 0.0);
            for _ in 0..ask.iterations {
                let iteration = self.iterations[access];
                self.iterations[access] += 1;
                let Self { kernel, cta, place, .. } = *self;
                let reply = memory.ask(Request { kernel, cta, place, access, iteration, warp: None }, now);
                if ask.store {
                    self.room = self.room.max(Time(reply.at.0.saturating_sub(queue.0)));
                }
                cycles += reply.at.since(now).0 as f64 / cycle_ps;
                variance += reply.variance;
            }
            if !ask.store {
                let count = ask.iterations as f64;
                seen.saw(ask.access, cycles / count, variance / count);
                took += cycles / count;
            }
        }
        Told { took, room: self.room }
    }
}

impl Scoreboard {
    /// So many turns begin, each with so many batches.
    pub(super) fn begin(&mut self, turns: f64, batches: usize) {
        *self = Self { asked: self.asked, todo: (turns * batches as f64).round() as u64, ..Self::default() };
    }

    /// Whether it asks again before its stretch of work is done.
    pub(super) fn goes_on(&self) -> bool {
        self.todo > 0
    }

    /// Asks for the next batch of its turns: how many turns are left then.
    pub(super) fn next(&mut self, batches: &[Batch], accesses: &mut CtaAccesses, lsu: &mut Lsu<'_, '_>) -> f64 {
        let left = self.todo as f64 / batches.len() as f64;
        let at = batches.len() - 1 - (self.todo - 1) as usize % batches.len();
        self.todo -= 1;
        let told = accesses.ask(&mut self.asked, &batches[at], lsu);
        self.room = told.room;
        if told.took > 0.0 {
            (self.batch, self.took) = (at, told.took);
        }
        left
    }

    /// Asks for what a short stretch needs: by how many cycles it takes longer than with the shortest latencies, and when there
    /// is room for what it stores.
    pub(super) fn at_once(&mut self, batches: &[Batch], accesses: &mut CtaAccesses, lsu: &mut Lsu<'_, '_>) -> Told {
        let mut all = Told { took: 0.0, room: Time::ZERO };
        for batch in batches {
            let told = accesses.ask(&mut self.asked, batch, lsu);
            if batch.waits {
                all.took += (told.took - batch.loads().count() as f64 * lsu.seen.least).max(0.0);
            }
            all.room = all.room.max(told.room);
        }
        all
    }

    /// How they get on now, with `left` turns to go, and until when: they ask for their next batch, or their turns are done.
    /// `lower` is how so many warps do at the step below what loads see, and `upper` how many turns they make in a cycle at the
    /// one above; with nothing to wait for, a turn would take a lone warp `busy` cycles.
    pub(super) fn pace(
        &self,
        batches: &[Batch],
        (lower, upper): (&Rate, f64),
        (left, warps, busy): (f64, f64, f64),
        lsu: &Lsu<'_, '_>,
    ) -> (Rate, Time) {
        let Lsu { now, cycle_ps, ref seen, .. } = *lsu;
        let usual = |batch: &Batch| -> f64 { batch.loads().map(|access| seen.lower(access)).sum() };
        let mut turn = 1.0 / lower.turns;
        let mut varies = 0.0;
        if self.took > 0.0 {
            // A turn gets no shorter with longer latencies, and no longer by more than these all do.
            let most = (RATIO - 1.0) * batches.iter().map(usual).sum::<f64>();
            let longer = (1.0 / upper - turn).clamp(0.0, most);
            turn += longer * beyond(self.took / usual(&batches[self.batch]));
            let of_loads: f64 = batches.iter().flat_map(Batch::loads).map(|access| seen.variance(access)).sum();
            varies = (longer / most).powi(2) * of_loads;
        }
        // An instruction takes a cycle, and where loads come much sooner than lately, arithmetic no longer hides behind them.
        let turn = turn.max(batches.len() as f64).max(busy);
        let part = left - self.todo as f64 / batches.len() as f64;
        let due = Time((now.0 as f64 + (part * turn * cycle_ps).ceil().max(0.0)) as u64);
        let waits = if self.room > due { State::MioThrottle } else { State::LongScoreboard };
        let due = due.max(self.room).min(Time::HORIZON);
        let lasts = due.since(now).0 as f64 / cycle_ps;
        let rate = if lasts > 0.0 { lower.stretched(part / lasts, warps, waits) } else { *lower };
        (Rate { varies, ..rate }, due)
    }
}
