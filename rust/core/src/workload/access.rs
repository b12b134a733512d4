//! Memory work: the bytes that a CTA reads or writes, in the order in which it does.
//!
//! A CTA is a loop. In each iteration every thread moves 16 bytes of one run of neighbouring bytes, and the next iteration
//! begins when all of them have come: one load a thread is in flight, as in code whose loads are not batched.

use serde::{Deserialize, Serialize};

use super::work::{Span, no_time};
use crate::error::{Error, Result};

/// What a CTA reads or writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Which bytes, in which order.
    pub pattern: Pattern,
    /// Stores in place of loads.
    #[serde(default)]
    pub write: bool,
    /// Which buffer: kernels that name the same one find what others left of it in L2.
    #[serde(default)]
    pub buffer: u32,
    /// How large the buffer is, if a pattern that leaves it is to be refused.
    #[serde(default)]
    pub buffer_bytes: Option<u64>,
    /// Before a CTA's first iteration.
    #[serde(default = "no_time")]
    pub startup: Span,
    /// Before an SM's first iteration in the launch, in place of what the device says.
    #[serde(default)]
    pub cold: Option<Span>,
    /// What an iteration takes beside its accesses.
    #[serde(default = "no_time")]
    pub overhead: Span,
    /// Behind the last iteration.
    #[serde(default = "no_time")]
    pub finish: Span,
}

/// Which bytes of its buffer a CTA moves, and in which order. Offsets and lengths are bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pattern {
    /// Each CTA has a run of its own: CTA `i` the one at `i * bytes`.
    Stream {
        /// A CTA's run.
        bytes: u64,
    },
    /// Passes over chunks: in pass `p`, CTA `i` of `n` reads chunks `i`, `i + n` ..., each shifted on by `p * shift`.
    Reuse {
        /// One chunk.
        chunk_bytes: u64,
        /// How many there are.
        chunks: u64,
        /// How often each is read.
        passes: u64,
        /// By how many chunks a pass is ahead of the one before.
        shift: u64,
    },
    /// The loads of a tiled matrix product: in each step, a CTA reads its part of a panel of A, and of a panel of B.
    /// B lies behind A.
    Panels {
        /// Of A, a step.
        a_bytes: u64,
        /// Of B, a step.
        b_bytes: u64,
        /// Steps along the inner dimension.
        steps: u64,
        /// Panels of A.
        tiles_m: u64,
        /// Panels of B.
        tiles_n: u64,
        /// Which of the program's number lists has each CTA's tile, `m * tiles_n + n`; without, CTA `i` has tile `i`.
        #[serde(default)]
        order: Option<usize>,
    },
    /// All read the same bytes; CTA `i` begins at `i * skew_bytes` and wraps around.
    Broadcast {
        /// What all read.
        bytes: u64,
        /// How much further on each begins.
        skew_bytes: u64,
    },
    /// One load follows the other: a pointer chase that comes to each place once before it comes to one again.
    Chase {
        /// Over how many bytes.
        bytes: u64,
        /// From one place to the next; at least a line.
        stride_bytes: u64,
        /// How many loads.
        loads: u64,
    },
}

/// What a thread moves at once.
pub(crate) const THREAD_BYTES: u64 = 16;
/// What a load of a chase moves: a sector.
const CHASE_BYTES: u64 = 32;
/// The largest buffer: more than any device has, and sums of a few never overflow.
const LARGEST: u64 = 1 << 44;

