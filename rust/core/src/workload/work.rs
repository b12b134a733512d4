//! What a CTA does, as far as its time goes.

use serde::{Deserialize, Serialize};

use super::access::Access;
use super::streaming::Streaming;
use super::tiles::Tiles;
use super::warps::Warps;
use crate::error::{Error, Result};

/// A span of time in the unit in which its owner thinks: nanoseconds, or cycles of the SM clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// Nanoseconds.
    Ns(f64),
    /// Cycles of the SM clock.
    Cycles(f64),
}

impl Default for Span {
    /// No time.
    fn default() -> Self {
        Self::Ns(0.0)
    }
}

impl Span {
    /// In picoseconds, given the picoseconds of a cycle.
    pub fn ps(self, cycle_ps: f64) -> f64 {
        match self {
            Self::Ns(ns) => ns * 1e3,
            Self::Cycles(cycles) => cycles * cycle_ps,
        }
    }

    /// Without its unit.
    fn number(self) -> f64 {
        let (Self::Ns(value) | Self::Cycles(value)) = self;
        value
    }

    pub(crate) fn validate(self, field: &str) -> Result<()> {
        check_span(field, self.number())
    }
}

/// The longest duration, in nanoseconds: 50 days.
pub(crate) const LONGEST: f64 = 4.32e15;

/// Cycles are at most as long as nanoseconds on any clock over 1 GHz; the bound only keeps sums from overflowing.
fn check_span(field: &str, value: f64) -> Result<()> {
    if (0.0..=LONGEST).contains(&value) {
        return Ok(());
    }
    Err(Error::invalid(field, value, "a duration is a number from 0 to 4.32e15 (50 days)"))
}

/// How long each CTA (or task) takes, from its first instruction to its last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Duration {
    /// All the same.
    Constant(Span),
    /// Uniform from `low` to `high`.
    Uniform {
        /// The shortest.
        low: Span,
        /// The longest.
        high: Span,
    },
    /// Normal, with negative draws set to zero.
    Normal {
        /// The mean, before negative draws are set to zero.
        mean: Span,
        /// The standard deviation, likewise.
        std: Span,
    },
    /// Log-normal, given by the mean and the coefficient of variation of the durations themselves.
    LogNormal {
        /// The mean.
        mean: Span,
        /// Standard deviation over mean.
        cv: f64,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean: Span,
    },
    /// One of two values.
    Bimodal {
        /// The one.
        low: Span,
        /// The other.
        high: Span,
        /// How often the other.
        high_share: f64,
    },
    /// A list with one value a CTA (or task), in the order of their ids.
    PerCta {
        /// Which of the program's number lists.
        array: usize,
        /// What one unit of the list is; `{"ns": 1.0}` or `{"cycles": 1.0}`, usually.
        unit: Span,
    },
}

impl Duration {
    pub(crate) fn validate(&self, count: u64, arrays: &[usize]) -> Result<()> {
        match *self {
            Self::Constant(span) => span.validate("constant"),
            Self::Uniform { low, high } => {
                low.validate("uniform.low")?;
                high.validate("uniform.high")?;
                if low.ps(500.0) > high.ps(500.0) {
                    let why = "the shortest is longer than the longest";
                    return Err(Error::invalid("uniform.low", low.number(), why));
                }
                Ok(())
            }
            Self::Normal { mean, std } => {
                mean.validate("normal.mean")?;
                std.validate("normal.std")
            }
            Self::LogNormal { mean, cv } => {
                mean.validate("log_normal.mean")?;
                if !(0.0..=100.0).contains(&cv) {
                    let why = "a coefficient of variation lies from 0 to 100";
                    return Err(Error::invalid("log_normal.cv", cv, why));
                }
                Ok(())
            }
            Self::Exponential { mean } => mean.validate("exponential.mean"),
            Self::Bimodal { low, high, high_share } => {
                low.validate("bimodal.low")?;
                high.validate("bimodal.high")?;
                if !(0.0..=1.0).contains(&high_share) {
                    let why = "a share lies from 0 to 1";
                    return Err(Error::invalid("bimodal.high_share", high_share, why));
                }
                Ok(())
            }
            Self::PerCta { array, unit } => {
                unit.validate("per_cta.unit")?;
                match arrays.get(array) {
                    None => Err(Error::invalid("per_cta.array", array, "no such list of numbers")),
                    Some(&len) if len as u64 != count => Err(Error::invalid(
                        "per_cta.array",
                        format!("a list of {len} values"),
                        format!("one value a CTA is needed, {count} in all"),
                    )),
                    Some(_) => Ok(()),
                }
            }
        }
    }
}

