//! A pattern walked through: which bytes each iteration of a CTA moves.

use super::access::{CHASE_BYTES, Pattern, THREAD_BYTES};
use crate::engine::rng::mix;

/// The bytes of one iteration: a run of neighbouring bytes, or several of one length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    /// Of all runs together.
    pub(crate) len: u64,
    /// Where the buffer wraps around.
    pub(crate) wrap: u64,
    count: u64,
    /// Of one run.
    run: u64,
    /// How far behind its place a run begins.
    skipped: u64,
    places: Places<'a>,
}

/// Where runs lie.
#[derive(Clone, Copy, Debug)]
enum Places<'a> {
    Every { start: u64, stride: u64 },
    Random { key: u64, first: u64, places: u64, piece_bytes: u64 },
    Listed(&'a [f64]),
}

impl Bytes<'_> {
    /// One run.
    pub(crate) const fn run(start: u64, len: u64) -> Self {
        Self { len, wrap: u64::MAX, count: 1, run: len, skipped: 0, places: Places::Every { start, stride: 0 } }
    }

    /// The part of one of `warps`, each of which moves `each` of the bytes: whole pieces, or a stretch of a single run.
    pub(crate) fn of_warp(self, warp: u64, warps: u64, each: u64) -> Self {
        if self.count == 1 {
            let from = (warp * each).min(self.run);
            let run = each.min(self.run - from);
            let whole = Self { len: run, run, skipped: self.skipped + from, ..self };
            return match self.places {
                Places::Every { start, stride } if start + whole.skipped >= self.wrap => {
                    let start = start + whole.skipped - self.wrap;
                    Self { skipped: 0, places: Places::Every { start, stride }, ..whole }
                }
                _ => whole,
            };
        }
        let (from, to) = (warp * self.count / warps, (warp + 1) * self.count / warps);
        let places = match self.places {
            Places::Every { start, stride } => Places::Every { start: start + from * stride, stride },
            Places::Random { key, first, places, piece_bytes } => {
                Places::Random { key, first: first + from, places, piece_bytes }
            }
            Places::Listed(offsets) => Places::Listed(&offsets[from as usize..]),
        };
        Self { len: (to - from) * self.run, count: to - from, places, ..self }
    }

    /// The start and the length of each run. Runs that lie one behind the other and are made of whole blocks of so many bytes
    /// are one.
    #[inline]
    pub(crate) fn runs(&self, block: u64) -> impl Iterator<Item = (u64, u64)> {
        let (count, run) = if self.is_one(block) { (1, self.len) } else { (self.count, self.run) };
        (0..count).map(move |i| (self.place(i) + self.skipped, run))
    }

    /// Whether all runs are one of whole blocks.
    #[inline]
    fn is_one(&self, block: u64) -> bool {
        match self.places {
            Places::Every { start, stride } => {
                self.count > 1 && stride == self.run && ((start + self.skipped) | stride) & (block - 1) == 0
            }
            _ => false,
        }
    }

    #[inline]
    fn place(&self, i: u64) -> u64 {
        match self.places {
            Places::Every { start, stride } => start + i * stride,
            Places::Random { key, first, places, piece_bytes } => {
                let draw = mix(key.wrapping_add(first + i));
                ((u128::from(draw) * u128::from(places)) >> 64) as u64 * piece_bytes
            }
            Places::Listed(offsets) => offsets[i as usize] as u64,
        }
    }
}

/// A pattern for the CTAs of one launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'a> {
    pattern: Pattern,
    /// The tiles or the offsets of the pattern, if it has a list of them.
    list: &'a [f64],
    ctas: u64,
    /// What the CTA's threads move at once, and each of them.
    step: u64,
    thread: u64,
    /// Of random places.
    key: u64,
}

