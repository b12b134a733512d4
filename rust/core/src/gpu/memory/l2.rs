//! What L2 holds: set-associative parts, each with copies of what is at home in another.
//!
//! Every line is at home in one part, by a hash of its address. A read that does not find its line in the reader's own part
//! goes on to the home, and leaves a copy on its way back. One entry stands for a block of lines, see [`super::address`].
#![expect(clippy::inline_always, reason = "part of the loop over blocks, see `blocks`")]

use std::fmt::Debug;

use super::address::{Address, Geometry, SECTORS_SHIFT};
use super::blocks::{Load, Log, Moved, Sharing};
use super::stack::{EMPTY, Packed, Stack, Wide};
use crate::device::{L2, Replacement as Named};
use crate::engine::Time;
use crate::engine::rng::Draws;
use crate::gpu::policy::replacement::{Lru, NotRecentlyUsed, Protected, Random, Replacement};

/// L2, whatever its sets and its policy are: these are told apart once a load or store.
pub(crate) trait Cache: Debug {
    /// Loads blocks one after the other. What that moves is counted in `moved`, and of each block told to the `log`.
    fn load(&mut self, load: &Load<'_>, sharing: Sharing<'_>, moved: &mut Moved, log: Option<Log<'_>>);

    /// A block is written to through `part`: it is kept at home and there, and other copies are dropped. It is `dirty` if DRAM
    /// is to have it only later. How many blocks this has written back: those that it drove out, and of a set with too many
    /// dirty ones the oldest.
    fn write(&mut self, part: usize, at: Address, now: Time, dirty: bool) -> u64;
}

/// An empty cache whose random choices, if it makes any, follow from `seed`.
pub(crate) fn cache(l2: &L2, geometry: &Geometry, seed: u64) -> Box<dyn Cache> {
    fn of<P: Replacement + 'static>(l2: &L2, sets: usize, seed: u64) -> Box<dyn Cache> {
        if l2.ways as usize <= Packed::WAYS {
            Box::new(Parts::<Packed, P>::new(l2, sets, seed))
        } else {
            Box::new(Parts::<Wide, P>::new(l2, sets, seed))
        }
    }
    let sets = geometry.sets();
    match l2.replacement {
        Named::Lru => of::<Lru>(l2, sets, seed),
        Named::NotRecentlyUsed => of::<NotRecentlyUsed>(l2, sets, seed),
        Named::Random => of::<Random>(l2, sets, seed),
        Named::Protected => of::<Protected>(l2, sets, seed),
    }
}

/// The parts of L2.
#[derive(Debug)]
struct Parts<S, P> {
    parts: Vec<Part<S, P>>,
    /// Dirty lines of a set.
    most_dirty: u32,
}

/// One part. Lines of the same way of neighbouring sets lie side by side: they are mostly used one after the other.
#[derive(Debug)]
pub(crate) struct Part<S, P> {
    ways: usize,
    sets: Vec<S>,
    /// That of way `w` of set `s` is at `w * sets.len() + s`.
    lines: Vec<Line>,
    policy: P,
    staying: Staying,
}

/// Of dirty lines that are to make room, some stay.
#[derive(Debug)]
struct Staying {
    /// The share, in parts of 2^24.
    share: u64,
    draws: Draws,
}

impl Staying {
    /// The place that a new line takes. A dirty line whose turn has come may stay, as if it had been used.
    #[inline]
    fn room<S: Stack>(&mut self, set: usize, ways: usize, stack: &mut S, policy: &mut impl Replacement) -> usize {
        let mut others = 1..ways;
        loop {
            let place = policy.room(set, &|| first_empty(stack));
            if !stack.is_dirty(stack.at(place)) || others.next().is_none() || !self.draw() {
                return place;
            }
            stack.put(place, policy.hit(set, place));
        }
    }

    fn draw(&mut self) -> bool {
        self.draws.next() >> 40 < self.share
    }
}

/// A line: its block, and above it which of its sectors are there or on their way; and when its data has come. Of words that are
/// zero at first a host has pages only where they are used.
type Line = [u64; 2];
const TAG: usize = 0;
const READY: usize = 1;

#[inline]
fn tag(at: Address) -> u64 {
    at.block | u64::from(at.sectors) << SECTORS_SHIFT
}

#[inline]
fn is(line: Line, block: u64) -> bool {
    line[TAG] << 8 == block << 8
}

/// The first place without a line.
#[inline]
fn first_empty(stack: &impl Stack) -> Option<usize> {
    stack.find(EMPTY, |_| true).map(|way| stack.place_of(way))
}

/// What was found in one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// What to tell [`Part::filled`].
    pub(crate) entry: u32,
    /// Which sectors were not there, nor on their way: now they are. Without any, it was a hit.
    pub(crate) missing: u8,
    /// When the others can be had.
    pub(crate) ready: Time,
    /// The block that had the place had been written to, and DRAM does not have that yet.
    pub(crate) writes_back: bool,
}