/// How a persistent kernel's CTAs come by their tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tasks {
    /// CTA `i` of `n` takes tasks `i`, `i + n`, `i + 2n` ...
    Static,
    /// Each CTA takes the next task from an atomic counter in global memory.
    Atomic,
}

/// Whose flags a CTA waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Needs {
    /// CTA `i` waits for CTA `i - distance`, if there is one.
    Previous {
        /// How far back, at least 1.
        distance: u64,
    },
    /// Each list has one value a CTA: the number of the CTA that it waits for, or -1.
    Lists {
        /// Which of the program's number lists.
        arrays: Vec<usize>,
    },
}

/// What the CTAs of a kernel do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Work {
    /// Each CTA runs for its own time.
    Duration(Duration),
    /// A persistent kernel: its CTAs work off a list of tasks.
    Persistent {
        /// How many tasks.
        tasks: u64,
        /// How long each takes.
        duration: Duration,
        /// How a CTA gets its next one.
        schedule: Tasks,
        /// What each task costs beside its duration: the loop and its barriers (the counter's answer comes on top).
        #[serde(default)]
        overhead: Span,
        /// What each CTA does before its first task.
        #[serde(default)]
        startup: Span,
    },
    /// CTAs that wait for others of their grid: look-back scans, semaphores, spin-waits on flags.
    Chain {
        /// What a CTA does before it waits.
        before: Duration,
        /// What it does afterwards; at the end of it, its flag is set.
        after: Duration,
        /// Whose flags it waits for.
        needs: Needs,
    },
    /// Rounds of work with a grid-wide barrier behind each; needs a cooperative launch.
    GridSync {
        /// How many rounds.
        rounds: u32,
        /// How long a CTA works in each.
        duration: Duration,
    },
    /// Each CTA reads or writes memory: its time follows from L2, DRAM and everybody else's accesses.
    Access(Access),
    /// Each CTA computes tiles of a matrix product: its time follows from the tensor cores too.
    Tiles(Tiles),
    /// The grid streams through arrays: elementwise operations, reductions, copies, fills.
    Streaming(Streaming),
    /// The warps of each CTA run a program: its time follows from how they share the SM.
    Warps(Warps),
}

/// The duration of what takes no time beside its accesses and instructions.
static NONE: Duration = Duration::Constant(Span::Ns(0.0));

impl Work {
    pub(crate) fn validate(&self, ctas: u64, shared_memory: u32, arrays: &[usize]) -> Result<()> {
        match self {
            Self::Duration(duration) => duration.validate(ctas, arrays).map_err(|e| e.within("duration")),
            Self::Persistent { tasks, duration, overhead, startup, .. } => {
                overhead.validate("persistent.overhead")?;
                startup.validate("persistent.startup")?;
                if *tasks > u64::from(u32::MAX) {
                    return Err(Error::invalid("persistent.tasks", *tasks, "at most 4294967295 tasks"));
                }
                duration.validate(*tasks, arrays).map_err(|e| e.within("persistent.duration"))
            }
            Self::Chain { before, after, needs } => {
                before.validate(ctas, arrays).map_err(|e| e.within("chain.before"))?;
                after.validate(ctas, arrays).map_err(|e| e.within("chain.after"))?;
                match needs {
                    Needs::Previous { distance: 0 } => {
                        let why = "CTAs that wait for themselves wait for ever";
                        Err(Error::invalid("chain.needs.previous.distance", 0, why))
                    }
                    Needs::Previous { .. } => Ok(()),
                    Needs::Lists { arrays: lists } => lists.iter().enumerate().try_for_each(|(i, &list)| {
                        let field = format!("chain.needs.lists.arrays[{i}]");
                        match arrays.get(list) {
                            None => Err(Error::invalid(field, list, "no such list of numbers")),
                            Some(&len) if len as u64 != ctas => Err(Error::invalid(
                                field,
                                format!("a list of {len} values"),
                                format!("one value a CTA is needed, {ctas} in all"),
                            )),
                            Some(_) => Ok(()),
                        }
                    }),
                }
            }
            Self::GridSync { duration, .. } => {
                duration.validate(ctas, arrays).map_err(|e| e.within("grid_sync.duration"))
            }
            Self::Access(access) => access.validate(ctas, arrays).map_err(|e| e.within("access")),
            Self::Tiles(tiles) => tiles.validate(ctas, shared_memory, arrays).map_err(|e| e.within("tiles")),
            Self::Streaming(stream) => stream.validate(ctas).map_err(|e| e.within("streaming")),
            Self::Warps(warps) => warps.validate(ctas, arrays).map_err(|e| e.within("warps")),
        }
    }
}

