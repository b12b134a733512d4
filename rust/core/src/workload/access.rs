//! Memory work: the bytes that a CTA reads or writes, in the order in which it does.
//!
//! A CTA is a loop. In each iteration every thread moves 16 bytes of one run of neighbouring bytes, and the next iteration
//! begins when all of them have come: one load a thread is in flight, as in code whose loads are not batched. [`walk`] says
//! which bytes these are.
//!
//! [`walk`]: super::walk

use serde::{Deserialize, Serialize};

use super::tiles::each_tile_once;
use super::times::Times;
use super::work::Span;
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
    pub buffer: u16,
    /// How large the buffer is, if a pattern that leaves it is to be refused.
    #[serde(default)]
    pub buffer_bytes: Option<u64>,
    /// What a CTA takes beside its accesses.
    #[serde(default)]
    pub times: Times,
}

/// Which bytes of its buffer a CTA moves, and in which order. Offsets and lengths are bytes.
///
/// A *piece* is a run of neighbouring bytes. Of pieces shorter than what the CTA's threads move at once, an iteration moves
/// several: as many as there are threads for, of 16 bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The loads of attention: a CTA reads a tile of queries once, and then step by step the keys and values of its head.
    /// CTA `i` has tile `i mod q_tiles` of head `i / q_tiles`; keys and values lie behind the queries.
    Attention {
        /// A tile of queries.
        q_bytes: u64,
        /// Keys and values, a step.
        kv_bytes: u64,
        /// Steps along the keys and values.
        steps: u64,
        /// Tiles of queries of a head.
        q_tiles: u64,
        /// Heads, over all sequences.
        heads: u64,
        /// Heads of keys and values: as many heads of queries share one as `heads` is a multiple of it.
        kv_heads: u64,
        /// Tile `m` of `q_tiles` takes the first `m + 1` parts of the steps only.
        #[serde(default)]
        causal: bool,
    },
    /// Pieces at equal distances: piece `j` of CTA `i` begins at `i * cta_stride_bytes + j * stride_bytes`.
    Strided {
        /// A piece.
        piece_bytes: u64,
        /// Pieces of a CTA.
        pieces: u64,
        /// From one piece to the next.
        stride_bytes: u64,
        /// From a CTA's first piece to that of the next CTA.
        cta_stride_bytes: u64,
    },
    /// Pieces at random places, multiples of a piece, drawn from the run's seed.
    Random {
        /// The buffer that they lie in.
        bytes: u64,
        /// A piece.
        piece_bytes: u64,
        /// Pieces of a CTA.
        pieces: u64,
    },
    /// Pieces at given places: each CTA has an equal share of the list, in order.
    Listed {
        /// Which of the program's number lists has the offset of each piece.
        offsets: usize,
        /// A piece.
        piece_bytes: u64,
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
pub(super) const CHASE_BYTES: u64 = 32;
/// The largest buffer, 1 TiB: more than any device has, and sums of a few never overflow.
pub(super) const LARGEST: u64 = 1 << 40;
/// The most bytes that a CTA moves.
const MOST_MOVED: u64 = 1 << 60;

impl Access {
    pub(crate) fn validate(&self, ctas: u64, arrays: &[usize]) -> Result<()> {
        self.times.validate()?;
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

    /// Checks that it is a pattern and nothing else: what a warp program does beside its accesses stands in its segments.
    pub(super) fn is_bare(&self) -> Result<()> {
        for (field, time) in self.times.named() {
            let Some(Span::Ns(time) | Span::Cycles(time)) = time else { continue };
            if time > 0.0 || field == "times.cold" {
                let why = "in a warp program, what takes time beside accesses is segments";
                return Err(Error::invalid(field, time, why));
            }
        }
        Ok(())
    }

    pub(crate) fn validate_lists(&self, arrays: &[&[f64]]) -> Result<()> {
        let whole = |value: &f64, most: u64| value.fract() == 0.0 && (0.0..=most as f64).contains(value);
        match self.pattern {
            Pattern::Panels { order: Some(order), .. } => each_tile_once("access.pattern.panels.order", arrays[order]),
            Pattern::Listed { offsets, piece_bytes } => {
                let last = self.buffer_bytes.unwrap_or(LARGEST).min(LARGEST).saturating_sub(piece_bytes);
                let wrong = arrays[offsets].iter().position(|offset| !whole(offset, last));
                wrong.map_or(Ok(()), |at| {
                    let field = format!("pattern.listed.offsets[{at}]");
                    let why =
                        format!("an offset is a whole number of bytes from 0 to {last}: the buffer, less a piece");
                    Err(Error::invalid(field, arrays[offsets][at], why))
                })
            }
            _ => Ok(()),
        }
    }
}

impl Pattern {
    fn name(&self) -> &'static str {
        match self {
            Self::Stream { .. } => "stream",
            Self::Reuse { .. } => "reuse",
            Self::Panels { .. } => "panels",
            Self::Attention { .. } => "attention",
            Self::Strided { .. } => "strided",
            Self::Random { .. } => "random",
            Self::Listed { .. } => "listed",
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
        // What a CTA moves is counted in bytes.
        let moved = |field: &str, times: u64, bytes: u64| match times.checked_mul(bytes) {
            Some(moved) if moved <= MOST_MOVED => Ok(()),
            _ => Err(Error::invalid(field, times, format!("{bytes} bytes so often are more than {MOST_MOVED}"))),
        };
        match *self {
            Self::Stream { bytes } => size("bytes", bytes),
            Self::Reuse { chunk_bytes, chunks, passes, shift } => {
                size("chunk_bytes", chunk_bytes)?;
                size("chunks", chunks)?;
                size("passes", passes)?;
                // Passes times shift is added up.
                size("shift", shift.max(1)).and(size("passes", passes.saturating_mul(shift.max(1))))?;
                moved("passes", passes, chunks.saturating_mul(chunk_bytes).min(LARGEST))
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
            Self::Attention { q_bytes, kv_bytes, steps, q_tiles, heads, kv_heads, .. } => {
                size("q_bytes", q_bytes)?;
                size("kv_bytes", kv_bytes)?;
                size("steps", steps)?;
                size("q_tiles", q_tiles)?;
                size("heads", heads)?;
                size("kv_heads", kv_heads)?;
                if !heads.is_multiple_of(kv_heads) {
                    let why = format!("must divide the {heads} heads of queries");
                    return Err(Error::invalid("kv_heads", kv_heads, why));
                }
                if q_tiles.checked_mul(heads) != Some(ctas) {
                    let why = format!("{q_tiles} x {heads} tiles and heads need as many CTAs, and the grid has {ctas}");
                    return Err(Error::invalid("q_tiles", q_tiles, why));
                }
                Ok(())
            }
            Self::Strided { piece_bytes, pieces, stride_bytes, cta_stride_bytes } => {
                size("piece_bytes", piece_bytes)?;
                size("pieces", pieces)?;
                moved("pieces", pieces, piece_bytes)?;
                size("stride_bytes", stride_bytes.max(1))?;
                size("cta_stride_bytes", cta_stride_bytes.max(1))
            }
            Self::Random { bytes, piece_bytes, pieces } => {
                size("bytes", bytes)?;
                size("piece_bytes", piece_bytes)?;
                size("pieces", pieces)?;
                moved("pieces", pieces, piece_bytes)?;
                if piece_bytes > bytes {
                    let why = format!("must not be larger than the {bytes} bytes that it lies in");
                    return Err(Error::invalid("piece_bytes", piece_bytes, why));
                }
                Ok(())
            }
            Self::Listed { offsets, piece_bytes } => {
                size("piece_bytes", piece_bytes)?;
                match arrays.get(offsets) {
                    None => Err(Error::invalid("offsets", offsets, "no such list of numbers")),
                    Some(&len) if len == 0 || !(len as u64).is_multiple_of(ctas) => {
                        let why = format!("each of {ctas} CTAs needs an equal share of it, of 1 piece or more");
                        Err(Error::invalid("offsets", format!("a list of {len} values"), why))
                    }
                    Some(_) => Ok(()),
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

    /// Where in the buffer the pattern ends; of a list, where it ends at the least.
    pub(crate) fn extent(&self, ctas: u64) -> u128 {
        let product = |factors: &[u64]| factors.iter().map(|&n| u128::from(n)).fold(1, u128::saturating_mul);
        match *self {
            Self::Stream { bytes } => product(&[bytes, ctas]),
            Self::Reuse { chunk_bytes, chunks, .. } => product(&[chunk_bytes, chunks]),
            Self::Panels { a_bytes, b_bytes, steps, tiles_m, tiles_n, .. } => {
                product(&[a_bytes, steps, tiles_m]).saturating_add(product(&[b_bytes, steps, tiles_n]))
            }
            Self::Attention { q_bytes, kv_bytes, steps, q_tiles, heads, kv_heads, .. } => {
                product(&[q_bytes, q_tiles, heads]).saturating_add(product(&[kv_bytes, steps, kv_heads]))
            }
            Self::Strided { piece_bytes, pieces, stride_bytes, cta_stride_bytes } => {
                let last = product(&[cta_stride_bytes, ctas - 1]).saturating_add(product(&[stride_bytes, pieces - 1]));
                last.saturating_add(u128::from(piece_bytes))
            }
            Self::Listed { piece_bytes, .. } => u128::from(piece_bytes),
            Self::Broadcast { bytes, .. } | Self::Chase { bytes, .. } | Self::Random { bytes, .. } => u128::from(bytes),
        }
    }

    /// Whether the warps of a CTA keep together: at the barrier behind each step of a tile, or because all CTAs want the same
    /// lines and whoever is ahead waits for DRAM. Otherwise each goes on for itself, and the CTA is as far as they are on
    /// average.
    pub(crate) fn together(&self) -> bool {
        matches!(self, Self::Panels { .. } | Self::Attention { .. } | Self::Broadcast { .. })
    }

    /// How many iterations lie between two barriers of the CTA, if it has any: they stand behind each step of a tile.
    pub(crate) fn iterations_to_barrier(&self, threads: u32) -> Option<u64> {
        let step = u64::from(threads) * THREAD_BYTES;
        match *self {
            Self::Panels { a_bytes, b_bytes, .. } => Some(a_bytes.div_ceil(step) + b_bytes.div_ceil(step)),
            Self::Attention { kv_bytes, .. } => Some(kv_bytes.div_ceil(step)),
            _ => None,
        }
    }

    /// The largest power of two that divides the start and the length of every run when so many bytes are moved at once.
    pub(crate) fn alignment(&self, step: u64) -> u64 {
        let all = match *self {
            Self::Stream { bytes } => step | bytes,
            Self::Reuse { chunk_bytes, .. } => step | chunk_bytes,
            Self::Panels { a_bytes, b_bytes, .. } => step | a_bytes | b_bytes,
            Self::Attention { q_bytes, kv_bytes, .. } => step | q_bytes | kv_bytes,
            Self::Strided { piece_bytes, stride_bytes, cta_stride_bytes, .. } => {
                step | piece_bytes | stride_bytes | cta_stride_bytes
            }
            Self::Random { piece_bytes, .. } => step | piece_bytes,
            // Of a list nothing is known: lines are kept one by one.
            Self::Listed { .. } => 1,
            Self::Broadcast { bytes, skew_bytes } => step | bytes | skew_bytes,
            Self::Chase { bytes, stride_bytes, .. } => stride_bytes | bytes,
        };
        1 << all.trailing_zeros()
    }
}
