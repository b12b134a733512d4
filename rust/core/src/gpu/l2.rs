//! What L2 holds: set-associative parts, each with copies of what is at home in another.
//!
//! Every line is at home in one part, by a hash of its address. A read that does not find its line in the reader's own part
//! goes on to the home, and leaves a copy on its way back. Lines are kept in blocks as large as the accesses of a program
//! allow: if every access covers whole blocks, the lines of a block come and go together, in as many neighbouring sets, and
//! one entry tells the same as one a line.

use super::policy::replacement::{Policy, Replacement};
use crate::device::L2;
use crate::engine::Time;

/// The grain at which addresses are spread over parts and sets.
const PAGE_BYTES: u64 = 4096;

/// Where a block is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    block: u64,
    set: usize,
    /// The part at which it is at home.
    pub(crate) home: usize,
    /// Which sectors of a line are meant, a bit each; of blocks of several lines always all.
    sectors: u32,
}

/// All sectors.
const ALL_SECTORS: u32 = u32::MAX;

impl Address {
    /// A number for this block alone, and for these sectors of it.
    pub(crate) fn request(self) -> u64 {
        if self.sectors == ALL_SECTORS { self.block } else { self.block | (u64::from(self.sectors) << 56) }
    }

    /// The same block, and of it only these sectors: from the one with byte `from` of a line to the one with the byte before
    /// `to`.
    #[inline]
    pub(crate) fn of_line(self, from: u64, to: u64, sector: u64) -> Self {
        let count = to.div_ceil(sector) - from / sector;
        Self { sectors: ((1 << count) - 1) << (from / sector), ..self }
    }

    /// How many sectors are meant, of a block of `all`.
    #[inline]
    pub(crate) fn sectors(self, all: u64) -> u64 {
        if all >= u64::from(u32::BITS) { all } else { u64::from((self.sectors & ((1 << all) - 1)).count_ones()) }
    }
}

/// The parts of L2.
#[derive(Debug)]
pub(crate) struct Cache {
    parts: Vec<Part>,
    ways: usize,
    /// Dirty lines of a set.
    most_dirty: u32,
    write_backs: WriteBacks,
    geometry: Geometry,
}

/// How many dirty bytes may be driven out: what the way to DRAM has taken meanwhile.
#[derive(Debug)]
struct WriteBacks {
    bytes_per_ps: f64,
    /// Bytes that it takes now.
    may: f64,
    /// Up to when it has gone on.
    until: Time,
}

/// The way to DRAM makes up for no more idle time than this: a microsecond.
const IDLE: Time = Time(1_000_000);

impl WriteBacks {
    /// Time has gone on.
    fn go_on(&mut self, now: Time) {
        let most = IDLE.0 as f64 * self.bytes_per_ps;
        self.may = (self.may + now.since(self.until.min(now)).0 as f64 * self.bytes_per_ps).min(most);
        self.until = self.until.max(now);
    }

    /// Whether it takes so many.
    #[inline]
    fn takes(&mut self, bytes: u64) -> bool {
        let takes = self.may >= bytes as f64;
        self.may -= if takes { bytes as f64 } else { 0.0 };
        takes
    }
}

/// How addresses are spread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    parts: u64,
    /// A block is `1 << block_bits` bytes, a page `1 << page_bits`.
    block_bits: u32,
    page_bits: u32,
    /// Pages' worth of sets.
    rows: u64,
    lines_per_block: usize,
    /// Slices of a part.
    slices: usize,
}

/// One part: entries of set `s` lie at `s * ways`.
///
/// A lookup compares the marks of a set, a byte a way, and looks at the lines themselves only where these agree: of a set
/// that lies in no near cache of the host, it reads little.
#[derive(Debug)]
struct Part {
    /// Eight a word, as many words for each set.
    marks: Vec<u64>,
    lines: Vec<Line>,
    /// A bit a line: it was written to, and DRAM does not have that yet.
    dirty: Vec<u64>,
    policy: Policy,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    block: u64,
    /// When its data has come.
    ready: Time,
    /// Which of its sectors are there, or on their way.
    sectors: u32,
}

/// The mark of a way that holds nothing.
const EMPTY: u64 = 0;
/// The mark of what fills up the last word of a set.
const NO_WAY: u64 = 255;
/// Each byte of a word.
const BYTES: u64 = 0x0101_0101_0101_0101;

/// The mark of a block, from 1 to 254.
#[inline]
fn mark(block: u64) -> u64 {
    (((block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) * 254) >> 16) + 1
}

/// The bytes of a word that are `mark`, each by its highest bit.
#[inline]
fn bytes_with(word: u64, mark: u64) -> u64 {
    const LOW: u64 = 0x7f * BYTES;
    let other = word ^ (mark * BYTES);
    !(((other & LOW) + LOW) | other | LOW)
}

