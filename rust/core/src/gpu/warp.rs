//! Warp issue: how long CTAs take whose warps run programs, by what else is on their SM.
//!
//! Two modes with one interface. [`exact`] steps each SM cycle by cycle ([`core`]). [`shared`] lets CTAs share it at rates
//! that hold until the set of residents changes, and measures these on the same stepped SM, once for each set ([`rates`]).

mod asks;
mod chance;
mod code;
mod core;
mod exact;
mod measure;
mod plan;
mod rates;
mod seen;
mod shared;
mod squad;
mod turn;
mod unit;
mod walk;

use code::{Compiler, Length};
use exact::Exact;
use shared::Shared;

use super::memory::Memory;
use super::sm::Place;
use crate::device::Device;
use crate::engine::Time;
use crate::ids::{Id, IdVec, KernelId, SmId};
use crate::records::warps::STATES;
use crate::records::{States, WarpLog, WarpWindowColumns};
use crate::simulate::{Detail, IssueMode, Options};
use crate::workload::{Program, Span, Work, poll};

/// The warps of all SMs that run programs.
#[derive(Debug)]
pub(crate) struct Warps<'a> {
    launches: IdVec<KernelId, Option<Launch<'a>>>,
    mode: Mode,
    /// When each SM changes next, as told.
    told: IdVec<SmId, Time>,
    /// CTAs whose last instruction has been issued.
    finished: Vec<bool>,
    ended: Vec<Ended>,
    first_place_of_sms: u32,
}

#[derive(Debug)]
enum Mode {
    Exact(Exact),
    Shared(Box<Shared>),
}

/// One launch.
#[derive(Debug)]
struct Launch<'a> {
    /// The number of its first program, and how many it has.
    first: usize,
    programs: usize,
    order: Option<&'a [f64]>,
    /// The lists that its spin-waits name, by number.
    lists: Vec<(usize, &'a [f64])>,
    warps: u32,
    startup: Time,
    finish: Time,
    /// What its warps did.
    log: WarpLog,
}

/// A CTA that begins.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    place: Place,
    kernel: KernelId,
    cta: u32,
    program: u32,
    warps: u32,
    /// Before its first instruction.
    startup: Time,
}

/// A CTA that has ended, or a part of what its warps did.
#[derive(Clone, Copy, Debug)]
struct Ended {
    place: Place,
    kernel: KernelId,
}

impl Launch<'_> {
    /// How long a CTA waits, in cycles, by the number of each list that says so.
    fn lengths(&self, cta: u32) -> Vec<(usize, u64)> {
        self.lists.iter().map(|&(number, list)| (number, list[cta as usize].ceil() as u64)).collect()
    }

    /// How many cycles a spin-wait of a CTA lasts.
    fn length(&self, cta: u32, of: Length) -> f64 {
        match of {
            Length::Constant(cycles) => cycles as f64,
            Length::OfCta(number) => {
                self.lists.iter().find(|(list, _)| *list == number).map_or(0.0, |(_, list)| list[cta as usize])
            }
        }
    }

    fn did(&mut self, states: &States, over: (Time, Time)) {
        self.add(&states.0.map(|cycles| cycles as f64), 1.0, over);
    }

    /// Its warps were in these states so many times, from the one time to the other.
    fn add(&mut self, states: &[f64; STATES], times: f64, over: (Time, Time)) {
        self.log.add(states, times, over);
    }
}

