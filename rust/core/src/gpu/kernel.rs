//! A kernel launch on its way: what is left of it, and what is known of it so far.

use super::front_end::OpId;
use super::policy::Launched;
use super::sm::{Footprint, Place};
use super::sync::Sync;
use super::work::Sampler;
use crate::engine::Time;

/// One launch.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) op: OpId,
    pub(crate) spec: usize,
    pub(crate) stream: u32,
    pub(crate) priority: i32,
    pub(crate) footprint: Footprint,
    pub(crate) cluster: u32,
    cluster_launch: bool,
    pub(crate) cooperative: bool,
    /// How long the last warp of its CTAs runs alone, if what the others held is given away by then.
    pub(crate) last_warp: Time,
    pub(crate) ctas: u64,
    next: u64,
    /// Where CTAs are dealt to GPCs by their number.
    dealt: Option<Dealt>,
    pub(crate) sampler: Sampler<'a>,
    pub(crate) sync: Sync,
    pub(crate) trigger: bool,
    /// Launched before the kernel ahead of it is complete.
    pub(crate) dependent: bool,
    /// That kernel is not complete yet; and when it was.
    pub(crate) held: bool,
    pub(crate) work_from: Time,
    /// The last stores of its CTAs have been acknowledged.
    pub(crate) flushed: Time,
    /// CTAs that have started and wait for that: since when, and for how much work.
    pub(crate) parked: Vec<(Place, Time, Time)>,
    pub(crate) ended: u64,
    pub(crate) returned: u64,
    /// CTAs whose signal for a dependent launch has reached the dispatcher.
    pub(crate) signalled: u64,
    pub(crate) times: Times,
}

/// CTAs that go to GPCs by their number: `i` goes to GPC `i mod n`.
#[derive(Debug)]
struct Dealt {
    /// The next CTA of each GPC.
    next: Vec<u64>,
    /// Work is drawn in the order of the CTAs' numbers, whatever the order in which they are placed.
    works: Vec<Time>,
}

/// What is recorded of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) issue: Time,
    pub(crate) ready: Time,
    pub(crate) start: Time,
    pub(crate) placed: Time,
    pub(crate) end: Time,
    /// The last slot has come back.
    pub(crate) complete: Time,
    pub(crate) busy_ps: u128,
    pub(crate) dispatch_ps: u128,
    /// CTAs had started and waited for the kernel ahead.
    pub(crate) held_ps: u128,
    /// Busy time behind `placed`.
    pub(crate) tail_busy_ps: u128,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            issue: Time::ZERO,
            ready: Time::ZERO,
            start: Time::MAX,
            placed: Time::ZERO,
            end: Time::ZERO,
            complete: Time::ZERO,
            busy_ps: 0,
            dispatch_ps: 0,
            held_ps: 0,
            tail_busy_ps: 0,
        }
    }
}

impl<'a> Run<'a> {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        op: OpId,
        spec: usize,
        stream: u32,
        priority: i32,
        footprint: Footprint,
        (cluster, cluster_launch): (u32, bool),
        ctas: u64,
        sampler: Sampler<'a>,
        sync: Sync,
    ) -> Self {
        Self {
            op,
            spec,
            stream,
            priority,
            footprint,
            cluster,
            cluster_launch,
            cooperative: false,
            last_warp: Time::ZERO,
            ctas,
            next: 0,
            dealt: None,
            sampler,
            sync,
            trigger: false,
            dependent: false,
            held: false,
            work_from: Time::ZERO,
            flushed: Time::ZERO,
            parked: Vec::new(),
            ended: 0,
            returned: 0,
            signalled: 0,
            times: Times::default(),
        }
    }

    /// Whether the dispatcher places it as clusters, which it also does with clusters of one CTA.
    #[inline]
    pub(crate) fn cluster_launch(&self) -> bool {
        self.cluster_launch || self.cluster > 1
    }

    pub(crate) fn launched(&self) -> Launched {
        if self.cluster_launch() {
            Launched::Clusters
        } else if self.cooperative {
            Launched::Cooperatively
        } else {
            Launched::Plain
        }
    }

    /// Whether its CTAs are placed one by one in the order of their numbers, begin at once, and give all back at once.
    pub(crate) fn is_plain(&self) -> bool {
        let at_once = self.last_warp == Time::ZERO;
        at_once && !self.cluster_launch() && self.dealt.is_none() && !self.dependent && !self.trigger
    }

    /// Whether its CTAs wait for nothing, and end when their time is over.
    #[inline]
    pub(crate) fn only_runs(&self) -> bool {
        matches!(self.sync, Sync::None)
    }

    /// CTAs that have no place yet.
    #[inline]
    pub(crate) fn left(&self) -> u64 {
        self.ctas - self.next
    }

    /// Deals the CTAs to `lanes` GPCs in turn.
    pub(crate) fn deal(&mut self, lanes: usize) {
        let works = (0..self.ctas).map(|_| self.sync.work(&mut self.sampler)).collect();
        self.dealt = Some(Dealt { next: (0..lanes as u64).collect(), works });
    }

    /// CTAs that have no place yet and may go to this GPC.
    #[inline]
    pub(crate) fn left_for(&self, gpc: usize) -> u64 {
        match &self.dealt {
            None => self.left(),
            Some(dealt) => self.ctas.saturating_sub(dealt.next[gpc]).div_ceil(dealt.next.len() as u64),
        }
    }

    /// The next CTA for this GPC, and how long its own work is.
    #[inline]
    pub(crate) fn take(&mut self, gpc: usize) -> (u32, Time) {
        let in_order = self.next as u32;
        self.next += 1;
        match &mut self.dealt {
            None => (in_order, self.sync.work(&mut self.sampler)),
            Some(dealt) => {
                let cta = dealt.next[gpc];
                dealt.next[gpc] += dealt.next.len() as u64;
                (cta as u32, dealt.works[cta as usize])
            }
        }
    }

    /// A CTA starts at `start`.
    #[inline]
    pub(crate) fn started(&mut self, start: Time) {
        self.times.start = self.times.start.min(start);
        self.times.placed = self.times.placed.max(start);
    }

    /// A CTA ended.
    #[inline]
    pub(crate) fn end(&mut self, start: Time, end: Time) {
        self.ended += 1;
        self.times.end = end;
        self.times.busy_ps += u128::from(end.since(start).0);
        if self.next == self.ctas && end > self.times.placed {
            self.times.tail_busy_ps += u128::from(end.since(start.max(self.times.placed)).0);
        }
    }
}