impl Part {
    fn new(l2: &L2, sets: usize, seed: u64, part: usize) -> Self {
        let ways = l2.ways as usize;
        let mut marks = vec![0; sets * words(ways)];
        if !ways.is_multiple_of(8) {
            for last in marks.chunks_exact_mut(words(ways)).map(|set| &mut set[words(ways) - 1]) {
                *last = (NO_WAY * BYTES) << (8 * (ways % 8));
            }
        }
        let lines = vec![Line { block: 0, ready: Time::ZERO, sectors: 0 }; sets * ways];
        let dirty = vec![0; lines.len().div_ceil(64)];
        Self { marks, lines, dirty, policy: Policy::new(l2, sets, seed, part) }
    }

    /// The first way of a set with this mark whose line is as asked.
    #[inline]
    fn way_of(&self, ways: usize, set: usize, mark: u64, is_it: impl Fn(&Line) -> bool) -> Option<usize> {
        let lines = &self.lines[set * ways..(set + 1) * ways];
        for (i, &word) in self.marks[set * words(ways)..(set + 1) * words(ways)].iter().enumerate() {
            let mut found = bytes_with(word, mark);
            while found != 0 {
                let way = 8 * i + found.trailing_zeros() as usize / 8;
                if is_it(&lines[way]) {
                    return Some(way);
                }
                found &= found - 1;
            }
        }
        None
    }

    /// The line of an entry is not dirty any more: whether it was.
    #[inline]
    fn cleaned(&mut self, entry: usize) -> bool {
        let (word, bit) = (&mut self.dirty[entry / 64], 1 << (entry % 64));
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    #[inline]
    fn is_dirty(&self, entry: usize) -> bool {
        self.dirty[entry / 64] >> (entry % 64) & 1 == 1
    }

    /// Of the lines of a set that are dirty, or are not, the way of the one that makes room first.
    fn oldest(&self, ways: usize, set: usize, dirty: bool) -> Option<usize> {
        let candidates = (0..ways).filter(|&way| self.is_dirty(set * ways + way) == dirty);
        candidates.max_by_key(|&way| self.policy.age(set, way))
    }

    /// If more than `most` lines of a set are dirty, the one that makes room first is not dirty any more: whether there was one.
    fn clean_one(&mut self, ways: usize, set: usize, most: u32) -> bool {
        let first = set * ways;
        let dirty = (first..first + ways).filter(|&entry| self.is_dirty(entry)).count();
        if dirty <= most as usize {
            return false;
        }
        self.oldest(ways, set, true).is_some_and(|way| self.cleaned(first + way))
    }

    #[inline]
    fn set_mark(&mut self, ways: usize, set: usize, way: usize, mark: u64) {
        let word = &mut self.marks[set * words(ways) + way / 8];
        let shift = 8 * (way % 8);
        *word = *word & !(0xff << shift) | mark << shift;
    }
}

/// Words for the marks of a set.
#[inline]
fn words(ways: usize) -> usize {
    ways.div_ceil(8)
}

/// What was found in one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The block is there, or on its way.
    Hit {
        /// What to tell [`Cache::filled`].
        entry: usize,
        /// When its data can be had.
        ready: Time,
    },
    /// The line is there, and not all of the sectors; they are now on their way.
    Part {
        /// What to tell [`Cache::filled`].
        entry: usize,
        /// What is missing.
        missing: Address,
        /// When the others can be had.
        ready: Time,
    },
    /// It was not there; its place is now kept, and whether that drove out a block with data to be written back.
    Miss {
        /// What to tell [`Cache::filled`].
        entry: usize,
        /// The block that had the place had been written to.
        writes_back: bool,
    },
}

/// The largest block that the accesses of a program allow: `alignment` divides the start and length of them all.
pub(crate) fn block_bytes(l2: &L2, alignment: u64) -> u64 {
    alignment.clamp(u64::from(l2.line_bytes), page_bytes(l2))
}

/// A page, or what all sets hold in one way if that is less.
fn page_bytes(l2: &L2) -> u64 {
    let line = u64::from(l2.line_bytes);
    PAGE_BYTES.max(line).min(line << sets(l2).ilog2())
}

/// Sets of one part.
fn sets(l2: &L2) -> u64 {
    let row = u64::from(l2.line_bytes) * u64::from(l2.ways) * u64::from(l2.halves);
    ((l2.bytes - l2.reserved_bytes) / row).max(1)
}

impl Geometry {
    fn block_bytes(&self) -> u64 {
        1 << self.block_bits
    }

    /// Blocks of a page.
    pub(crate) fn blocks_per_page(&self) -> u64 {
        1 << (self.page_bits - self.block_bits)
    }

    /// Where the block with this byte of a buffer is kept. Of as many neighbouring pages as there are parts, each has one at
    /// home; these take the same sets, and so do all sets get equal shares of a contiguous buffer, in every part.
    #[inline]
    pub(crate) fn address(&self, buffer: u16, offset: u64) -> Address {
        let parts = self.parts;
        let block = (offset >> self.block_bits) | (u64::from(buffer) << 39);
        let page = offset >> self.page_bits;
        let (group, member) = if parts == 2 { (page >> 1, page & 1) } else { (page / parts, page % parts) };
        let salt = u64::from(buffer) << 44;
        let home = (member + hash(group | salt)) % parts;
        let row = (group + hash((group / self.rows) ^ salt ^ (1 << 43))) % self.rows;
        let page_blocks = self.page_bits - self.block_bits;
        let set = (row << page_blocks) | ((offset >> self.block_bits) & ((1 << page_blocks) - 1));
        Address { block, set: set as usize, home: home as usize, sectors: ALL_SECTORS }
    }

