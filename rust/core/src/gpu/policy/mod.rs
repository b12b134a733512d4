//! Policies: one small trait for each question that machines answer differently, one file for each answer.

pub(crate) mod hardware;
pub(crate) mod ideal;
pub(crate) mod issue;
pub(crate) mod replacement;

use super::tpc::Tpcs;
use crate::device::Device;
use crate::engine::Time;
use crate::ids::SmId;

/// How fast, and over which groups of SMs first, a dispatcher gives CTAs away. Which kernel's turn it is and which CTA fits
/// where is not policy: the dispatcher itself counts that.
pub(crate) trait Dispatch {
    /// The units through which CTAs come to SMs and leave them.
    fn tpcs(&self, device: &Device) -> Tpcs;

    /// A kernel that found free slots at `now` is placed in visits to groups of SMs: the first one, to a group that
    /// `has_room`.
    fn first_visit(&mut self, now: Time, of: Launched, has_room: &mut dyn FnMut(usize) -> bool) -> Option<Visit>;

    /// The visit after this one, which placed a single CTA as a cluster on an SM that had others, if `single`.
    fn next_visit(&mut self, last: Visit, single: bool, has_room: &mut dyn FnMut(usize) -> bool) -> Option<Visit>;

    /// The first visit of a launch's next pass over the machine, after the last one of the pass before.
    fn next_pass(&mut self, last: Visit, has_room: &mut dyn FnMut(usize) -> bool) -> Option<Visit>;

    /// A CTA was let out of `sm` at `out`, `cold` if it is the first of its launch that ends there: when its slot can be given
    /// away again.
    fn reusable(&mut self, out: Time, sm: SmId, cold: bool) -> Reusable;

    /// The least time from a CTA's being let out until its slot can be given away again.
    fn least_return(&self) -> Time;

    /// A CTA signalled at `at` that the dependent launch behind it may begin: when the dispatcher knows.
    fn signalled(&mut self, at: Time, sm: SmId) -> Time;

    /// A cluster of `size` CTAs goes into slots that came back at `now`: when it is sent.
    fn cluster(&mut self, now: Time, size: usize) -> Time;

    /// A CTA of `warps` warps is let in at `entered` to `sm`, where `running_warps` run already; `cold` if the SM has not run
    /// this launch yet. `work` is how long the CTA then runs.
    fn start(&mut self, entered: Time, sm: SmId, warps: u32, running_warps: u32, cold: bool, work: Time) -> Start;

    /// From the last placement of one kernel to the first of the next.
    fn switch(&self) -> Time;
}

/// When a slot can be given away again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reusable {
    /// If no other one were on its way.
    pub(crate) earliest: Time,
    /// As it is: never earlier than what was answered before.
    pub(crate) at: Time,
    /// Whether others wait before it, so that another one of them can be taken then.
    pub(crate) queued: bool,
}

/// How a kernel was launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Launched {
    Plain,
    Clusters,
    Cooperatively,
}

/// One visit of the dispatcher to a group of SMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    /// When.
    pub(crate) at: Time,
    /// Which group, in the order of the device's list.
    pub(crate) group: usize,
    /// Which of the group's cells is the first; the others follow in cyclic order.
    pub(crate) cell: usize,
}

/// When a CTA starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Its first instruction.
    pub(crate) first: Time,
    /// All of its warps have been set up.
    pub(crate) all: Time,
}
