//! The default mode: the warps of an SM get on at shared rates, and something happens only when the set of residents changes.
//!
//! Warps of a CTA are a group as long as they get on alike. A group goes through the steps of its program by itself, and waits
//! for the others where the CTA has a barrier.

use super::code::Compiler;
use super::plan::{Planner, Steady, Step};
use super::rates::{Cursor, Rate, Rates};
use super::squad::{Squad, WarpSet};
use super::{Arrival, Ended, Launch, launch_of};
use crate::device::Device;
use crate::engine::Time;
use crate::gpu::sm::Place;
use crate::ids::{IdVec, KernelId, SmId};
use crate::records::State;
use crate::records::warps::STATES;
use crate::workload::Segment;

/// When something changes on an SM, groups end their steps that have no more than this share of their turns left: warps that
/// end nearly together do so together.
const NEARLY: f64 = 0.003;

/// All SMs.
#[derive(Debug)]
pub(super) struct Shared {
    cycle_ps: f64,
    plans: Vec<Vec<Step>>,
    rates: Rates,
    sms: IdVec<SmId, Sm>,
    sub_partitions: usize,
    squads: Vec<Squad>,
    found: Vec<Rate>,
}

#[derive(Clone, Debug)]
struct Sm {
    /// Oldest first.
    residents: Vec<Resident>,
    /// Up to when their progress has been entered.
    since: Time,
    due: Time,
}

/// A CTA on an SM.
#[derive(Clone, Debug)]
struct Resident {
    place: Place,
    kernel: KernelId,
    plan: usize,
    warps: u32,
    /// The sub-partition of its first warp.
    first: usize,
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
    /// When this is done, as things are.
    due: Time,
}

/// What the warps of a group do.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Turns of a steady program, how many of them are left, and how they get on.
    Steady {
        program: u32,
        turns: f64,
        left: f64,
        rate: Rate,
    },
    /// They wait, whatever the others do.
    Delay,
    /// They wait for the other warps of the CTA.
    Barrier,
    Ended,
}