    /// The slices in which the lines of a block are kept in one part, numbered over all parts. A slice is made of whole
    /// sets: of as many neighbouring sets as there are slices each has one, in an order that a hash turns around.
    pub(crate) fn slices(self, at: Address, part: usize) -> impl ExactSizeIterator<Item = usize> {
        let first = at.set * self.lines_per_block;
        (first..first + self.lines_per_block).map(move |set| {
            let turned = hash((set / self.slices) as u64) as usize % self.slices;
            part * self.slices + (set + turned) % self.slices
        })
    }
}

impl Cache {
    /// An empty cache whose random choices, if it makes any, follow from `seed`.
    pub(crate) fn new(l2: &L2, block_bytes: u64, seed: u64) -> Self {
        let page_bytes = page_bytes(l2);
        let rows = sets(l2) * u64::from(l2.line_bytes) / page_bytes;
        let blocks_per_page = page_bytes / block_bytes;
        let sets = (rows * blocks_per_page) as usize;
        Self {
            parts: (0..usize::from(l2.halves)).map(|part| Part::new(l2, sets, seed, part)).collect(),
            ways: l2.ways as usize,
            most_dirty: l2.dirty_ways,
            write_backs: WriteBacks { bytes_per_ps: l2.write_back_bandwidth_gb_s / 1e3, may: 0.0, until: Time::ZERO },
            geometry: Geometry {
                parts: u64::from(l2.halves),
                block_bits: block_bytes.trailing_zeros(),
                page_bits: page_bytes.trailing_zeros(),
                rows,
                lines_per_block: (block_bytes / u64::from(l2.line_bytes)) as usize,
                slices: l2.slices as usize / usize::from(l2.halves),
            },
        }
    }

    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Looks a block up in one part, and takes a place for it if it is not there.
    #[inline]
    pub(crate) fn look_up(&mut self, part: usize, at: Address) -> Found {
        let (ways, first) = (self.ways, at.set * self.ways);
        let part = &mut self.parts[part];
        let mark = mark(at.block);
        if let Some(way) = part.way_of(ways, at.set, mark, |line| line.block == at.block) {
            part.policy.hit(at.set, way);
            let line = &mut part.lines[first + way];
            let missing = at.sectors & !line.sectors;
            if missing == 0 {
                return Found::Hit { entry: first + way, ready: line.ready };
            }
            line.sectors |= missing;
            return Found::Part { entry: first + way, missing: Address { sectors: missing, ..at }, ready: line.ready };
        }
        let empty = part.way_of(ways, at.set, EMPTY, |_| true);
        let way = empty.unwrap_or_else(|| {
            let oldest = part.policy.victim(at.set);
            if !part.is_dirty(first + oldest) || self.write_backs.takes(self.geometry.block_bytes()) {
                return oldest;
            }
            part.oldest(ways, at.set, false).unwrap_or(oldest)
        });
        // What is driven out is not looked at: its line is far away, and its bit near.
        let writes_back = part.cleaned(first + way);
        (part.lines[first + way].block, part.lines[first + way].sectors) = (at.block, at.sectors);
        part.set_mark(ways, at.set, way, mark);
        part.policy.filled(at.set, way);
        Found::Miss { entry: first + way, writes_back }
    }

    /// Time has gone on, in which dirty lines may have been driven out.
    #[inline]
    pub(crate) fn go_on(&mut self, now: Time) {
        self.write_backs.go_on(now);
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
        let ways = self.ways;
        for other in (0..self.parts.len()).filter(|&other| other != at.home && other != part) {
            let other = &mut self.parts[other];
            if let Some(way) = other.way_of(ways, at.set, mark(at.block), |line| line.block == at.block) {
                other.set_mark(ways, at.set, way, EMPTY);
                other.cleaned(at.set * ways + way);
                other.policy.dropped(at.set, way);
            }
        }
        let mut written_back = 0;
        if part != at.home {
            written_back += self.put(part, at, now).1;
        }
        let (entry, driven_out) = self.put(at.home, at, now);
        written_back += driven_out;
        if dirty {
            let part = &mut self.parts[at.home];
            part.dirty[entry / 64] |= 1 << (entry % 64);
            written_back += u64::from(part.clean_one(ways, at.set, self.most_dirty));
        }
        written_back
    }

    /// What was written is kept in a part: where, and how many blocks this has written back.
    fn put(&mut self, part: usize, at: Address, now: Time) -> (usize, u64) {
        let (entry, ready, written_back) = match self.look_up(part, at) {
            Found::Miss { entry, writes_back } => (entry, now, u64::from(writes_back)),
            Found::Hit { entry, ready } | Found::Part { entry, ready, .. } => (entry, ready.max(now), 0),
        };
        self.filled(part, entry, ready);
        (entry, written_back)
    }
}

/// The finalizer of MurmurHash3 (Appleby 2011).
pub(crate) fn hash(x: u64) -> u64 {
    let x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}
