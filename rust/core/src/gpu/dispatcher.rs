//! The global dispatcher: whose turn it is, and which CTA goes to which SM.
//!
//! Ready kernels wait by priority, then by the time at which they became ready. Only the first of them, the *head*, is given
//! slots; the next one's turn comes when the head has no CTA left to place (the leftover policy). When a kernel becomes the
//! head, the dispatcher goes round the groups of SMs and gives each SM one CTA a visit, up to its share, in passes that even
//! out how much room SMs have left, until nothing more fits. From then on it places what fits where a slot comes back.

use std::collections::{BinaryHeap, VecDeque};

use super::groups::{Groups, Shares};
use super::kernel::Run;
use super::messages::{Message, Messages};
use super::policy::{Dispatch, Reusable, Visit};
use super::sm::{Place, Resident, Sms};
use crate::engine::Time;
use crate::ids::{IdVec, KernelId, SlotId, SmId};
use crate::records::Account;

type Runs<'a> = IdVec<KernelId, Run<'a>>;

/// A kernel's turn among the ready ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    /// Higher is sooner: minus the stream's priority, and minus the count of kernels that were ready before.
    urgency: (i32, i64),
    kernel: KernelId,
}

/// The dispatcher hears of the end of a CTA, and its slot comes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Returning {
    at: Time,
    /// Where it was; none if it is that of those that wait whose turn it is then.
    place: Option<Place>,
    nearly_free: u64,
}

impl Returning {
    #[inline]
    fn known(&mut self, message: Message) {
        self.place = Some(message.place);
        self.nearly_free = message.nearly_free;
    }
}

/// The dispatcher's state.
#[derive(Debug)]
pub(crate) struct Dispatcher<P> {
    pub(crate) policy: P,
    groups: Groups,
    /// GPCs between which CTAs are dealt by their number, if they are.
    deals: Option<usize>,
    ready: BinaryHeap<Turn>,
    head: Option<KernelId>,
    arrivals: i64,
    /// Slots that come back, in the order of time: those of which it is known which they are, and then the others.
    returning: VecDeque<Returning>,
    known: usize,
    waiting: Messages,
    /// The next visit of the placement that is under way.
    pub(crate) visit: Option<Visit>,
    /// How many CTAs each SM still gets in this pass over the machine, while plain CTAs are placed going round.
    shares: Option<Shares>,
    /// The load of the SMs that the next cluster in each cell would get, while a kernel of clusters is placed.
    layers: Vec<Option<u32>>,
    cluster: Vec<SmId>,
}

/// A decision: this CTA goes there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(crate) kernel: KernelId,
    pub(crate) place: Place,
    /// When that was decided, and when it is sent there: the same but for clusters.
    pub(crate) decided: Time,
    pub(crate) sent: Time,
    pub(crate) warps: u32,
    /// Whether the SM has not run this launch yet.
    pub(crate) cold: bool,
    /// How long its own work is, or its first part.
    pub(crate) work: Time,
    /// Whether it was placed going round, not into a slot that had just come back.
    pub(crate) first_round: bool,
}

impl Placement {
    /// To what belongs the time until it starts.
    pub(crate) fn account(&self) -> Account {
        if self.first_round { Account::Fill } else { Account::Starved }
    }
}

impl<P: Dispatch> Dispatcher<P> {
    pub(crate) fn new(policy: P, groups: Groups, waiting: Messages, deals: Option<usize>) -> Self {
        Self {
            policy,
            groups,
            deals,
            ready: BinaryHeap::new(),
            head: None,
            arrivals: 0,
            returning: VecDeque::new(),
            known: 0,
            waiting,
            visit: None,
            shares: None,
            layers: Vec::new(),
            cluster: Vec::new(),
        }
    }

    /// The kernel whose turn it is.
    #[inline]
    pub(crate) fn head(&self) -> Option<KernelId> {
        self.head
    }

    /// A kernel is ready; `priority` is its stream's.
    pub(crate) fn arrive(&mut self, kernel: KernelId, priority: i32, now: Time, runs: &Runs<'_>, sms: &Sms) {
        self.ready.push(Turn { urgency: (-priority, -self.arrivals), kernel });
        self.arrivals += 1;
        if self.first_in_turn() != self.head {
            self.head = self.first_in_turn();
            self.go_round(now, runs, sms);
        }
    }

    fn first_in_turn(&self) -> Option<KernelId> {
        self.ready.peek().map(|turn| turn.kernel)
    }

