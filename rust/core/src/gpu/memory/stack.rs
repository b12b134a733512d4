//! The ways of sets, each set's in an order: a stack in which what is used moves to another place.
//!
//! Of each way a set keeps a mark, a byte that says what its line can be. A lookup compares all of them at once and looks at
//! the lines themselves only where these agree: of a set that lies in no near cache of the host, it reads little. The marks
//! and the ways stand in their order, as bytes and half bytes of one word each, so that to move one is a few shifts.

use super::lanes;

/// The stacks of all sets.
#[derive(Debug)]
pub(crate) enum Stacks {
    /// Of up to [`PACKED`] ways.
    Packed(Vec<Packed>),
    /// Of any number: marks and ways, a byte each.
    Wide { ways: usize, marks: Vec<u8>, order: Vec<u8> },
}

/// The most ways of a stack in two words.
const PACKED: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed {
    marks: u128,
    order: u64,
}

/// The mark of a way that holds nothing.
pub(crate) const EMPTY: u8 = 0;
/// The mark of places that a stack does not have.
const NO_PLACE: u8 = 255;

/// Marks of lines are from 1 to this.
pub(crate) const LAST_MARK: u8 = 254;

/// A way, and the place at which it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stand {
    pub(crate) place: usize,
    pub(crate) way: usize,
}

/// Of each place the bytes, and the half bytes, that stand before it.
const BYTES_BEFORE: [u128; PACKED + 1] = {
    let mut before = [u128::MAX; PACKED + 1];
    let mut place = 0;
    while place < PACKED {
        before[place] = (1 << (8 * place)) - 1;
        place += 1;
    }
    before
};
const HALVES_BEFORE: [u64; PACKED + 1] = {
    let mut before = [u64::MAX; PACKED + 1];
    let mut place = 0;
    while place < PACKED {
        before[place] = (1 << (4 * place)) - 1;
        place += 1;
    }
    before
};

impl Packed {
    /// See [`Stack::put`].
    #[inline(never)]
    fn put(&mut self, from: usize, to: usize, mark: u8) {
        let Self { marks, order } = *self;
        let way = order >> (4 * from) & 15;
        // What moves by one place stays within these bounds.
        let (first, end) = (from.min(to), from.max(to) + 1);
        let (bytes, halves) = (BYTES_BEFORE[end] & !BYTES_BEFORE[first], HALVES_BEFORE[end] & !HALVES_BEFORE[first]);
        let (by_byte, by_half) = if to <= from { (marks << 8, order << 4) } else { (marks >> 8, order >> 4) };
        let (byte, half) = (BYTES_BEFORE[to + 1] & !BYTES_BEFORE[to], HALVES_BEFORE[to + 1] & !HALVES_BEFORE[to]);
        self.marks = marks & !bytes | by_byte & bytes & !byte | u128::from(mark) << (8 * to);
        self.order = order & !halves | by_half & halves & !half | way << (4 * to);
    }

    /// The same for the first place.
    #[inline]
    fn raise(&mut self, from: usize, mark: u8) {
        let Self { marks, order } = *self;
        let (bytes, halves) = (BYTES_BEFORE[from + 1], HALVES_BEFORE[from + 1]);
        self.marks = marks & !bytes | marks << 8 & bytes | u128::from(mark);
        self.order = order & !halves | order << 4 & halves | order >> (4 * from) & 15;
    }
}

impl Stacks {
    /// So many, empty; the first way stands first.
    pub(crate) fn new(sets: usize, ways: usize) -> Self {
        if ways > PACKED {
            let order: Vec<u8> = (0..ways).map(|way| way as u8).collect();
            return Self::Wide { ways, marks: vec![EMPTY; sets * ways], order: order.repeat(sets) };
        }
        let marks = std::array::from_fn(|place| if place < ways { EMPTY } else { NO_PLACE });
        let order = (0..PACKED as u64).fold(0, |order, way| order | way << (4 * way));
        Self::Packed(vec![Packed { marks: u128::from_le_bytes(marks), order }; sets])
    }

    /// The stack of one set.
    #[inline]
    pub(crate) fn of(&mut self, set: usize) -> Stack<'_> {
        match self {
            Self::Packed(stacks) => Stack::Packed(&mut stacks[set]),
            Self::Wide { ways, marks, order } => {
                let ways = set * *ways..(set + 1) * *ways;
                Stack::Wide { marks: &mut marks[ways.clone()], order: &mut order[ways] }
            }
        }
    }
}

