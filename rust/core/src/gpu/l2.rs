//! What L2 holds: set-associative parts, each with copies of what is at home in another.
//!
//! Every line is at home in one part, by a hash of its address. A read that does not find its line in the reader's own part
//! goes on to the home, and leaves a copy on its way back. Lines are kept in blocks as large as the accesses of a program
//! allow: if every access covers whole blocks, the lines of a block come and go together, in as many neighbouring sets, and
//! one entry tells the same as one a line.

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
    clock: u64,
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
}

/// One part: entries of set `s` lie at `s * ways`.
#[derive(Debug)]
struct Part {
    /// The block, with [`DIRTY`]; or [`EMPTY`].
    tags: Vec<u64>,
    used: Vec<u64>,
    /// When its data has come.
    ready: Vec<Time>,
}

const EMPTY: u64 = u64::MAX;
const DIRTY: u64 = 1 << 63;

/// What was found in one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The block is there, or on its way: since when its data can be had.
    Hit(Time),
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
}

impl Cache {
    pub(crate) fn new(l2: &L2, block_bytes: u64) -> Self {
        let page_bytes = page_bytes(l2);
        let rows = sets(l2) * u64::from(l2.line_bytes) / page_bytes;
        let blocks_per_page = page_bytes / block_bytes;
        let entries = (rows * blocks_per_page) as usize * l2.ways as usize;
        let part = || Part { tags: vec![EMPTY; entries], used: vec![0; entries], ready: vec![Time::ZERO; entries] };
        Self {
            parts: (0..l2.halves).map(|_| part()).collect(),
            ways: l2.ways as usize,
            geometry: Geometry { parts: u64::from(l2.halves), block_bytes, page_bytes, rows, blocks_per_page },
            clock: 0,
        }
    }

    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Looks a block up in one part, and takes a place for it if it is not there.
    #[inline]
    pub(crate) fn look_up(&mut self, part: usize, at: Address) -> Found {
        self.clock += 1;
        let entries = at.set * self.ways..(at.set + 1) * self.ways;
        let part = &mut self.parts[part];
        let tags = &part.tags[entries.clone()];
        if let Some(way) = tags.iter().position(|&tag| tag & !DIRTY == at.block) {
            let entry = entries.start + way;
            part.used[entry] = self.clock;
            return Found::Hit(part.ready[entry]);
        }
        // The least recently used; empty entries were never used.
        let mut entry = entries.start;
        let mut oldest = u64::MAX;
        for (i, &used) in entries.clone().zip(&part.used[entries]) {
            if used < oldest {
                (entry, oldest) = (i, used);
            }
        }
        let driven_out = part.tags[entry];
        part.tags[entry] = at.block;
        part.used[entry] = self.clock;
        Found::Miss { entry, writes_back: driven_out != EMPTY && driven_out & DIRTY != 0 }
    }

    /// A block's data comes at `ready`.
    #[inline]
    pub(crate) fn filled(&mut self, part: usize, entry: usize, ready: Time) {
        self.parts[part].ready[entry] = ready;
    }

    /// A block is written to: it is kept at home, and copies are dropped. Whether that drove out data to be written back.
    #[inline]
    pub(crate) fn write(&mut self, at: Address, now: Time) -> bool {
        for part in (0..self.parts.len()).filter(|&part| part != at.home) {
            let entries = at.set * self.ways..(at.set + 1) * self.ways;
            let part = &mut self.parts[part];
            if let Some(copy) = entries.into_iter().find(|&entry| part.tags[entry] == at.block) {
                part.tags[copy] = EMPTY;
                part.used[copy] = 0;
            }
        }
        let found = self.look_up(at.home, at);
        let entries = at.set * self.ways..(at.set + 1) * self.ways;
        let part = &mut self.parts[at.home];
        let (entry, writes_back) = match found {
            Found::Miss { entry, writes_back } => (entry, writes_back),
            Found::Hit(_) => {
                let same = |entry: &usize| part.tags[*entry] & !DIRTY == at.block;
                (entries.into_iter().find(same).expect("the block was found in its set"), false)
            }
        };
        part.tags[entry] |= DIRTY;
        part.ready[entry] = part.ready[entry].max(now);
        writes_back
    }
}

/// The finalizer of MurmurHash3 (Appleby 2011).
pub(crate) fn hash(x: u64) -> u64 {
    let x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}
