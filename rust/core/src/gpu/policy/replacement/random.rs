//! Any line makes room, each as likely as another.

use rand_core::Rng;
use rand_pcg::Pcg64;

use super::Replacement;
use crate::device::L2;
use crate::engine::rng;

/// Lines stay where they are.
#[derive(Debug)]
pub(crate) struct Random {
    draws: Pcg64,
    ways: u64,
}

impl Replacement for Random {
    /// The choices of one part of the cache: a random stream of their own.
    fn new(l2: &L2, _sets: usize, seed: u64, part: usize) -> Self {
        Self { draws: rng::stream(seed, "cache replacement", part as u64), ways: l2.ways.into() }
    }

    #[inline]
    fn hit(&mut self, _set: usize, place: usize) -> usize {
        place
    }

    #[inline]
    fn filled(&mut self, _set: usize, place: usize) -> usize {
        place
    }

    fn dropped(&mut self, _set: usize, place: usize) -> usize {
        place
    }

    #[inline]
    fn victim(&mut self, _set: usize) -> usize {
        // The upper half of the product: a number below `ways` without a division.
        ((u128::from(self.draws.next_u64()) * u128::from(self.ways)) >> 64) as usize
    }

    fn age(&self, _set: usize, _place: usize) -> usize {
        0
    }
}
