//! What L2 holds: set-associative parts, each with copies of what is at home in another.
//!
//! Every line is at home in one part, by a hash of its address. A read that does not find its line in the reader's own part
//! goes on to the home, and leaves a copy on its way back. One entry stands for a block of lines, see [`super::address`].

use super::address::{Address, Geometry, SECTORS_SHIFT, hash};
use super::stack::{EMPTY, Stacks, Stand};
use crate::device::L2;
use crate::engine::Time;
use crate::gpu::policy::replacement::{Policy, Replacement};

/// The parts of L2.
#[derive(Debug)]
pub(crate) struct Cache {
    parts: Vec<Part>,
    /// Dirty lines of a set.
    most_dirty: u32,
}

/// One part. Lines of the same way of neighbouring sets lie side by side: they are mostly used one after the other.
#[derive(Debug)]
struct Part {
    sets: usize,
    ways: usize,
    stacks: Stacks,
    /// That of way `w` of set `s` is at `w * sets + s`.
    lines: Vec<Line>,
    /// A bit a line: it was written to, and DRAM does not have that yet.
    dirty: Vec<u64>,
    policy: Policy,
    /// Of dirty lines that are to make room, the share that stays, in parts of 2^24; and how often that has been drawn.
    dirty_stays: u64,
    draws: u64,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    /// The block, and above it which of its sectors are there, or on their way.
    tag: u64,
    /// When its data has come.
    ready: Time,
}

impl Line {
    #[inline]
    fn new(at: Address) -> Self {
        Self { tag: at.block | u64::from(at.sectors) << SECTORS_SHIFT, ready: Time::ZERO }
    }

    #[inline]
    fn is(self, block: u64) -> bool {
        self.tag << 8 == block << 8
    }

    #[inline]
    fn sectors(self) -> u8 {
        (self.tag >> SECTORS_SHIFT) as u8
    }
}

/// What was found in one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// What to tell [`Cache::filled`].
    pub(crate) entry: usize,
    /// Which sectors were not there, nor on their way: now they are. Without any, it was a hit.
    pub(crate) missing: u8,
    /// When the others can be had.
    pub(crate) ready: Time,
    /// The block that had the place had been written to, and DRAM does not have that yet.
    pub(crate) writes_back: bool,
}

impl Part {
    fn new(l2: &L2, sets: usize, seed: u64, part: usize) -> Self {
        let ways = l2.ways as usize;
        let lines = vec![Line { tag: 0, ready: Time::ZERO }; sets * ways];
        let dirty = vec![0; lines.len().div_ceil(64)];
        let policy = Policy::new(l2, sets, seed, part);
        let dirty_stays = (l2.dirty_stays * (1_u32 << 24) as f64) as u64;
        Self { sets, ways, stacks: Stacks::new(sets, ways), lines, dirty, policy, dirty_stays, draws: 0 }
    }

