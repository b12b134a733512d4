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
const MOST_CYCLES: u64 = 48_000;
/// Measuring steps no more cycles of warps than half of what stepping the run would take, within these limits; once half of them
/// are used up, sets are measured for no longer than necessary. When they are all used up, runs whose warps would take no more
/// than the least of them, if each were alone, are stepped from the beginning. Longer ones, and those that ask memory, tell sets
/// apart no more by the order of arrival, by which warps of a CTA have ended, and by small differences in how many CTAs do the
/// same.
const LEAST_MEASURED: u64 = 64_000_000;
const MOST_MEASURED: u64 = 128_000_000;

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
    /// How many may be to measure sets that are told apart.
    most: u64,
    /// Whether all warps of the run have so little work that they had better be stepped when that does not do.
    small: bool,
    known: BTreeMap<Vec<Squad>, Vec<Rate>>,
    /// The same for sets that are told apart no further than by the programs of their CTAs.
    coarse: BTreeMap<Vec<Squad>, Vec<Rate>>,
}

impl Rates {
    /// For a run whose warps have so many cycles of work in all.
    pub(super) fn new(device: &Device, steady: Steady, work: f64) -> Self {
        let most = ((work / 2.0) as u64).clamp(LEAST_MEASURED, MOST_MEASURED);
        let small = work <= LEAST_MEASURED as f64 && !steady.asks_memory();
        let blank = Core::new(device);
        Self { blank, steady, stepped: 0, most, small, known: BTreeMap::new(), coarse: BTreeMap::new() }
    }

    /// Whether so many sets came up that no more are told apart: then warps of a CTA should get on together.
    pub(super) fn is_full(&self) -> bool {
        self.stepped >= self.most
    }

    /// Whether that is so in a run that had better be stepped.
    pub(super) fn is_in_vain(&self) -> bool {
        self.small && self.is_full()
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
            let most = if self.stepped < self.most / 2 { MOST_CYCLES } else { LEAST_CYCLES };
            self.stepped += measure(&self.blank, &self.steady, squads, most, rates);
            self.known.insert(squads.to_vec(), rates.clone());
            return;
        }
        self.coarsely(squads, rates);
    }

    /// Very many sets: those share their rates that have about as many CTAs with as many warps in the same programs.
    fn coarsely(&mut self, squads: &[Squad], rates: &mut Vec<Rate>) {
        let warps = |squad: &Squad| squad.warps.count(self.steady.warps[squad.program as usize]);
        let kind = |&at: &usize| (squads[at].program, warps(&squads[at]));
        let mut order: Vec<usize> = (0..squads.len()).collect();
        order.sort_by_key(|at| (kind(at), *at));
        // They are dealt out to the sub-partitions as if all had come one after the other.
        let (mut standing, mut next) = (Vec::new(), 0);
        for alike in order.chunk_by(|one, other| kind(one) == kind(other)) {
            let (program, count) = kind(&alike[0]);
            for _ in 0..about(alike.len()) {
                let (cta, first) = (standing.len() as u32, next as u8);
                standing.push(Squad { cta, first, program, warps: WarpSet::all(count) });
                next = (next + count) % self.blank.sub_partitions();
            }
        }
        if !self.coarse.contains_key(&standing) {
            let mut found = Vec::new();
            measure(&self.blank, &self.steady, &standing, LEAST_CYCLES, &mut found);
            let whole = found.chunk_by(|one, next| one.squad == next.squad).map(|parts| self.whole(&standing, parts));
            self.coarse.insert(standing.clone(), whole.collect());
        }
        let found = &self.coarse[&standing];
        let mut from = 0;
        for alike in order.chunk_by(|one, other| kind(one) == kind(other)) {
            let count = about(alike.len());
            let of = |(i, &at)| Rate { squad: at, warps: squads[at].warps, ..found[from + i * count / alike.len()] };
            rates.extend(alike.iter().enumerate().map(of));
            from += count;
        }
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

/// What stands for a number of CTAs: the nearest one that is a power of two, or one and a half of it.
fn about(count: usize) -> usize {
    let power = 1 << count.ilog2();
    let between = power * 3 / 2;
    let (below, above) = if count < between { (power, between) } else { (between, 2 * power) };
    if count * count < below * above { below } else { above }
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

#[cfg(test)]
mod tests {
    use super::super::code::Compiler;
    use super::super::plan::Planner;
    use super::*;
    use crate::device::catalogue;
    use crate::workload::{Pipe, Segment};

    /// Turns a cycle of all warps of so many CTAs beside each other, told apart by their order or not.
    fn turns(ctas: u32, warps: u32, most: u64) -> f64 {
        let device = catalogue::device("h200").expect("the catalogue has it");
        let mut steady = Steady::default();
        let busy = Segment::Arithmetic { instructions: 60, latency_cycles: None, chains: 4, pipe: Pipe::Fma };
        let program = [Segment::Loop { count: 1_000, body: vec![busy], unrolled: false }];
        Planner::new(&device, Compiler::new(&device, 1, (0, 0), &[]), warps, &mut steady).plan(&program);
        let squad = |cta| Squad { cta, first: (cta * warps % 4) as u8, program: 0, warps: WarpSet::all(warps) };
        let squads: Vec<Squad> = (0..ctas).map(squad).collect();
        let mut found = Vec::new();
        Rates { most, ..Rates::new(&device, steady, 0.0) }.of(&squads, &mut found);
        found.iter().map(|rate| rate.turns * f64::from(rate.warps.count(warps))).sum()
    }

    #[test]
    fn small_ctas_that_are_no_more_told_apart_share_all_sub_partitions() {
        for (ctas, warps) in [(4, 1), (8, 1), (12, 1), (4, 2), (4, 3)] {
            let [apart, alike] = [u64::MAX, 0].map(|most| turns(ctas, warps, most));
            assert!((alike / apart - 1.0).abs() < 0.1, "{alike}, {apart} told apart: {ctas} CTAs of {warps}");
        }
    }

    #[test]
    fn numbers_that_stand_for_others_are_within_a_quarter_of_them() {
        assert_eq!([1, 2, 3, 4, 5, 6, 7, 9, 10, 13, 32].map(about), [1, 2, 3, 4, 6, 6, 8, 8, 12, 12, 32]);
        for count in 1..2_000 {
            let ratio = about(count) as f64 / count as f64;
            assert!((0.8..1.25).contains(&ratio), "{} for {count}", about(count));
        }
    }
}
