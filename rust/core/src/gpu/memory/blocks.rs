//! The blocks of a load on their way: merging in the GPC, the parts of L2, the fabric between them, DRAM.
//!
//! This is where a run that moves much spends its time. It is one loop for each kind of cache, in which nothing that each block
//! needs is a call: what it looks up and counts would go through the host's memory otherwise.
#![expect(clippy::inline_always, reason = "the loop over blocks is half as long again with calls")]

use super::address::{Address, Block, Geometry, SECTOR};
use super::coalescer::Coalescer;
use super::l2::Found;
use crate::engine::Time;
use crate::records::Traffic;

/// A run of bytes that is loaded, and when it would be there, by where it is.
pub(crate) struct Load<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) blocks: &'a [Block],
    /// The part of L2 of who asks.
    pub(super) part: usize,
    pub(super) now: Time,
    /// Lines that its GPC had sent for before.
    pub(super) asked: u64,
    /// With another SM's request, at the earliest.
    pub(super) joined: Time,
    /// In the reader's part.
    pub(super) soon: Time,
    /// What another part adds.
    pub(super) far: Time,
    /// When the fabric has brought what it has to bring before.
    pub(super) fabric: Time,
    pub(super) dram: Time,
}

/// What a load has asked for so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    /// Bytes that pass the SM's port, L2 and the fabric meanwhile.
    pub(super) port: u64,
    pub(super) from_l2: u64,
    pub(super) over_fabric: u64,
    /// Blocks of which its GPC had to send a request.
    pub(super) sent: u64,
    /// When its bytes come, added up from its beginning on, and the last of them.
    pub(super) waited: u128,
    pub(super) slowest: Time,
    /// Through the reader's part, and through homes in another.
    pub(super) here: Traffic,
    pub(super) home: Traffic,
}

impl Moved {
    pub(super) fn new(now: Time) -> Self {
        let (here, home) = (Traffic::default(), Traffic::default());
        Self { port: 0, from_l2: 0, over_fabric: 0, sent: 0, waited: 0, slowest: now, here, home }
    }
}

/// What is told what each block has moved: through the reader's part, and through its home in another.
pub(crate) type Log<'a> = &'a mut dyn FnMut(Address, Traffic, Traffic);

/// Where blocks are looked up.
pub(crate) trait Lookups {
    /// Looks a block up in one part, and takes a place for it if it is not there.
    fn look_up(&mut self, part: usize, at: Address) -> Found;

    /// A block's data comes at `ready`.
    fn filled(&mut self, part: usize, entry: u32, ready: Time);
}

/// What is read once is not there, and nobody asks for it again: a lookup would say so, and change nothing that matters.
pub(super) struct Nowhere;

impl Lookups for Nowhere {
    #[inline]
    fn look_up(&mut self, _part: usize, at: Address) -> Found {
        Found { entry: 0, missing: at.sectors, ready: Time::ZERO, writes_back: false }
    }

    #[inline]
    fn filled(&mut self, _part: usize, _entry: u32, _ready: Time) {}
}

/// Loads blocks, through a coalescer if anybody else can ask for them.
pub(super) fn load<C: Lookups>(
    cache: &mut C,
    load: &Load<'_>,
    mut coalescer: Option<&mut Coalescer>,
    moved: &mut Moved,
    mut log: Option<Log<'_>>,
) {
    for &block in load.blocks {
        let before = log.is_some().then_some((moved.here, moved.home));
        load.block(cache, coalescer.as_deref_mut(), block, moved);
        if let (Some(log), Some((here, home))) = (&mut log, before) {
            log(block.at, moved.here - here, moved.home - home);
        }
    }
}

impl Load<'_> {
    /// Loads a block, or so many bytes of it.
    #[inline(always)]
    fn block<C: Lookups>(&self, cache: &mut C, coalescer: Option<&mut Coalescer>, block: Block, moved: &mut Moved) {
        let Block { at, size } = block;
        let sectors = self.geometry.count(at.sectors);
        moved.here.requested += sectors;
        let joined = coalescer.map(|coalescer| (coalescer.join(at, self.now, self.asked), coalescer));
        let ready = if let Some((Ok(done), _)) = joined {
            moved.here.coalesced += sectors;
            let ready = done.max(self.joined);
            moved.port += if ready > self.soon { 0 } else { size };
            ready
        } else {
            let ready = self.find(cache, at, size, moved);
            if let Some((Err(slot), coalescer)) = joined {
                coalescer.sent(slot, at, ready, self.asked);
                moved.sent += 1;
            }
            // What waits for DRAM takes up nothing of L2 and the port meanwhile.
            if ready <= self.soon + self.far {
                moved.port += size;
                moved.from_l2 += size;
            }
            ready
        };
        moved.waited += u128::from(size) * u128::from(ready.since(self.now).0);
        moved.slowest = moved.slowest.max(ready);
    }

    /// Finds a block in the reader's part, at home, or in DRAM: when it is there. What that moves is counted.
    #[inline(always)]
    fn find<C: Lookups>(&self, cache: &mut C, at: Address, size: u64, moved: &mut Moved) -> Time {
        let Moved { here, home, over_fabric, .. } = moved;
        let asked = self.geometry.count(at.sectors);
        here.sectors += asked;
        let near = cache.look_up(self.part, at);
        if near.missing == 0 {
            here.hits += asked;
            here.merged += if near.ready > self.soon { asked } else { 0 };
            return near.ready.max(self.soon);
        }
        let missing = self.geometry.count(near.missing);
        here.hits += asked - missing;
        here.merged += if near.ready > self.soon { asked - missing } else { 0 };
        let mut ready = self.dram;
        let part = usize::from(at.home);
        if part == self.part {
            here.dram_read += missing * SECTOR;
        } else {
            home.fabric += missing;
            *over_fabric += size;
            let there = cache.look_up(part, Address { sectors: near.missing, ..at });
            let fetched = self.geometry.count(there.missing);
            home.hits += missing - fetched;
            home.merged += if there.ready > self.soon { missing - fetched } else { 0 };
            home.dram_read += fetched * SECTOR;
            // It is at home when it is where it was asked for: until then, it is on its way for all.
            ready = self.far + if there.missing == 0 { there.ready.max(self.soon) } else { ready };
            home.dram_written += self.fill(cache, part, there, ready);
            ready = ready.max(self.fabric);
        }
        here.dram_written += self.fill(cache, self.part, near, ready);
        ready
    }

    /// What was missing of a block comes at `ready`, if anything was: how many bytes have to be written back for it.
    #[inline]
    fn fill<C: Lookups>(&self, cache: &mut C, part: usize, found: Found, ready: Time) -> u64 {
        if found.missing != 0 {
            cache.filled(part, found.entry, ready);
        }
        if found.writes_back { self.geometry.block_bytes() } else { 0 }
    }
}
