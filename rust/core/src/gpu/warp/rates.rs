//! The default mode: CTAs share an SM at rates that hold until the next one comes, ends, or goes over to other work.
//!
//! The rates of a set of residents are measured once ([`measure`](super::measure)) and remembered for all SMs of the run.

use std::collections::BTreeMap;

use super::core::Core;
use super::measure::{LEAST_CYCLES, measure};
use super::plan::{Steady, Step};
use super::squad::{Squad, WarpSet};
use crate::device::Device;
use crate::records::warps::{STATES, State};
use crate::workload::warps::MAX_DEPTH;

/// The most cycles for which a set is measured whose warps take long for their turns.
const MOST_CYCLES: u64 = 32_000;
/// Once so many cycles of warps have been stepped, sets are measured for no longer than necessary; and once so many, they are
/// no more told apart by the order of arrival and by which warps of a CTA have ended.
const LONG: u64 = 64_000_000;
const ORDERED: u64 = 128_000_000;

/// How some warps of a squad get on beside the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// The place of the squad among those that were asked for.
    pub(super) squad: usize,
    pub(super) warps: WarpSet,
    /// Turns a cycle.
    pub(super) turns: f64,
    /// By how much the time of a turn varies from warp to warp by chance: its variance, in square cycles.
    pub(super) varies: f64,
    /// Warps in each state, on average.
    pub(super) states: [f64; STATES],
}

impl Rate {
    /// The same with so many turns a cycle, when what a turn takes more, or less, is spent in one state.
    pub(super) fn stretched(&self, turns: f64, warps: f64, waits: State) -> Self {
        let (selected, waits) = (State::Selected as usize, waits as usize);
        // Warp cycles of a turn, then and now.
        let mut states = self.states.map(|state| state / self.turns);
        let longer = warps * (1.0 / turns - 1.0 / self.turns);
        states[waits] = (states[waits] + longer).max(0.0);
        let others: f64 = states.iter().sum::<f64>() - states[selected];
        let scale = if others > 0.0 { (warps / turns - states[selected]).max(0.0) / others } else { 0.0 };
        for (i, state) in states.iter_mut().enumerate() {
            *state *= turns * if i == selected { 1.0 } else { scale };
        }
        Self { turns, states, ..*self }
    }
}

/// The rates of all sets of residents that came up.
#[derive(Debug)]
pub(super) struct Rates {
    blank: Core,
    pub(super) steady: Steady,
    /// Cycles of warps that have been stepped.
    stepped: u64,
    known: BTreeMap<Vec<Squad>, Vec<Rate>>,
    /// The same for sets that are told apart no further than by the programs of their CTAs.
    coarse: BTreeMap<Vec<Squad>, Vec<Rate>>,
}

impl Rates {
    pub(super) fn new(device: &Device, steady: Steady) -> Self {
        Self { blank: Core::new(device), steady, stepped: 0, known: BTreeMap::new(), coarse: BTreeMap::new() }
    }

    /// Whether so many sets came up that no more are told apart: then warps of a CTA should get on together.
    pub(super) fn is_full(&self) -> bool {
        self.stepped >= ORDERED
    }

    /// The rates of `squads`, those of the oldest CTA first, in that order; there may be several for one squad.
    pub(super) fn of(&mut self, squads: &[Squad], rates: &mut Vec<Rate>) {
        rates.clear();
        if squads.is_empty() {
            return;
        }
        if let Some(known) = self.known.get(squads) {
            return rates.extend(known);
        }
        if !self.is_full() {
            let most = if self.stepped < LONG { MOST_CYCLES } else { LEAST_CYCLES };
            self.stepped += measure(&self.blank, &self.steady, squads, most, rates);
            self.known.insert(squads.to_vec(), rates.clone());
            return;
        }
        self.coarsely(squads, rates);
    }

    /// Very many sets: those share their rates that have as many warps in the same programs.
    fn coarsely(&mut self, squads: &[Squad], rates: &mut Vec<Rate>) {
        let warps = |squad: &Squad| squad.warps.count(self.steady.warps[squad.program as usize]);
        let mut order: Vec<usize> = (0..squads.len()).collect();
        order.sort_by_key(|&at| (squads[at].program, warps(&squads[at]), at));
        let sorted = order.iter().enumerate().map(|(cta, &at)| Squad {
            cta: cta as u32,
            first: 0,
            warps: WarpSet::all(warps(&squads[at])),
            ..squads[at]
        });
        let sorted: Vec<Squad> = sorted.collect();
        if !self.coarse.contains_key(&sorted) {
            let mut found = Vec::new();
            measure(&self.blank, &self.steady, &sorted, LEAST_CYCLES, &mut found);
            let whole = found.chunk_by(|one, next| one.squad == next.squad).map(|parts| self.whole(&sorted, parts));
            self.coarse.insert(sorted.clone(), whole.collect());
        }
        let of = |(to, &at): (usize, &usize)| Rate { squad: at, warps: squads[at].warps, ..self.coarse[&sorted][to] };
        rates.extend(order.iter().enumerate().map(of));
        rates.sort_by_key(|rate| rate.squad);
    }

    /// One rate for all warps of a squad, of those of its parts.
    fn whole(&self, squads: &[Squad], parts: &[Rate]) -> Rate {
        let warps = self.steady.warps[squads[parts[0].squad].program as usize];
        let mut whole = Rate { turns: 0.0, varies: 0.0, states: [0.0; STATES], ..parts[0] };
        let mut count = 0.0;
        for part in parts {
            let own = f64::from(part.warps.count(warps));
            count += own;
            whole.turns += own * part.turns;
            whole.varies += own * part.varies;
            whole.states.iter_mut().zip(part.states).for_each(|(sum, state)| *sum += state);
        }
        whole.turns /= count;
        whole.varies /= count;
        whole
    }
}

/// Where a warp is in its steps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    at: usize,
    loops: [u64; MAX_DEPTH],
}

impl Cursor {
    /// The next step, which takes time; none at the end.
    pub(super) fn next(&mut self, steps: &[Step]) -> Option<Step> {
        loop {
            match *steps.get(self.at)? {
                Step::Back { to, times, depth } => {
                    self.loops[depth] += 1;
                    if self.loops[depth] < times {
                        self.at = to as usize;
                    } else {
                        self.loops[depth] = 0;
                        self.at += 1;
                    }
                }
                step => {
                    self.at += 1;
                    return Some(step);
                }
            }
        }
    }
}
