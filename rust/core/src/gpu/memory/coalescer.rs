//! Coalescing: SMs of a GPC that ask for a line while another's request for it is on its way share that request.
//!
//! The unit that does it keeps track of so many lines, those last asked for. So SMs that run in step share most of what they
//! read, and SMs that lag behind, or that ask for much in the meantime, less.
#![expect(clippy::inline_always, reason = "part of the loop over blocks, see `blocks`")]

use super::address::{Address, Geometry};
use super::stack::Marks;
use crate::device::L2;
use crate::engine::Time;
use crate::engine::rng::scattered;

/// The requests of one GPC that were sent last.
#[derive(Debug)]
pub(super) struct Coalescer {
    /// Time does not go back: no request is sent before one that was sent already.
    sets: Vec<Set>,
    /// That of way `w` of set `s` is at `w * sets.len() + s`.
    requests: Vec<Request>,
    /// The page that was last asked for, and the first of its sets.
    last: (u64, u64),
    /// Sets for the blocks at the same place of a page, a power of two.
    rows: u64,
    /// Blocks of a page, as a power of two.
    page_bits: u32,
    lines_per_block: u64,
    /// Lines whose requests are kept track of.
    tracked: u64,
    /// Lines that were sent for by accesses that have been issued as a whole, and those that are being issued.
    sent: u64,
    issuing: Vec<Issuing>,
    /// The lines and the time of the last access that was issued, and its rate.
    alike: ((u64, u64), u64),
    /// SMs that share a request.
    sharers: u64,
}

/// What a lookup reads of a set, a quarter of a line of the host's caches.
#[derive(Clone, Copy, Debug)]
struct Set {
    marks: Marks<WAYS>,
    /// Its ways by when their requests were sent, half a byte each, the last one lowest; of several that were sent at the same
    /// time, the last way. So the highest half byte is the way that makes room: of those sent first, the first.
    order: u32,
    /// The lower half of the number of the request that was sent last: where a new one differs from it, no other was sent at
    /// the same time, and the requests need not be looked at.
    last: u32,
}

impl Set {
    fn new() -> Self {
        Self { marks: Marks::new(WAYS), order: (0..WAYS as u32).fold(0, |order, way| order << 4 | way), last: 0 }
    }

    /// The way that makes room.
    #[inline]
    fn oldest(&self) -> usize {
        (self.order >> (4 * (WAYS - 1))) as usize
    }

    /// Moves a way to the front, or behind those that stand there and stay `before` it.
    fn raise(&mut self, way: usize, is_before: impl Fn(usize) -> bool) {
        let order = u64::from(self.order);
        let at = |place: usize| (order >> (4 * place)) as usize % 16;
        let from = (0..WAYS).find(|&place| at(place) == way).expect("each way has a place");
        let to = (0..from).find(|&place| !is_before(at(place))).unwrap_or(from);
        // Those from `to` on and before `from` move by one place.
        let below = |place: usize| (1_u64 << (4 * place)) - 1;
        let moved = order & (below(from) ^ below(to));
        let others = order & !(below(from + 1) ^ below(to));
        self.order = (others | moved << 4 | (way as u64) << (4 * to)) as u32;
    }
}

/// An access in which requests for blocks are sent one after the other.
#[derive(Clone, Copy, Debug)]
struct Issuing {
    begin: Time,
    end: Time,
    lines: u64,
    /// Lines a picosecond, in parts of 2^64; see [`Self::rate`].
    rate: u64,
}

impl Issuing {
    /// Lines a picosecond, in parts of 2^64 and a part more; 0 where that would not do.
    fn rate(lines: u64, takes: u64) -> u64 {
        // With `takes` below 2^32 the part more is too little to matter: `gone * takes / 2^64` is less than one.
        if lines < takes && takes >> 32 == 0 { ((u128::from(lines) << 64) / u128::from(takes)) as u64 + 1 } else { 0 }
    }

