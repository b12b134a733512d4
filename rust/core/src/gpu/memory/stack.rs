//! The ways of a set, in an order: a stack in which what is used moves to another place.
//!
//! Of each way a set keeps a mark, a byte that says what its line can be. A lookup compares all of them at once and looks at
//! the lines themselves only where these agree: of a set that lies in no near cache of the host, it reads little. Marks and
//! order are a few words, so that a lookup is a few shifts.

use std::fmt::Debug;

use super::lanes;

/// The mark of a way that holds nothing.
pub(crate) const EMPTY: u8 = 0;
/// The mark of ways that a set does not have.
const NO_WAY: u8 = 255;
/// Marks of lines are from 1 to this.
pub(crate) const LAST_MARK: u8 = 254;

/// The marks of so many ways, or of fewer; a multiple of eight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks<const WAYS: usize>([u8; WAYS]);

impl<const WAYS: usize> Marks<WAYS> {
    pub(crate) fn new(ways: usize) -> Self {
        Self(std::array::from_fn(|way| if way < ways { EMPTY } else { NO_WAY }))
    }

    /// The first way with this mark that is as asked.
    #[inline]
    pub(crate) fn find(&self, mark: u8, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let candidates = |word: &[u8; 8]| lanes::candidates(u64::from_le_bytes(*word), mark);
        let words = self.0.as_chunks().0;
        // Mostly there are none: that is one question.
        if words.iter().fold(0, |any, word| any | candidates(word)) == 0 {
            return None;
        }
        for (i, word) in words.iter().enumerate() {
            let mut found = candidates(word);
            while found != 0 {
                let way = 8 * i + lanes::first(found);
                if self.0[way % WAYS] == mark && is_it(way) {
                    return Some(way);
                }
                found &= found - 1;
            }
        }
        None
    }

    #[inline]
    pub(crate) fn set(&mut self, way: usize, mark: u8) {
        self.0[way % WAYS] = mark;
    }
}

/// The most ways that an [`Order`] has.
const MOST: usize = 16;
/// Each half byte of a word.
const HALVES: u64 = 0x1111_1111_1111_1111;

/// Ways by their places, half a byte each, the first place lowest.
#[derive(Clone, Copy, Debug)]
struct Order(u64);

impl Order {
    /// All ways that there can be, the first one first; who has fewer uses the places before theirs.
    fn new() -> Self {
        Self((0..MOST as u64).fold(0, |order, way| order | way << (4 * way)))
    }

    /// The way at a place.
    #[inline]
    fn at(self, place: usize) -> usize {
        (self.0 >> (4 * place)) as usize % MOST
    }

    /// The place of a way.
    #[inline]
    fn place_of(self, way: usize) -> usize {
        // Of the half bytes that are zero in this, the lowest borrows first.
        let other = self.0 ^ (way as u64 * HALVES);
        let found = other.wrapping_sub(HALVES) & !other & (8 * HALVES);
        found.trailing_zeros() as usize / 4
    }

    /// Moves who stands at `from` to `to`; those between move by one place.
    #[inline]
    fn put(&mut self, from: usize, to: usize) {
        let before = |place: usize| (1_u64 << (4 * place)) - 1;
        let way = self.at(from) as u64;
        let others = self.0 & before(from) | self.0 >> 4 & !before(from);
        self.0 = others & before(to) | (others & !before(to)) << 4 | way << (4 * to);
    }
}

/// The ways of one set of L2: their marks, their order, and which of them are dirty.
pub(crate) trait Stack: Clone + Debug {
    /// So many ways, all empty; the first one stands first.
    fn new(ways: usize) -> Self;

    /// The first way with this mark that is as asked.
    fn find(&self, mark: u8, is_it: impl Fn(usize) -> bool) -> Option<usize>;

    /// The way at a place.
    fn at(&self, place: usize) -> usize;

    /// The place of a way.
    fn place_of(&self, way: usize) -> usize;

    /// Moves the way that stands at `from` to the place `to`; those between move by one place.
    fn put(&mut self, from: usize, to: usize);

    fn mark(&mut self, way: usize, mark: u8);

    /// Whether DRAM does not have yet what was written to the line of a way.
    fn is_dirty(&self, way: usize) -> bool;

    fn set_dirty(&mut self, way: usize, dirty: bool);

    /// How many ways are dirty.
    fn dirty(&self) -> u32;

    /// Whether none is.
    fn is_clean(&self) -> bool {
        self.dirty() == 0
    }
}

/// A set of at most [`Packed::WAYS`] ways, in one piece that is read at once.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct Packed {
    marks: Marks<{ MOST }>,
    order: Order,
    /// A bit a way.
    dirty: u16,
}

