//! The line that was used least recently makes room.

use super::{Places, Replacement};

#[derive(Debug)]
pub(crate) struct Lru {
    by_use: Places,
}

impl Lru {
    pub(super) fn new(sets: usize, ways: usize) -> Self {
        Self { by_use: Places::new(sets, ways) }
    }
}

impl Replacement for Lru {
    #[inline]
    fn hit(&mut self, set: usize, way: usize) {
        self.by_use.forward(set, way, 0);
    }

    #[inline]
    fn filled(&mut self, set: usize, way: usize) {
        self.by_use.forward(set, way, 0);
    }

    fn dropped(&mut self, set: usize, way: usize) {
        self.by_use.back(set, way);
    }

    #[inline]
    fn victim(&mut self, set: usize) -> usize {
        self.by_use.last(set)
    }

    fn age(&self, set: usize, way: usize) -> u8 {
        self.by_use.place(set, way)
    }
}
