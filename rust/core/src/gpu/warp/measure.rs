//! How warps get on beside each other: a stretch of their steady work on an SM that is stepped cycle by cycle.

use super::core::Core;
use super::plan::Steady;
use super::rates::Rate;
use super::squad::{Squad, WarpSet};
use super::walk::Warp;
use crate::records::warps::{STATES, State, States};

/// CTAs of an SM come so many cycles after each other when rates are measured, as when an empty device is filled.
const APART: u64 = 24;
/// Turns of each warp before measuring begins, and the most cycles until then.
const WARM_TURNS: u64 = 4;
const WARM_CYCLES: u64 = 8_000;
/// Turns of a warp that are measured, on average, and the fewest cycles: more where fewer warps have to be stepped.
const TURNS: u64 = 36;
pub(super) const LEAST_CYCLES: u64 = 6_000;
const WARP_CYCLES: u64 = 64 * LEAST_CYCLES;
/// The most cycles are the caller's to say, but no fewer than so many turns take a lone warp: of fewer, a rate and what warps
/// wait for would depend on where in its turn each of them is when measuring begins.
const WHOLE_TURNS: f64 = 6.0;
/// How often is looked whether a stretch is long enough.
const STEP: u64 = LEAST_CYCLES / 4;
/// When latencies are longer than [`LEAST_CYCLES`], or no warp ends a turn, measuring goes on until each warp has made so many
/// turns, or one of them so many.
const FEW_TURNS: u64 = 6;
const MANY_TURNS: u64 = 24;

/// Turns a cycle of a warp that is not served beside the others.
const LEAST_RATE: f64 = 1e-9;

/// Warps of one CTA get on together if the fastest is not faster than the slowest by more than this share, or by so many
/// standard errors of what was measured.
const ALIKE: f64 = 0.1;
const ERRORS: f64 = 5.0;
/// The same share where latencies change in a run, and with them rates.
const ROUGHLY_ALIKE: f64 = 0.25;

/// Measures how `squads` get on beside each other, in up to `most` cycles if no latency is longer: the cycles of warps that
/// this took.
pub(super) fn measure(blank: &Core, steady: &Steady, squads: &[Squad], most: u64, rates: &mut Vec<Rate>) -> u64 {
    let code = &steady.code;
    let mut core = blank.clone();
    let mut begun = 0;
    for ctas in squads.chunk_by(|one, next| one.cta == next.cta) {
        let of = |squad: &Squad| {
            let program = squad.program;
            squad.warps.of(steady.warps[program as usize]).map(move |warp| (warp, program))
        };
        let mut warps: Vec<(u32, u32)> = ctas.iter().flat_map(of).collect();
        warps.sort_unstable();
        core.add(code, ctas[0].cta, warps.into_iter(), usize::from(ctas[0].first), begun);
        begun += APART;
    }
    let least = |core: &Core| core.warps().map(|warp| warp.turns).min().unwrap_or(0);
    let ahead = |core: &mut Core, cycles: u64| {
        let ended = core.run(code, core.now() + cycles);
        debug_assert!(ended.is_none(), "steady programs are endless");
    };
    while least(&core) < WARM_TURNS && core.now() < begun + WARM_CYCLES {
        ahead(&mut core, STEP);
    }
    let from = core.now();
    core.count_from_here();
    let alone = |squad: &Squad| steady.alone[squad.program as usize] + steady.latency[squad.program as usize] as f64;
    let alone = squads.iter().map(alone).fold(0.0, f64::max);
    let most = most.max((WHOLE_TURNS * alone) as u64);
    let few = |core: &Core| {
        let (turns, warps) = core.warps().fold((0, 0), |(turns, warps), warp| (turns + warp.turns, warps + 1));
        turns < TURNS * warps
    };
    // Instructions of each warp up to some times, to see in the middle of the stretch what it had done by then.
    let mut seen: Vec<(u64, Vec<u64>)> = Vec::new();
    let look = |core: &Core, seen: &mut Vec<(u64, Vec<u64>)>| {
        seen.push((core.now() - from, core.warps().map(|warp| warp.issued).collect()));
    };
    let least_cycles = (WARP_CYCLES / core.warps().count() as u64).clamp(LEAST_CYCLES, 8 * most);
    while core.now() < from + least_cycles || (few(&core) && core.now() < from + most) {
        ahead(&mut core, STEP);
        look(&core, &mut seen);
    }
    let latency = squads.iter().map(|squad| steady.latency[squad.program as usize]).max().unwrap_or(0);
    let nothing = |core: &Core| core.warps().all(|warp| warp.issued == 0);
    if latency > LEAST_CYCLES || nothing(&core) {
        // Not longer than if all warps made their turns one after the other.
        let turn = |squad: &Squad| {
            let program = squad.program as usize;
            f64::from(squad.warps.count(steady.warps[program])) * (steady.alone[program] + latency as f64)
        };
        let until = from + (FEW_TURNS as f64 * squads.iter().map(turn).sum::<f64>()) as u64;
        let most_turns = |core: &Core| core.warps().map(|warp| warp.turns).max().unwrap_or(0);
        while least(&core) < FEW_TURNS && most_turns(&core) < MANY_TURNS && core.now() < until {
            ahead(&mut core, (latency / 8).max(STEP));
            look(&core, &mut seen);
        }
    }
    let stretch = Stretch {
        core: &core,
        steady,
        elapsed: core.now() - from,
        states: core.states(code).collect(),
        middle: &seen[seen.len().div_ceil(2) - 1],
    };
    let mut warps: Vec<(usize, &Warp)> = core.warps().enumerate().collect();
    for (at, squad) in squads.iter().enumerate() {
        let mut own: Vec<(usize, &Warp)> = Vec::new();
        // Warps come CTA by CTA, as squads do.
        warps.retain(|&(place, warp)| {
            let its = warp.id.cta == squad.cta && squad.warps.contains(warp.id.warp);
            if its {
                own.push((place, warp));
            }
            !its
        });
        stretch.rates(at, squad.program as usize, &own, rates);
    }
    core.now() * core.warps().count() as u64
}

