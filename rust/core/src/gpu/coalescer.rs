//! Coalescing: SMs of a GPC that ask for a line while another's request for it is on its way share that request.
//!
//! The unit that does it keeps track of so many lines, those last asked for. So SMs that run in step share most of what they
//! read, and SMs that lag behind, or that ask for much in the meantime, less.

use super::l2::hash;
use crate::device::L2;
use crate::engine::Time;

/// The requests of one GPC that were sent last.
#[derive(Debug)]
pub(super) struct Coalescer {
    /// Those of set `s` are at `s * WAYS`.
    requests: Vec<Request>,
    /// Sets for the blocks at the same place of a page, a power of two.
    rows: u64,
    /// Blocks of a page, as a power of two.
    page_bits: u32,
    /// Blocks whose requests are kept track of.
    tracked: u64,
    sent: u64,
    /// SMs that share a request.
    sharers: u32,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    block: u64,
    done: Time,
    sharers: u32,
    /// Counted from 1, in the order of sending.
    number: u64,
}

/// Places of a set. There are four for each request that is kept track of, so that none is lost to chance.
const WAYS: u64 = 8;
const ROOM: u64 = 4;

impl Coalescer {
    /// For blocks of this size, of which a page has so many.
    pub(super) fn new(l2: &L2, block_bytes: u64, blocks_per_page: u64) -> Self {
        let tracked = (u64::from(l2.coalesced_lines) * u64::from(l2.line_bytes)).div_ceil(block_bytes).max(1);
        let rows = (tracked * ROOM).div_ceil(blocks_per_page * WAYS).next_power_of_two();
        let none = Request { block: u64::MAX, done: Time::ZERO, sharers: 0, number: 0 };
        Self {
            requests: vec![none; (rows * blocks_per_page * WAYS) as usize],
            rows,
            page_bits: blocks_per_page.ilog2(),
            tracked,
            sent: 0,
            sharers: l2.coalesced_requests,
        }
    }

    /// Joins a request that is on its way, if it is kept track of and takes one more: when it is done. Else the place that
    /// [`Self::sent`] takes.
    #[inline]
    pub(super) fn join(&mut self, block: u64, now: Time) -> Result<Time, usize> {
        let (page, in_page) = (block >> self.page_bits, block & ((1 << self.page_bits) - 1));
        let set = ((hash(page) & (self.rows - 1)) << self.page_bits) | in_page;
        let first = (set * WAYS) as usize;
        let mut place = first;
        for i in first..first + WAYS as usize {
            let request = &mut self.requests[i];
            if request.block == block {
                let tracked = self.sent - request.number < self.tracked;
                if tracked && request.done > now && request.sharers < self.sharers {
                    request.sharers += 1;
                    return Ok(request.done);
                }
                return Err(i);
            }
            if request.number < self.requests[place].number {
                place = i;
            }
        }
        Err(place)
    }

    /// A request of its own is sent for a block, and done at a time.
    #[inline]
    pub(super) fn sent(&mut self, place: usize, block: u64, done: Time) {
        self.sent += 1;
        self.requests[place] = Request { block, done, sharers: 1, number: self.sent };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::catalogue;

    fn coalescer(lines: u32, sharers: u32) -> Coalescer {
        let mut l2 = catalogue::device("h200").expect("the catalogue has it").l2;
        (l2.coalesced_lines, l2.coalesced_requests) = (lines, sharers);
        Coalescer::new(&l2, 4096, 1)
    }

    fn send(coalescer: &mut Coalescer, block: u64, done: u64) {
        let place = coalescer.join(block, Time::ZERO).expect_err("nobody has asked for it");
        coalescer.sent(place, block, Time(done));
    }

    #[test]
    fn a_request_on_its_way_is_shared_by_so_many_and_no_more() {
        let mut coalescer = coalescer(1024, 3);
        send(&mut coalescer, 7, 100);
        let joined: Vec<bool> = (0..4).map(|_| coalescer.join(7, Time(50)).is_ok()).collect();
        assert_eq!(joined, [true, true, false, false]);
    }

    #[test]
    fn what_has_come_is_asked_for_again() {
        let mut coalescer = coalescer(1024, 4);
        send(&mut coalescer, 7, 100);
        assert_eq!(coalescer.join(7, Time(99)).ok(), Some(Time(100)));
        assert!(coalescer.join(7, Time(100)).is_err());
    }

    #[test]
    fn only_the_last_requests_are_kept_track_of() {
        // 128 lines are 4 blocks of 4 KiB.
        let mut coalescer = coalescer(128, 4);
        (0..4).for_each(|block| send(&mut coalescer, block, 100));
        assert!(coalescer.join(0, Time(50)).is_ok());
        send(&mut coalescer, 4, 100);
        assert!(coalescer.join(0, Time(50)).is_err());
        assert!(coalescer.join(1, Time(50)).is_ok());
    }
}