    /// How many of its lines have been sent for when a part of the time has gone, rounded down. A product instead of a
    /// division: each access asks this of all that are being issued.
    #[inline]
    fn sent(&self, gone: u64) -> u64 {
        if self.rate == 0 {
            let takes = self.end.since(self.begin).0;
            return (u128::from(self.lines) * u128::from(gone) / u128::from(takes)) as u64;
        }
        ((u128::from(self.rate) * u128::from(gone)) >> 64) as u64
    }
}

#[derive(Clone, Copy, Debug)]
struct Request {
    block: u64,
    done: Time,
    /// How many lines were sent for before the access that it belongs to, counted from 1, 0 if there is none yet; and in the
    /// lowest [`SHARERS_BITS`] how many share it.
    number: u64,
}

/// Where a request is kept, or is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    set: u32,
    way: u32,
}

/// Places of a set. There are four for each request that is kept track of, so that none is lost to chance.
const WAYS: usize = 8;
const ROOM: u64 = 4;
const SHARERS_BITS: u32 = 8;

impl Coalescer {
    pub(super) fn new(l2: &L2, geometry: &Geometry) -> Self {
        let blocks_per_page = geometry.blocks_per_page();
        let (tracked, lines_per_block) = (u64::from(l2.coalesced_lines), geometry.lines_per_block() as u64);
        let rows = (tracked * ROOM).div_ceil(lines_per_block * blocks_per_page * WAYS as u64).next_power_of_two();
        let sets = (rows * blocks_per_page) as usize;
        let none = Request { block: u64::MAX, done: Time::ZERO, number: 0 };
        Self {
            sets: vec![Set::new(); sets],
            requests: vec![none; sets * WAYS],
            last: (u64::MAX, 0),
            rows,
            page_bits: blocks_per_page.ilog2(),
            lines_per_block,
            tracked,
            sent: 1,
            issuing: Vec::new(),
            alike: ((0, 0), 0),
            sharers: u64::from(l2.coalesced_requests),
        }
    }

    /// The set for a block, or for some sectors of it. The next blocks of its page have the next sets.
    #[inline]
    pub(super) fn set_of(&mut self, at: Address) -> usize {
        let block = at.request();
        let (page, in_page) = (block >> self.page_bits, block & ((1 << self.page_bits) - 1));
        if self.last.0 != page {
            self.last = (page, (scattered(page) & (self.rows - 1)) << self.page_bits);
        }
        (self.last.1 | in_page) as usize
    }

    /// Joins a request that is on its way, if it is kept track of and takes one more: when it is done. Else the slot that
    /// [`Self::sent`] takes. `before` were sent before the access that asks.
    #[inline(always)]
    pub(super) fn join(&mut self, set: usize, at: Address, now: Time, before: u64) -> Result<Time, Slot> {
        let block = at.request();
        let (requests, sets) = (&mut self.requests, self.sets.len());
        let stack = &self.sets[set];
        let Some(way) = stack.marks.find(at.mark, |way| requests[way * sets + set].block == block) else {
            return Err(Slot { set: set as u32, way: stack.oldest() as u32 });
        };
        let request = &mut requests[way * sets + set];
        let (number, sharers) = (request.number >> SHARERS_BITS, request.number % (1 << SHARERS_BITS));
        if before.saturating_sub(number) <= self.tracked && request.done > now && sharers < self.sharers {
            request.number += 1;
            return Ok(request.done);
        }
        Err(Slot { set: set as u32, way: way as u32 })
    }

    /// How many lines have been sent for at `now`: an access that begins here finds those of another, which began at the same
    /// time, as far as it is itself, however many there are.
    pub(super) fn before(&mut self, now: Time) -> u64 {
        let mut part = 0;
        let mut i = 0;
        while i < self.issuing.len() {
            let access = self.issuing[i];
            if access.end <= now {
                self.sent += access.lines;
                self.issuing.swap_remove(i);
                continue;
            }
            part += access.sent(now.since(access.begin).0);
            i += 1;
        }
        self.sent + part
    }

