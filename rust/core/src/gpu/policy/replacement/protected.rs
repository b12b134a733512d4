//! Lines that were found again are protected from those that were not: segmented LRU (Karedla, Love and Wherry 1994).
//!
//! A new line stands before all that were not found since they came, and behind the protected ones; one that is found goes
//! to the front of these. At most so many ways of a set are protected: the one that was used least recently then stands
//! with the others, first among them. A stream of lines that are used once drives out no protected one.

use super::Replacement;
use crate::device::L2;

/// Lines stand in the order of their last use, the protected ones of a set first.
#[derive(Debug)]
pub(crate) struct Protected {
    /// How many are protected.
    protected: Vec<u8>,
    most: u8,
    last: usize,
}

impl Replacement for Protected {
    fn new(l2: &L2, sets: usize, _seed: u64, _part: usize) -> Self {
        Self { protected: vec![0; sets], most: l2.protected_ways as u8, last: l2.ways as usize - 1 }
    }

    #[inline]
    fn hit(&mut self, set: usize, place: usize) -> usize {
        let protected = &mut self.protected[set];
        if place >= usize::from(*protected) && *protected < self.most {
            *protected += 1;
        }
        0
    }

    #[inline]
    fn filled(&mut self, set: usize, _place: usize) -> usize {
        usize::from(self.protected[set])
    }

    fn dropped(&mut self, set: usize, place: usize) -> usize {
        let protected = &mut self.protected[set];
        *protected -= u8::from(place < usize::from(*protected));
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