impl Packed {
    pub(crate) const WAYS: usize = MOST;
}

impl Stack for Packed {
    fn new(ways: usize) -> Self {
        Self { marks: Marks::new(ways), order: Order::new(), dirty: 0 }
    }

    #[inline]
    fn find(&self, mark: u8, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        self.marks.find(mark, is_it)
    }

    #[inline]
    fn at(&self, place: usize) -> usize {
        self.order.at(place)
    }

    #[inline]
    fn place_of(&self, way: usize) -> usize {
        self.order.place_of(way)
    }

    #[inline]
    fn put(&mut self, from: usize, to: usize) {
        self.order.put(from, to);
    }

    #[inline]
    fn mark(&mut self, way: usize, mark: u8) {
        self.marks.set(way, mark);
    }

    #[inline]
    fn is_dirty(&self, way: usize) -> bool {
        self.dirty >> way & 1 == 1
    }

    #[inline]
    fn set_dirty(&mut self, way: usize, dirty: bool) {
        self.dirty = self.dirty & !(1 << way) | u16::from(dirty) << way;
    }

    #[inline]
    fn dirty(&self) -> u32 {
        self.dirty.count_ones()
    }

    #[inline]
    fn is_clean(&self) -> bool {
        self.dirty == 0
    }
}

/// A set of any number of ways.
#[derive(Clone, Debug)]
pub(crate) struct Wide {
    marks: Vec<u8>,
    order: Vec<usize>,
    dirty: Vec<bool>,
}

impl Stack for Wide {
    fn new(ways: usize) -> Self {
        Self { marks: vec![EMPTY; ways], order: (0..ways).collect(), dirty: vec![false; ways] }
    }

    fn find(&self, mark: u8, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        (0..self.marks.len()).find(|&way| self.marks[way] == mark && is_it(way))
    }

    fn at(&self, place: usize) -> usize {
        self.order[place]
    }

    fn place_of(&self, way: usize) -> usize {
        self.order.iter().position(|&other| other == way).expect("each way has a place")
    }

    fn put(&mut self, from: usize, to: usize) {
        if to <= from {
            self.order[to..=from].rotate_right(1);
        } else {
            self.order[from..=to].rotate_left(1);
        }
    }

    fn mark(&mut self, way: usize, mark: u8) {
        self.marks[way] = mark;
    }

    fn is_dirty(&self, way: usize) -> bool {
        self.dirty[way]
    }

    fn set_dirty(&mut self, way: usize, dirty: bool) {
        self.dirty[way] = dirty;
    }

    fn dirty(&self) -> u32 {
        self.dirty.iter().map(|&dirty| u32::from(dirty)).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A set beside a list of the same ways from which one is taken and put elsewhere.
    fn goes_as_a_list_does<S: Stack>(ways: usize, moves: &[(u16, u16, u8)]) -> Result<(), TestCaseError> {
        let mut set = S::new(ways);
        let mut list: Vec<(usize, u8, bool)> = (0..ways).map(|way| (way, EMPTY, false)).collect();
        for &(from, to, mark) in moves {
            let (from, to) = (usize::from(from) % ways, usize::from(to) % ways);
            let way = set.at(from);
            set.put(from, to);
            set.mark(way, mark);
            set.set_dirty(way, mark % 2 == 1);
            list.remove(from);
            list.insert(to, (way, mark, mark % 2 == 1));
            for (place, &(way, mark, dirty)) in list.iter().enumerate() {
                prop_assert_eq!((set.at(place), set.place_of(way), set.is_dirty(way)), (way, place, dirty));
                prop_assert_eq!(set.find(mark, |other| other == way), Some(way));
            }
            prop_assert_eq!(set.dirty() as usize, list.iter().filter(|(.., dirty)| *dirty).count());
            for mark in (0..5).chain([LAST_MARK]) {
                let first = list.iter().filter(|&&(_, other, _)| other == mark).map(|&(way, ..)| way).min();
                prop_assert_eq!(set.find(mark, |_| true), first);
            }
        }
        Ok(())
    }

    proptest! {
        /// Others keep their order, whatever moves, and each way its mark.
        #[test]
        fn a_set_is_a_list_from_which_one_is_taken_and_put_elsewhere(
            ways in 1..40_usize, moves in prop::collection::vec((any::<u16>(), any::<u16>(), 1..4_u8), 0..60),
        ) {
            goes_as_a_list_does::<Wide>(ways, &moves)?;
            goes_as_a_list_does::<Packed>(1 + ways % Packed::WAYS, &moves)?;
        }
    }
}
