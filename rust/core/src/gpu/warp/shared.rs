//! The default mode: the CTAs of an SM get on at shared rates, and something happens only when the set of residents changes.

use super::code::Compiler;
use super::plan::{Planner, Steady, Step};
use super::rates::{Cursor, Key, Rate, Rates};
use super::{Arrival, Ended, Launch, launch_of};
use crate::device::Device;
use crate::engine::Time;
use crate::gpu::sm::Place;
use crate::ids::{IdVec, KernelId, SmId};
use crate::records::State;
use crate::records::warps::STATES;
use crate::workload::Segment;

/// All SMs.
#[derive(Debug)]
pub(super) struct Shared {
    cycle_ps: f64,
    plans: Vec<Vec<Step>>,
    rates: Rates,
    sms: IdVec<SmId, Sm>,
    sub_partitions: usize,
    keys: Vec<Key>,
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
    cursor: Cursor,
    warps: u32,
    /// The sub-partition of its first warp.
    first: usize,
    work: Work,
    /// When this is done, as things are.
    due: Time,
}

/// What a CTA does.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Turns that are left of a steady program, and how it gets on.
    Steady { program: u32, left: f64, rate: Rate },
    /// It waits, whatever the others do.
    Delay,
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
            keys: Vec::new(),
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
        launch_of(launches, kernel).add(&states, 1.0);
        sm.residents.push(Resident {
            place,
            kernel,
            plan: program as usize,
            cursor: Cursor::default(),
            warps,
            first: sm.emptiest(self.sub_partitions),
            work: Work::Delay,
            due: now + startup,
        });
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
        let cycle_ps = self.cycle_ps;
        let sm = &mut self.sms[id];
        let plans = &self.plans;
        sm.residents.retain_mut(|resident| {
            while resident.due <= now {
                match resident.cursor.next(&plans[resident.plan]) {
                    None => {
                        let Some(ended) = &mut ended else {
                            resident.work = Work::Delay;
                            return true;
                        };
                        ended.push(Ended { place: resident.place, kernel: resident.kernel });
                        return false;
                    }
                    Some(Step::Delay { cycles, states }) => {
                        launch_of(launches, resident.kernel).did(&states);
                        resident.work = Work::Delay;
                        resident.due = now + Time((cycles * cycle_ps).round() as u64);
                    }
                    Some(Step::Steady { program, turns }) => {
                        let rate = Rate { turns: 0.0, states: [0.0; STATES] };
                        resident.work = Work::Steady { program, left: turns, rate };
                        resident.due = Time::MAX;
                    }
                    Some(Step::Back { .. }) => unreachable!("a cursor stops at steps that take time"),
                }
            }
            true
        });
        self.keys.clear();
        for resident in &sm.residents {
            if let Work::Steady { program, .. } = resident.work {
                self.keys.push((program, resident.first as u8));
            }
        }
        self.rates.of(&self.keys, &mut self.found);
        let mut rates = self.found.iter();
        sm.due = Time::MAX;
        for resident in &mut sm.residents {
            if let Work::Steady { left, rate, .. } = &mut resident.work
                && let Some(found) = rates.next()
            {
                *rate = *found;
                let cycles = *left / rate.turns;
                let due = now.0 as f64 + (cycles * cycle_ps).ceil().max(0.0);
                resident.due = Time(due as u64).min(Time::HORIZON);
            }
            sm.due = sm.due.min(resident.due);
        }
    }
}

impl Sm {
    /// Enters what has been done up to `now`.
    fn enter(&mut self, now: Time, cycle_ps: f64, launches: &mut IdVec<KernelId, Option<Launch<'_>>>) {
        let cycles = now.since(self.since).0 as f64 / cycle_ps;
        self.since = now;
        for resident in &mut self.residents {
            if let Work::Steady { left, rate, .. } = &mut resident.work {
                *left = (*left - rate.turns * cycles).max(0.0);
                launch_of(launches, resident.kernel).add(&rate.states, cycles);
            }
        }
    }

    /// The sub-partition to which the first warp of the next CTA goes: the one with the fewest.
    fn emptiest(&self, sub_partitions: usize) -> usize {
        let count = |part: usize| -> u32 {
            let of = |resident: &Resident| {
                let offset = (part + sub_partitions - resident.first) % sub_partitions;
                (resident.warps as usize + sub_partitions - 1 - offset) / sub_partitions
            };
            self.residents.iter().map(|resident| of(resident) as u32).sum()
        };
        (0..sub_partitions).min_by_key(|&part| count(part)).unwrap_or(0)
    }
}