    /// A CTA has ended, and its slot comes back, or that of another one which waits with it.
    #[inline]
    pub(crate) fn give_back(&mut self, message: Message, Reusable { at, queued, .. }: Reusable) {
        debug_assert!(self.returning.back().is_none_or(|last| last.at <= at));
        // Nobody overtakes those that wait: the ends of an SM are heard in the order in which they were.
        if queued || self.known < self.returning.len() {
            self.returning.push_back(Returning { at, place: None, nearly_free: 0 });
            self.waiting.push(message);
        } else {
            self.returning.push_back(Returning { at, place: Some(message.place), nearly_free: message.nearly_free });
            self.known += 1;
        }
    }

    /// When the next slot comes back; nothing else happens before `next`.
    ///
    /// Who waits is settled as early as nothing can change it any more: those that end later find nobody before them then.
    #[inline]
    pub(crate) fn next_back(&mut self, next: Time) -> Time {
        let settled = next + self.policy.least_return();
        while let Some(slot) = self.returning.get_mut(self.known).filter(|slot| slot.at < settled) {
            if let Some(message) = self.waiting.take(slot.at) {
                slot.known(message);
            }
            self.known += 1;
        }
        self.returning.front().map_or(Time::MAX, |slot| slot.at)
    }

    /// Whether any slot comes back.
    pub(crate) fn expects_any(&self) -> bool {
        !self.returning.is_empty()
    }

    /// The next slot has come back: where, and which others of the SM are nearly free.
    #[inline]
    pub(crate) fn come_back(&mut self) -> Option<(Place, u64)> {
        let mut slot = self.returning.pop_front()?;
        self.known = self.known.saturating_sub(1);
        if slot.place.is_none() {
            // Each of those that wait was given a time by which it can have been taken.
            slot.known(self.waiting.take(slot.at).expect("for each slot that comes back, an end waits"));
        }
        Some((slot.place?, slot.nearly_free))
    }

    /// Begins to place the head going round.
    fn go_round(&mut self, now: Time, runs: &Runs<'_>, sms: &Sms) {
        self.visit = None;
        self.shares = None;
        let Some(head) = self.head() else { return };
        let run = &runs[head];
        if run.cluster_launch() {
            self.look_at_layers(run, sms);
        } else if self.deals.is_none() {
            self.shares = self.groups.shares(run.left(), run.cooperative, sms, &run.footprint);
        }
        let (groups, shares, layers) = (&self.groups, self.shares.as_ref(), &self.layers);
        let mut has_room = |group| has_room(groups, shares, layers, group, run, sms);
        self.visit = self.policy.first_visit(now, run.launched(), &mut has_room);
    }

    /// Makes the visit that is due.
    pub(crate) fn make_visit(&mut self, runs: &mut Runs<'_>, sms: &mut Sms, placed: &mut Vec<Placement>) {
        let (Some(visit), Some(head)) = (self.visit, self.head()) else { return };
        let mut single = false;
        if runs[head].cluster_launch() {
            let lowest = self.layers.iter().copied().flatten().min();
            for cell in self.groups.cells_from(visit.group, visit.cell) {
                if runs[head].left() > 0 && self.layers[cell] == lowest {
                    self.place_cluster(head, cell, visit.at, true, runs, sms, placed);
                }
            }
            single = runs[head].cluster == 1 && lowest > Some(0);
            self.look_at_layers(&runs[head], sms);
        } else {
            for cell in self.groups.cells_from(visit.group, visit.cell) {
                for i in 0..self.groups.sms_of_cell(cell).len() {
                    let sm = self.groups.sms_of_cell(cell)[i];
                    let left = runs[head].left_for(self.groups.gpc_of(sm));
                    let taken = left > 0 && self.shares.as_mut().is_none_or(|shares| shares.take(visit.group, sm));
                    if taken && sms.fits(sm, &runs[head].footprint) {
                        placed.push(self.place(head, sm, None, visit.at, true, runs, sms));
                    }
                }
            }
        }
        let run = &runs[head];
        if run.left() == 0 {
            self.next_head(visit.at, runs, sms);
            return;
        }
        let (groups, layers) = (&self.groups, &self.layers);
        let room_for = |shares, group| has_room(groups, shares, layers, group, run, sms);
        let shares = self.shares.as_ref();
        self.visit = self.policy.next_visit(visit, single, &mut |group| room_for(shares, group));
        if self.visit.is_none() && shares.is_some() {
            // All have their shares, and the next pass begins.
            let shares = groups.shares(run.left(), run.cooperative, sms, &run.footprint);
            self.visit = self.policy.next_pass(visit, &mut |group| room_for(shares.as_ref(), group));
            self.shares = shares;
        }
    }

