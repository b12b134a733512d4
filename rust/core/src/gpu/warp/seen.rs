//! What loads have seen of memory lately, and the programs whose loads take as long: what rates are measured on.
//!
//! Latencies are told apart in steps of an eighth. Rates are measured at the two steps around what was seen last, and taken
//! between them, so that a run measures few sets of residents and its times do not jump.

use std::collections::BTreeMap;

use super::plan::Steady;

/// From one step to the next.
pub(super) const RATIO: f64 = 1.125;
/// The first step in cycles, and how many there are: beyond the last one, latencies are in the millions.
const SHORTEST: f64 = 16.0;
const STEPS: usize = 128;
/// By so much of itself a latency leaves its step, before it counts as another one.
const SLACK: f64 = 0.03;
/// Loads over which latencies are averaged.
const AVERAGED: f64 = 64.0;
/// The half width of the law of latencies is told apart in tenths of the mean.
const WIDTHS: f64 = 10.0;

/// Of all accesses of all kernels.
#[derive(Debug)]
pub(super) struct Seen {
    accesses: Vec<Access>,
    /// The latency of each step.
    steps: Vec<f64>,
    variants: BTreeMap<(u32, Vec<Level>), u32>,
    /// What a load takes at least.
    pub(super) least: f64,
    /// How often a level has changed.
    pub(super) changes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Access {
    mean: f64,
    variance: f64,
    /// Loads so far, up to [`AVERAGED`].
    loads: f64,
    level: Level,
}

/// A law of latencies, roughly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Level {
    step: u8,
    /// Tenths of the mean.
    width: u8,
}

impl Seen {
    /// Loads through `accesses` accesses, none of which has seen anything yet: they count with `least` cycles.
    pub(super) fn new(accesses: usize, least: f64) -> Self {
        let mut steps = vec![SHORTEST];
        for i in 1..STEPS {
            steps.push(steps[i - 1] * RATIO);
        }
        let level = Level { step: step_of(&steps, least), width: 0 };
        let access = Access { mean: least, variance: 0.0, loads: 0.0, level };
        Self { accesses: vec![access; accesses], steps, variants: BTreeMap::new(), least, changes: 0 }
    }

    /// A load took so many cycles, with such a variance between its warps.
    pub(super) fn saw(&mut self, access: u32, cycles: f64, variance: f64) {
        let access = &mut self.accesses[access as usize];
        access.loads = (access.loads + 1.0).min(AVERAGED);
        access.mean += (cycles - access.mean) / access.loads;
        access.variance += (variance - access.variance) / access.loads;
        let Level { step, width } = access.level;
        let (from, to) = (self.steps[usize::from(step)], self.steps[usize::from(step) + 1]);
        if access.mean < from * (1.0 - SLACK) || access.mean > to * (1.0 + SLACK) {
            access.level.step = step_of(&self.steps, access.mean);
        }
        // The half width of a uniform law is the root of three variances.
        let tenths = (3.0 * access.variance).sqrt() / access.mean.max(1.0) * WIDTHS;
        if (tenths - f64::from(width)).abs() > 0.75 {
            access.level.width = (tenths + 0.5).min(WIDTHS) as u8;
        }
        self.changes += u64::from(access.level != Level { step, width });
    }

    /// What loads through an access took lately.
    pub(super) fn mean(&self, access: u32) -> f64 {
        self.accesses[access as usize].mean
    }

    /// By how much they differ from warp to warp: the variance, in square cycles.
    pub(super) fn variance(&self, access: u32) -> f64 {
        self.accesses[access as usize].variance
    }

    /// The latency of an access at its step.
    pub(super) fn lower(&self, access: u32) -> f64 {
        self.steps[usize::from(self.accesses[access as usize].level.step)]
    }

    /// The programs that stand for one as things are: at the step below what its loads see, and at the one above.
    pub(super) fn variants(&mut self, program: u32, steady: &mut Steady) -> [u32; 2] {
        let mut loads: Vec<u32> = steady.loads(program).collect();
        loads.sort_unstable();
        loads.dedup();
        if steady.asks[program as usize].is_empty() {
            return [program; 2];
        }
        let mut variant = |up: u8| {
            let level = |&access: &u32| {
                let Level { step, width } = self.accesses[access as usize].level;
                Level { step: step + up, width }
            };
            let levels: Vec<Level> = loads.iter().map(level).collect();
            *self.variants.entry((program, levels)).or_insert_with_key(|(_, levels)| {
                steady.with_laws(program, |access| {
                    let Level { step, width } = levels[loads.partition_point(|&load| load < access)];
                    let mean = self.steps[usize::from(step)];
                    (mean, mean * f64::from(width) / WIDTHS)
                })
            })
        };
        [variant(0), variant(1)]
    }
}

/// How far a latency that is `times` that of its step has come to the next one: 0 at the step, 1 at the next.
pub(super) fn beyond(times: f64) -> f64 {
    (times - 1.0) / (RATIO - 1.0)
}

/// The last step that is no longer than so many cycles, with room for one above.
fn step_of(steps: &[f64], cycles: f64) -> u8 {
    steps.partition_point(|&step| step <= cycles).clamp(1, STEPS - 1) as u8 - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_changes_its_step_when_it_has_left_it() {
        let mut seen = Seen::new(1, 287.0);
        let first = seen.lower(0);
        assert!((first..first * RATIO).contains(&287.0));
        seen.saw(0, first * RATIO * 1.02, 0.0);
        assert_eq!((seen.lower(0).to_bits(), seen.changes), (first.to_bits(), 0));
        // The mean of two is beyond the slack.
        seen.saw(0, first * RATIO * 1.1, 0.0);
        assert!((seen.lower(0) / first - RATIO).abs() < 1e-9);
        assert_eq!(seen.changes, 1);
    }

    #[test]
    fn latencies_of_any_length_have_a_step() {
        for cycles in [0.0, 1.0, 16.0, 1e6, 1e300] {
            let mut seen = Seen::new(1, 287.0);
            seen.saw(0, cycles, cycles);
            assert!(seen.lower(0) >= SHORTEST);
        }
    }
}
