//! What each thing that happens leads to.

use std::cmp::Reverse;

use crate::engine::Time;
use crate::ids::{CtaId, Id, KernelId, SmId};
use crate::records::Account;

use super::dispatcher::Placement;
use super::front_end::{OpId, OpKind};
use super::machine::{Happening, Machine, drain};
use super::messages::Message;
use super::policy::Dispatch;
use super::sm::{Place, Resident};
use super::sync::Next;
use super::tpc::{Leaving, Passage};

impl<P: Dispatch> Machine<'_, P> {
    pub(super) fn happen(&mut self, at: Time, what: Happening) {
        self.limit = self.limit.min(at);
        self.latest = self.latest.max(at);
        self.happenings.push(Reverse((at, self.sequence, what)));
        self.sequence += 1;
    }

    pub(super) fn on_happening(&mut self, what: Happening, now: Time) {
        match what {
            Happening::Call => {
                let (ops, host_free) = self.front_end.call(now);
                for op in ops.map(OpId::from_index) {
                    if let OpKind::Kernel(kernel) = self.front_end.kind(op) {
                        self.runs[kernel].times.issue = now;
                    }
                    if let Some(at) = self.front_end.issue(op, now) {
                        self.happen(at, Happening::Ready(op));
                    }
                }
                if let Some(at) = self.front_end.next_call(host_free) {
                    self.happen(at, Happening::Call);
                }
            }
            Happening::Ready(op) => match self.front_end.kind(op) {
                OpKind::Copy(duration) => self.happen(now + duration, Happening::Complete(op)),
                OpKind::Kernel(kernel) if self.resident_kernels < self.max_resident_kernels => {
                    self.arrive(kernel, now);
                }
                OpKind::Kernel(kernel) => self.waiting_kernels.push_back(kernel),
            },
            Happening::Complete(op) => self.complete(op, now),
            Happening::Release(op) => self.release(op, now),
            Happening::Signal(kernel) => {
                let run = &mut self.runs[kernel];
                run.signalled += 1;
                if run.signalled == run.ctas {
                    let op = run.op;
                    self.signal(op, now);
                }
            }
        }
        self.idle_changes(now);
    }

    fn arrive(&mut self, kernel: KernelId, now: Time) {
        self.resident_kernels += 1;
        self.runs[kernel].times.ready = now;
        let priority = self.runs[kernel].priority;
        self.dispatcher.arrive(kernel, priority, now, &self.runs, &self.sms);
    }

    /// An operation is complete: its last slot has come back, or its copy has ended.
    fn complete(&mut self, op: OpId, now: Time) {
        match self.front_end.kind(op) {
            OpKind::Copy(_) => {
                self.running_ops -= 1;
                self.makespan = self.makespan.max(now);
            }
            OpKind::Kernel(_) => {
                self.resident_kernels -= 1;
                if let Some(next) = self.waiting_kernels.pop_front() {
                    self.arrive(next, now);
                }
            }
        }
        let mut ready = std::mem::take(&mut self.ready);
        self.front_end.complete(op, now, &mut ready);
        for (op, at) in ready.drain(..) {
            self.happen(at, Happening::Ready(op));
        }
        self.ready = ready;
        self.end_books();
    }

    /// All slots of a kernel have come back. It is complete once its stores have been acknowledged too; what was launched
    /// behind it and waits is released a little later.
    fn all_returned(&mut self, op: OpId, kernel: KernelId, now: Time) {
        let run = &mut self.runs[kernel];
        let complete = now.max(run.flushed);
        run.times.complete = now;
        let release = (now + self.timings.release).max(run.flushed + self.timings.flush);
        if !run.trigger {
            self.signal(op, now);
        }
        self.happen(complete, Happening::Complete(op));
        if self.front_end.dependents(op).next().is_some() {
            self.happen(release, Happening::Release(op));
        }
    }

    fn release(&mut self, op: OpId, now: Time) {
        let dependents: Vec<KernelId> = self.front_end.dependents(op).collect();
        for kernel in dependents {
            let run = &mut self.runs[kernel];
            run.held = false;
            run.work_from = now;
            for (place, start, work) in std::mem::take(&mut run.parked) {
                self.begin_behind(kernel, place, start, work);
            }
        }
    }

    /// CTAs have been placed at `now`.
    pub(super) fn on_placed(&mut self, now: Time) {
        let mut placed = std::mem::take(&mut self.placed);
        placed.drain(..).for_each(|placement| self.on_placement(placement, now));
        self.placed = placed;
    }

    /// A CTA has been placed at `now`: it begins, unless it has to wait.
    #[inline]
    fn on_placement(&mut self, mut placement: Placement, now: Time) {
        placement.decided = now;
        self.resident_ctas += 1;
        let at_once = placement.sent <= now;
        let entered = at_once.then(|| self.tpcs.enter(placement.place.sm(), placement.warps, now)).flatten();
        match entered {
            Some(entered) => self.on_entered(placement, entered, now),
            None => self.waits_to_enter(placement, now),
        }
    }

    /// A CTA waits until it is sent, and then until it can go in.
    fn waits_to_enter(&mut self, placement: Placement, now: Time) {
        if let Some(books) = &mut self.books {
            books.wait(now, placement.account());
        }
        self.tpcs.wait_to_enter(placement);
        self.look(self.tpcs.of(placement.place.sm()).0, now);
    }

    /// A TPC that has something to do will look for it as soon as it can.
    #[inline]
    fn look(&mut self, tpc: usize, now: Time) {
        if let Some(at) = self.tpcs.looks_at(tpc, now) {
            self.steps.push(at, self.first_tpc_event + tpc as u32);
        }
    }

    /// A TPC looks for what is next.
    #[inline]
    pub(super) fn on_look(&mut self, tpc: usize, now: Time) {
        match self.tpcs.next(tpc, now) {
            Some(Passage::Out(cta, out)) => self.on_out(cta, out),
            Some(Passage::In(placement, entered)) => {
                if let Some(books) = &mut self.books {
                    books.stop_waiting(now, placement.account());
                }
                self.on_entered(placement, entered, now);
            }
            None => {}
        }
        self.look(tpc, now);
    }

    /// A CTA goes in from `now` to `entered`: it starts, and begins its work unless it has to wait for the kernel ahead.
    #[inline]
    fn on_entered(&mut self, placement: Placement, entered: Time, now: Time) {
        let Placement { kernel, place, decided, warps, cold, work, .. } = placement;
        let running = self.sms.running_warps(place.sm());
        let start = self.dispatcher.policy.start(entered, place.sm(), warps, running, cold, work);
        self.sms.starts(place, warps, start.first);
        if let Some(books) = &mut self.books {
            books.assign(now, start.first.since(now), placement.account());
        }
        let run = &mut self.runs[kernel];
        run.started(start.first);
        run.times.dispatch_ps += u128::from(start.first.since(decided).0);
        if !run.dependent {
            return self.begin(kernel, place, start.all, work);
        }
        let start = start.all + self.timings.dependent_check;
        if run.held {
            run.parked.push((place, start, work));
        } else {
            self.begin_behind(kernel, place, start, work);
        }
    }

    /// A CTA begins its work, no earlier than the kernel ahead lets it.
    fn begin_behind(&mut self, kernel: KernelId, place: Place, start: Time, work: Time) {
        let run = &mut self.runs[kernel];
        let at = start.max(run.work_from);
        run.times.held_ps += u128::from(at.since(start).0);
        self.begin(kernel, place, at, work);
    }

    /// A CTA begins its work.
    #[inline]
    fn begin(&mut self, kernel: KernelId, place: Place, at: Time, work: Time) {
        let cta = self.sms.resident(place).cta;
        if self.runs[kernel].trigger {
            let at = self.dispatcher.policy.signalled(at, place.sm());
            self.happen(at, Happening::Signal(kernel));
        }
        let run = &mut self.runs[kernel];
        let begun = at;
        let at = run.sync.begin(cta, place.sm(), at, work);
        if run.last_warp > Time::ZERO {
            self.sms.last_warp_from(place, begun.max(Time(at.0.saturating_sub(run.last_warp.0))));
        }
        self.steps.push(at, place.0);
    }

    /// A CTA's step is due: it ends, or goes on.
    #[inline]
    pub(super) fn on_step(&mut self, place: Place, now: Time) {
        let resident = self.sms.resident(place);
        // Most CTAs only run for their time.
        if !self.runs[resident.kernel].only_runs() && !self.ends(place, resident, now) {
            return;
        }
        let run = &mut self.runs[resident.kernel];
        run.end(resident.start, now);
        let (last_warp, warps) = (run.last_warp, run.footprint.warps);
        let all_ended = run.ended == run.ctas;
        let cold = self.sms.ended(place, resident.kernel, warps, now, now - resident.start);
        if run.left() == 0 {
            let left = if cold { now + self.timings.cold_return } else { now } + self.timings.back;
            let stores = left + drain(self.timings.drain, resident.kernel, resident.cta);
            run.flushed = run.flushed.max(stores);
        }
        self.makespan = self.makespan.max(now);
        self.record(place, resident, now);
        self.resident_ctas -= 1;
        if let Some(books) = &mut self.books {
            books.end(now);
        }
        let nearly_free = if last_warp == Time::ZERO { 0 } else { self.sms.nearly_free(place, now) };
        let cta = Leaving { place, warps, cold, nearly_free };
        if let Some(out) = self.tpcs.leave(place.sm(), warps, now) {
            self.on_out(cta, out);
        } else {
            self.tpcs.wait_to_leave(cta);
            self.look(self.tpcs.of(place.sm()).0, now);
        }
        if all_ended {
            self.running_ops -= 1;
            self.idle_changes(now);
            self.end_books();
        }
    }

    /// A CTA is let out until `out`, and then the dispatcher will hear of it.
    #[inline]
    fn on_out(&mut self, cta: Leaving, out: Time) {
        let Leaving { place, cold, nearly_free, .. } = cta;
        let back = self.dispatcher.policy.reusable(out, place.sm(), cold);
        self.dispatcher.give_back(Message { earliest: back.earliest, place, nearly_free }, back);
    }

    /// Whether a CTA whose step is due has ended; else it goes on.
    #[inline]
    fn ends(&mut self, place: Place, resident: Resident, now: Time) -> bool {
        let run = &mut self.runs[resident.kernel];
        match run.sync.next(resident.cta, place, now, &mut run.sampler, &mut self.woken) {
            Next::At(at) => {
                self.steps.push(at, place.0);
                self.wake();
                return false;
            }
            Next::Waits => return false,
            Next::Memory => {
                let memory = self.memory.as_mut().expect("a program with memory work has a memory");
                if let Some(at) = memory.next(resident.kernel, resident.cta, place, now) {
                    self.steps.push(at, place.0);
                    return false;
                }
            }
            Next::Warps => {
                let warps = self.warps.as_mut().expect("a program with warp programs has warps");
                if !warps.step(resident.kernel, resident.cta, place, now, self.memory.as_mut()) {
                    self.on_sm_change(place.sm(), now);
                    return false;
                }
            }
            Next::End => {}
        }
        if run.sync.wakes() {
            run.sync.ended(resident.cta, place.sm(), now, &mut self.woken);
            self.wake();
        }
        true
    }

    /// Lets go on who has been waiting for what was just done.
    #[inline]
    fn wake(&mut self) {
        for (at, place) in self.woken.drain(..) {
            self.steps.push(at, place.0);
        }
    }

    /// Something changes on an SM whose warps run programs.
    pub(super) fn on_sm_change(&mut self, sm: SmId, now: Time) {
        let Some(warps) = &mut self.warps else { return };
        warps.change(sm, now, self.memory.as_mut(), &mut self.woken);
        if let Some(at) = warps.due(sm) {
            self.steps.push(at, warps.event_of(sm));
        }
        self.wake();
    }

    /// The next CTA of a plain kernel that has its turn takes the place of one that has ended.
    #[inline]
    fn succeed(&mut self, place: Place, kernel: KernelId, now: Time) {
        let run = &mut self.runs[kernel];
        run.returned += 1;
        let (cta, work) = run.take(0);
        let (sm, warps) = (place.sm(), run.footprint.warps);
        let cold = self.sms.is_new_to(sm, kernel);
        self.sms.replace(place, Resident { kernel, cta, start: now });
        let Some(entered) = self.tpcs.enter(sm, warps, now) else {
            let placement = Placement { kernel, place, decided: now, sent: now, warps, cold, work, first_round: false };
            return self.waits_to_enter(placement, now);
        };
        // What `on_entered` does for a CTA that waits for no other kernel.
        let start = self.dispatcher.policy.start(entered, sm, warps, self.sms.running_warps(sm), cold, work);
        let latency = start.first - now;
        self.sms.starts(place, warps, start.first);
        if let Some(books) = &mut self.books {
            books.assign(now, latency, Account::Starved);
        }
        let run = &mut self.runs[kernel];
        run.started(start.first);
        run.times.dispatch_ps += u128::from(latency.0);
        let at = if run.only_runs() { start.all + work } else { run.sync.begin(cta, sm, start.all, work) };
        self.steps.push(at, place.0);
    }

    /// Enters a CTA that has ended into the records.
    #[inline]
    fn record(&mut self, place: Place, resident: Resident, now: Time) {
        let id = u64::from(resident.kernel.0) << 32 | u64::from(resident.cta);
        self.digest.pair(id, u64::from(place.0));
        self.digest.pair(resident.start.0, now.0);
        if let Some(ctas) = &mut self.ctas {
            ctas.kernel.push(resident.kernel);
            ctas.cta.push(CtaId(resident.cta));
            ctas.sm.push(place.sm());
            ctas.slot.push(place.slot());
            ctas.start.push(resident.start);
            ctas.end.push(now);
        }
    }

    /// A slot has come back.
    #[inline]
    pub(super) fn on_return(&mut self, now: Time) {
        let Some((place, nearly_free)) = self.dispatcher.come_back() else { return };
        if let Some(tpc) = self.tpcs.heard() {
            self.look(tpc, now);
        }
        let resident = self.sms.resident(place);
        let run = &mut self.runs[resident.kernel];
        if self.passing == Some(resident.kernel) && run.left() > 1 && nearly_free == 0 {
            self.resident_ctas += 1;
            if let Some(books) = &mut self.books {
                books.free(now);
            }
            return self.succeed(place, resident.kernel, now);
        }
        run.returned += 1;
        let (op, complete) = (run.op, run.returned == run.ctas);
        let footprint = run.footprint;
        if self.sms.free(place, &footprint) {
            self.tpcs.emptied(place.sm());
        }
        self.sms.nearly_free_up(place.sm(), nearly_free, &footprint);
        if let Some(books) = &mut self.books {
            books.free(now);
        }
        let head = self.dispatcher.head();
        if head.is_some_and(|head| self.runs[head].cluster_launch()) {
            self.dispatcher.refill_clusters(place.sm(), now, &mut self.runs, &mut self.sms, &mut self.placed);
            self.on_placed(now);
        } else {
            let mut slot = Some(place.slot());
            while let Some(placement) =
                self.dispatcher.refill(place.sm(), slot.take(), now, &mut self.runs, &mut self.sms)
            {
                self.on_placement(placement, now);
            }
        }
        if self.dispatcher.head() != head {
            self.limit = self.dispatcher.visit.map_or(self.limit, |visit| self.limit.min(visit.at));
            self.idle_changes(now);
        }
        if complete {
            self.all_returned(op, resident.kernel, now);
        }
    }

    fn signal(&mut self, op: OpId, now: Time) {
        let mut ready = std::mem::take(&mut self.ready);
        self.front_end.signal(op, now, &mut ready);
        for (op, at) in ready.drain(..) {
            self.happen(at, Happening::Ready(op));
        }
        self.ready = ready;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::groups::Groups;
    use super::*;
    use crate::device::catalogue;
    use crate::gpu::policy::hardware::Hardware;
    use crate::records::Records;
    use crate::simulate::Options;
    use crate::workload::{Access, Duration, Item, Kernel, Launch, Pattern, Program, Span, Tasks, Times, Work};

    fn outcome(program: &Program, seed: u64, passes_on: bool) -> Records {
        let device = catalogue::device("h200").expect("the catalogue has it");
        let options = Options { seed, ..Options::default() };
        let (policy, groups) = (Hardware::new(&device, &options), Groups::new(&device));
        let mut machine =
            Machine::new(&device, program, &[], &options, policy, groups, &mut || false).expect("the program is valid");
        machine.passes_on = passes_on;
        machine.run(&device, &mut || false).expect("the program runs")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Putting the next CTA in the place of one that has ended is a short cut: it must lead to the same run, to the picosecond.
        #[test]
        fn passing_slots_on_changes_nothing(
            seed in any::<u64>(),
            grids in prop::collection::vec((1..3000_u32, 1..9_u32, 0.0..3_000.0, 1.0..4.0, 0..6_u32), 1..4),
            streams in 1..3_u32,
        ) {
            let pattern = Pattern::Stream { bytes: 5_000 };
            let loads = Access { pattern, write: false, buffer: 0, buffer_bytes: None, times: Times::default() };
            let kernels: Vec<Kernel> = grids
                .iter()
                .map(|&(ctas, warps, low, spread, way)| {
                    let (low, high) = (Span::Ns(low), Span::Ns(low * spread));
                    let work = Work::Duration(Duration::Uniform { low, high });
                    // Plain ones, some that leave early all but a warp, clusters, those that load and those that take tasks.
                    let kernel = Kernel { work, ..Kernel::of(2 * ctas, 32 * warps) };
                    match way {
                        0 => Kernel { last_warp_cycles: 1_000.0, ..kernel },
                        1 => Kernel { cluster: 2, ..kernel },
                        2 => Kernel { work: Work::Access(loads.clone()), ..kernel },
                        3 => {
                            let (overhead, startup) = (Span::Cycles(20.0), Span::default());
                            let schedule = Tasks::Atomic;
                            let tasks = 3 * u64::from(ctas);
                            let duration = Duration::Constant(low);
                            Kernel { work: Work::Persistent { tasks, duration, schedule, overhead, startup }, ..kernel }
                        }
                        _ => kernel,
                    }
                })
                .collect();
            let launch = |kernel| Launch {
                kernel,
                stream: kernel as u32 % streams,
                at_ns: None,
                dependent: false,
                trigger: false,
            };
            let items = (0..kernels.len()).map(|kernel| Item::Launch(launch(kernel))).collect();
            let program = Program { kernels, items, ..Program::default() };
            let (passed_on, one_by_one) = (outcome(&program, seed, true), outcome(&program, seed, false));
            prop_assert_eq!(passed_on.digest, one_by_one.digest);
            prop_assert_eq!(passed_on.makespan, one_by_one.makespan);
            for account in Account::ALL {
                prop_assert_eq!(passed_on.ledger.total(account), one_by_one.ledger.total(account));
            }
            prop_assert_eq!(passed_on.kernels.complete, one_by_one.kernels.complete);
            prop_assert_eq!(passed_on.sms.active, one_by_one.sms.active);
            for (one, other) in passed_on.l2.traffic.iter().zip(&one_by_one.l2.traffic) {
                prop_assert_eq!(one, other);
            }
        }
    }
}