    /// The head has no CTA left to place.
    pub(crate) fn next_head(&mut self, now: Time, runs: &Runs<'_>, sms: &Sms) {
        self.ready.pop();
        self.head = self.first_in_turn();
        self.go_round(now + self.policy.switch(), runs, sms);
    }

    /// A slot on `sm` has come back: places what fits there, one CTA a call, in that slot if it is named. While the
    /// dispatcher goes round it will come by.
    #[inline]
    pub(crate) fn refill(
        &mut self,
        sm: SmId,
        slot: Option<SlotId>,
        now: Time,
        runs: &mut Runs<'_>,
        sms: &mut Sms,
    ) -> Option<Placement> {
        let head = self.head()?;
        let gpc = self.groups.gpc_of(sm);
        // The head may have become another one just now, and clusters are placed as a whole.
        if self.visit.is_some() || runs[head].cluster_launch() {
            return None;
        }
        if runs[head].left_for(gpc) == 0 || !sms.fits(sm, &runs[head].footprint) {
            return None;
        }
        let placement = self.place(head, sm, slot, now, false, runs, sms);
        if runs[head].left() == 0 {
            self.next_head(now, runs, sms);
        }
        Some(placement)
    }

    /// The same for a kernel of clusters.
    pub(crate) fn refill_clusters(
        &mut self,
        sm: SmId,
        now: Time,
        runs: &mut Runs<'_>,
        sms: &mut Sms,
        placed: &mut Vec<Placement>,
    ) {
        let Some(head) = self.head() else { return };
        let cell = self.groups.cell_of(sm);
        while self.visit.is_none()
            && runs[head].left() > 0
            && self.place_cluster(head, cell, now, false, runs, sms, placed)
        {}
        if self.visit.is_none() && runs[head].left() == 0 {
            self.next_head(now, runs, sms);
        }
    }

    fn look_at_layers(&mut self, run: &Run<'_>, sms: &Sms) {
        let cells = self.groups.cells(self.groups.count() - 1).end;
        let size = run.cluster as usize;
        self.layers.clear();
        for cell in 0..cells {
            let layer = self.groups.pick(cell, size, sms, &run.footprint, &mut self.cluster);
            self.layers.push(layer);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn place_cluster(
        &mut self,
        head: KernelId,
        cell: usize,
        now: Time,
        first_round: bool,
        runs: &mut Runs<'_>,
        sms: &mut Sms,
        placed: &mut Vec<Placement>,
    ) -> bool {
        let mut places = std::mem::take(&mut self.cluster);
        let (size, need) = (runs[head].cluster as usize, &runs[head].footprint);
        let found = self.groups.pick(cell, size, sms, need, &mut places).is_some();
        if found {
            let sent = if first_round { now } else { self.policy.cluster(now, size) };
            for &sm in &places {
                placed.push(self.place(head, sm, None, sent, first_round, runs, sms));
            }
        }
        self.cluster = places;
        found
    }

    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn place(
        &mut self,
        head: KernelId,
        sm: SmId,
        slot: Option<SlotId>,
        now: Time,
        first_round: bool,
        runs: &mut Runs<'_>,
        sms: &mut Sms,
    ) -> Placement {
        let run = &mut runs[head];
        let warps = run.footprint.warps;
        let cold = sms.is_new_to(sm, head);
        let (cta, work) = run.take(self.groups.gpc_of(sm));
        let place = sms.place(sm, slot, &run.footprint, Resident { kernel: head, cta, start: now });
        Placement { kernel: head, place, decided: now, sent: now, warps, cold, work, first_round }
    }

    /// Kernels with CTAs that have no place yet, the head first.
    pub(crate) fn waiting(&self) -> Vec<KernelId> {
        let mut turns: Vec<_> = self.ready.iter().collect();
        turns.sort_unstable_by(|a, b| b.cmp(a));
        turns.into_iter().map(|turn| turn.kernel).collect()
    }
}

/// Whether a visit to this group would place something.
fn has_room(
    groups: &Groups,
    shares: Option<&Shares>,
    layers: &[Option<u32>],
    group: usize,
    run: &Run<'_>,
    sms: &Sms,
) -> bool {
    if run.cluster_launch() {
        // Clusters are placed layer by layer: nobody gets a second one before each that can has had its first.
        let lowest = layers.iter().copied().flatten().min();
        return lowest.is_some() && groups.cells(group).any(|cell| layers[cell] == lowest);
    }
    if let Some(shares) = shares {
        return shares.of_group(group) > 0;
    }
    run.left_for(groups.gpc_of(groups.sms(group)[0])) > 0
        && groups.sms(group).iter().any(|&sm| sms.fits(sm, &run.footprint))
}