impl<'a> Walk<'a> {
    /// `key` is what random places are drawn from.
    pub(crate) fn new(pattern: &Pattern, ctas: u64, threads: u32, arrays: &[&'a [f64]], key: u64) -> Self {
        Self::of_steps(pattern, ctas, (u64::from(threads) * THREAD_BYTES, THREAD_BYTES), arrays, key)
    }

    /// The same in iterations of so many bytes, and so many of them for each thread.
    pub(crate) fn of_steps(
        pattern: &Pattern,
        ctas: u64,
        (step, thread): (u64, u64),
        arrays: &[&'a [f64]],
        key: u64,
    ) -> Self {
        let list = match *pattern {
            Pattern::Panels { order: Some(list), .. } | Pattern::Listed { offsets: list, .. } => arrays[list],
            _ => &[],
        };
        Self { pattern: *pattern, list, ctas, step, thread, key }
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
            Pattern::Attention { q_bytes, kv_bytes, steps, q_tiles, causal, .. } => {
                let tile = u64::from(cta) % q_tiles;
                let steps = if causal {
                    (u128::from(tile + 1) * u128::from(steps)).div_ceil(u128::from(q_tiles)) as u64
                } else {
                    steps
                };
                q_bytes.div_ceil(self.step) + steps * kv_bytes.div_ceil(self.step)
            }
            Pattern::Strided { piece_bytes, pieces, .. } | Pattern::Random { piece_bytes, pieces, .. } => {
                self.of_pieces(piece_bytes, pieces)
            }
            Pattern::Listed { piece_bytes, .. } => self.of_pieces(piece_bytes, self.listed()),
            Pattern::Chase { loads, .. } => loads,
        }
    }

    /// Pieces of a CTA in a list.
    fn listed(&self) -> u64 {
        self.list.len() as u64 / self.ctas
    }

    /// Pieces that the threads move at once; 1 if they take several iterations for each.
    fn at_once(&self, piece_bytes: u64) -> u64 {
        (self.step / piece_bytes.max(self.thread)).max(1)
    }

    /// Iterations over so many pieces.
    fn of_pieces(&self, piece_bytes: u64, pieces: u64) -> u64 {
        pieces.div_ceil(self.at_once(piece_bytes)) * piece_bytes.div_ceil(self.step)
    }

    /// The iteration over pieces `first..` of `pieces`.
    fn pieces(&self, piece_bytes: u64, pieces: u64, iteration: u64, places: impl Fn(u64) -> Places<'a>) -> Bytes<'a> {
        let parts = piece_bytes.div_ceil(self.step);
        let (turn, part) = (iteration / parts, iteration % parts);
        let first = turn * self.at_once(piece_bytes);
        let count = self.at_once(piece_bytes).min(pieces - first);
        let skipped = part * self.step;
        let run = self.step.min(piece_bytes - skipped);
        Bytes { len: count * run, wrap: u64::MAX, count, run, skipped, places: places(first) }
    }

    fn own_chunks(&self, cta: u32) -> u64 {
        match self.pattern {
            Pattern::Reuse { chunks, .. } => chunks.saturating_sub(u64::from(cta)).div_ceil(self.ctas),
            _ => 0,
        }
    }

    /// The bytes of one iteration.
    pub(crate) fn bytes(&self, cta: u32, iteration: u64) -> Bytes<'a> {
        let (cta_u64, step) = (u64::from(cta), self.step);
        let part = |start: u64, whole: u64, i: u64| Bytes::run(start + i * step, step.min(whole - i * step));
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
                let tile = self.list.get(cta as usize).map_or(cta_u64, |&tile| tile as u64);
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
                Bytes { wrap: bytes, ..Bytes::run((iteration * step + skew) % bytes, run.len) }
            }
            Pattern::Chase { bytes, stride_bytes, .. } => {
                let places = bytes / stride_bytes;
                Bytes::run(iteration % places * stride_bytes, CHASE_BYTES)
            }
            Pattern::Attention { q_bytes, kv_bytes, steps, q_tiles, heads, kv_heads, .. } => {
                let of_q = q_bytes.div_ceil(step);
                if iteration < of_q {
                    return part(cta_u64 * q_bytes, q_bytes, iteration);
                }
                let in_step = kv_bytes.div_ceil(step);
                let (k, i) = ((iteration - of_q) / in_step, (iteration - of_q) % in_step);
                let kv_head = cta_u64 / q_tiles / (heads / kv_heads);
                part(heads * q_tiles * q_bytes + (kv_head * steps + k) * kv_bytes, kv_bytes, i)
            }
            Pattern::Strided { piece_bytes, pieces, stride_bytes, cta_stride_bytes } => {
                self.pieces(piece_bytes, pieces, iteration, |first| Places::Every {
                    start: cta_u64 * cta_stride_bytes + first * stride_bytes,
                    stride: stride_bytes,
                })
            }
            Pattern::Random { bytes, piece_bytes, pieces } => {
                let key = self.key ^ mix(cta_u64);
                let places = bytes / piece_bytes;
                let at = |first| Places::Random { key, first, places, piece_bytes };
                self.pieces(piece_bytes, pieces, iteration, at)
            }
            Pattern::Listed { piece_bytes, .. } => {
                let own = (cta_u64 * self.listed()) as usize;
                let at = |first| Places::Listed(&self.list[own + first as usize..]);
                self.pieces(piece_bytes, self.listed(), iteration, at)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The runs of each CTA, iteration by iteration, as they begin.
    fn walked(pattern: &Pattern, ctas: u64, threads: u32) -> Vec<Vec<(u64, u64)>> {
        of_lists(pattern, ctas, threads, &[])
    }

    fn of_lists(pattern: &Pattern, ctas: u64, threads: u32, arrays: &[&[f64]]) -> Vec<Vec<(u64, u64)>> {
        let walk = Walk::new(pattern, ctas, threads, arrays, 7);
        let of_cta = |cta| {
            let iterations = (0..walk.iterations(cta)).map(move |i| walk.bytes(cta, i));
            iterations.flat_map(|bytes| {
                // Of so large blocks nothing is whole.
                let runs: Vec<(u64, u64)> = bytes.runs(1 << 63).collect();
                assert_eq!(runs.iter().map(|(_, len)| len).sum::<u64>(), bytes.len);
                runs
            })
        };
        (0..ctas as u32).map(|cta| of_cta(cta).collect()).collect()
    }

    fn starts(runs: &[(u64, u64)]) -> Vec<u64> {
        runs.iter().map(|&(start, _)| start).collect()
    }

    #[test]
    fn a_stream_gives_each_cta_its_own_bytes_and_ends_in_a_short_iteration() {
        let runs = walked(&Pattern::Stream { bytes: 1000 }, 2, 32);
        assert_eq!(runs[1], [(1000, 512), (1512, 488)]);
    }

    #[test]
    fn pieces_of_whole_blocks_without_gaps_are_one_run_and_others_are_not() {
        let of = |piece_bytes, stride_bytes, block| {
            let pattern = Pattern::Strided { piece_bytes, pieces: 4, stride_bytes, cta_stride_bytes: 1024 };
            Walk::new(&pattern, 2, 32, &[], 7).bytes(1, 0).runs(block).collect::<Vec<_>>()
        };
        assert_eq!(of(128, 128, 128), [(1024, 512)]);
        // Half a block asks for a request of its own.
        assert_eq!(of(64, 64, 128), [(1024, 64), (1088, 64), (1152, 64), (1216, 64)]);
        assert_eq!(of(128, 256, 128), [(1024, 128), (1280, 128), (1536, 128), (1792, 128)]);
    }

    #[test]
    fn a_second_pass_reads_the_chunk_that_lies_shift_further_on() {
        let pattern = Pattern::Reuse { chunk_bytes: 512, chunks: 5, passes: 2, shift: 3 };
        let chunks: Vec<_> = walked(&pattern, 2, 32)[0].iter().map(|(start, _)| start / 512).collect();
        assert_eq!(chunks, [0, 2, 4, 3, 0, 2]);
    }

    #[test]
    fn a_tile_reads_its_panel_of_a_and_of_b_step_by_step() {
        let pattern = Pattern::Panels { a_bytes: 512, b_bytes: 1024, steps: 2, tiles_m: 2, tiles_n: 3, order: None };
        // Tile 5 is (1, 2): A panel 1 begins at 2 x 512; B lies behind the 4 x 512 bytes of A, its panel 2 at 2 x 2 x 1024.
        let b = 2048 + 4096;
        assert_eq!(starts(&walked(&pattern, 6, 32)[5]), [1024, b, b + 512, 1536, b + 1024, b + 1536]);
    }

    #[test]
    fn a_broadcast_wraps_around() {
        let runs = walked(&Pattern::Broadcast { bytes: 2048, skew_bytes: 1536 }, 2, 32);
        assert_eq!(starts(&runs[1]), [1536, 0, 512, 1024]);
    }

    #[test]
    fn an_attention_tile_reads_its_queries_once_and_the_keys_of_the_head_that_its_own_shares() {
        let pattern = |causal| Pattern::Attention {
            q_bytes: 512,
            kv_bytes: 1024,
            steps: 4,
            q_tiles: 2,
            heads: 4,
            kv_heads: 2,
            causal,
        };
        // CTA 5 is tile 1 of head 2, which takes the keys and values of head 1, behind 4 x 2 x 512 bytes of queries.
        let kv = 4096 + 4 * 1024;
        let all: Vec<u64> = std::iter::once(5 * 512).chain((0..8).map(|i| kv + i * 512)).collect();
        assert_eq!(starts(&walked(&pattern(false), 8, 32)[5]), all);
        // A causal CTA of the first tile takes half of the steps.
        assert_eq!(starts(&walked(&pattern(true), 8, 32)[4]), [&[4 * 512], &all[1..5]].concat());
        assert_eq!(starts(&walked(&pattern(true), 8, 32)[5]), all);
    }

    #[test]
    fn a_stride_puts_pieces_at_equal_distances_and_as_many_into_an_iteration_as_there_are_threads_for() {
        // The columns of a matrix of 4 KiB rows: 6 rows, a line of each.
        let pattern = Pattern::Strided { piece_bytes: 128, pieces: 6, stride_bytes: 4096, cta_stride_bytes: 128 };
        let runs = walked(&pattern, 2, 32);
        assert_eq!(runs[1], (0..6).map(|row| (128 + row * 4096, 128)).collect::<Vec<_>>());
        let walk = Walk::new(&pattern, 2, 32, &[], 0);
        // A warp moves 512 bytes at once: 4 pieces, then the other 2.
        assert_eq!((walk.iterations(1), walk.bytes(1, 0).len, walk.bytes(1, 1).len), (2, 512, 256));
        // Of pieces of 4 bytes each takes a thread.
        let short = Pattern::Strided { piece_bytes: 4, pieces: 40, stride_bytes: 32, cta_stride_bytes: 0 };
        assert_eq!(Walk::new(&short, 2, 32, &[], 0).iterations(0), 2);
        // One of 1,000 takes two iterations.
        let long = Pattern::Strided { piece_bytes: 1000, pieces: 2, stride_bytes: 2000, cta_stride_bytes: 0 };
        assert_eq!(walked(&long, 1, 32)[0], [(0, 512), (512, 488), (2000, 512), (2512, 488)]);
    }

    #[test]
    fn a_list_is_shared_out_in_order() {
        let pattern = Pattern::Listed { offsets: 0, piece_bytes: 32 };
        let runs = of_lists(&pattern, 2, 32, &[&[96.0, 0.0, 32.0, 96.0, 64.0, 0.0]]);
        assert_eq!((starts(&runs[0]), starts(&runs[1])), (vec![96, 0, 32], vec![96, 64, 0]));
    }

    #[test]
    fn random_places_are_whole_pieces_evenly_spread_and_other_ones_for_each_cta() {
        let pattern = Pattern::Random { bytes: 100 * 128 + 5, piece_bytes: 128, pieces: 10_000 };
        let runs = walked(&pattern, 2, 256);
        let mut found = [0; 100];
        for &(start, len) in &runs[0] {
            assert_eq!((start % 128, len), (0, 128));
            found[start as usize / 128] += 1;
        }
        // Of 100 on average, with a standard deviation of 10.
        assert!(found.iter().all(|&count| (50..150).contains(&count)), "{found:?}");
        assert_ne!(runs[0], runs[1]);
    }

    proptest! {
        /// What is read adds up to what the pattern says, and nothing lies outside its extent.
        #[test]
        fn every_byte_lies_in_the_buffer_and_none_is_lost(
            which in 0..7_u8, ctas in 1..9_u64, warps in 1..4_u32, a in 1..5_000_u64, b in 1..5_000_u64, n in 1..9_u64,
        ) {
            let pattern = match which {
                0 => Pattern::Stream { bytes: a },
                1 => Pattern::Reuse { chunk_bytes: a, chunks: n, passes: 3, shift: b },
                2 => Pattern::Panels { a_bytes: a, b_bytes: b, steps: n, tiles_m: ctas, tiles_n: 1, order: None },
                3 => Pattern::Broadcast { bytes: a, skew_bytes: b },
                4 => Pattern::Strided { piece_bytes: a, pieces: n, stride_bytes: b, cta_stride_bytes: 3 * b },
                5 => Pattern::Random { bytes: a + b, piece_bytes: a, pieces: n },
                _ => Pattern::Attention {
                    q_bytes: a, kv_bytes: b, steps: n, q_tiles: 1, heads: ctas, kv_heads: 1, causal: true,
                },
            };
            let expected = match which {
                0 | 3 => ctas * a,
                1 => 3 * n * a,
                2 => ctas * n * (a + b),
                4 | 5 => ctas * n * a,
                _ => ctas * (a + n * b),
            };
            let runs = walked(&pattern, ctas, 32 * warps);
            let extent = pattern.extent(ctas);
            prop_assert_eq!(runs.iter().flatten().map(|(_, len)| len).sum::<u64>(), expected);
            for &(start, len) in runs.iter().flatten() {
                prop_assert!(len > 0);
                let wraps = matches!(pattern, Pattern::Broadcast { .. });
                prop_assert!(u128::from(start + len) <= extent || wraps && u128::from(start) < extent);
            }
        }
    }
}
