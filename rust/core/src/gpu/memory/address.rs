//! Where the bytes of a buffer are kept: how addresses are spread over the parts of L2, their sets and their slices.
//!
//! Lines are kept in blocks as large as the accesses of a program allow: if every access covers whole blocks, the lines of a
//! block come and go together, in as many neighbouring sets, and one entry tells the same as one a line.

use super::stack::LAST_MARK;
use crate::device::{L2, SECTOR_BYTES};
use crate::engine::rng::scattered;
use crate::workload::walk::Bytes;

/// The grain at which addresses are spread over parts and sets.
pub(super) const PAGE_BYTES: u64 = 4096;
/// The turn of the banks in which a large allocation was seen to begin.
const FIRST_TURN: u64 = 111;
/// Further buffers begin somewhere in so many turns.
const FIRST_TURNS: u64 = 512;
/// Of a turn of the banks, the bits from the third on that change its lowest bit, and those that change the second.
const CHANGE_LOWEST: u64 = 0b001_0111;
const CHANGE_SECOND: u64 = 0b100_1000;
/// A sector, in bytes: what counters count.
pub(crate) const SECTOR: u64 = SECTOR_BYTES as u64;
/// All sectors of a block.
const ALL_SECTORS: u8 = u8::MAX;
/// Above a block's number within its buffer, and above both.
const BUFFER_SHIFT: u32 = 39;
pub(super) const SECTORS_SHIFT: u32 = 56;

/// Where a block is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Its number, and that of its buffer: 55 bits.
    pub(crate) block: u64,
    pub(crate) set: u32,
    /// The part at which it is at home.
    pub(crate) home: u8,
    /// Which sectors of a line are meant, a bit each; of blocks of several lines always all.
    pub(crate) sectors: u8,
    /// A byte that few other blocks share.
    pub(crate) mark: u8,
}

/// Neighbouring blocks of a page, as much of each: they lie in as many neighbouring sets, at one home.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) first: Address,
    pub(crate) count: u32,
    /// Bytes that are meant of each.
    pub(crate) size: u64,
}

impl Run {
    #[inline]
    pub(crate) fn blocks(self) -> impl Iterator<Item = Address> {
        let Address { block, set, home, sectors, .. } = self.first;
        (0..self.count).map(move |i| Address::new(block + u64::from(i), set + i, home, sectors))
    }
}

impl Address {
    #[inline]
    fn new(block: u64, set: u32, home: u8, sectors: u8) -> Self {
        let spread = block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        Self { block, set, home, sectors, mark: ((spread * u64::from(LAST_MARK)) >> 16) as u8 + 1 }
    }

    /// A number for this block alone, and for these sectors of it.
    #[inline]
    pub(crate) fn request(self) -> u64 {
        if self.sectors == ALL_SECTORS { self.block } else { self.block | u64::from(self.sectors) << SECTORS_SHIFT }
    }
}

