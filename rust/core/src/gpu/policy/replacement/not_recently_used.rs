//! A line that was not used since all others of its set were makes room: a bit a line stands for LRU's order.

use super::Replacement;
use crate::device::L2;

/// Lines stay where they are.
#[derive(Debug)]
pub(crate) struct NotRecentlyUsed {
    /// Whether the line at this place was used.
    used: Vec<bool>,
    ways: usize,
}

impl NotRecentlyUsed {
    /// When all lines of a set have been used, only the last one has.
    #[inline]
    fn use_of(&mut self, set: usize, place: usize) {
        let used = &mut self.used[set * self.ways..(set + 1) * self.ways];
        used[place] = true;
        if used.iter().all(|&used| used) {
            used.fill(false);
            used[place] = true;
        }
    }
}

impl Replacement for NotRecentlyUsed {
    fn new(l2: &L2, sets: usize, _seed: u64, _part: usize) -> Self {
        let ways = l2.ways as usize;
        Self { used: vec![false; sets * ways], ways }
    }

    #[inline]
    fn hit(&mut self, set: usize, place: usize) -> usize {
        self.use_of(set, place);
        place
    }

    #[inline]
    fn filled(&mut self, set: usize, place: usize) -> usize {
        self.use_of(set, place);
        place
    }

    fn dropped(&mut self, set: usize, place: usize) -> usize {
        self.used[set * self.ways + place] = false;
        place
    }

    /// The first of those not used; with a single way, that one.
    #[inline]
    fn victim(&mut self, set: usize) -> usize {
        let used = &self.used[set * self.ways..(set + 1) * self.ways];
        used.iter().position(|&used| !used).unwrap_or(0)
    }

    fn age(&self, set: usize, place: usize) -> usize {
        usize::from(!self.used[set * self.ways + place])
    }
}