/// The stack of one set.
#[derive(Debug)]
pub(crate) enum Stack<'a> {
    Packed(&'a mut Packed),
    Wide { marks: &'a mut [u8], order: &'a mut [u8] },
}

impl Stack<'_> {
    /// The first with this mark whose way is as asked.
    #[inline]
    pub(crate) fn find(&self, mark: u8, is_it: impl Fn(usize) -> bool) -> Option<Stand> {
        match self {
            Self::Packed(stack) => {
                let Packed { marks, order } = **stack;
                for (first, word) in [(0, marks as u64), (8, (marks >> 64) as u64)] {
                    let mut found = lanes::equal(word, mark);
                    while found != 0 {
                        let place = first + lanes::first(found);
                        let way = (order >> (4 * place)) as usize % PACKED;
                        if is_it(way) {
                            return Some(Stand { place, way });
                        }
                        found &= found - 1;
                    }
                }
                None
            }
            Self::Wide { marks, order } => {
                let stands = order.iter().enumerate().map(|(place, &way)| Stand { place, way: usize::from(way) });
                stands.filter(|stand| marks[stand.place] == mark).find(|stand| is_it(stand.way))
            }
        }
    }

    /// Who stands at a place.
    #[inline]
    pub(crate) fn at(&self, place: usize) -> Stand {
        let way = match self {
            Self::Packed(stack) => (stack.order >> (4 * place)) as usize % PACKED,
            Self::Wide { order, .. } => usize::from(order[place]),
        };
        Stand { place, way }
    }

    /// The mark of who stands at a place.
    #[inline]
    pub(crate) fn mark(&self, place: usize) -> u8 {
        match self {
            Self::Packed(stack) => (stack.marks >> (8 * place)) as u8,
            Self::Wide { marks, .. } => marks[place],
        }
    }

    /// Moves the way that stands at `from` to the place `to`, with this mark; those between move by one place.
    #[inline]
    pub(crate) fn put(self, from: usize, to: usize, mark: u8) {
        match self {
            Self::Packed(stack) if to == 0 => stack.raise(from, mark),
            Self::Packed(stack) => stack.put(from, to, mark),
            Self::Wide { marks, order } => put_wide(marks, order, from, to, mark),
        }
    }
}

#[cold]
#[inline(never)]
fn put_wide(marks: &mut [u8], order: &mut [u8], from: usize, to: usize, mark: u8) {
    marks[from] = mark;
    if to <= from {
        marks[to..=from].rotate_right(1);
        order[to..=from].rotate_right(1);
    } else {
        marks[from..=to].rotate_left(1);
        order[from..=to].rotate_left(1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Marks and ways move together, others keep their order, and neighbouring sets stay as they are.
        #[test]
        fn stacks_are_lists_from_which_one_is_taken_and_put_elsewhere(
            ways in 1..40_usize, moves in prop::collection::vec((any::<u16>(), any::<u16>(), 1..4_u8), 0..60),
        ) {
            let mut stacks = Stacks::new(3, ways);
            let mut list: Vec<(usize, u8)> = (0..ways).map(|way| (way, EMPTY)).collect();
            for (from, to, mark) in moves {
                let (from, to) = (usize::from(from) % ways, usize::from(to) % ways);
                stacks.of(1).put(from, to, mark);
                let (way, _) = list.remove(from);
                list.insert(to, (way, mark));
                for (place, &(way, mark)) in list.iter().enumerate() {
                    let stand = Stand { place, way };
                    prop_assert_eq!(stacks.of(1).at(place), stand);
                    prop_assert_eq!(stacks.of(1).find(mark, |other| other == way), Some(stand));
                }
                for mark in 0..5 {
                    let place = list.iter().position(|&(_, other)| other == mark);
                    prop_assert_eq!(stacks.of(1).find(mark, |_| true).map(|stand| stand.place), place);
                }
            }
            for set in [0, 2] {
                prop_assert!((0..ways).all(|place| stacks.of(set).at(place).way == place));
                prop_assert!((1..=LAST_MARK).all(|mark| stacks.of(set).find(mark, |_| true).is_none()));
            }
        }
    }
}
