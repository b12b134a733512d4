//! The machine while it runs a program: the loop, and what each thing that happens leads to.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::device::Device;
use crate::engine::{EventQueue, Time};
use crate::error::{Error, Result};
use crate::ids::{CtaId, Id, IdVec, KernelId};
use crate::records::ledger::Bookkeeper;
use crate::records::{Account, CtaColumns, Digest, Records};
use crate::simulate::{Detail, Options};
use crate::workload::Program;

use super::admission::{check_barriers, dealt_to, footprints};
use super::dispatcher::{Dispatcher, Placement};
use super::front_end::{FrontEnd, OpId, OpKind};
use super::groups::Groups;
use super::kernel::Run;
use super::outcome;
use super::policy::Dispatch;
use super::sm::{Place, Resident, Sms};
use super::sync::{Next, Sync};
use super::work::Sampler;

/// Something that happens to few: host calls, kernels, copies. What happens to CTAs has a queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// The host makes its next call.
    Call,
    /// An operation is ready.
    Ready(OpId),
    /// A copy has ended, or a kernel is complete.
    Complete(OpId),
    /// A CTA's signal to the dependent launch behind its kernel has reached the dispatcher.
    Signal(KernelId),
    /// The kernels behind this one that were launched before it was complete may begin their work.
    Release(OpId),
}

/// What passes around the end of a kernel.
#[derive(Clone, Copy, Debug)]
struct Timings {
    back: Time,
    cold_return: Time,
    drain: Time,
    release: Time,
    flush: Time,
    dependent_check: Time,
}

impl Timings {
    fn new(device: &Device) -> Self {
        let time = |ns: f64| Time((ns * 1e3).round() as u64);
        Self {
            back: time(device.clock.cycles_to_ns(device.dispatch.return_cycles)),
            cold_return: time(device.clock.cycles_to_ns(device.dispatch.cold_return_cycles)),
            drain: time(device.launch.drain_ns),
            release: time(device.launch.release_ns),
            flush: time(device.launch.flush_ns),
            dependent_check: time(device.launch.dependent_check_ns),
        }
    }
}

/// How long the last stores of a CTA take to be acknowledged: anything up to the longest, by the addresses it writes to, of
/// which the model knows nothing. So it is a hash of the CTA, and the same in every run.
fn drain(longest: Time, kernel: KernelId, cta: u32) -> Time {
    let hash = (u64::from(kernel.0) << 32 | u64::from(cta)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Time((u128::from(hash ^ hash >> 29) * u128::from(longest.0) >> 64) as u64)
}

/// The machine while it runs a program.
pub(super) struct Machine<'a, P> {
    program: &'a Program,
    timings: Timings,
    front_end: FrontEnd,
    dispatcher: Dispatcher<P>,
    sms: Sms,
    runs: IdVec<KernelId, Run<'a>>,
    /// What CTAs do next: they end, or ask their process for the next step.
    steps: EventQueue,
    happenings: BinaryHeap<Reverse<(Time, u64, Happening)>>,
    /// Until when nothing happens to whole kernels.
    limit: Time,
    /// The latest time at which anything is to happen to one.
    latest: Time,
    sequence: u64,
    resident_kernels: usize,
    max_resident_kernels: usize,
    waiting_kernels: VecDeque<KernelId>,
    /// Kept until the makespan is reached.
    books: Option<Bookkeeper>,
    closed_books: Option<Bookkeeper>,
    ctas: Option<CtaColumns>,
    digest: Digest,
    makespan: Time,
    /// Operations whose last CTA has not ended.
    running_ops: usize,
    /// The kernel whose ending CTAs make room for its next ones, if nothing else has to be looked at.
    passing: Option<KernelId>,
    eager: bool,
    resident_ctas: u64,
    placed: Vec<Placement>,
    ready: Vec<(OpId, Time)>,
    woken: Vec<(Time, Place)>,
}

/// How many events pass between two looks at whether the caller wants to stop.
const EVENTS_BETWEEN_CHECKS: u32 = 1 << 16;

