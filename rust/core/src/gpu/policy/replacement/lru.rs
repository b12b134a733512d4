//! The line that was used least recently makes room.

use super::Replacement;

/// Lines stand in the order of their last use.
#[derive(Debug)]
pub(crate) struct Lru {
    last: usize,
}

impl Lru {
    pub(super) fn new(ways: usize) -> Self {
        Self { last: ways - 1 }
    }
}

impl Replacement for Lru {
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

    fn age(&self, _set: usize, place: usize) -> usize {
        place
    }
}
