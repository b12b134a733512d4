//! The SM's memory unit, which serves one instruction after the other, and behind it the SM's way to L2 and DRAM.

use super::code::{Answer, TICKS};
use super::walk::Warp;
use crate::engine::rng::{Draws, even, scattered};

/// No memory instruction is issued when the unit, or the way to memory, has so many cycles of work before it.
const UNIT_QUEUE: u64 = 64;
pub(super) const DATA_QUEUE: u64 = 192;
/// Of stores that memory answers, so many are on their way at most: as many lines as pass the port of an H200 in that time.
const MOST_STORES: usize = 93;

#[derive(Clone, Debug, Default)]
pub(super) struct MemoryUnit {
    /// When it is free, and when the way to memory is, in ticks.
    free: u64,
    data: u64,
    /// When the stores that were asked of memory last are taken in, in cycles: a ring, of which `oldest` comes next.
    stores: Vec<u64>,
    oldest: usize,
    draws: Draws,
}

/// The golden section of 2^64: multiples of it fill a circle evenly, so that the mean of a few draws is that of the law.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl MemoryUnit {
    /// A store that was asked of memory is taken in at cycle `at`.
    pub(super) fn taken(&mut self, at: u64) {
        if self.stores.len() < MOST_STORES {
            self.stores.push(at);
            return;
        }
        self.stores[self.oldest] = at;
        self.oldest = (self.oldest + 1) % MOST_STORES;
    }

    /// From which cycle on an instruction with such an answer finds room in the queues.
    #[inline]
    pub(super) fn has_room(&self, answer: Answer) -> u64 {
        let unit = (self.free / TICKS as u64).saturating_sub(UNIT_QUEUE);
        match answer {
            Answer::Access { store: true, .. } if self.stores.len() == MOST_STORES => {
                unit.max(self.stores[self.oldest])
            }
            // Of others memory itself says how long they take.
            Answer::Access { .. } | Answer::Short { .. } | Answer::None { data: 0 } => unit,
            Answer::None { .. } | Answer::Long(_) | Answer::Even { .. } => {
                unit.max((self.data / TICKS as u64).saturating_sub(DATA_QUEUE))
            }
        }
    }

    /// A warp's instruction comes at cycle `now`, and takes `service` ticks: the warp knows when its answer will be there.
    pub(super) fn serve(&mut self, warp: &mut Warp, service: u32, answer: Answer, now: u64) {
        let served = self.free.max(now * TICKS as u64);
        self.free = served + u64::from(service);
        match answer {
            // Its reply says.
            Answer::None { data: 0 } | Answer::Access { .. } => {}
            Answer::None { data } => self.data = self.data.max(served) + u64::from(data),
            Answer::Short { latency } => {
                warp.short = warp.short.max(served.div_ceil(TICKS as u64) + u64::from(latency));
            }
            Answer::Even { mean, spread } => {
                warp.loads += 1;
                let first = scattered(u64::from(warp.id.cta) << 32 | u64::from(warp.id.warp));
                let latency = drawn(mean, spread, first.wrapping_add(GOLDEN.wrapping_mul(warp.loads)));
                warp.long = warp.long.max(served.div_ceil(TICKS as u64) + latency);
            }
            Answer::Long(law) => {
                let draw = self.draws.next();
                let level = law.levels[usize::from(draw & 0xffff_ffff >= law.first)];
                let begins = self.data.max(served);
                self.data = begins + u64::from(level.data);
                let latency = drawn(level.mean, level.spread, draw);
                warp.long = warp.long.max(begins.div_ceil(TICKS as u64) + latency);
            }
        }
    }
}

/// A latency of a uniform law, from a random number.
fn drawn(mean: f64, spread: f64, random: u64) -> u64 {
    (mean + spread * even(random) + 0.5).max(0.0) as u64
}