/// How addresses are spread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    parts: u64,
    /// A block is `1 << block_bits` bytes, a page `1 << page_bits`.
    block_bits: u32,
    page_bits: u32,
    /// Banks of sets, and pages' worth of sets of each.
    banks: u64,
    rows: u64,
    lines_per_block: usize,
    /// Slices of a part.
    slices: usize,
    /// Those of a block, by number and as bits.
    sectors: u64,
    whole: u8,
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
    pub(crate) fn new(l2: &L2, block_bytes: u64) -> Self {
        let page_bytes = page_bytes(l2);
        let sectors = block_bytes / SECTOR;
        let rows = sets(l2) * u64::from(l2.line_bytes) / page_bytes;
        let banks = u64::from(l2.banks).min(rows);
        Self {
            parts: u64::from(l2.halves),
            block_bits: block_bytes.trailing_zeros(),
            page_bits: page_bytes.trailing_zeros(),
            banks,
            rows: rows / banks,
            lines_per_block: (block_bytes / u64::from(l2.line_bytes)) as usize,
            slices: l2.slices as usize / usize::from(l2.halves),
            sectors,
            whole: if sectors < 8 { (1 << sectors) - 1 } else { ALL_SECTORS },
        }
    }

    /// Blocks of a page.
    pub(crate) fn blocks_per_page(&self) -> u64 {
        1 << (self.page_bits - self.block_bits)
    }

    pub(crate) fn lines_per_block(&self) -> usize {
        self.lines_per_block
    }

    /// Sets of one part.
    pub(crate) fn sets(&self) -> usize {
        (self.banks * self.rows * self.blocks_per_page()) as usize
    }

    #[inline]
    pub(crate) fn block_bytes(&self) -> u64 {
        1 << self.block_bits
    }

    /// How many sectors of a block these bits are.
    #[inline]
    pub(crate) fn count(&self, sectors: u8) -> u64 {
        if sectors == ALL_SECTORS { self.sectors } else { u64::from((sectors & self.whole).count_ones()) }
    }

    /// Goes through the blocks of some bytes of a buffer, in order, as runs.
    #[inline]
    pub(crate) fn for_each_run(&self, buffer: u16, bytes: Bytes<'_>, mut visit: impl FnMut(Run)) {
        let (size, in_page) = (self.block_bytes(), self.blocks_per_page() - 1);
        let (mut last_page, mut home, mut first) = (u64::MAX, 0, 0);
        for (mut at, mut left) in bytes.runs(size) {
            while left > 0 {
                let page = at >> self.page_bits;
                if page != last_page {
                    (home, first) = self.page(buffer, page);
                    last_page = page;
                }
                let (block, from) = (at >> self.block_bits, at & (size - 1));
                let run = |sectors, count: u64, size| {
                    let set = first | (block & in_page) as u32;
                    let block = block | u64::from(buffer) << BUFFER_SHIFT;
                    Run { first: Address::new(block, set, home, sectors), count: count as u32, size }
                };
                // Most often a single whole block; or several up to the end of the page, or a part of one.
                if from == 0 && left == size && bytes.wrap - at >= size {
                    visit(run(ALL_SECTORS, 1, size));
                    break;
                }
                let together = left.min(bytes.wrap - at);
                let whole = (together >> self.block_bits).min(in_page + 1 - (block & in_page));
                let (count, part, sectors) = if from == 0 && whole > 0 {
                    (whole, size, ALL_SECTORS)
                } else {
                    let part = (size - from).min(together);
                    (1, part, self.sectors_of(from, from + part))
                };
                visit(run(sectors, count, part));
                at += count * part;
                left -= count * part;
                if at == bytes.wrap {
                    at = 0;
                }
            }
        }
    }

    /// The sectors of a line in which its bytes `from..to` lie.
    #[inline]
    fn sectors_of(&self, from: u64, to: u64) -> u8 {
        let count = to.div_ceil(SECTOR) - from / SECTOR;
        let sectors = (((1_u16 << count) - 1) << (from / SECTOR)) as u8;
        if sectors == self.whole { ALL_SECTORS } else { sectors }
    }

    /// Where a page of a buffer is kept: its home, and the first of its sets. Of as many neighbouring pages as there are
    /// parts, each has one at home; these take the same sets, in every part.
    ///
    /// A contiguous buffer fills one bank after the other. Whose turn it is goes round the banks, but within each four turns in an
    /// order that a hash of the address says: so no bank is much fuller than another, and which ones are full first depends on where
    /// the buffer begins and ends.
    #[inline]
    fn page(&self, buffer: u16, page: u64) -> (u8, u32) {
        let parts = self.parts;
        let (group, member) = if parts == 2 { (page >> 1, page & 1) } else { (page / parts, page % parts) };
        let home = (member + scattered(group | u64::from(buffer) << 44)) % parts;
        let place = group + scattered(u64::from(buffer)) % (FIRST_TURNS * self.rows);
        let (turn, row) = (place / self.rows, place % self.rows);
        let bank = self.bank(FIRST_TURN + turn);
        (home as u8, ((bank * self.rows + row) << (self.page_bits - self.block_bits)) as u32)
    }

    /// The bank whose turn it is: the turn, whose two lowest bits are changed by sums of others, modulo the number of banks. That
    /// agrees with all stretches of memory that were measured; what bits above the ninth do is not known.
    #[inline]
    fn bank(&self, turn: u64) -> u64 {
        let sum = |bits: u64| u64::from(((turn >> 2) & bits).count_ones() & 1);
        (turn ^ sum(CHANGE_LOWEST) ^ sum(CHANGE_SECOND) << 1) % self.banks
    }

    /// The slices in which the lines of a block are kept in one part, numbered over all parts. A slice is made of whole
    /// sets: of as many neighbouring sets as there are slices each has one, in an order that a hash turns around.
    pub(crate) fn slices(&self, at: Address, part: usize) -> impl ExactSizeIterator<Item = usize> {
        let first = at.set as usize * self.lines_per_block;
        (first..first + self.lines_per_block).map(move |set| {
            let turned = scattered((set / self.slices) as u64) as usize % self.slices;
            part * self.slices + (set + turned) % self.slices
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::catalogue;

    /// The blocks of a run of bytes of a buffer, told by their number, their sectors and how many bytes of them are meant.
    fn blocks(block_bytes: u64, start: u64, len: u64) -> Vec<(u64, u64, u64)> {
        let geometry = Geometry::new(&catalogue::device("h200").unwrap().l2, block_bytes);
        let mut found = Vec::new();
        geometry.for_each_run(0, Bytes::run(start, len), |run| {
            found.extend(run.blocks().map(|at| (at.block, geometry.count(at.sectors), run.size)));
        });
        found
    }

    #[test]
    fn a_run_is_taken_apart_into_whole_blocks_and_the_parts_at_its_ends() {
        assert_eq!(blocks(128, 96, 32 + 128 + 1), [(0, 1, 32), (1, 4, 128), (2, 1, 1)]);
        assert_eq!(blocks(128, 31, 2), [(0, 2, 2)]);
        // Over the end of a page.
        assert_eq!(blocks(128, 4096 - 128, 256), [(31, 4, 128), (32, 4, 128)]);
        assert_eq!(blocks(4096, 4096, 8192), [(1, 128, 4096), (2, 128, 4096)]);
    }

    #[test]
    fn bytes_in_all_sectors_of_a_line_ask_for_the_same_as_the_whole_line_does() {
        let geometry = Geometry::new(&catalogue::device("h200").unwrap().l2, 128);
        let mut requests = Vec::new();
        for (start, len) in [(128, 128), (130, 120), (130, 60)] {
            geometry.for_each_run(3, Bytes::run(start, len), |run| requests.push(run.first.request()));
        }
        assert_eq!(requests[0], requests[1]);
        assert_ne!(requests[0], requests[2]);
    }

    /// A device with so many banks of sets.
    fn with_banks(banks: u32) -> Geometry {
        let mut l2 = catalogue::device("h200").unwrap().l2;
        l2.banks = banks;
        Geometry::new(&l2, PAGE_BYTES)
    }

    /// How many pages of a contiguous buffer each set gets, in ascending order.
    fn shares(geometry: &Geometry, pages: u64) -> Vec<u32> {
        let mut shares = vec![0; geometry.sets()];
        geometry.for_each_run(3, Bytes::run(0, pages * PAGE_BYTES), |run| {
            run.blocks().for_each(|at| shares[at.set as usize] += 1);
        });
        shares.sort_unstable();
        shares
    }

    /// The first stretches of a large allocation, `reference/h200_holdout/settle/banks.parquet`; which bank has which name is
    /// arbitrary.
    #[test]
    fn the_banks_take_turns_in_the_order_that_was_measured() {
        let measured = b"023102014014341230234013214203410321402341023142";
        let geometry = with_banks(5);
        let mut names = [None; 5];
        for (turn, &name) in (FIRST_TURN..).zip(measured) {
            assert_eq!(*names[geometry.bank(turn) as usize].get_or_insert(name), name, "turn {turn}");
        }
        let names: std::collections::BTreeSet<_> = names.into_iter().flatten().collect();
        assert_eq!(names.len(), 5);
    }

    #[test]
    fn one_bank_is_filled_evenly_and_of_several_none_gets_more_than_two_turns_more_than_another() {
        for pages in [470, 3_000, 7_168] {
            let even = shares(&with_banks(1), pages);
            assert!(even[even.len() - 1] - even[0] <= 2, "a pair of pages more or less");
            let uneven = shares(&with_banks(5), pages);
            assert!(
                uneven[uneven.len() - 1] - uneven[0] <= 4,
                "{pages} pages: {:?}",
                (uneven[0], uneven[uneven.len() - 1])
            );
            assert_eq!(uneven.iter().sum::<u32>(), pages as u32);
        }
    }

    #[test]
    fn what_is_left_of_sets_that_do_not_split_into_the_banks_is_left_out() {
        let mut l2 = catalogue::device("h200").unwrap().l2;
        // 471 pages' worth of sets.
        l2.reserved_bytes -= 131_072;
        let geometry = Geometry::new(&l2, PAGE_BYTES);
        assert_eq!((geometry.banks, geometry.sets()), (5, 470));
    }

    #[test]
    fn small_buffers_do_not_all_begin_in_the_same_sets() {
        let geometry = with_banks(5);
        let mut shares = vec![0; geometry.sets()];
        for buffer in 0..200 {
            geometry.for_each_run(buffer, Bytes::run(0, 4 * PAGE_BYTES), |run| {
                run.blocks().for_each(|at| shares[at.set as usize] += 1);
            });
        }
        assert!(*shares.iter().max().unwrap() <= 14, "1.7 on average");
    }
}
