//! The default mode: the warps of an SM get on at shared rates, and something happens only when the set of residents changes.
//!
//! Warps of a CTA are a group as long as they get on alike. A group goes through the steps of its program by itself, and waits
//! for the others where the CTA has a barrier.

use super::chance::latest;
use super::code::Compiler;
use super::plan::{Planner, Steady, Step};
use super::rates::{Cursor, Rate, Rates};
use super::seen::Seen;
use super::squad::{Squad, WarpSet};
use super::turn::{CtaAccesses, Lsu, Scoreboard};
use super::{Arrival, Ended, Launch, launch_of};
use crate::device::Device;
use crate::engine::Time;
use crate::gpu::memory::Memory;
use crate::ids::{IdVec, KernelId, SmId};
use crate::records::State;
use crate::records::warps::STATES;
use crate::workload::{Segment, Since};

/// When something changes on an SM, groups end their steps that have no more than this share of their turns left: warps that
/// end nearly together do so together.
const NEARLY: f64 = 0.003;

/// All SMs.
#[derive(Debug)]
pub(super) struct Shared {
    cycle_ps: f64,
    plans: Vec<Vec<Step>>,
    rates: Rates,
    seen: Seen,
    sms: IdVec<SmId, Sm>,
    sub_partitions: usize,
    /// The number of the first access of each program's kernel among those of all kernels.
    accesses: Vec<u32>,
    /// At the latencies below what loads see, and at those above.
    squads: [Vec<Squad>; 2],
    found: [Vec<Rate>; 2],
}

#[derive(Clone, Debug)]
struct Sm {
    /// Oldest first.
    residents: Vec<Resident>,
    /// Up to when their progress has been entered.
    since: Time,
    due: Time,
    /// What loads had seen when it was shared last, as [`Seen::changes`] counts.
    seen: u64,
}

/// A CTA on an SM.
#[derive(Clone, Debug)]
struct Resident {
    accesses: CtaAccesses,
    plan: usize,
    warps: u32,
    /// The sub-partition of its first warp.
    first: usize,
    /// When its first instruction can be issued.
    began: Time,
    /// Its warps that have not ended.
    groups: Vec<Group>,
}

/// Warps of a CTA that get on together.
#[derive(Clone, Debug)]
struct Group {
    warps: WarpSet,
    cursor: Cursor,
    /// Steps that it has begun.
    steps: u64,
    /// By how much its warps have come apart by chance: the variance of when they are where it is, in square cycles.
    apart: f64,
    work: Work,
    scoreboard: Scoreboard,
    /// When its work is done, or asks memory next, as things are; at the end of time if that has to be found.
    due: Time,
}

/// What the warps of a group do.
#[expect(clippy::large_enum_variant, reason = "almost all groups do steady work, almost all of the time")]
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Turns of a steady program: how many of them are left, counted `from` a time on, and how they get on: as measured at the
    /// latencies below what loads see (and at those above so many turns a cycle), and as they do.
    Steady {
        program: u32,
        turns: f64,
        left: f64,
        from: Time,
        lower: Rate,
        upper: f64,
        rate: Rate,
    },
    /// They wait, whatever the others do.
    Delay,
    /// They wait for the other warps of the CTA.
    Barrier,
    Ended,
}

