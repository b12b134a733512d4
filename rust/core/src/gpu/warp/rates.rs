//! The default mode: CTAs share an SM at rates that hold until the next one comes, ends, or goes over to other work.
//!
//! The rates of a set of residents are measured once, on an SM that is stepped cycle by cycle through a stretch of their
//! steady work, and remembered for all SMs of the run.

use std::collections::BTreeMap;

use super::core::Core;
use super::plan::{Steady, Step};
use crate::device::Device;
use crate::records::warps::{STATES, State, States};
use crate::workload::warps::MAX_DEPTH;

/// CTAs of an SM come so many cycles after each other when rates are measured, as when an empty device is filled.
const APART: u64 = 24;
/// Turns of each warp before measuring begins, and the most cycles until then.
const WARM_TURNS: u64 = 4;
const WARM_CYCLES: u64 = 8_000;
/// Turns of each warp that are measured, the fewest cycles, and the most.
const TURNS: u64 = 24;
const LEAST_CYCLES: u64 = 4_000;
const MOST_CYCLES: u64 = 32_000;
/// When latencies are longer than [`LEAST_CYCLES`], or no warp ends a turn, measuring goes on until each warp has made so many
/// turns, or one of them so many.
const FEW_TURNS: u64 = 6;
const MANY_TURNS: u64 = 24;
/// The most sets of residents that are measured for longer than [`LEAST_CYCLES`], and whose order of arrival is told apart.
const LONG: usize = 64;
const ORDERED: usize = 256;

/// Turns a cycle of a CTA that is not served beside the others.
const LEAST_RATE: f64 = 1e-9;

/// A CTA in steady work: its program, and the sub-partition of its first warp.
pub(super) type Key = (u32, u8);

/// How a CTA gets on beside the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// Turns a cycle.
    pub(super) turns: f64,
    /// Warps in each state, on average.
    pub(super) states: [f64; STATES],
}

/// The rates of all sets of residents that came up.
#[derive(Debug)]
pub(super) struct Rates {
    blank: Core,
    steady: Steady,
    known: BTreeMap<Vec<Key>, Vec<Rate>>,
}

impl Rates {
    pub(super) fn new(device: &Device, steady: Steady) -> Self {
        Self { blank: Core::new(device), steady, known: BTreeMap::new() }
    }

    pub(super) fn warps(&self, program: u32) -> u32 {
        self.steady.warps[program as usize]
    }

    /// The rates of `residents`, oldest first.
    pub(super) fn of(&mut self, residents: &[Key], rates: &mut Vec<Rate>) {
        rates.clear();
        if residents.is_empty() {
            return;
        }
        if let Some(known) = self.known.get(residents) {
            return rates.extend(known);
        }
        if self.known.len() < ORDERED {
            let most = if self.known.len() < LONG { MOST_CYCLES } else { LEAST_CYCLES };
            let found = self.measure(residents, most);
            rates.extend(&found);
            self.known.insert(residents.to_vec(), found);
            return;
        }
        // Very many sets: those that differ only in the order of arrival share their rates.
        let mut order: Vec<usize> = (0..residents.len()).collect();
        order.sort_by_key(|&at| (residents[at].0, at));
        let sorted: Vec<Key> = order.iter().map(|&at| (residents[at].0, 0)).collect();
        if !self.known.contains_key(&sorted) {
            let found = self.measure(&sorted, LEAST_CYCLES);
            self.known.insert(sorted.clone(), found);
        }
        rates.extend(&self.known[&sorted]);
        for (to, &at) in order.iter().enumerate() {
            rates[at] = self.known[&sorted][to];
        }
    }

    fn measure(&self, residents: &[Key], most: u64) -> Vec<Rate> {
        let code = &self.steady.code;
        let mut core = self.blank.clone();
        for (age, &(program, first)) in residents.iter().enumerate() {
            let warps = self.warps(program);
            core.add(code, age as u32, program, warps, usize::from(first), age as u64 * APART);
        }
        let begun = residents.len() as u64 * APART;
        while core.least_turns() < WARM_TURNS && core.now() < begun + WARM_CYCLES {
            core.run(code, core.now() + LEAST_CYCLES / 4);
        }
        let from = core.now();
        core.count_from_here();
        while core.now() < from + LEAST_CYCLES || (core.least_turns() < TURNS && core.now() < from + most) {
            core.run(code, core.now() + LEAST_CYCLES / 4);
        }
        let latency = residents.iter().map(|&(program, _)| self.steady.latency[program as usize]).max().unwrap_or(0);
        let nothing = || core.progress(1, &self.steady.turn).all(|(turns, _)| turns == 0.0);
        if latency > LEAST_CYCLES || nothing() {
            // Not longer than if all warps made their turns one after the other.
            let turn = |&(program, _): &Key| {
                f64::from(self.warps(program)) * (self.steady.alone[program as usize] + latency as f64)
            };
            let until = from + (FEW_TURNS as f64 * residents.iter().map(turn).sum::<f64>()) as u64;
            let step = (latency / 8).max(LEAST_CYCLES / 4);
            while core.least_turns() < FEW_TURNS && core.most_turns() < MANY_TURNS && core.now() < until {
                core.run(code, core.now() + step);
            }
        }
        let progress = core.progress(core.now() - from, &self.steady.turn);
        let rate = |((turns, states), &(program, _)): ((f64, States), &Key)| {
            let warps = f64::from(self.warps(program));
            // Who is not served at all waits for the end of another one, and not for ever.
            let turns = turns.max(LEAST_RATE);
            let issues = turns * warps * self.steady.turn[program as usize] as f64;
            Rate { turns, states: shares(states, issues, warps) }
        };
        progress.zip(residents).map(rate).collect()
    }
}

/// Warps in each state on average, when they issue so many instructions a cycle: what a stretch saw of the others, in
/// proportion.
fn shares(seen: States, issues: f64, warps: f64) -> [f64; STATES] {
    let selected = State::Selected as usize;
    let others = (seen.total() - seen.0[selected]).max(1) as f64;
    let mut shares = seen.0.map(|cycles| cycles as f64 / others * (warps - issues));
    shares[selected] = issues;
    if seen.total() == seen.0[selected] {
        shares[State::NotSelected as usize] = warps - issues;
    }
    shares
}

/// Where a CTA is in its steps.
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
