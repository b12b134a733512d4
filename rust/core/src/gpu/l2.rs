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
}

impl Address {
    /// A number for this block alone.
    pub(crate) fn block(self) -> u64 {
        self.block
    }
}

/// The parts of L2.
#[derive(Debug)]
pub(crate) struct Cache {
    parts: Vec<Part>,
    ways: usize,
    geometry: Geometry,
}

/// How addresses are spread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    parts: u64,
    block_bytes: u64,
    page_bytes: u64,
    /// Pages' worth of sets.
    rows: u64,
    /// Sets of a row.
    blocks_per_page: u64,
    lines_per_block: usize,
    /// Slices of a part.
    slices: usize,
}

/// One part: entries of set `s` lie at `s * ways`.
#[derive(Debug)]
struct Part {
    /// The block, or [`EMPTY`]. All that a lookup that misses has to read.
    tags: Vec<u64>,
    lines: Vec<Line>,
    /// How many ways of a set hold a block.
    held: Vec<u16>,
    policy: Policy,
}

/// What is kept of a block beside its tag.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// When its data has come.
    ready: Time,
    /// Whether it was written to, and DRAM does not have that yet.
    dirty: bool,
}

const EMPTY: u64 = u64::MAX;

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
    /// Where the block with this byte of a buffer is kept. Of as many neighbouring pages as there are parts, each has one at
    /// home; these take the same sets, and so do all sets get equal shares of a contiguous buffer, in every part.
    #[inline]
    pub(crate) fn address(&self, buffer: u32, offset: u64) -> Address {
        let parts = self.parts;
        let block = (offset / self.block_bytes) | (u64::from(buffer) << 39);
        let page = offset / self.page_bytes;
        let (group, member) = if parts == 2 { (page >> 1, page & 1) } else { (page / parts, page % parts) };
        let salt = u64::from(buffer) << 44;
        let home = (member + hash(group | salt)) % parts;
        let row = (group + hash((group / self.rows) ^ salt ^ (1 << 43))) % self.rows;
        let set = row * self.blocks_per_page + offset / self.block_bytes % self.blocks_per_page;
        Address { block, set: set as usize, home: home as usize }
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
        let entries = sets * l2.ways as usize;
        let part = |part| Part {
            tags: vec![EMPTY; entries],
            lines: vec![Line { ready: Time::ZERO, dirty: false }; entries],
            held: vec![0; sets],
            policy: Policy::new(l2, sets, seed, part),
        };
        Self {
            parts: (0..usize::from(l2.halves)).map(part).collect(),
            ways: l2.ways as usize,
            geometry: Geometry {
                parts: u64::from(l2.halves),
                block_bytes,
                page_bytes,
                rows,
                blocks_per_page,
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
        let first = at.set * self.ways;
        let part = &mut self.parts[part];
        let tags = &mut part.tags[first..first + self.ways];
        if let Some(way) = way_of(tags, at.block) {
            part.policy.hit(at.set, way);
            return Found::Hit { entry: first + way, ready: part.lines[first + way].ready };
        }
        let (way, writes_back) = if usize::from(part.held[at.set]) < self.ways {
            part.held[at.set] += 1;
            (way_of(tags, EMPTY).expect("a set that holds fewer blocks than ways has an empty one"), false)
        } else {
            let way = part.policy.victim(at.set);
            (way, part.lines[first + way].dirty)
        };
        tags[way] = at.block;
        part.lines[first + way].dirty = false;
        part.policy.filled(at.set, way);
        Found::Miss { entry: first + way, writes_back }
    }

    /// A block's data comes at `ready`.
    #[inline]
    pub(crate) fn filled(&mut self, part: usize, entry: usize, ready: Time) {
        self.parts[part].lines[entry].ready = ready;
    }

    /// A block is written to: it is kept at home, and copies are dropped. It is `dirty` if DRAM is to have it only when it is
    /// driven out. Whether the store drove out data to be written back.
    #[inline]
    pub(crate) fn write(&mut self, at: Address, now: Time, dirty: bool) -> bool {
        let first = at.set * self.ways;
        for part in (0..self.parts.len()).filter(|&part| part != at.home) {
            let part = &mut self.parts[part];
            if let Some(way) = way_of(&part.tags[first..first + self.ways], at.block) {
                part.tags[first + way] = EMPTY;
                part.held[at.set] -= 1;
                part.policy.dropped(at.set, way);
            }
        }
        let (entry, writes_back) = match self.look_up(at.home, at) {
            Found::Miss { entry, writes_back } => {
                self.parts[at.home].lines[entry].ready = now;
                (entry, writes_back)
            }
            Found::Hit { entry, .. } => (entry, false),
        };
        let line = &mut self.parts[at.home].lines[entry];
        line.dirty |= dirty;
        line.ready = line.ready.max(now);
        writes_back
    }
}

/// The way with this tag. All ways are compared, without a branch, so that several are at once.
#[inline]
fn way_of(tags: &[u64], block: u64) -> Option<usize> {
    let mut found = usize::MAX;
    for (way, &tag) in tags.iter().enumerate() {
        found = if tag == block { way } else { found };
    }
    (found != usize::MAX).then_some(found)
}

/// The finalizer of MurmurHash3 (Appleby 2011).
pub(crate) fn hash(x: u64) -> u64 {
    let x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}
