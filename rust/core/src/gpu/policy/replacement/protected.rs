//! Lines that were found again are protected from those that were not: segmented LRU (Karedla, Love and Wherry 1994).
//!
//! A new line stands before all that were not found since they came, and behind the protected ones; one that is found goes
//! to the front of these. At most so many ways of a set are protected: the one that was used least recently then stands
//! with the others, first among them. A stream of lines that are used once drives out no protected one.

use super::Replacement;

/// Lines stand in the order of their last use, the protected ones of a set first.
#[derive(Debug)]
pub(crate) struct Protected {
    /// How many are protected.
    protected: Vec<u8>,
    most: u8,
    last: usize,
}

impl Protected {
    pub(super) fn new(sets: usize, ways: usize, most: usize) -> Self {
        Self { protected: vec![0; sets], most: most as u8, last: ways - 1 }
    }
}

impl Replacement for Protected {
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

    fn age(&self, _set: usize, place: usize) -> usize {
        place
    }
}