impl<S: Stack, P: Replacement> Part<S, P> {
    fn new(l2: &L2, sets: usize, seed: u64, part: usize) -> Self {
        let ways = l2.ways as usize;
        Self {
            ways,
            sets: vec![S::new(ways); sets],
            lines: vec![[0; 2]; sets * ways],
            policy: P::new(l2, sets, seed, part),
            staying: Staying { share: (l2.dirty_stays * (1_u32 << 24) as f64) as u64, draws: Draws::default() },
        }
    }

    /// If more than `most` lines of a set are dirty, the one that makes room first is not dirty any more: whether there was one.
    fn clean_one(&mut self, set: usize, most: u32) -> bool {
        let stack = &mut self.sets[set];
        if stack.dirty() <= most {
            return false;
        }
        let dirty = (0..self.ways).filter(|&place| stack.is_dirty(stack.at(place)));
        let oldest = dirty.max_by_key(|&place| self.policy.age(set, place));
        oldest.is_some_and(|place| {
            stack.set_dirty(stack.at(place), false);
            true
        })
    }

    /// Looks a block up, and takes a place for it if it is not there. What is missing comes at a time.
    #[inline(always)]
    pub(super) fn look_up(&mut self, at: Address, comes: Time) -> Found {
        let (set, sets) = (at.set as usize, self.sets.len());
        let (stack, lines) = (&mut self.sets[set], &mut self.lines);
        if let Some(way) = stack.find(at.mark, |way| is(lines[way * sets + set], at.block)) {
            let place = stack.place_of(way);
            stack.put(place, self.policy.hit(set, place));
            let entry = way * sets + set;
            let line = &mut lines[entry];
            let (missing, ready) = (at.sectors & !(line[TAG] >> SECTORS_SHIFT) as u8, Time(line[READY]));
            if missing != 0 {
                *line = [line[TAG] | u64::from(missing) << SECTORS_SHIFT, comes.0];
            }
            return Found { entry: entry as u32, missing, ready, writes_back: false };
        }
        // Most sets are clean, and then no way has to be asked.
        let clean = stack.is_clean();
        let place = if clean {
            self.policy.room(set, &|| first_empty(stack))
        } else {
            self.staying.room(set, self.ways, stack, &mut self.policy)
        };
        let way = stack.at(place);
        stack.put(place, self.policy.filled(set, place));
        stack.mark(way, at.mark);
        // What is driven out is not looked at: its line is far away, and its bit near.
        let writes_back = !clean && stack.is_dirty(way);
        if writes_back {
            stack.set_dirty(way, false);
        }
        let entry = way * sets + set;
        lines[entry] = [tag(at), comes.0];
        Found { entry: entry as u32, missing: at.sectors, ready: Time::ZERO, writes_back }
    }

    /// What was missing of a block that was looked up comes at another time.
    #[inline]
    pub(super) fn filled(&mut self, entry: u32, comes: Time) {
        self.lines[entry as usize][READY] = comes.0;
    }

    /// What was written is kept: in which entry, and how many blocks this has written back.
    fn put(&mut self, at: Address, now: Time) -> (usize, u64) {
        let found = self.look_up(at, now);
        self.filled(found.entry, found.ready.max(now));
        (found.entry as usize, u64::from(found.writes_back))
    }

    /// Drops a block, if it is there.
    fn drop_copy(&mut self, at: Address) {
        let (set, sets) = (at.set as usize, self.sets.len());
        let (stack, lines) = (&mut self.sets[set], &self.lines);
        if let Some(way) = stack.find(at.mark, |way| is(lines[way * sets + set], at.block)) {
            let place = stack.place_of(way);
            stack.put(place, self.policy.dropped(set, place));
            stack.mark(way, EMPTY);
            stack.set_dirty(way, false);
        }
    }
}

impl<S: Stack, P: Replacement> Parts<S, P> {
    fn new(l2: &L2, sets: usize, seed: u64) -> Self {
        let part = |part| Part::new(l2, sets, seed, part);
        Self { parts: (0..usize::from(l2.halves)).map(part).collect(), most_dirty: l2.dirty_ways }
    }
}

impl<S: Stack, P: Replacement> Cache for Parts<S, P> {
    fn load(&mut self, load: &Load<'_>, sharing: Sharing<'_>, moved: &mut Moved, log: Option<Log<'_>>) {
        load.through(&mut self.parts, sharing, moved, log);
    }

    fn write(&mut self, part: usize, at: Address, now: Time, dirty: bool) -> u64 {
        let home = usize::from(at.home);
        for (other, copies) in self.parts.iter_mut().enumerate() {
            if other != home && other != part {
                copies.drop_copy(at);
            }
        }
        let mut written_back = 0;
        if part != home {
            written_back += self.parts[part].put(at, now).1;
        }
        let part = &mut self.parts[home];
        let (entry, driven_out) = part.put(at, now);
        written_back += driven_out;
        if dirty {
            let set = at.set as usize;
            let way = entry / part.sets.len();
            part.sets[set].set_dirty(way, true);
            written_back += u64::from(part.clean_one(set, self.most_dirty));
        }
        written_back
    }
}
