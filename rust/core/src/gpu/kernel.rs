//! A kernel launch on its way: what is left of it, and what is known of it so far.

use super::front_end::OpId;
use super::sm::{Footprint, Place, Resident};
use super::sync::Sync;
use super::work::Sampler;
use crate::engine::Time;
use crate::ids::KernelId;

/// One launch.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) id: KernelId,
    pub(crate) op: OpId,
    pub(crate) spec: usize,
    pub(crate) stream: u32,
    pub(crate) priority: i32,
    pub(crate) footprint: Footprint,
    pub(crate) cluster: u32,
    cluster_launch: bool,
    pub(crate) ctas: u64,
    next: u64,
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
            tail_busy_ps: 0,
        }
    }
}

impl<'a> Run<'a> {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        id: KernelId,
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
            id,
            op,
            spec,
            stream,
            priority,
            footprint,
            cluster,
            cluster_launch,
            ctas,
            next: 0,
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

    /// CTAs that have no place yet.
    #[inline]
    pub(crate) fn left(&self) -> u64 {
        self.ctas - self.next
    }

    /// The next CTA, which starts at `start`.
    #[inline]
    pub(crate) fn next(&mut self, start: Time) -> Resident {
        let cta = self.next as u32;
        self.next += 1;
        self.times.start = self.times.start.min(start);
        self.times.placed = self.times.placed.max(start);
        Resident { kernel: self.id, cta, start }
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
