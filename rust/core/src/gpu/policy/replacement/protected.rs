//! Lines that were found again are protected from those that were not: segmented LRU (Karedla, Love and Wherry 1994).
//!
//! A new line stands before all that were not found since they came, and behind the protected ones; one that is found goes
//! to the front of these. At most so many ways of a set are protected: the one that was used least recently then stands
//! with the others, first among them. A stream of lines that are used once drives out no protected one.

use super::{Places, Replacement};

#[derive(Debug)]
pub(crate) struct Protected {
    /// The protected ways of a set stand first.
    by_use: Places,
    /// How many they are.
    protected: Vec<u8>,
    most: u8,
}

impl Protected {
    pub(super) fn new(sets: usize, ways: usize, most: usize) -> Self {
        Self { by_use: Places::new(sets, ways), protected: vec![0; sets], most: most as u8 }
    }
}

impl Replacement for Protected {
    #[inline]
    fn hit(&mut self, set: usize, way: usize) {
        let protected = &mut self.protected[set];
        if self.by_use.place(set, way) >= *protected && *protected < self.most {
            *protected += 1;
        }
        self.by_use.forward(set, way, 0);
    }

    #[inline]
    fn filled(&mut self, set: usize, way: usize) {
        self.by_use.forward(set, way, self.protected[set]);
    }

    fn dropped(&mut self, set: usize, way: usize) {
        if self.by_use.place(set, way) < self.protected[set] {
            self.protected[set] -= 1;
        }
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
