//! The machine while it runs a program: the loop, and what each thing that happens leads to.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::device::Device;
use crate::engine::{EventQueue, Time};
use crate::error::{Error, Result};
use crate::ids::{Id, IdVec, KernelId};
use crate::records::ledger::Bookkeeper;
use crate::records::{Account, CtaColumns, Digest, Records};
use crate::simulate::{Detail, Options};
use crate::workload::Program;

use super::admission::{check_barriers, check_walks, dealt_to, footprints};
use super::dispatcher::{Dispatcher, Placement};
use super::front_end::{FrontEnd, OpId};
use super::groups::Groups;
use super::kernel::Run;
use super::memory::Memory;
use super::messages::Messages;
use super::outcome;
use super::policy::Dispatch;
use super::sm::{Place, Sms};
use super::sync::Sync;
use super::tpc::Tpcs;
use super::warp::Warps;
use super::work::Sampler;

/// Something that happens to few: host calls, kernels, copies. What happens to CTAs has a queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Happening {
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
pub(super) struct Timings {
    pub(super) back: Time,
    pub(super) cold_return: Time,
    pub(super) drain: Time,
    pub(super) release: Time,
    pub(super) flush: Time,
    pub(super) dependent_check: Time,
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
pub(super) fn drain(longest: Time, kernel: KernelId, cta: u32) -> Time {
    let hash = (u64::from(kernel.0) << 32 | u64::from(cta)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Time(((u128::from(hash ^ (hash >> 29)) * u128::from(longest.0)) >> 64) as u64)
}

/// The most CTAs of which a run keeps a row each: some 6 GB.
const MAX_RECORDED: u64 = 200_000_000;

/// Columns with room for all CTAs.
fn room_for_ctas(runs: &IdVec<KernelId, Run<'_>>, detail: &str) -> Result<CtaColumns> {
    let ctas: u64 = runs.values().map(|run| run.ctas).sum();
    let refused = || {
        let why = format!(
            "a row for each of {ctas} CTAs takes {} MB, and {MAX_RECORDED} are the most: detail `kernels` keeps none",
            ctas * CtaColumns::ROW_BYTES / 1_000_000
        );
        Error::invalid("detail", detail, why)
    };
    if ctas > MAX_RECORDED {
        return Err(refused());
    }
    CtaColumns::with_room_for(ctas as usize).ok_or_else(refused)
}

/// The machine while it runs a program.
pub(super) struct Machine<'a, P> {
    pub(super) program: &'a Program,
    pub(super) timings: Timings,
    pub(super) front_end: FrontEnd,
    pub(super) dispatcher: Dispatcher<P>,
    pub(super) sms: Sms,
    pub(super) tpcs: Tpcs,
    /// Of what is due, what stands for the first TPC.
    pub(super) first_tpc_event: u32,
    pub(super) runs: IdVec<KernelId, Run<'a>>,
    /// Only if the program has work for it.
    pub(super) memory: Option<Memory<'a>>,
    pub(super) warps: Option<Warps<'a>>,
    /// What CTAs do next: they end, or ask their process for the next step.
    pub(super) steps: EventQueue,
    pub(super) happenings: BinaryHeap<Reverse<(Time, u64, Happening)>>,
    /// Until when nothing happens to whole kernels.
    pub(super) limit: Time,
    /// The latest time at which anything is to happen to one.
    pub(super) latest: Time,
    pub(super) sequence: u64,
    pub(super) resident_kernels: usize,
    pub(super) max_resident_kernels: usize,
    pub(super) waiting_kernels: VecDeque<KernelId>,
    /// Kept until the makespan is reached.
    pub(super) books: Option<Bookkeeper>,
    pub(super) closed_books: Option<Bookkeeper>,
    pub(super) ctas: Option<CtaColumns>,
    pub(super) digest: Digest,
    pub(super) makespan: Time,
    /// Operations whose last CTA has not ended.
    pub(super) running_ops: usize,
    /// The kernel whose ending CTAs make room for its next ones, if nothing else has to be looked at.
    pub(super) passing: Option<KernelId>,
    /// Whether there is such a kernel; tests do without.
    pub(super) passes_on: bool,
    pub(super) resident_ctas: u64,
    pub(super) placed: Vec<Placement>,
    pub(super) ready: Vec<(OpId, Time)>,
    pub(super) woken: Vec<(Time, Place)>,
}

/// How many events pass between two looks at whether the caller wants to stop.
const EVENTS_BETWEEN_CHECKS: u32 = 1 << 16;
/// The same where each can take milliseconds: warps are stepped.
const CHANGES_BETWEEN_CHECKS: u32 = 64;

impl<'a, P: Dispatch> Machine<'a, P> {
    pub(super) fn new(
        device: &Device,
        program: &'a Program,
        arrays: &[&'a [f64]],
        options: &Options,
        policy: P,
        groups: Groups,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        let front_end = FrontEnd::new(program, device)?;
        let footprints = footprints(device, program)?;
        check_barriers(device, program, &footprints)?;
        check_walks(device, program, arrays)?;
        let shapes = footprints.iter().map(|footprint| footprint.shape as usize + 1).max().unwrap_or(1);
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
                let sync = Sync::new(kernel, device, arrays, &mut sampler, samplers.next(), interrupted)?;
                let mut run = Run::new(
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
                run.cooperative = kernel.is_cooperative();
                if run.footprint.warps > 1 && !run.cluster_launch() {
                    let last_warp = device.clock.cycles_to_ps(kernel.last_warp_cycles);
                    run.last_warp = Time(last_warp.round() as u64);
                }
                run.trigger = launch.trigger;
                run.dependent = launch.dependent;
                run.held = launch.dependent;
                Ok(run)
            })
            .collect::<Result<_>>()?;
        let ctas = match options.detail {
            Detail::Kernels => None,
            Detail::Ctas => Some(room_for_ctas(&runs, "ctas")?),
            Detail::Memory => Some(room_for_ctas(&runs, "memory")?),
        };
        let running_ops = front_end.unfinished();
        let sms = Sms::new(device, shapes);
        let launches = runs.values().map(|run| run.spec);
        let memory = Memory::new(device, program, launches, arrays, sms.places(), options);
        let launches = runs.values().map(|run| run.spec);
        let warps = Warps::new(device, program, launches, arrays, options, sms.places());
        let tpcs = policy.tpcs(device);
        let first_tpc_event = (sms.places() + sms.count()) as u32;
        Ok(Self {
            program,
            timings: Timings::new(device),
            front_end,
            dispatcher: Dispatcher::new(policy, groups, Messages::new(device), deals),
            sms,
            tpcs,
            first_tpc_event,
            runs,
            memory,
            warps,
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
            ctas,
            digest: Digest::default(),
            makespan: Time::ZERO,
            running_ops,
            passing: None,
            passes_on: true,
            resident_ctas: 0,
            placed: Vec::new(),
            ready: Vec::new(),
            woken: Vec::new(),
        })
    }