impl Work {
    /// Whether something is kept of each CTA before the first one runs: its share of the tasks, or whom it waits for.
    pub(super) const fn keeps_each_cta(&self) -> bool {
        matches!(self, Self::Persistent { .. } | Self::Chain { .. })
    }

    /// The durations of which it is made.
    pub(crate) fn durations(&self) -> impl Iterator<Item = &Duration> {
        let (first, second) = match self {
            Self::Duration(duration) | Self::Persistent { duration, .. } | Self::GridSync { duration, .. } => {
                (duration, None)
            }
            Self::Chain { before, after, .. } => (before, Some(after)),
            Self::Access(_) | Self::Tiles(_) | Self::Streaming(_) | Self::Warps(_) => (&NONE, None),
        };
        std::iter::once(first).chain(second)
    }

    pub(crate) fn validate_lists(&self, ctas: u64, arrays: &[&[f64]]) -> Result<()> {
        for duration in self.durations() {
            let Duration::PerCta { array, unit } = *duration else { continue };
            // One cycle is at most a few nanoseconds on any clock; the bound only keeps sums from overflowing.
            let (Span::Ns(unit) | Span::Cycles(unit)) = unit;
            let fits = |value: &f64| (0.0..=LONGEST).contains(&(value * unit));
            if let Some(at) = arrays[array].iter().position(|value| !fits(value)) {
                return Err(Error::invalid(
                    format!("duration.per_cta[{at}]"),
                    arrays[array][at],
                    "a duration is a number from 0 to 4.32e15 (50 days in nanoseconds)",
                ));
            }
        }
        match self {
            Self::Chain { needs: Needs::Lists { arrays: lists }, .. } => check_needs(ctas, lists, arrays),
            Self::Access(access) => access.validate_lists(arrays).map_err(|e| e.within("access")),
            Self::Tiles(tiles) => tiles.validate_lists(arrays),
            Self::Warps(warps) => warps.validate_lists(arrays),
            _ => Ok(()),
        }
    }
}

/// Every CTA that is waited for exists, and no CTA waits for itself by way of others.
fn check_needs(ctas: u64, lists: &[usize], arrays: &[&[f64]]) -> Result<()> {
    for (l, &list) in lists.iter().enumerate() {
        for (cta, &needed) in arrays[list].iter().enumerate() {
            if needed.fract() != 0.0 || !(-1.0..ctas as f64).contains(&needed) {
                return Err(Error::invalid(
                    format!("chain.needs[{l}][{cta}]"),
                    needed,
                    format!("a CTA waits for one of CTAs 0 to {}, or for none (-1)", ctas - 1),
                ));
            }
        }
    }
    // Depth first, without recursion: 1 on the way, 2 done.
    let mut state = vec![0_u8; ctas as usize];
    for root in 0..ctas as usize {
        let mut path = vec![(root, 0)];
        while let Some(&mut (cta, ref mut list)) = path.last_mut() {
            state[cta] = 1;
            let Some(&array) = lists.get(*list) else {
                state[cta] = 2;
                path.pop();
                continue;
            };
            *list += 1;
            let needed = arrays[array][cta];
            if needed < 0.0 || state[needed as usize] == 2 {
                continue;
            }
            let needed = needed as usize;
            if state[needed] == 1 {
                let from = path.iter().position(|&(on_path, _)| on_path == needed).unwrap_or(0);
                let mut names: Vec<String> = path[from..].iter().map(|(on_path, _)| on_path.to_string()).collect();
                if names.len() > 8 {
                    names.splice(4..names.len() - 3, ["...".to_owned()]);
                }
                names.push(needed.to_string());
                let why = "these CTAs wait for each other in a circle";
                return Err(Error::invalid("chain.needs", names.join(" -> "), why));
            }
            path.push((needed, 0));
        }
    }
    Ok(())
}