    /// An access that begins at `begin` sends for so many blocks until `end`.
    pub(super) fn issued(&mut self, begin: Time, end: Time, blocks: u64) {
        if blocks > 0 {
            let (lines, takes) = (blocks * self.lines_per_block, end.since(begin).0);
            // Most accesses are as large as the last one.
            if (lines, takes) != self.alike.0 {
                self.alike = ((lines, takes), Issuing::rate(lines, takes));
            }
            self.issuing.push(Issuing { begin, end, lines, rate: self.alike.1 });
        }
    }

    /// A request of its own is sent for the block that did not join another one, and done at a time; `before` were sent before
    /// its access.
    #[inline(always)]
    pub(super) fn sent(&mut self, slot: Slot, at: Address, done: Time, before: u64) {
        let (set, way, sets) = (slot.set as usize, slot.way as usize, self.sets.len());
        let stack = &mut self.sets[set];
        if stack.last != before as u32 && way == stack.oldest() {
            stack.order = stack.order << 4 | slot.way;
        } else {
            let requests = &self.requests;
            stack.raise(way, |other| other > way && requests[other * sets + set].number >> SHARERS_BITS == before);
        }
        stack.last = before as u32;
        stack.marks.set(way, at.mark);
        self.requests[way * sets + set] = Request { block: at.request(), done, number: before << SHARERS_BITS | 1 };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::device::catalogue;

    fn coalescer(lines: u32, sharers: u32) -> Coalescer {
        let mut l2 = catalogue::device("h200").expect("the catalogue has it").l2;
        (l2.coalesced_lines, l2.coalesced_requests) = (lines, sharers);
        Coalescer::new(&l2, &Geometry::new(&l2, 4096))
    }

    /// A whole block.
    fn at(block: u64) -> Address {
        Address { block, set: 0, home: 0, sectors: u8::MAX, mark: 1 + (block % 2) as u8 }
    }

    /// An access of one block, which is issued at once.
    fn send(coalescer: &mut Coalescer, block: u64, done: u64) {
        let before = coalescer.before(Time::ZERO);
        let slot = join(coalescer, block, 0, before).expect_err("nobody has asked for it");
        coalescer.sent(slot, at(block), Time(done), before);
        coalescer.issued(Time::ZERO, Time::ZERO, 1);
    }

    fn join(coalescer: &mut Coalescer, block: u64, now: u64, before: u64) -> Result<Time, Slot> {
        let set = coalescer.set_of(at(block));
        coalescer.join(set, at(block), Time(now), before)
    }

    fn joins(coalescer: &mut Coalescer, block: u64, now: u64) -> Option<Time> {
        let before = coalescer.before(Time(now));
        join(coalescer, block, now, before).ok()
    }

    #[test]
    fn a_request_on_its_way_is_shared_by_so_many_and_no_more() {
        let mut coalescer = coalescer(1024, 3);
        send(&mut coalescer, 7, 100);
        let joined: Vec<bool> = (0..4).map(|_| joins(&mut coalescer, 7, 50).is_some()).collect();
        assert_eq!(joined, [true, true, false, false]);
    }

    #[test]
    fn what_has_come_is_asked_for_again() {
        let mut coalescer = coalescer(1024, 4);
        send(&mut coalescer, 7, 100);
        assert_eq!(joins(&mut coalescer, 7, 99), Some(Time(100)));
        assert!(joins(&mut coalescer, 7, 100).is_none());
    }

    #[test]
    fn only_the_last_requests_are_kept_track_of() {
        // 128 lines are 4 blocks of 4 KiB.
        let mut coalescer = coalescer(128, 4);
        (0..4).for_each(|block| send(&mut coalescer, block, 100));
        assert!(joins(&mut coalescer, 0, 50).is_some());
        send(&mut coalescer, 4, 100);
        assert!(joins(&mut coalescer, 0, 50).is_none());
        assert!(joins(&mut coalescer, 1, 50).is_some());
    }

    #[test]
    fn accesses_that_begin_together_find_each_other_however_large_they_are() {
        // 4 blocks are kept track of, and each of two accesses sends for 8.
        let mut coalescer = coalescer(128, 4);
        let first = coalescer.before(Time(10));
        for block in 0..8 {
            let slot = join(&mut coalescer, block, 10, first).expect_err("nobody has asked for it");
            coalescer.sent(slot, at(block), Time(500), first);
        }
        coalescer.issued(Time(10), Time(90), 8);
        let in_step = coalescer.before(Time(10));
        assert!((0..8).all(|block| join(&mut coalescer, block, 10, in_step).is_ok()));
        // One that begins when 128 lines have been sent for is in time, one that begins later is not.
        assert!(joins(&mut coalescer, 0, 50).is_some());
        assert!(joins(&mut coalescer, 0, 51).is_none());
    }

    #[test]
    fn of_requests_sent_at_the_same_time_that_of_the_first_way_makes_room() {
        let mut coalescer = coalescer(128, 4);
        let set = coalescer.set_of(at(0));
        let blocks: Vec<u64> = (0..).filter(|&block| coalescer.set_of(at(block)) == set).take(WAYS + 2).collect();
        let before = coalescer.before(Time::ZERO);
        for &block in &blocks {
            let slot = join(&mut coalescer, block, 0, before).expect_err("nobody has asked for it");
            coalescer.sent(slot, at(block), Time(100), before);
        }
        let mut kept = |block| join(&mut coalescer, block, 50, before).is_ok();
        // The ninth took the place of the first, and the tenth that of the ninth.
        assert_eq!([blocks[0], blocks[1], blocks[WAYS], blocks[WAYS + 1]].map(&mut kept), [false, true, false, true]);
    }

    proptest! {
        #[test]
        fn what_has_been_sent_for_is_the_quotient_rounded_down(
            lines in 1..1_u64 << 34, takes in 1..1_u64 << 34, bits in 0..34_u32, gone in any::<u64>(),
        ) {
            let (lines, takes) = (lines >> bits, 1 + (takes >> (bits / 2)));
            let access = Issuing { begin: Time(7), end: Time(7 + takes), lines, rate: Issuing::rate(lines, takes) };
            for gone in [0, 1, takes - 1, gone % takes] {
                prop_assert_eq!(access.sent(gone), (u128::from(lines) * u128::from(gone) / u128::from(takes)) as u64);
            }
        }

        /// Against a list of requests, of which the first way of those sent first makes room.
        #[test]
        fn a_set_forgets_the_request_that_was_sent_first(
            asked in prop::collection::vec((0..20_u64, any::<bool>(), any::<bool>()), 0..200),
        ) {
            let mut coalescer = coalescer(128, 3);
            let set = coalescer.set_of(at(0));
            let blocks: Vec<u64> = (0..).filter(|&block| coalescer.set_of(at(block)) == set).take(20).collect();
            let (mut kept, mut now) = ([(0, u64::MAX, 0); WAYS], 0);
            for (block, later, comes) in asked {
                now += u64::from(later);
                let (at, before, block) = (at(blocks[block as usize]), 1 + now, blocks[block as usize]);
                let done = if comes { Time(now) } else { Time::MAX };
                let found = kept.iter().position(|&(_, other, _)| other == block);
                match coalescer.join(set, at, Time(now), before) {
                    Ok(_) => {
                        let way = found.expect("nobody has asked for it");
                        prop_assert!(kept[way].2 < 3);
                        kept[way].2 += 1;
                    }
                    Err(slot) => {
                        let oldest = (0..WAYS).min_by_key(|&way| kept[way].0).expect("there are some");
                        prop_assert_eq!(slot.way as usize, found.unwrap_or(oldest));
                        kept[slot.way as usize] = (before, block, 1);
                        coalescer.sent(slot, at, done, before);
                    }
                }
            }
        }
    }
}
