//! Which line of a set makes room for a new one.
//!
//! The lines of a set stand in an order, see `gpu/memory/stack.rs`. A policy says where lines move that were found, filled or
//! dropped, and which one makes room when all ways hold lines. It does not know what the lines are, and keeps a byte or less
//! for a line and set of its own.

mod lru;
mod not_recently_used;
mod protected;
mod random;

use std::fmt::Debug;

use crate::device::L2;
pub(crate) use lru::Lru;
pub(crate) use not_recently_used::NotRecentlyUsed;
pub(crate) use protected::Protected;
pub(crate) use random::Random;

/// Which line of a set makes room. Lines are told by the place at which they stand.
pub(crate) trait Replacement: Debug {
    /// For so many sets of a device's L2; `part` numbers the streams of random choices under the run's `seed`.
    fn new(l2: &L2, sets: usize, seed: u64, part: usize) -> Self
    where
        Self: Sized;

    /// A lookup found this line: where it moves.
    fn hit(&mut self, set: usize, place: usize) -> usize;

    /// A line was put over the one of [`Self::victim`] or into an empty way: where it moves.
    fn filled(&mut self, set: usize, place: usize) -> usize;

    /// This line was dropped: where its empty way moves.
    fn dropped(&mut self, set: usize, place: usize) -> usize;

    /// The line that makes room, in a set that is full.
    fn victim(&mut self, set: usize) -> usize;

    /// The place that a new line takes: the first `empty` one, or that of the line that makes room. Where empty ways stand
    /// last, these are the same.
    fn room(&mut self, set: usize, empty: &dyn Fn() -> Option<usize>) -> usize {
        empty().unwrap_or_else(|| self.victim(set))
    }

    /// Of two lines, the one with the higher number makes room first.
    fn age(&self, set: usize, place: usize) -> usize;
}

#[cfg(test)]
mod tests;