/// What was measured.
struct Stretch<'a> {
    core: &'a Core,
    steady: &'a Steady,
    elapsed: u64,
    /// What each warp did, up to the end.
    states: Vec<States>,
    /// When and what each warp had issued about half way.
    middle: &'a (u64, Vec<u64>),
}

impl Stretch<'_> {
    /// The rates of a squad's warps: one for those that get on alike.
    fn rates(&self, at: usize, program: usize, warps: &[(usize, &Warp)], rates: &mut Vec<Rate>) {
        let turn = self.steady.turn[program];
        let mut alike = if self.steady.together[program] { f64::INFINITY } else { self.alike(warps) };
        if self.steady.stands_in[program] {
            alike = alike.max(ROUGHLY_ALIKE);
        }
        let mut by_rate: Vec<(f64, &(usize, &Warp))> =
            warps.iter().map(|own| (own.1.rate(self.core.now(), self.elapsed, turn), own)).collect();
        by_rate.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut rest = by_rate.as_slice();
        while let [(slowest, _), ..] = rest {
            // Who is not served at all waits for the end of another one, and not for ever.
            let fastest = slowest.max(LEAST_RATE) * (1.0 + alike);
            let (same, others) = rest.split_at(rest.partition_point(|(rate, _)| *rate <= fastest));
            rest = others;
            let count = same.len() as f64;
            let turns = (same.iter().map(|(rate, _)| rate).sum::<f64>() / count).max(LEAST_RATE);
            let (mut set, mut states) = (WarpSet::default(), States::default());
            for &(_, &(place, warp)) in same {
                set.insert(warp.id.warp);
                states.add(&self.states[place]);
            }
            let varies = self.varies(same, turns, &states);
            let states = shares(states, turns * count * turn as f64, count);
            rates.push(Rate { squad: at, warps: set, turns, varies, states });
        }
    }

    /// The variance of the time of a turn, if these warps differ by chance. Only loads take by chance more or less; what a warp
    /// loses to others it makes up for when they have ended.
    fn varies(&self, warps: &[(f64, &(usize, &Warp))], mean: f64, states: &States) -> f64 {
        if warps.len() < 2 || mean <= LEAST_RATE || states.0[State::LongScoreboard as usize] == 0 {
            return 0.0;
        }
        let squares = warps.iter().map(|(rate, _)| (rate - mean).powi(2)).sum::<f64>();
        let share = squares / (warps.len() - 1) as f64 / (mean * mean);
        // The mean of so many turns varies by as much less.
        let others = [State::NotSelected, State::MathPipeThrottle, State::MioThrottle];
        let of_others = others.iter().map(|&state| states.0[state as usize]).sum::<u64>();
        let own = 1.0 - of_others as f64 / states.total().max(1) as f64;
        share * own.powi(2) * (mean * self.elapsed as f64) / (mean * mean)
    }

    /// By how much warps that are treated alike may differ: what differs between the two halves of the stretch is chance.
    fn alike(&self, warps: &[(usize, &Warp)]) -> f64 {
        let (until, middle) = self.middle;
        let (before, after) = (*until as f64, (self.elapsed - until) as f64);
        if after == 0.0 {
            return ALIKE;
        }
        let difference = |&(place, warp): &(usize, &Warp)| {
            let (first, all) = (middle[place] as f64, warp.issued as f64);
            let (one, other) = (first / before, (all - first) / after);
            if one + other > 0.0 { ((one - other) / (one + other)).powi(2) } else { 0.0 }
        };
        let error = (warps.iter().map(difference).sum::<f64>() / warps.len() as f64).sqrt();
        ALIKE.max(ERRORS * error)
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