impl<'a, P: Dispatch> Machine<'a, P> {
    pub(super) fn new(
        device: &Device,
        program: &'a Program,
        arrays: &[&'a [f64]],
        options: &Options,
        policy: P,
        groups: Groups,
    ) -> Result<Self> {
        let front_end = FrontEnd::new(program, device)?;
        let footprints = footprints(device, program)?;
        check_barriers(device, program, &footprints)?;
        let cycle_ps = device.clock.cycles_to_ps(1.0);
        let deals = dealt_to(device);
        let runs: IdVec<KernelId, Run<'a>> = front_end
            .launches
            .iter()
            .map(|(id, launch)| {
                let kernel = &program.kernels[launch.kernel];
                let priority = program.streams.get(&launch.stream).map_or(0, |s| s.priority);
                let mut samplers = kernel.work.durations().enumerate().map(|(i, duration)| {
                    let stream = 2 * id.index() as u64 + i as u64;
                    Sampler::new(duration, arrays, cycle_ps, options.seed, stream)
                });
                let mut sampler = samplers.next().expect("all work has a duration");
                let sync = Sync::new(kernel, device, arrays, &mut sampler, samplers.next());
                let mut run = Run::new(
                    id,
                    launch.op,
                    launch.kernel,
                    launch.stream,
                    priority.clamp(device.launch.greatest_priority, 0),
                    footprints[launch.kernel],
                    (kernel.cluster, kernel.cluster_launch),
                    kernel.ctas(),
                    sampler,
                    sync,
                );
                deals.inspect(|&gpcs| run.deal(gpcs));
                run.trigger = launch.trigger;
                run.dependent = launch.dependent;
                run.held = launch.dependent;
                run
            })
            .collect();
        let running_ops = front_end.unfinished();
        Ok(Self {
            program,
            timings: Timings::new(device),
            front_end,
            dispatcher: Dispatcher::new(policy, groups, deals),
            sms: Sms::new(device),
            runs,
            steps: EventQueue::new(),
            happenings: BinaryHeap::new(),
            limit: Time::ZERO,
            latest: Time::ZERO,
            sequence: 0,
            resident_kernels: 0,
            max_resident_kernels: device.launch.resident_kernels as usize,
            waiting_kernels: VecDeque::new(),
            books: Some(Bookkeeper::new()),
            closed_books: None,
            ctas: (options.detail == Detail::Ctas).then(CtaColumns::default),
            digest: Digest::default(),
            makespan: Time::ZERO,
            running_ops,
            passing: None,
            eager: true,
            resident_ctas: 0,
            placed: Vec::new(),
            ready: Vec::new(),
            woken: Vec::new(),
        })
    }

    pub(super) fn run(mut self, device: &Device, interrupted: &mut dyn FnMut() -> bool) -> Result<Records> {
        if let Some(at) = self.front_end.next_call(Time::ZERO) {
            self.happen(at, Happening::Call);
        }
        loop {
            let happening = self.happenings.peek().map_or(Time::MAX, |Reverse((at, _, _))| *at);
            let visit = self.dispatcher.visit.map_or(Time::MAX, |visit| visit.at);
            self.limit = happening.min(visit);
            self.run_ctas();
            if interrupted() {
                return Err(Error::Interrupted);
            }
            self.check_horizon()?;
            if self.limit == Time::MAX {
                if self.dispatcher.returning.is_empty() && (self.steps.is_empty() || self.polls_in_vain()) {
                    break;
                }
            } else {
                self.run_kernels();
            }
        }
        if self.front_end.finished() { Ok(self.close(device)) } else { Err(self.deadlock()) }
    }

    /// Whether all that is left are CTAs that ask again and again whether a barrier has opened that nobody can open.
    fn polls_in_vain(&self) -> bool {
        let mut polls = 0;
        for (standing, opens) in self.runs.values().filter_map(|run| run.sync.polls()) {
            if opens {
                return false;
            }
            polls += standing;
        }
        polls == self.steps.len() as u64
    }

    fn check_horizon(&self) -> Result<()> {
        let latest = self.steps.latest().max(self.latest);
        if latest < Time::HORIZON {
            return Ok(());
        }
        let days = Time::HORIZON.0 / (24 * 3600 * 1_000_000_000_000);
        let got = format!("{} days and more", latest.0 / (24 * 3600 * 1_000_000_000_000));
        Err(Error::invalid("program", got, format!("a run lasts at most {days} days of simulated time")))
    }

    /// Lets happen what concerns single CTAs, until something else is due or it is time for a look at the caller. At equal
    /// times, kernels and visits of the dispatcher come before slots that come back, and these before CTAs.
    fn run_ctas(&mut self) {
        for _ in 0..EVENTS_BETWEEN_CHECKS {
            let mut returning = Time::MAX;
            if let Some(slot) = self.dispatcher.returning.front() {
                returning = slot.at;
                if self.looks_ahead(self.sms.resident(slot.place).kernel, slot.at) {
                    self.on_return(returning);
                    continue;
                }
            }
            let step = self.steps.peek().unwrap_or(Time::MAX);
            let now = returning.min(step);
            if now >= self.limit {
                return;
            }
            if let Some(books) = &mut self.books {
                books.advance(now);
            }
            if returning <= step {
                self.on_return(now);
            } else if let Some((_, place)) = self.steps.pop() {
                self.on_step(Place(place), now);
            }
        }
    }

    /// Lets happen what concerns whole kernels, if it is due.
    fn run_kernels(&mut self) {
        let now = self.limit;
        let returning = self.dispatcher.returning.front().map_or(Time::MAX, |slot| slot.at);
        if returning.min(self.steps.peek().unwrap_or(Time::MAX)) < now {
            return;
        }
        if let Some(books) = &mut self.books {
            books.advance(now);
        }
        if self.happenings.peek().is_some_and(|Reverse((at, _, _))| *at == now) {
            if let Some(Reverse((_, _, what))) = self.happenings.pop() {
                self.on_happening(what, now);
            }
        } else {
            self.dispatcher.make_visit(&mut self.runs, &mut self.sms, &mut self.placed);
            self.on_placed(now);
            self.idle_changes(now);
        }
    }

    fn happen(&mut self, at: Time, what: Happening) {
        self.limit = self.limit.min(at);
        self.latest = self.latest.max(at);
        self.happenings.push(Reverse((at, self.sequence, what)));
        self.sequence += 1;
    }

    fn on_happening(&mut self, what: Happening, now: Time) {
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
                self.begin(kernel, place, start.max(now), work);
            }
        }
    }

    /// CTAs have been placed at `now`.
    fn on_placed(&mut self, now: Time) {
        let mut placed = std::mem::take(&mut self.placed);
        placed.drain(..).for_each(|placement| self.on_placement(placement, now));
        self.placed = placed;
    }

    /// A CTA has been placed at `now`: it begins, unless it has to wait.
    #[inline]
    fn on_placement(&mut self, placement: Placement, now: Time) {
        let Placement { kernel, place, start, work, first_round } = placement;
        let latency = start.first.since(now);
        let account = if first_round { Account::Fill } else { Account::Starved };
        self.resident_ctas += 1;
        if let Some(books) = &mut self.books {
            books.assign(now, latency, account);
        }
        let run = &mut self.runs[kernel];
        run.times.dispatch_ps += u128::from(latency.0);
        if !run.dependent {
            return self.begin(kernel, place, start.all, work);
        }
        let start = start.all + self.timings.dependent_check;
        if run.held {
            run.parked.push((place, start, work));
        } else {
            let start = start.max(run.work_from);
            self.begin(kernel, place, start, work);
        }
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
        let at = run.sync.begin(cta, place.sm(), at, work);
        self.steps.push(at, place.0);
    }

    /// A CTA's step is due: it ends, or goes on.
    #[inline]
    fn on_step(&mut self, place: Place, now: Time) {
        let resident = self.sms.resident(place);
        let run = &mut self.runs[resident.kernel];
        match run.sync.next(resident.cta, place, now, &mut run.sampler) {
            Next::At(at) => return self.steps.push(at, place.0),
            Next::Waits => return,
            Next::End => {}
        }
        if run.sync.wakes() {
            run.sync.ended(resident.cta, place.sm(), now, &mut self.woken);
            for (at, place) in self.woken.drain(..) {
                self.steps.push(at, place.0);
            }
        }
        run.end(resident.start, now);
        let all_ended = run.ended == run.ctas;
        let cold = self.sms.ended(place, resident.kernel, now, now - resident.start);
        if run.left() == 0 {
            let left = if cold { now + self.timings.cold_return } else { now } + self.timings.back;
            let stores = left + drain(self.timings.drain, resident.kernel, resident.cta);
            run.flushed = run.flushed.max(stores);
        }
        self.makespan = self.makespan.max(now);
        self.record(place, resident, now);
        let back = self.dispatcher.policy.reusable(now, place.sm(), cold);
        if self.dispatcher.returning.is_empty() && self.looks_ahead(resident.kernel, back) {
            return self.pass_on(place, resident.kernel, now, back);
        }
        self.resident_ctas -= 1;
        if let Some(books) = &mut self.books {
            books.end(now);
        }
        self.dispatcher.give_back(place, back);
        if all_ended {
            self.running_ops -= 1;
            self.idle_changes(now);
            self.end_books();
        }
    }

    /// Whether a slot of this kernel that comes back at `back` can be given away already now: if the kernel is plain and has
    /// its turn, so that just one more of its CTAs goes there, and nothing that happens until then could change that. The
    /// result is the same, since slots come back in order; this only saves the queue of returning slots for the many CTAs of
    /// such a kernel.
    #[inline]
    fn looks_ahead(&self, kernel: KernelId, back: Time) -> bool {
        self.passing == Some(kernel)
            && self.runs[kernel].left() > 1
            && back < self.limit
            && self.books.as_ref().is_some_and(|books| back < books.window_end())
    }

    /// The CTA on `place` ended at `now`; its slot goes to the kernel's next one when it is back.
    #[inline]
    fn pass_on(&mut self, place: Place, kernel: KernelId, now: Time, back: Time) {
        let run = &mut self.runs[kernel];
        run.returned += 1;
        let (number, work) = run.take(0);
        let sm = place.sm();
        let warps = run.footprint.warps;
        let cold = self.sms.is_new_to(sm, kernel);
        let others = self.sms.resident_warps(sm) - warps;
        let start = self.dispatcher.policy.start(back, sm, warps, others, cold, work);
        let cta = run.started(number, start.first);
        let latency = start.first - back;
        run.times.dispatch_ps += u128::from(latency.0);
        self.sms.replace(place, cta);
        if let Some(books) = &mut self.books {
            books.pass_on(now, back, latency, Account::Starved);
        }
        self.steps.push(start.all + work, place.0);
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
    fn on_return(&mut self, now: Time) {
        let Some(slot) = self.dispatcher.returning.pop_front() else { return };
        let place = slot.place;
        let resident = self.sms.resident(place);
        let run = &mut self.runs[resident.kernel];
        run.returned += 1;
        let (op, complete) = (run.op, run.returned == run.ctas);
        let footprint = run.footprint;
        self.sms.free(place, &footprint);
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

    /// Settles to which account idle slots belong from now on.
    fn idle_changes(&mut self, now: Time) {
        let (free, returning) = if self.dispatcher.visit.is_some() {
            (Account::Fill, Account::Fill)
        } else if self.dispatcher.head().is_some() {
            (Account::Blocked, Account::Starved)
        } else {
            let account = if self.resident_ctas == 0 {
                Account::Launch
            } else if self.front_end.holds_work() {
                Account::Dependency
            } else {
                Account::Tail
            };
            (account, account)
        };
        if let Some(books) = &mut self.books {
            books.idle_as(now, free, returning);
        }
        let head = self.dispatcher.head().filter(|_| self.dispatcher.visit.is_none());
        self.passing = head.filter(|&head| self.eager && self.runs[head].is_plain());
    }

    /// Nothing is left that could use a slot: the makespan is reached.
    fn end_books(&mut self) {
        if self.running_ops == 0 && self.books.is_some() {
            self.closed_books = self.books.take();
        }
    }

    fn close(mut self, device: &Device) -> Records {
        let widest = self.runs.values().map(|run| run.footprint.residency).max().unwrap_or(1);
        let slots_per_sm = widest.max(self.sms.most_resident());
        let slots = self.sms.count() as u64 * u64::from(slots_per_sm);
        let books = self.closed_books.take().unwrap_or_else(Bookkeeper::new);
        Records {
            kernels: outcome::kernels(&self.runs, self.sms.count()),
            ctas: self.ctas.take(),
            sms: outcome::sms(&self.sms, device),
            ledger: books.close(self.makespan, slots),
            slots,
            makespan: self.makespan,
            digest: self.digest.value(),
        }
    }

    fn deadlock(&self) -> Error {
        let waiting: Vec<String> = self
            .dispatcher
            .waiting()
            .into_iter()
            .map(|kernel| {
                let run = &self.runs[kernel];
                let name = &self.program.kernels[run.spec].name;
                format!("launch {kernel} (`{name}`): {} of {} CTAs wait for a slot", run.left(), run.ctas)
            })
            .collect();
        let standing = self.runs.values().flat_map(|run| {
            let name = &self.program.kernels[run.spec].name;
            let pairs = run.sync.waiting().into_iter();
            pairs.map(move |(cta, on)| format!("CTA {cta} of `{name}` waits for CTA {on}"))
        });
        let at_barriers = self.runs.values().filter_map(|run| {
            let (arrived, needed) = run.sync.at_barrier()?;
            let name = &self.program.kernels[run.spec].name;
            Some(format!("{arrived} CTAs of `{name}` wait at its grid barrier for {} others", needed - arrived))
        });
        let who: Vec<String> = standing.chain(at_barriers).chain(waiting).collect();
        let who = if who.is_empty() {
            format!("{} operations wait for each other", self.front_end.unfinished())
        } else {
            who.join("; ")
        };
        Error::Deadlock { at_ns: self.makespan.0 / 1000, who }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::device::catalogue;
    use crate::gpu::policy::hardware::Hardware;
    use crate::workload::{Duration, Item, Kernel, Launch, Span, Work};

    fn outcome(program: &Program, seed: u64, eager: bool) -> Records {
        let device = catalogue::device("h200").expect("the catalogue has it");
        let options = Options { seed, ..Options::default() };
        let (policy, groups) = (Hardware::new(&device, seed), Groups::new(&device));
        let mut machine = Machine::new(&device, program, &[], &options, policy, groups)
            .expect("the program is valid");
        machine.eager = eager;
        machine.run(&device, &mut || false).expect("the program runs")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Giving slots away ahead of time is a short cut: it must lead to the same run, to the picosecond.
        #[test]
        fn looking_ahead_changes_nothing(
            seed in any::<u64>(),
            grids in prop::collection::vec((1..6000_u32, 1..9_u32, 0.0..3_000.0, 1.0..4.0), 1..4),
            streams in 1..3_u32,
        ) {
            let kernels: Vec<Kernel> = grids
                .iter()
                .map(|&(ctas, warps, low, spread)| {
                    let (low, high) = (Span::Ns(low), Span::Ns(low * spread));
                    let work = Work::Duration(Duration::Uniform { low, high });
                    Kernel { work, ..Kernel::of(ctas, 32 * warps) }
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
            let (ahead, in_order) = (outcome(&program, seed, true), outcome(&program, seed, false));
            prop_assert_eq!(ahead.digest, in_order.digest);
            prop_assert_eq!(ahead.makespan, in_order.makespan);
            for account in Account::ALL {
                prop_assert_eq!(ahead.ledger.total(account), in_order.ledger.total(account));
            }
            prop_assert_eq!(ahead.kernels.complete, in_order.kernels.complete);
        }
    }
}