    /// Runs to the end.
    pub(super) fn run(mut self, device: &Device, interrupted: &mut dyn FnMut() -> bool) -> Result<Records> {
        self.start();
        while self.goes_on(interrupted)? {}
        self.end(device)
    }

    /// The same; nothing comes of it if the warps turn out to be better stepped.
    pub(super) fn run_unless_stepped(
        mut self,
        device: &Device,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Records>> {
        self.start();
        loop {
            let goes_on = self.goes_on(interrupted)?;
            if self.warps.as_ref().is_some_and(Warps::should_be_stepped) {
                return Ok(None);
            }
            if !goes_on {
                return self.end(device).map(Some);
            }
        }
    }

    fn start(&mut self) {
        if let Some(at) = self.front_end.next_call(Time::ZERO) {
            self.happen(at, Happening::Call);
        }
    }

    /// Lets happen what is due until it is time for a look at the caller; whether anything is left.
    fn goes_on(&mut self, interrupted: &mut dyn FnMut() -> bool) -> Result<bool> {
        let happening = self.happenings.peek().map_or(Time::MAX, |Reverse((at, _, _))| *at);
        let visit = self.dispatcher.visit.map_or(Time::MAX, |visit| visit.at);
        let limit = happening.min(visit);
        self.limit = limit.min(Time::HORIZON);
        self.run_ctas();
        if interrupted() {
            return Err(Error::Interrupted);
        }
        self.check_horizon()?;
        if limit == Time::MAX && self.limit >= Time::HORIZON {
            return Ok(self.dispatcher.expects_any() || !(self.steps.is_empty() || self.polls_in_vain()));
        }
        self.run_kernels();
        Ok(true)
    }

    fn end(self, device: &Device) -> Result<Records> {
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
        let events = if self.warps.is_some() { CHANGES_BETWEEN_CHECKS } else { EVENTS_BETWEEN_CHECKS };
        for _ in 0..events {
            let step = self.steps.peek().unwrap_or(Time::MAX);
            let returning = self.dispatcher.next_back(step.min(self.limit));
            let now = returning.min(step);
            if now >= self.limit {
                return;
            }
            if let Some(books) = &mut self.books {
                books.advance(now);
            }
            if returning <= step {
                self.on_return(now);
            } else if let Some((_, event)) = self.steps.pop() {
                match event.checked_sub(self.first_tpc_event) {
                    Some(tpc) => self.on_look(tpc as usize, now),
                    None => match self.warps.as_ref().and_then(|warps| warps.sm_of(event)) {
                        Some(sm) => self.on_sm_change(sm, now),
                        None => self.on_step(Place(event), now),
                    },
                }
            }
        }
    }

    /// Lets happen what concerns whole kernels, if it is due.
    fn run_kernels(&mut self) {
        let now = self.limit;
        let returning = self.dispatcher.next_back(now);
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

    /// Settles to which account idle slots belong from now on.
    pub(super) fn idle_changes(&mut self, now: Time) {
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
        self.passing = head.filter(|&head| self.passes_on && self.runs[head].is_plain());
    }

    /// Nothing is left that could use a slot: the makespan is reached.
    pub(super) fn end_books(&mut self) {
        if self.running_ops == 0 && self.books.is_some() {
            self.closed_books = self.books.take();
        }
    }

    fn close(mut self, device: &Device) -> Records {
        let widest = self.runs.values().map(|run| run.footprint.residency).max().unwrap_or(1);
        let slots_per_sm = widest.max(self.sms.most_resident());
        let slots = self.sms.count() as u64 * u64::from(slots_per_sm);
        let books = self.closed_books.take().unwrap_or_else(Bookkeeper::new);
        let (l2_slices, l2_windows) = self.memory.as_mut().and_then(Memory::take_log).unzip();
        Records {
            kernels: outcome::kernels(&self.runs, self.sms.count()),
            ctas: self.ctas.take(),
            sms: outcome::sms(&self.sms, device),
            l2: outcome::l2(&self.runs, self.memory.as_ref()),
            l2_slices,
            l2_windows,
            warps: outcome::warps(&self.runs, self.warps.as_ref()),
            warps_windows: self.warps.as_ref().and_then(Warps::windows),
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
        let begun = self.runs.values().flat_map(|run| [run.times.placed, run.sync.waits_since()]);
        let at = begun.fold(self.makespan.max(self.latest), Time::max);
        Error::Deadlock { at_ns: Some(at.0 / 1000), who }
    }
}
