//! Which line of a set makes room for a new one.
//!
//! The lines of a set stand in an order, see `gpu/memory/stack.rs`. A policy says where lines move that were found, filled or
//! dropped, and which one makes room when all ways hold lines. It does not know what the lines are, and keeps a byte or less
//! for a line and set of its own.

mod lru;
mod not_recently_used;
mod protected;
mod random;

use crate::device::{L2, Replacement as Named};
use lru::Lru;
use not_recently_used::NotRecentlyUsed;
use protected::Protected;
use random::Random;

/// Which line of a set makes room. Lines are told by the place at which they stand.
pub(crate) trait Replacement {
    /// A lookup found this line: where it moves.
    fn hit(&mut self, set: usize, place: usize) -> usize;

    /// A line was put over the one of [`Self::victim`] or into an empty way: where it moves.
    fn filled(&mut self, set: usize, place: usize) -> usize;

    /// This line was dropped: where its empty way moves.
    fn dropped(&mut self, set: usize, place: usize) -> usize;

    /// The line that makes room, in a set that is full.
    fn victim(&mut self, set: usize) -> usize;

    /// Of two lines, the one with the higher number makes room first.
    fn age(&self, set: usize, place: usize) -> usize;
}

/// The policy of a device: told apart once a call, by a branch that always goes the same way.
#[derive(Debug)]
pub(crate) enum Policy {
    Lru(Lru),
    NotRecentlyUsed(NotRecentlyUsed),
    Random(Random),
    Protected(Protected),
}

impl Policy {
    /// The device's policy for so many sets; `part` numbers the streams of random choices under the run's `seed`.
    pub(crate) fn new(l2: &L2, sets: usize, seed: u64, part: usize) -> Self {
        let ways = l2.ways as usize;
        match l2.replacement {
            Named::Lru => Self::Lru(Lru::new(ways)),
            Named::NotRecentlyUsed => Self::NotRecentlyUsed(NotRecentlyUsed::new(sets, ways)),
            Named::Random => Self::Random(Random::new(ways, seed, part)),
            Named::Protected => Self::Protected(Protected::new(sets, ways, l2.protected_ways as usize)),
        }
    }

    /// The place that a new line takes: that of the first empty way, or of the line that makes room.
    #[inline]
    pub(crate) fn room(&mut self, set: usize, empty: impl FnOnce() -> Option<usize>) -> usize {
        match self {
            // Empty ways stand last: the one that makes room is empty if any is.
            Self::Lru(policy) => policy.victim(set),
            Self::Protected(policy) => policy.victim(set),
            Self::NotRecentlyUsed(policy) => empty().unwrap_or_else(|| policy.victim(set)),
            Self::Random(policy) => empty().unwrap_or_else(|| policy.victim(set)),
        }
    }
}

macro_rules! of_each {
    ($policy:expr, $each:ident => $call:expr) => {
        match $policy {
            Policy::Lru($each) => $call,
            Policy::NotRecentlyUsed($each) => $call,
            Policy::Random($each) => $call,
            Policy::Protected($each) => $call,
        }
    };
}

impl Replacement for Policy {
    #[inline]
    fn hit(&mut self, set: usize, place: usize) -> usize {
        of_each!(self, policy => policy.hit(set, place))
    }

    #[inline]
    fn filled(&mut self, set: usize, place: usize) -> usize {
        of_each!(self, policy => policy.filled(set, place))
    }

    #[inline]
    fn dropped(&mut self, set: usize, place: usize) -> usize {
        of_each!(self, policy => policy.dropped(set, place))
    }

    #[inline]
    fn victim(&mut self, set: usize) -> usize {
        of_each!(self, policy => policy.victim(set))
    }

    #[inline]
    fn age(&self, set: usize, place: usize) -> usize {
        of_each!(self, policy => policy.age(set, place))
    }
}

#[cfg(test)]
mod tests;
