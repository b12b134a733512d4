//! The line that was used least recently makes room.

use super::Replacement;
use crate::device::L2;

/// Lines stand in the order of their last use.
#[derive(Debug)]
pub(crate) struct Lru {
    last: usize,
}

impl Replacement for Lru {
    fn new(l2: &L2, _sets: usize, _seed: u64, _part: usize) -> Self {
        Self { last: l2.ways as usize - 1 }
    }

    #[inline]
    fn hit(&mut self, _set: usize, _place: usize) -> usize {
        0
    }

    #[inline]
    fn filled(&mut self, _set: usize, _place: usize) -> usize {
        0
    }

    fn dropped(&mut self, _set: usize, _place: usize) -> usize {
        self.last
    }

    #[inline]
    fn victim(&mut self, _set: usize) -> usize {
        self.last
    }

    #[inline]
    fn room(&mut self, set: usize, _empty: &dyn Fn() -> Option<usize>) -> usize {
        self.victim(set)
    }

    fn age(&self, _set: usize, place: usize) -> usize {
        place
    }
}