impl<'a> Warps<'a> {
    /// The warps of a program; none if it has no work for them.
    pub(crate) fn new(
        device: &Device,
        program: &Program,
        launches: impl Iterator<Item = usize>,
        arrays: &[&'a [f64]],
        options: &Options,
        places: usize,
    ) -> Option<Self> {
        let kernels = || program.kernels.iter();
        if !kernels().any(|kernel| matches!(kernel.work, Work::Warps(_))) {
            return None;
        }
        let launches: Vec<usize> = launches.collect();
        let warps_of = |kernel: &crate::workload::Kernel| kernel.threads().div_ceil(device.limits.warp_size);
        let mut firsts = vec![0; program.kernels.len()];
        let mut programs = Vec::new();
        // How many run each program; a list of which is which is taken to have them all equally often.
        let mut ctas = Vec::new();
        let mut accesses = 0;
        for (number, (kernel, first)) in kernels().zip(&mut firsts).enumerate() {
            *first = programs.len();
            if let Work::Warps(spec) = &kernel.work {
                let numbers = (accesses, spec.accesses.len() as u32);
                let compiler = Compiler::new(device, kernel.ctas(), numbers, arrays);
                accesses += spec.accesses.len() as u32;
                let launched = launches.iter().filter(|&&launch| launch == number).count() as f64;
                let each = launched * kernel.ctas() as f64 / spec.programs.len() as f64;
                ctas.resize(ctas.len() + spec.programs.len(), each);
                programs.extend(spec.programs.iter().map(|segments| (segments.as_slice(), warps_of(kernel), compiler)));
            }
        }
        let mode = match options.issue {
            IssueMode::Exact => Mode::Exact(Exact::new(device, &programs)),
            IssueMode::Rates => Mode::Shared(Box::new(Shared::new(device, &programs, &ctas))),
        };
        let time = |span: Span| Time(span.ps(device.clock.cycles_to_ps(1.0)).round() as u64);
        let launch = |number: usize| {
            let kernel = &program.kernels[number];
            let Work::Warps(spec) = &kernel.work else { return None };
            let mut lists = Vec::new();
            spec.programs.iter().for_each(|program| poll::lists(program, &mut lists));
            Some(Launch {
                first: firsts[number],
                programs: spec.programs.len(),
                order: spec.order.map(|order| arrays[order]),
                lists: lists.into_iter().map(|list| (list, arrays[list])).collect(),
                warps: warps_of(kernel),
                startup: time(spec.startup),
                finish: time(spec.finish),
                log: WarpLog::new(options.detail == Detail::Memory),
            })
        };
        Some(Self {
            launches: launches.into_iter().map(launch).collect(),
            mode,
            told: IdVec::filled(Time::MAX, device.sm_count()),
            finished: vec![false; places],
            ended: Vec::new(),
            first_place_of_sms: places as u32,
        })
    }

    /// Cycles of a launch's warps in each state; none if warp programs are not its work.
    pub(crate) fn states(&self, kernel: KernelId) -> Option<[f64; STATES]> {
        self.launches[kernel].as_ref().map(|launch| launch.log.cycles())
    }

    /// The same by window of time, if that was kept.
    pub(crate) fn windows(&self) -> Option<WarpWindowColumns> {
        let logs = || self.launches.iter().filter_map(|(kernel, launch)| Some((kernel, &launch.as_ref()?.log)));
        let width = logs().filter_map(|(_, log)| log.width()).max()?;
        let mut columns = WarpWindowColumns::default();
        logs().for_each(|(kernel, log)| log.close(kernel, width, &mut columns));
        Some(columns)
    }

    /// Whether measuring at what rates warps get on takes longer than to step them all from the beginning.
    pub(crate) fn should_be_stepped(&self) -> bool {
        matches!(&self.mode, Mode::Shared(shared) if shared.is_in_vain())
    }

    /// A CTA begins its work, or ends: then true.
    pub(crate) fn step(
        &mut self,
        kernel: KernelId,
        cta: u32,
        place: Place,
        now: Time,
        memory: Option<&mut Memory<'_>>,
    ) -> bool {
        if std::mem::take(&mut self.finished[place.0 as usize]) {
            return true;
        }
        let launch = self.launches[kernel].as_ref().expect("only launches with warp programs come here");
        let number = launch.order.map_or(cta as usize % launch.programs, |order| order[cta as usize] as usize);
        let program = (launch.first + number) as u32;
        let arrival = Arrival { place, kernel, cta, program, warps: launch.warps, startup: launch.startup };
        match &mut self.mode {
            Mode::Exact(exact) => exact.start(arrival, launch.lengths(cta), now),
            Mode::Shared(shared) => shared.start(arrival, now, memory, &mut self.launches),
        }
        false
    }

    /// What stands for the next change of an SM in the queue of events, where places stand for CTAs: any number above these.
    pub(crate) fn event_of(&self, sm: SmId) -> u32 {
        self.first_place_of_sms + sm.index() as u32
    }

    /// Which SM such a number stands for.
    pub(crate) fn sm_of(&self, event: u32) -> Option<SmId> {
        event.checked_sub(self.first_place_of_sms).map(|sm| SmId::from_index(sm as usize))
    }

    /// When an SM changes next, if that is another time than it was when last asked.
    pub(crate) fn due(&mut self, sm: SmId) -> Option<Time> {
        let due = match &self.mode {
            Mode::Exact(exact) => exact.due(sm),
            Mode::Shared(shared) => shared.due(sm),
        };
        (std::mem::replace(&mut self.told[sm], due) != due && due != Time::MAX).then_some(due)
    }

    /// An SM may change now: which CTAs have issued their last instruction, and when each ends.
    pub(crate) fn change(
        &mut self,
        sm: SmId,
        now: Time,
        memory: Option<&mut Memory<'_>>,
        ends: &mut Vec<(Time, Place)>,
    ) {
        // An SM whose next change was put off, or came earlier, is told of the time that it had once.
        if self.told[sm] != now {
            return;
        }
        self.told[sm] = Time::MAX;
        match &mut self.mode {
            Mode::Exact(exact) => exact.change(sm, now, memory, &mut self.launches, &mut self.ended),
            Mode::Shared(shared) => shared.change(sm, now, memory, &mut self.launches, &mut self.ended),
        }
        for Ended { place, kernel } in self.ended.drain(..) {
            self.finished[place.0 as usize] = true;
            let finish = self.launches[kernel].as_ref().map_or(Time::ZERO, |launch| launch.finish);
            ends.push((now + finish, place));
        }
    }
}

/// A launch whose CTAs are on an SM is one with warp programs.
fn launch_of<'b, 'a>(launches: &'b mut IdVec<KernelId, Option<Launch<'a>>>, kernel: KernelId) -> &'b mut Launch<'a> {
    launches[kernel].as_mut().expect("only launches with warp programs come here")
}