impl Shared {
    pub(super) fn new(device: &Device, programs: &[(&[Segment], u32, Compiler<'_>)]) -> Self {
        let mut steady = Steady::default();
        let plans = programs
            .iter()
            .map(|&(segments, warps, compiler)| Planner::new(device, compiler, warps, &mut steady).plan(segments))
            .collect();
        let sm = Sm { residents: Vec::new(), since: Time::ZERO, due: Time::MAX };
        Self {
            cycle_ps: device.clock.cycles_to_ps(1.0),
            plans,
            rates: Rates::new(device, steady),
            sms: IdVec::filled(sm, device.sm_count()),
            sub_partitions: device.limits.sub_partitions.max(1) as usize,
            squads: Vec::new(),
            found: Vec::new(),
        }
    }

    pub(super) fn due(&self, sm: SmId) -> Time {
        self.sms[sm].due
    }

    pub(super) fn start(&mut self, arrival: Arrival, now: Time, launches: &mut IdVec<KernelId, Option<Launch<'_>>>) {
        let Arrival { place, kernel, program, warps, startup } = arrival;
        let sm = &mut self.sms[place.sm()];
        sm.enter(now, self.cycle_ps, launches);
        let mut states = [0.0; STATES];
        states[State::NoInstruction as usize] = startup.0 as f64 / self.cycle_ps * f64::from(warps);
        launch_of(launches, kernel).add(&states, 1.0, (now, now + startup));
        let all = WarpSet::all(warps);
        let group = Group {
            warps: all,
            cursor: Cursor::default(),
            steps: 0,
            apart: 0.0,
            work: Work::Delay,
            due: now + startup,
        };
        let first = sm.emptiest(self.sub_partitions);
        sm.residents.push(Resident { place, kernel, plan: program as usize, warps, first, groups: vec![group] });
        self.settle(place.sm(), now, launches, None);
    }

    pub(super) fn change(
        &mut self,
        sm: SmId,
        now: Time,
        launches: &mut IdVec<KernelId, Option<Launch<'_>>>,
        ended: &mut Vec<Ended>,
    ) {
        self.sms[sm].enter(now, self.cycle_ps, launches);
        self.settle(sm, now, launches, Some(ended));
    }

    /// Lets all that is due at `now` go over to what follows, and shares the SM anew. CTAs that have ended go to `ended`; if no
    /// one asks for them, they stay, and the SM changes again at `now`.
    fn settle(
        &mut self,
        id: SmId,
        now: Time,
        launches: &mut IdVec<KernelId, Option<Launch<'_>>>,
        mut ended: Option<&mut Vec<Ended>>,
    ) {
        let sm = &mut self.sms[id];
        let in_step = self.rates.is_full();
        sm.residents.retain_mut(|resident| {
            resident.go_on(&self.plans[resident.plan], in_step, now, self.cycle_ps, launches);
            if !resident.groups.is_empty() {
                return true;
            }
            let Some(ended) = &mut ended else { return true };
            ended.push(Ended { place: resident.place, kernel: resident.kernel });
            false
        });
        sm.squads(&mut self.squads);
        self.rates.of(&self.squads, &mut self.found);
        sm.share(&self.found, now, self.cycle_ps);
    }
}

impl Sm {
    /// Enters what has been done up to `now`.
    fn enter(&mut self, now: Time, cycle_ps: f64, launches: &mut IdVec<KernelId, Option<Launch<'_>>>) {
        let cycles = now.since(self.since).0 as f64 / cycle_ps;
        let over = (self.since, now);
        self.since = now;
        for resident in &mut self.residents {
            let launch = launch_of(launches, resident.kernel);
            for group in &mut resident.groups {
                match &mut group.work {
                    Work::Steady { left, rate, .. } => {
                        let turns = (rate.turns * cycles).min(*left);
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

    /// Warps in steady work, those of the oldest CTA first.
    fn squads(&self, squads: &mut Vec<Squad>) {
        squads.clear();
        let mut cta = 0;
        for resident in &self.residents {
            let before = squads.len();
            for group in &resident.groups {
                if let Work::Steady { program, .. } = group.work {
                    squads.push(Squad { cta, first: resident.first as u8, program, warps: group.warps });
                }
            }
            cta += u32::from(squads.len() > before);
        }
    }

    /// Gives the warps in steady work their rates. A group falls apart whose warps do not get on alike.
    fn share(&mut self, rates: &[Rate], now: Time, cycle_ps: f64) {
        let mut rates = rates.iter().peekable();
        let mut squad = 0;
        self.due = Time::MAX;
        for resident in &mut self.residents {
            let mut apart = Vec::new();
            for group in &mut resident.groups {
                if matches!(group.work, Work::Steady { .. }) {
                    let own = rates.next_if(|rate| rate.squad == squad).expect("each squad has a rate");
                    while let Some(other) = rates.next_if(|rate| rate.squad == squad) {
                        let mut part = group.clone();
                        part.gets_on(other, now, cycle_ps);
                        self.due = self.due.min(part.due);
                        apart.push(part);
                    }
                    group.gets_on(own, now, cycle_ps);
                    squad += 1;
                }
                self.due = self.due.min(group.due);
            }
            if !apart.is_empty() {
                resident.groups.append(&mut apart);
                resident.groups.sort_unstable_by_key(|group| group.warps);
            }
            if resident.groups.is_empty() {
                self.due = now;
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
    /// Lets its groups go on that have done what they did by `now`; none are left at its end. If they are to be `in_step`, each
    /// waits for the others before every step.
    fn go_on(
        &mut self,
        plan: &[Step],
        in_step: bool,
        now: Time,
        cycle_ps: f64,
        launches: &mut IdVec<KernelId, Option<Launch<'_>>>,
    ) {
        let launch = launch_of(launches, self.kernel);
        loop {
            for group in &mut self.groups {
                while group.is_done(now) {
                    let meets = group.meets_others(plan);
                    if meets && group.apart > 0.0 {
                        group.wait_for_slowest(self.warps, now, cycle_ps, launch);
                    } else if (in_step || meets) && group.warps != WarpSet::all(self.warps) && !group.is_at_end(plan) {
                        (group.work, group.due) = (Work::Barrier, Time::MAX);
                    } else {
                        group.begin_next(plan, self.warps, now, cycle_ps, launch);
                    }
                }
            }
            self.groups.retain(|group| !matches!(group.work, Work::Ended));
            if self.groups.is_empty() || self.groups.iter().any(|group| !matches!(group.work, Work::Barrier)) {
                return;
            }
            // They were not always in step: who is behind goes first.
            let (first, last) = self
                .groups
                .iter()
                .fold((u64::MAX, 0), |(first, last), group| (first.min(group.steps), last.max(group.steps)));
            if first == last {
                self.groups.truncate(1);
                self.groups[0] =
                    Group { warps: WarpSet::all(self.warps), work: Work::Delay, due: now, ..self.groups[0] };
                continue;
            }
            for group in self.groups.iter_mut().filter(|group| group.steps == first) {
                group.begin_next(plan, self.warps, now, cycle_ps, launch);
            }
        }
    }
}

impl Group {
    fn is_done(&self, now: Time) -> bool {
        let nearly = matches!(self.work, Work::Steady { left, turns, .. } if left <= NEARLY * turns);
        (self.due <= now || nearly) && !matches!(self.work, Work::Ended)
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

    /// Waits for the one of its warps that chance has kept back most.
    fn wait_for_slowest(&mut self, warps: u32, now: Time, cycle_ps: f64, launch: &mut Launch<'_>) {
        let count = self.warps.count(warps);
        let cycles = latest(count) * std::mem::take(&mut self.apart).sqrt();
        let mut states = [0.0; STATES];
        states[State::Barrier as usize] = f64::from(count);
        self.work = Work::Delay;
        self.due = now + Time((cycles * cycle_ps).round() as u64);
        launch.add(&states, cycles, (now, self.due));
    }

    /// Goes over to the next step.
    fn begin_next(&mut self, plan: &[Step], warps: u32, now: Time, cycle_ps: f64, launch: &mut Launch<'_>) {
        self.steps += 1;
        match self.cursor.next(plan) {
            None => self.work = Work::Ended,
            Some(Step::Delay { cycles, states, .. }) => {
                let share = f64::from(self.warps.count(warps)) / f64::from(warps);
                self.work = Work::Delay;
                self.due = now + Time((cycles * cycle_ps).round() as u64);
                launch.add(&states.0.map(|cycles| cycles as f64), share, (now, self.due));
            }
            Some(Step::Steady { program, turns, .. }) => {
                let rate = Rate { squad: 0, warps: self.warps, turns: 0.0, varies: 0.0, states: [0.0; STATES] };
                self.work = Work::Steady { program, turns, left: turns, rate };
                self.due = Time::MAX;
            }
            Some(Step::Back { .. }) => unreachable!("a cursor stops at steps that take time"),
        }
    }

    /// The warps of it that get on at this rate do so.
    fn gets_on(&mut self, at: &Rate, now: Time, cycle_ps: f64) {
        if let Work::Steady { left, rate, .. } = &mut self.work {
            *rate = *at;
            self.warps = at.warps;
            let due = now.0 as f64 + (*left / rate.turns * cycle_ps).ceil();
            self.due = Time(due as u64).min(Time::HORIZON);
        }
    }
}

/// By how many standard deviations the latest of so many independent arrivals is behind their mean, if each is normal: Harter
/// (1961), between doublings along a straight line.
fn latest(arrivals: u32) -> f64 {
    const DOUBLINGS: [f64; 7] = [0.0, 0.5642, 1.0294, 1.4236, 1.7660, 2.0697, 2.3437];
    let doublings = (arrivals.max(1).ilog2() as usize).min(DOUBLINGS.len() - 2);
    let beyond = f64::from(arrivals) / f64::from(1_u32 << doublings) - 1.0;
    DOUBLINGS[doublings] + (DOUBLINGS[doublings + 1] - DOUBLINGS[doublings]) * beyond.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_more_arrivals_is_later() {
        assert_eq!((latest(0), latest(1)), (0.0, 0.0));
        assert!((latest(8) - 1.4236).abs() < 1e-9 && (latest(32) - 2.0697).abs() < 1e-9);
        let all: Vec<f64> = (1..=64).map(latest).collect();
        assert!(all.is_sorted(), "{all:?}");
        assert!((latest(3) - 0.8463).abs() < 0.06, "as exactly known for three");
    }
}
