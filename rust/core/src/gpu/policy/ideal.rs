//! The ideal dispatcher: free, breadth first over all SMs, and never a slot idle for its sake.

use super::{Dispatch, Launched, Reusable, Start, Visit};
use crate::device::Device;
use crate::engine::Time;
use crate::gpu::tpc::Tpcs;
use crate::ids::SmId;

/// Costs nothing.
#[derive(Debug)]
pub(crate) struct Ideal {
    groups: usize,
}

impl Ideal {
    pub(crate) fn new(groups: usize) -> Self {
        Self { groups }
    }

    /// The first group from `from` on that has room.
    fn visit(&self, at: Time, from: usize, has_room: &mut dyn FnMut(usize) -> bool) -> Option<Visit> {
        let turns = (from..from + self.groups).map(|turn| turn % self.groups);
        turns.into_iter().find(|&group| has_room(group)).map(|group| Visit { at, group, cell: 0 })
    }
}

impl Dispatch for Ideal {
    fn tpcs(&self, device: &Device) -> Tpcs {
        Tpcs::ideal(device)
    }

    fn first_visit(&mut self, now: Time, _of: Launched, has_room: &mut dyn FnMut(usize) -> bool) -> Option<Visit> {
        self.visit(now, 0, has_room)
    }

    fn next_visit(&mut self, last: Visit, _single: bool, has_room: &mut dyn FnMut(usize) -> bool) -> Option<Visit> {
        self.visit(last.at, last.group + 1, has_room)
    }

    fn next_pass(&mut self, last: Visit, has_room: &mut dyn FnMut(usize) -> bool) -> Option<Visit> {
        self.visit(last.at, 0, has_room)
    }

    #[inline]
    fn reusable(&mut self, out: Time, _sm: SmId, _cold: bool) -> Reusable {
        Reusable { earliest: out, at: out, queued: false }
    }

    fn least_return(&self) -> Time {
        Time::ZERO
    }

    fn signalled(&mut self, at: Time, _sm: SmId) -> Time {
        at
    }

    fn cluster(&mut self, now: Time, _size: usize) -> Time {
        now
    }

    #[inline]
    fn start(&mut self, entered: Time, _sm: SmId, _warps: u32, _running_warps: u32, _cold: bool, _work: Time) -> Start {
        Start { first: entered, all: entered }
    }

    fn switch(&self) -> Time {
        Time::ZERO
    }
}