impl Shared {
    /// Of programs that so many CTAs run each.
    pub(super) fn new(device: &Device, programs: &[(&[Segment], u32, Compiler<'_>)], ctas: &[f64]) -> Self {
        let mut steady = Steady::default();
        let work = programs
            .iter()
            .zip(ctas)
            .map(|(&(segments, warps, compiler), ctas)| ctas * f64::from(warps) * compiler.alone(segments));
        let work = work.sum();
        let plans = programs
            .iter()
            .map(|&(segments, warps, compiler)| Planner::new(device, compiler, warps, &mut steady).plan(segments))
            .collect();
        let sm = Sm { residents: Vec::new(), since: Time::ZERO, due: Time::MAX, seen: 0 };
        let accesses = programs.iter().map(|(_, _, compiler)| compiler.accesses);
        let count = accesses.clone().map(|(first, count)| first + count).max().unwrap_or(0);
        Self {
            cycle_ps: device.clock.cycles_to_ps(1.0),
            plans,
            rates: Rates::new(device, steady, work),
            seen: Seen::new(count as usize, device.l2.near_latency_cycles),
            accesses: accesses.map(|(first, _)| first).collect(),
            sms: IdVec::filled(sm, device.sm_count()),
            sub_partitions: device.limits.sub_partitions.max(1) as usize,
            squads: Default::default(),
            found: Default::default(),
        }
    }

    /// Whether so much had to be measured that stepping all would take no longer.
    pub(super) fn is_in_vain(&self) -> bool {
        self.rates.is_in_vain()
    }

    pub(super) fn due(&self, sm: SmId) -> Time {
        self.sms[sm].due
    }

    pub(super) fn start(
        &mut self,
        arrival: Arrival,
        now: Time,
        memory: Option<&mut Memory<'_>>,
        launches: &mut IdVec<KernelId, Option<Launch<'_>>>,
    ) {
        let Arrival { place, kernel, cta, program, warps, startup } = arrival;
        let sm = &mut self.sms[place.sm()];
        sm.enter(now, self.cycle_ps, launches);
        let mut states = [0.0; STATES];
        states[State::NoInstruction as usize] = startup.0 as f64 / self.cycle_ps * f64::from(warps);
        launch_of(launches, kernel).add(&states, 1.0, (now, now + startup));
        let plan = program as usize;
        let accesses = CtaAccesses::new(kernel, cta, place, self.accesses[plan]);
        let group = Group {
            warps: WarpSet::all(warps),
            cursor: Cursor::default(),
            steps: 0,
            apart: 0.0,
            work: Work::Delay,
            scoreboard: Scoreboard::default(),
            due: now + startup,
        };
        let first = sm.emptiest(self.sub_partitions);
        sm.residents.push(Resident { accesses, plan, warps, first, began: now + startup, groups: vec![group] });
        self.settle(place.sm(), now, memory, launches, None);
    }

    pub(super) fn change(
        &mut self,
        sm: SmId,
        now: Time,
        memory: Option<&mut Memory<'_>>,
        launches: &mut IdVec<KernelId, Option<Launch<'_>>>,
        ended: &mut Vec<Ended>,
    ) {
        self.sms[sm].enter(now, self.cycle_ps, launches);
        self.settle(sm, now, memory, launches, Some(ended));
    }

    /// Lets all that is due at `now` go over to what follows, and shares the SM anew if that is other work. CTAs that have ended
    /// go to `ended`; if no one asks for them, they stay, and the SM changes again at `now`.
    fn settle(
        &mut self,
        id: SmId,
        now: Time,
        memory: Option<&mut Memory<'_>>,
        launches: &mut IdVec<KernelId, Option<Launch<'_>>>,
        mut ended: Option<&mut Vec<Ended>>,
    ) {
        let mut lsu = Lsu { now, cycle_ps: self.cycle_ps, memory, seen: &mut self.seen };
        let sm = &mut self.sms[id];
        let in_step = self.rates.is_full();
        let mut others = false;
        sm.residents.retain_mut(|resident| {
            let plan = &self.plans[resident.plan];
            others |= resident.go_on((plan, &self.rates.steady), in_step, &mut lsu, launches);
            if !resident.groups.is_empty() {
                return true;
            }
            let Some(ended) = &mut ended else { return true };
            ended.push(Ended { place: resident.accesses.place, kernel: resident.accesses.kernel });
            false
        });
        if others || sm.seen != lsu.seen.changes {
            sm.seen = lsu.seen.changes;
            sm.squads(&mut self.squads, &mut self.rates.steady, lsu.seen);
            for (squads, found) in self.squads.iter().zip(&mut self.found) {
                self.rates.of(squads, found);
            }
            sm.share(&self.found);
        }
        sm.pace(&self.rates.steady, &lsu);
    }
}

impl Sm {
    /// Enters what has been done up to `now`.
    fn enter(&mut self, now: Time, cycle_ps: f64, launches: &mut IdVec<KernelId, Option<Launch<'_>>>) {
        let cycles = now.since(self.since).0 as f64 / cycle_ps;
        let over = (self.since, now);
        self.since = now;
        for resident in &mut self.residents {
            let launch = launch_of(launches, resident.accesses.kernel);
            for group in &mut resident.groups {
                match &mut group.work {
                    Work::Steady { left, from, rate, .. } => {
                        let counted = now.since(over.0.max(*from).min(now)).0 as f64 / cycle_ps;
                        let turns = (rate.turns * counted).min(*left);
                        *left -= turns;
                        group.apart += turns * rate.varies;
                        launch.add(&rate.states, cycles, over);
                    }
                    Work::Barrier => {
                        let mut states = [0.0; STATES];
                        states[State::Barrier as usize] = f64::from(group.warps.count(resident.warps));
                        launch.add(&states, cycles, over);
                    }
                    Work::Delay | Work::Ended => {}
                }
            }
        }
    }

    /// Warps in steady work, those of the oldest CTA first, at the latencies below what loads see and at those above.
    fn squads(&self, squads: &mut [Vec<Squad>; 2], steady: &mut Steady, seen: &mut Seen) {
        squads.iter_mut().for_each(Vec::clear);
        let mut cta = 0;
        for resident in &self.residents {
            let before = squads[0].len();
            for group in &resident.groups {
                if let Work::Steady { program, .. } = group.work {
                    for (squads, program) in squads.iter_mut().zip(seen.variants(program, steady)) {
                        squads.push(Squad { cta, first: resident.first as u8, program, warps: group.warps });
                    }
                }
            }
            cta += u32::from(squads[0].len() > before);
        }
    }

    /// Gives the warps in steady work their rates. A group falls apart whose warps do not get on alike.
    fn share(&mut self, [lower, upper]: &[Vec<Rate>; 2]) {
        let mut lower = lower.iter().peekable();
        let mut upper = upper.as_slice();
        let mut squad = 0;
        for resident in &mut self.residents {
            let warps = resident.warps;
            let mut apart = Vec::new();
            for group in &mut resident.groups {
                if matches!(group.work, Work::Steady { .. }) {
                    let above = upper.partition_point(|rate| rate.squad == squad);
                    let own = lower.next_if(|rate| rate.squad == squad).expect("each squad has a rate");
                    while let Some(other) = lower.next_if(|rate| rate.squad == squad) {
                        let mut part = group.clone();
                        part.gets_on(other, &upper[..above], warps);
                        apart.push(part);
                    }
                    group.gets_on(own, &upper[..above], warps);
                    upper = &upper[above..];
                    squad += 1;
                }
            }
            if !apart.is_empty() {
                resident.groups.append(&mut apart);
                resident.groups.sort_unstable_by_key(|group| group.warps);
            }
        }
    }

    /// Finds when something is due next.
    fn pace(&mut self, steady: &Steady, lsu: &Lsu<'_, '_>) {
        self.due = Time::MAX;
        for resident in &mut self.residents {
            for group in &mut resident.groups {
                group.pace(resident.warps, steady, lsu);
                self.due = self.due.min(group.due);
            }
            if resident.groups.is_empty() {
                self.due = lsu.now;
            }
        }
    }

    /// The sub-partition to which the first warp of the next CTA goes: the one with the fewest.
    fn emptiest(&self, sub_partitions: usize) -> usize {
        let mut counts = vec![0; sub_partitions];
        for resident in &self.residents {
            for group in &resident.groups {
                for warp in group.warps.of(resident.warps) {
                    counts[(resident.first + warp as usize) % sub_partitions] += 1;
                }
            }
        }
        (0..sub_partitions).min_by_key(|&part| counts[part]).unwrap_or(0)
    }
}

impl Resident {
    /// Lets its groups go on that have done what they did; none are left at its end. If they are to be `in_step`, each waits for
    /// the others before every step. Whether one does other work now.
    fn go_on(
        &mut self,
        (plan, steady): (&[Step], &Steady),
        in_step: bool,
        lsu: &mut Lsu<'_, '_>,
        launches: &mut IdVec<KernelId, Option<Launch<'_>>>,
    ) -> bool {
        let launch = launch_of(launches, self.accesses.kernel);
        let (warps, began, accesses) = (self.warps, self.began, &mut self.accesses);
        let mut others = false;
        loop {
            for group in &mut self.groups {
                while group.is_done(lsu.now) {
                    if group.asks(steady, accesses, lsu) {
                        continue;
                    }
                    others = true;
                    let meets = group.meets_others(plan);
                    if meets && group.apart > 0.0 {
                        group.wait_for_slowest(plan, warps, lsu, launch);
                    } else if (in_step || meets) && group.warps != WarpSet::all(warps) && !group.is_at_end(plan) {
                        (group.work, group.due) = (Work::Barrier, Time::MAX);
                    } else {
                        group.begin_next((plan, steady), (warps, began), accesses, lsu, launch);
                    }
                }
            }
            self.groups.retain(|group| !matches!(group.work, Work::Ended));
            if self.groups.is_empty() || self.groups.iter().any(|group| !matches!(group.work, Work::Barrier)) {
                return others;
            }
            // They were not always in step: who is behind goes first.
            let (first, last) = self
                .groups
                .iter()
                .fold((u64::MAX, 0), |(first, last), group| (first.min(group.steps), last.max(group.steps)));
            if first == last {
                self.groups.truncate(1);
                let now = lsu.now;
                self.groups[0] = Group { warps: WarpSet::all(warps), work: Work::Delay, due: now, ..self.groups[0] };
                continue;
            }
            for group in self.groups.iter_mut().filter(|group| group.steps == first) {
                group.begin_next((plan, steady), (warps, began), accesses, lsu, launch);
            }
        }
    }
}

impl Group {
    fn is_done(&self, now: Time) -> bool {
        let nearly = matches!(self.work, Work::Steady { left, turns, .. } if left <= NEARLY * turns);
        self.due <= now && !matches!(self.work, Work::Ended) || nearly && !self.scoreboard.goes_on()
    }

    /// Asks memory for what comes next in steady work, if anything does.
    fn asks(&mut self, steady: &Steady, accesses: &mut CtaAccesses, lsu: &mut Lsu<'_, '_>) -> bool {
        let Work::Steady { program, left, .. } = &mut self.work else { return false };
        let asks = self.scoreboard.goes_on();
        if asks {
            *left = self.scoreboard.next(&steady.asks[*program as usize], accesses, lsu);
            self.due = Time::MAX;
        }
        asks
    }

    /// Whether it has come to a barrier, or to its end.
    fn meets_others(&self, plan: &[Step]) -> bool {
        let mut cursor = self.cursor;
        matches!(
            cursor.next(plan),
            None | Some(Step::Delay { together: true, .. } | Step::Steady { together: true, .. })
        )
    }

    fn is_at_end(&self, plan: &[Step]) -> bool {
        let mut cursor = self.cursor;
        cursor.next(plan).is_none()
    }

    /// Waits for the one of its warps that chance has kept back most: at a barrier, or as warps that have ended.
    fn wait_for_slowest(&mut self, plan: &[Step], warps: u32, lsu: &Lsu<'_, '_>, launch: &mut Launch<'_>) {
        let count = self.warps.count(warps);
        let cycles = latest(count) * std::mem::take(&mut self.apart).sqrt();
        let mut states = [0.0; STATES];
        if !self.is_at_end(plan) {
            states[State::Barrier as usize] = f64::from(count);
        }
        self.work = Work::Delay;
        self.due = lsu.now + Time((cycles * lsu.cycle_ps).round() as u64);
        launch.add(&states, cycles, (lsu.now, self.due));
    }

    /// Goes over to the next step.
    fn begin_next(
        &mut self,
        (plan, steady): (&[Step], &Steady),
        (warps, began): (u32, Time),
        accesses: &mut CtaAccesses,
        lsu: &mut Lsu<'_, '_>,
        launch: &mut Launch<'_>,
    ) {
        self.steps += 1;
        match self.cursor.next(plan) {
            None => self.work = Work::Ended,
            Some(Step::Delay { mut cycles, states, asks, .. }) => {
                let mut states = states.0.map(|cycles| cycles as f64);
                let mut room = Time::ZERO;
                if let Some(asks) = asks {
                    let told = self.scoreboard.at_once(&steady.delays[asks as usize], accesses, lsu);
                    states[State::LongScoreboard as usize] += told.took * f64::from(warps);
                    cycles += told.took;
                    room = told.room;
                }
                self.work = Work::Delay;
                self.due = room.max(lsu.now + Time((cycles * lsu.cycle_ps).round() as u64));
                let share = f64::from(self.warps.count(warps)) / f64::from(warps);
                launch.add(&states, share, (lsu.now, self.due));
            }
            Some(Step::Steady { program, turns, .. }) => {
                self.turns(program, turns, Time::ZERO);
                let batches = steady.asks[program as usize].len();
                self.scoreboard.begin(turns, batches);
                if batches > 0 {
                    self.due = lsu.now;
                }
            }
            Some(Step::Poll { program, cycles, since, more }) => {
                let from = if since == Since::Start { began } else { lsu.now };
                let cycles = launch.length(accesses.cta, cycles);
                let over = from.0.saturating_add((cycles * lsu.cycle_ps).round() as u64);
                let over = Time(over).min(Time::HORIZON);
                // In the mean a warp reads the clock half a turn behind that time.
                self.turns(program, if over > lsu.now { 0.5 + more } else { more }, over);
                self.scoreboard.begin(0.0, 0);
            }
            Some(Step::Back { .. }) => unreachable!("a cursor stops at steps that take time"),
        }
    }

    /// Begins so many turns of steady work, counted `from` a time on.
    fn turns(&mut self, program: u32, turns: f64, from: Time) {
        let rate = Rate { squad: 0, warps: self.warps, turns: 0.0, varies: 0.0, states: [0.0; STATES] };
        self.work = Work::Steady { program, turns, left: turns, from, lower: rate, upper: 0.0, rate };
        self.due = Time::MAX;
    }

    /// The warps of it that get on at this rate do so, and as `above` says at the latencies above.
    fn gets_on(&mut self, at: &Rate, above: &[Rate], all: u32) {
        if let Work::Steady { lower, upper, .. } = &mut self.work {
            (*lower, self.warps) = (*at, at.warps);
            let own = |rate: &Rate| rate.turns * f64::from(rate.warps.and(at.warps).count(all));
            *upper = above.iter().map(own).sum::<f64>() / f64::from(at.warps.count(all));
            self.due = Time::MAX;
        }
    }

    /// Finds when its steady work is done or asks memory next, if that is not known.
    fn pace(&mut self, all: u32, steady: &Steady, lsu: &Lsu<'_, '_>) {
        if let Work::Steady { program, left, from, lower, upper, rate, .. } = &mut self.work
            && self.due == Time::MAX
        {
            let batches = &steady.asks[*program as usize];
            (*rate, self.due) = if batches.is_empty() {
                let due = lsu.now.max(*from).0 as f64 + (*left / lower.turns * lsu.cycle_ps).ceil();
                (*lower, Time(due as u64).min(Time::HORIZON))
            } else {
                let warps = f64::from(self.warps.count(all));
                self.scoreboard.pace(batches, (lower, *upper), (*left, warps, steady.busy[*program as usize]), lsu)
            };
        }
    }
}