    /// The line of an entry is not dirty any more: whether it was.
    #[inline]
    fn cleaned(&mut self, entry: usize) -> bool {
        let (word, bit) = (&mut self.dirty[entry / 64], 1 << (entry % 64));
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    /// If more than `most` lines of a set are dirty, the one that makes room first is not dirty any more: whether there was one.
    fn clean_one(&mut self, set: usize, most: u32) -> bool {
        let dirty = (0..self.ways).filter(|&way| is_set(&self.dirty, way * self.sets + set)).count();
        if dirty <= most as usize {
            return false;
        }
        let stack = self.stacks.of(set);
        let is_dirty = |place: &usize| is_set(&self.dirty, stack.at(*place).way * self.sets + set);
        let oldest = (0..self.ways).filter(is_dirty).max_by_key(|&place| self.policy.age(set, place));
        oldest.is_some_and(|place| {
            let way = self.stacks.of(set).at(place).way;
            self.cleaned(way * self.sets + set)
        })
    }

    /// The place that a new line takes. A dirty line whose turn has come may stay, as if it had been used.
    #[inline]
    fn room(&mut self, set: usize) -> usize {
        let mut others = 1..self.ways;
        loop {
            let stack = self.stacks.of(set);
            let place = self.policy.room(set, || stack.find(EMPTY, |_| true).map(|stand| stand.place));
            let (is_dirty, mark) = (is_set(&self.dirty, stack.at(place).way * self.sets + set), stack.mark(place));
            if !is_dirty || others.next().is_none() || !self.stays() {
                return place;
            }
            self.stacks.of(set).put(place, self.policy.hit(set, place), mark);
        }
    }

    fn stays(&mut self) -> bool {
        self.draws += 1;
        hash(self.draws) >> 40 < self.dirty_stays
    }

    /// Looks a block up, and takes a place for it if it is not there.
    #[inline]
    fn look_up(&mut self, at: Address) -> Found {
        let (set, sets) = (at.set as usize, self.sets);
        let (stack, lines) = (self.stacks.of(set), &mut self.lines);
        if let Some(Stand { place, way }) = stack.find(at.mark, |way| lines[way * sets + set].is(at.block)) {
            stack.put(place, self.policy.hit(set, place), at.mark);
            let entry = way * sets + set;
            let line = &mut lines[entry];
            let missing = at.sectors & !line.sectors();
            line.tag |= u64::from(missing) << SECTORS_SHIFT;
            return Found { entry, missing, ready: line.ready, writes_back: false };
        }
        let place = self.room(set);
        let stack = self.stacks.of(set);
        let entry = stack.at(place).way * sets + set;
        stack.put(place, self.policy.filled(set, place), at.mark);
        self.lines[entry] = Line::new(at);
        // What is driven out is not looked at: its line is far away, and its bit near.
        let writes_back = self.cleaned(entry);
        Found { entry, missing: at.sectors, ready: Time::ZERO, writes_back }
    }

    /// What was written is kept: where, and how many blocks this has written back.
    fn put(&mut self, at: Address, now: Time) -> (usize, u64) {
        let found = self.look_up(at);
        let ready = &mut self.lines[found.entry].ready;
        *ready = (*ready).max(now);
        (found.entry, u64::from(found.writes_back))
    }

    /// Drops a block, if it is there.
    fn drop_copy(&mut self, at: Address) {
        let (set, sets) = (at.set as usize, self.sets);
        let (stack, lines) = (self.stacks.of(set), &self.lines);
        if let Some(Stand { place, way }) = stack.find(at.mark, |way| lines[way * sets + set].is(at.block)) {
            stack.put(place, self.policy.dropped(set, place), EMPTY);
            self.cleaned(way * sets + set);
        }
    }
}

/// Whether the bit of an entry is set.
#[inline]
fn is_set(bits: &[u64], entry: usize) -> bool {
    bits[entry / 64] >> (entry % 64) & 1 == 1
}

impl Cache {
    /// An empty cache whose random choices, if it makes any, follow from `seed`.
    pub(crate) fn new(l2: &L2, geometry: &Geometry, seed: u64) -> Self {
        let part = |part| Part::new(l2, geometry.sets(), seed, part);
        Self { parts: (0..usize::from(l2.halves)).map(part).collect(), most_dirty: l2.dirty_ways }
    }

    /// Looks a block up in one part, and takes a place for it if it is not there.
    #[inline]
    pub(crate) fn look_up(&mut self, part: usize, at: Address) -> Found {
        self.parts[part].look_up(at)
    }

    /// A block's data comes at `ready`.
    #[inline]
    pub(crate) fn filled(&mut self, part: usize, entry: usize, ready: Time) {
        self.parts[part].lines[entry].ready = ready;
    }

    /// A block is written to through `part`: it is kept at home and there, and other copies are dropped. It is `dirty` if DRAM
    /// is to have it only later. How many blocks this has written back: those that it drove out, and of a set with too many
    /// dirty ones the oldest.
    #[inline]
    pub(crate) fn write(&mut self, part: usize, at: Address, now: Time, dirty: bool) -> u64 {
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
        let (entry, driven_out) = self.parts[home].put(at, now);
        written_back += driven_out;
        if dirty {
            let part = &mut self.parts[home];
            part.dirty[entry / 64] |= 1 << (entry % 64);
            written_back += u64::from(part.clean_one(at.set as usize, self.most_dirty));
        }
        written_back
    }
}
