//! Which line of a set makes room for a new one.
//!
//! A policy keeps its own state, a byte or less for a line and set. It does not know what the lines are: the cache tells it
//! which way of which set was found or filled, and asks it for a way when all of them hold lines.

mod lru;
mod not_recently_used;
mod protected;
mod random;

use crate::device::{L2, Replacement as Named};
use lru::Lru;
use not_recently_used::NotRecentlyUsed;
use protected::Protected;
use random::Random;

/// Which line of a set makes room.
pub(crate) trait Replacement {
    /// A lookup found its line in this way.
    fn hit(&mut self, set: usize, way: usize);

    /// A line was put into this way, over the one of [`Self::victim`] or into an empty one.
    fn filled(&mut self, set: usize, way: usize);

    /// The line of this way was dropped: the way is empty.
    fn dropped(&mut self, set: usize, way: usize);

    /// The way whose line makes room, in a set that is full.
    fn victim(&mut self, set: usize) -> usize;

    /// At which place a way stands: of two, the one with the higher number makes room first.
    fn age(&self, set: usize, way: usize) -> u8;
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
            Named::Lru => Self::Lru(Lru::new(sets, ways)),
            Named::NotRecentlyUsed => Self::NotRecentlyUsed(NotRecentlyUsed::new(sets, ways)),
            Named::Random => Self::Random(Random::new(ways, seed, part)),
            Named::Protected => Self::Protected(Protected::new(sets, ways, l2.protected_ways as usize)),
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
    fn hit(&mut self, set: usize, way: usize) {
        of_each!(self, policy => policy.hit(set, way));
    }

    #[inline]
    fn filled(&mut self, set: usize, way: usize) {
        of_each!(self, policy => policy.filled(set, way));
    }

    #[inline]
    fn dropped(&mut self, set: usize, way: usize) {
        of_each!(self, policy => policy.dropped(set, way));
    }

    #[inline]
    fn victim(&mut self, set: usize) -> usize {
        of_each!(self, policy => policy.victim(set))
    }

    #[inline]
    fn age(&self, set: usize, way: usize) -> u8 {
        of_each!(self, policy => policy.age(set, way))
    }
}

/// The ways of each set in an order: a byte a way says at which place it stands, 0 the last to make room.
#[derive(Debug)]
struct Places {
    places: Vec<u8>,
    ways: usize,
}

impl Places {
    fn new(sets: usize, ways: usize) -> Self {
        let places = (0..sets * ways).map(|entry| (entry % ways) as u8).collect();
        Self { places, ways }
    }

    #[inline]
    fn of(&mut self, set: usize) -> &mut [u8] {
        &mut self.places[set * self.ways..(set + 1) * self.ways]
    }

    #[inline]
    fn place(&self, set: usize, way: usize) -> u8 {
        self.places[set * self.ways + way]
    }

    /// Moves a way forward to a place; those between stand one place further back. No branches, so that all ways of a set
    /// are done at once.
    #[inline]
    fn forward(&mut self, set: usize, way: usize, to: u8) {
        let places = self.of(set);
        let from = places[way];
        for place in &mut *places {
            *place += u8::from(*place >= to && *place < from);
        }
        places[way] = to;
    }

    /// Moves a way to the last place; those behind it stand one place further forward.
    fn back(&mut self, set: usize, way: usize) {
        let last = (self.ways - 1) as u8;
        let places = self.of(set);
        let from = places[way];
        for place in &mut *places {
            *place -= u8::from(*place > from);
        }
        places[way] = last;
    }

    /// The way that stands at the last place.
    #[inline]
    fn last(&self, set: usize) -> usize {
        let last = (self.ways - 1) as u8;
        let places = &self.places[set * self.ways..(set + 1) * self.ways];
        let mut found = 0;
        for (way, &place) in places.iter().enumerate() {
            found = if place == last { way } else { found };
        }
        found
    }
}

#[cfg(test)]
mod tests;