impl Access {
    pub(crate) fn validate(&self, ctas: u64, arrays: &[usize]) -> Result<()> {
        self.startup.validate("startup")?;
        self.overhead.validate("overhead")?;
        self.cold.map_or(Ok(()), |cold| cold.validate("cold"))?;
        self.finish.validate("finish")?;
        self.pattern.validate(ctas, arrays).map_err(|e| e.within(&format!("pattern.{}", self.pattern.name())))?;
        let extent = self.pattern.extent(ctas);
        match self.buffer_bytes {
            Some(bytes) if extent > u128::from(bytes) => {
                let why = format!("the pattern leaves its buffer: it reaches {extent} bytes");
                Err(Error::invalid("buffer_bytes", bytes, why))
            }
            _ if extent > u128::from(LARGEST) => {
                Err(Error::invalid("pattern", extent, format!("a pattern reaches at most {LARGEST} bytes")))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn validate_lists(&self, arrays: &[&[f64]]) -> Result<()> {
        let Pattern::Panels { tiles_m, tiles_n, order: Some(order), .. } = self.pattern else { return Ok(()) };
        let tiles = tiles_m * tiles_n;
        let is_tile = |tile: &f64| tile.fract() == 0.0 && (0.0..tiles as f64).contains(tile);
        match arrays[order].iter().position(|tile| !is_tile(tile)) {
            None => Ok(()),
            Some(at) => Err(Error::invalid(
                format!("access.pattern.panels.order[{at}]"),
                arrays[order][at],
                format!("a tile is one of 0 to {}", tiles - 1),
            )),
        }
    }
}

impl Pattern {
    fn name(&self) -> &'static str {
        match self {
            Self::Stream { .. } => "stream",
            Self::Reuse { .. } => "reuse",
            Self::Panels { .. } => "panels",
            Self::Broadcast { .. } => "broadcast",
            Self::Chase { .. } => "chase",
        }
    }

    fn validate(&self, ctas: u64, arrays: &[usize]) -> Result<()> {
        let size = |field: &str, value: u64| match value {
            0 => Err(Error::invalid(field, value, "must be at least 1")),
            _ if value > LARGEST => Err(Error::invalid(field, value, format!("at most {LARGEST}"))),
            _ => Ok(()),
        };
        match *self {
            Self::Stream { bytes } => size("bytes", bytes),
            Self::Reuse { chunk_bytes, chunks, passes, shift } => {
                size("chunk_bytes", chunk_bytes)?;
                size("chunks", chunks)?;
                size("passes", passes)?;
                // Passes times shift is added up.
                size("shift", shift.max(1)).and(size("passes", passes.saturating_mul(shift.max(1))))
            }
            Self::Panels { a_bytes, b_bytes, steps, tiles_m, tiles_n, order } => {
                size("a_bytes", a_bytes)?;
                size("b_bytes", b_bytes)?;
                size("steps", steps)?;
                size("tiles_m", tiles_m)?;
                size("tiles_n", tiles_n)?;
                if tiles_m.saturating_mul(tiles_n) != ctas {
                    let why = format!("{tiles_m} x {tiles_n} tiles need as many CTAs, and the grid has {ctas}");
                    return Err(Error::invalid("tiles_m", tiles_m, why));
                }
                match order.map(|order| (order, arrays.get(order))) {
                    Some((order, None)) => Err(Error::invalid("order", order, "no such list of numbers")),
                    Some((_, Some(&len))) if len as u64 != ctas => Err(Error::invalid(
                        "order",
                        format!("a list of {len} values"),
                        format!("one tile a CTA is needed, {ctas} in all"),
                    )),
                    _ => Ok(()),
                }
            }
            Self::Broadcast { bytes, skew_bytes } => size("bytes", bytes).and(size("skew_bytes", skew_bytes.max(1))),
            Self::Chase { bytes, stride_bytes, loads } => {
                size("bytes", bytes)?;
                size("stride_bytes", stride_bytes)?;
                size("loads", loads)?;
                if stride_bytes < CHASE_BYTES || stride_bytes > bytes {
                    let why = format!("must be from {CHASE_BYTES} (a sector) to the {bytes} bytes chased over");
                    return Err(Error::invalid("stride_bytes", stride_bytes, why));
                }
                Ok(())
            }
        }
    }

    /// Where in the buffer the pattern ends.
    pub(crate) fn extent(&self, ctas: u64) -> u128 {
        let product = |factors: &[u64]| factors.iter().map(|&n| u128::from(n)).fold(1, u128::saturating_mul);
        match *self {
            Self::Stream { bytes } => product(&[bytes, ctas]),
            Self::Reuse { chunk_bytes, chunks, .. } => product(&[chunk_bytes, chunks]),
            Self::Panels { a_bytes, b_bytes, steps, tiles_m, tiles_n, .. } => {
                product(&[a_bytes, steps, tiles_m]).saturating_add(product(&[b_bytes, steps, tiles_n]))
            }
            Self::Broadcast { bytes, .. } | Self::Chase { bytes, .. } => u128::from(bytes),
        }
    }

    /// Whether the warps of a CTA keep together: at the barrier behind each step of a tile, or because all CTAs want the same
    /// lines and whoever is ahead waits for DRAM. Otherwise each goes on for itself, and the CTA is as far as they are on
    /// average.
    pub(crate) fn together(&self) -> bool {
        matches!(self, Self::Panels { .. } | Self::Broadcast { .. })
    }

    /// The largest power of two that divides the start and the length of every run, in bytes.
    pub(crate) fn alignment(&self, threads: u32) -> u64 {
        let step = u64::from(threads) * THREAD_BYTES;
        let all = match *self {
            Self::Stream { bytes } => step | bytes,
            Self::Reuse { chunk_bytes, .. } => step | chunk_bytes,
            Self::Panels { a_bytes, b_bytes, .. } => step | a_bytes | b_bytes,
            Self::Broadcast { bytes, skew_bytes } => step | bytes | skew_bytes,
            Self::Chase { bytes, stride_bytes, .. } => stride_bytes | bytes,
        };
        1 << all.trailing_zeros()
    }
}

/// A run of neighbouring bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) start: u64,
    pub(crate) len: u64,
    /// Where the buffer wraps around.
    pub(crate) wrap: u64,
}

/// A pattern for the CTAs of one launch.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'a> {
    pattern: Pattern,
    order: Option<&'a [f64]>,
    ctas: u64,
    step: u64,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(pattern: &Pattern, ctas: u64, threads: u32, arrays: &[&'a [f64]]) -> Self {
        let order = match pattern {
            Pattern::Panels { order, .. } => order.map(|order| arrays[order]),
            _ => None,
        };
        Self { pattern: pattern.clone(), order, ctas, step: u64::from(threads) * THREAD_BYTES }
    }

    /// How many iterations a CTA has.
    pub(crate) fn iterations(&self, cta: u32) -> u64 {
        match self.pattern {
            Pattern::Stream { bytes } | Pattern::Broadcast { bytes, .. } => bytes.div_ceil(self.step),
            Pattern::Reuse { chunk_bytes, passes, .. } => {
                passes * self.own_chunks(cta) * chunk_bytes.div_ceil(self.step)
            }
            Pattern::Panels { a_bytes, b_bytes, steps, .. } => {
                steps * (a_bytes.div_ceil(self.step) + b_bytes.div_ceil(self.step))
            }
            Pattern::Chase { loads, .. } => loads,
        }
    }

    fn own_chunks(&self, cta: u32) -> u64 {
        match self.pattern {
            Pattern::Reuse { chunks, .. } => chunks.saturating_sub(u64::from(cta)).div_ceil(self.ctas),
            _ => 0,
        }
    }

    /// The bytes of one iteration.
    pub(crate) fn bytes(&self, cta: u32, iteration: u64) -> Bytes {
        let (cta_u64, step) = (u64::from(cta), self.step);
        let part = |start: u64, whole: u64, i: u64| Bytes {
            start: start + i * step,
            len: step.min(whole - i * step),
            wrap: u64::MAX,
        };
        match self.pattern {
            Pattern::Stream { bytes } => part(cta_u64 * bytes, bytes, iteration),
            Pattern::Reuse { chunk_bytes, chunks, shift, .. } => {
                let (in_chunk, own) = (chunk_bytes.div_ceil(step), self.own_chunks(cta));
                let (turn, i) = (iteration / in_chunk, iteration % in_chunk);
                let (pass, nth) = (turn / own, turn % own);
                let chunk = (cta_u64 + nth * self.ctas + pass * shift) % chunks;
                part(chunk * chunk_bytes, chunk_bytes, i)
            }
            Pattern::Panels { a_bytes, b_bytes, steps, tiles_m, tiles_n, .. } => {
                let tile = self.order.map_or(cta_u64, |order| order[cta as usize] as u64);
                let (m, n) = (tile / tiles_n, tile % tiles_n);
                let of_a = a_bytes.div_ceil(step);
                let in_step = of_a + b_bytes.div_ceil(step);
                let (k, i) = (iteration / in_step, iteration % in_step);
                if i < of_a {
                    part((m * steps + k) * a_bytes, a_bytes, i)
                } else {
                    part(tiles_m * steps * a_bytes + (n * steps + k) * b_bytes, b_bytes, i - of_a)
                }
            }
            Pattern::Broadcast { bytes, skew_bytes } => {
                let skew = (u128::from(cta_u64) * u128::from(skew_bytes) % u128::from(bytes)) as u64;
                let run = part(0, bytes, iteration);
                Bytes { start: (run.start + skew) % bytes, wrap: bytes, ..run }
            }
            Pattern::Chase { bytes, stride_bytes, .. } => {
                let places = bytes / stride_bytes;
                Bytes { start: iteration % places * stride_bytes, len: CHASE_BYTES, wrap: u64::MAX }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn walked(pattern: &Pattern, ctas: u64, threads: u32) -> Vec<Vec<Bytes>> {
        let walk = Walk::new(pattern, ctas, threads, &[]);
        (0..ctas as u32).map(|cta| (0..walk.iterations(cta)).map(|i| walk.bytes(cta, i)).collect()).collect()
    }

    #[test]
    fn a_stream_gives_each_cta_its_own_bytes_and_ends_in_a_short_iteration() {
        let runs = walked(&Pattern::Stream { bytes: 1000 }, 2, 32);
        let of_second: Vec<_> = runs[1].iter().map(|run| (run.start, run.len)).collect();
        assert_eq!(of_second, [(1000, 512), (1512, 488)]);
    }

    #[test]
    fn a_second_pass_reads_the_chunk_that_lies_shift_further_on() {
        let pattern = Pattern::Reuse { chunk_bytes: 512, chunks: 5, passes: 2, shift: 3 };
        let chunks: Vec<_> = walked(&pattern, 2, 32)[0].iter().map(|run| run.start / 512).collect();
        assert_eq!(chunks, [0, 2, 4, 3, 0, 2]);
    }

    #[test]
    fn a_tile_reads_its_panel_of_a_and_of_b_step_by_step() {
        let pattern = Pattern::Panels { a_bytes: 512, b_bytes: 1024, steps: 2, tiles_m: 2, tiles_n: 3, order: None };
        // Tile 5 is (1, 2): A panel 1 begins at 2 x 512; B lies behind the 4 x 512 bytes of A, its panel 2 at 2 x 2 x 1024.
        let starts: Vec<_> = walked(&pattern, 6, 32)[5].iter().map(|run| run.start).collect();
        let b = 2048 + 4096;
        assert_eq!(starts, [1024, b, b + 512, 1536, b + 1024, b + 1536]);
    }

    #[test]
    fn a_broadcast_wraps_around() {
        let runs = walked(&Pattern::Broadcast { bytes: 2048, skew_bytes: 1536 }, 2, 32);
        let starts: Vec<_> = runs[1].iter().map(|run| run.start).collect();
        assert_eq!(starts, [1536, 0, 512, 1024]);
    }

    proptest! {
        /// What is read adds up to what the pattern says, and nothing lies outside its extent.
        #[test]
        fn every_byte_lies_in_the_buffer_and_none_is_lost(
            which in 0..4_u8, ctas in 1..9_u64, warps in 1..4_u32, a in 1..5_000_u64, b in 1..5_000_u64, n in 1..9_u64,
        ) {
            let pattern = match which {
                0 => Pattern::Stream { bytes: a },
                1 => Pattern::Reuse { chunk_bytes: a, chunks: n, passes: 3, shift: b },
                2 => Pattern::Panels { a_bytes: a, b_bytes: b, steps: n, tiles_m: ctas, tiles_n: 1, order: None },
                _ => Pattern::Broadcast { bytes: a, skew_bytes: b },
            };
            let expected = match which {
                0 | 3 => ctas * a,
                1 => 3 * n * a,
                _ => ctas * n * (a + b),
            };
            let runs = walked(&pattern, ctas, 32 * warps);
            let extent = pattern.extent(ctas);
            prop_assert_eq!(runs.iter().flatten().map(|run| run.len).sum::<u64>(), expected);
            for run in runs.iter().flatten() {
                prop_assert!(run.len > 0);
                let end = u128::from(run.start + run.len);
                prop_assert!(end <= extent || run.wrap != u64::MAX && u128::from(run.start) < extent);
            }
        }
    }
}
