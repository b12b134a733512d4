//! The blocks of a load on their way: merging in the GPC, the parts of L2, the fabric between them, DRAM.
//!
//! This is where a run that moves much spends its time. It is one loop for each kind of cache, in which nothing that each block
//! needs is a call: what it looks up and counts would go through the host's memory otherwise. What the blocks of a run have in
//! common is found out once.
#![expect(clippy::inline_always, reason = "the loop over blocks is half as long again with calls")]

use super::address::{Address, Geometry, Run, SECTOR};
use super::coalescer::Coalescer;
use super::l2::{Found, Part};
use super::latency::mean;
use super::stack::Stack;
use crate::engine::Time;
use crate::gpu::policy::replacement::Replacement;
use crate::records::Traffic;

/// Some bytes that are loaded, and when they would be there, by where they are.
pub(crate) struct Load<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) runs: &'a [Run],
    /// The part of L2 of who asks.
    pub(super) part: usize,
    pub(super) now: Time,
    /// In the reader's part.
    pub(super) soon: Time,
    /// What another part adds.
    pub(super) far: Time,
    /// When the fabric has brought what it has to bring before.
    pub(super) fabric: Time,
    pub(super) dram: Time,
}

/// The requests of its GPC that a load may join.
pub(crate) struct Sharing<'a> {
    pub(super) coalescer: &'a mut Coalescer,
    /// Lines that were sent for before.
    pub(super) before: u64,
    /// When a load has come with another's request, at the earliest.
    pub(super) joined: Time,
}

/// What a load has asked for so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    /// Bytes that are in flight through the port meanwhile, and that pass L2 and the fabric.
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

    /// When all of so many bytes have come, or when they have on average.
    #[inline]
    pub(super) fn done(&self, now: Time, bytes: u64, together: bool) -> Time {
        // Often all come at the same time: that is seen in a tenth of the time that the division takes.
        let all = u128::from(self.slowest.since(now).0) * u128::from(bytes);
        if together || self.waited == all { self.slowest } else { now + Time(mean(self.waited, bytes)) }
    }
}

/// What was found in one part: sectors, and blocks that others had to be written back for.
#[derive(Clone, Copy, Default)]
struct Side {
    hits: u64,
    merged: u64,
    written_back: u64,
}

/// What the blocks of a run moved. The load's own counts lie in the host's memory, where each block would write to all of them.
#[derive(Clone, Copy, Default)]
struct Counts {
    here: Side,
    home: Side,
    /// Blocks.
    over_fabric: u64,
    /// Sectors from DRAM.
    fetched: u64,
}

/// What is told what each block has moved: through the reader's part, and through its home in another.
pub(crate) type Log<'a> = &'a mut dyn FnMut(Address, Traffic, Traffic);

impl Load<'_> {
    /// Loads what is read once: it is nowhere but in DRAM, and nobody asks for it again. Lookups would say so, and change
    /// nothing that matters.
    pub(super) fn once(&self, moved: &mut Moved, log: Option<Log<'_>>) {
        self.logged(moved, log, |runs, moved| runs.iter().for_each(|&run| self.run_once(run, moved)));
    }

    /// Loads through a coalescer and the parts of L2.
    pub(super) fn through<S: Stack, P: Replacement>(
        &self,
        parts: &mut [Part<S, P>],
        sharing: Sharing<'_>,
        moved: &mut Moved,
        log: Option<Log<'_>>,
    ) {
        let mut sharing = sharing;
        self.logged(moved, log, |runs, moved| self.all(runs, parts, &mut sharing, moved));
    }

    /// Loads all runs at once, or block by block if a log is to be told of each.
    #[inline]
    fn logged(&self, moved: &mut Moved, log: Option<Log<'_>>, mut load: impl FnMut(&[Run], &mut Moved)) {
        let Some(log) = log else { return load(self.runs, moved) };
        for run in self.runs {
            for first in run.blocks() {
                let Moved { here, home, .. } = *moved;
                load(&[Run { first, count: 1, ..*run }], moved);
                log(first, moved.here - here, moved.home - home);
            }
        }
    }

    fn run_once(&self, run: Run, moved: &mut Moved) {
        let count = u64::from(run.count);
        let (sectors, bytes) = (count * self.geometry.count(run.first.sectors), count * run.size);
        let Moved { here, home, .. } = moved;
        here.requested += sectors;
        here.sectors += sectors;
        let ready = if usize::from(run.first.home) == self.part {
            here.dram_read += sectors * SECTOR;
            self.dram
        } else {
            home.fabric += sectors;
            home.dram_read += sectors * SECTOR;
            moved.over_fabric += bytes;
            (self.far + self.dram).max(self.fabric)
        };
        moved.from_l2 += bytes;
        if self.is_soon(ready) {
            moved.port += bytes;
        }
        moved.waited += u128::from(bytes) * u128::from(ready.since(self.now).0);
        moved.slowest = moved.slowest.max(ready);
    }

    /// Whether what comes at `ready` is in flight through the port meanwhile: what waits for DRAM passes it when it is there.
    #[inline]
    fn is_soon(&self, ready: Time) -> bool {
        ready <= self.soon + self.far
    }

    /// Never inlined, so that there is one such loop for each kind of cache.
    #[inline(never)]
    fn all<S: Stack, P: Replacement>(
        &self,
        runs: &[Run],
        parts: &mut [Part<S, P>],
        sharing: &mut Sharing<'_>,
        moved: &mut Moved,
    ) {
        for &run in runs {
            let home = usize::from(run.first.home);
            if home == self.part {
                self.run(run, &mut parts[home], None, sharing, moved);
            } else {
                let [near, there] = parts.get_disjoint_mut([self.part, home]).expect("these are two parts");
                self.run(run, near, Some(there), sharing, moved);
            }
        }
    }

    /// Loads the blocks of a run: `near` is the reader's part, `there` their home if that is another.
    #[inline(always)]
    fn run<S: Stack, P: Replacement>(
        &self,
        run: Run,
        near: &mut Part<S, P>,
        mut there: Option<&mut Part<S, P>>,
        sharing: &mut Sharing<'_>,
        moved: &mut Moved,
    ) {
        let Sharing { coalescer, before, joined: earliest } = sharing;
        let asked = self.geometry.count(run.first.sectors);
        let first_set = coalescer.set_of(run.first);
        let mut counts = Counts::default();
        let (mut joined, mut soon, mut joined_soon, mut waited, mut slowest) = (0, 0, 0, 0, moved.slowest);
        for (i, at) in run.blocks().enumerate() {
            let ready = match coalescer.join(first_set + i, at, self.now, *before) {
                Ok(done) => {
                    let ready = done.max(*earliest);
                    joined += 1;
                    joined_soon += u64::from(ready <= self.soon);
                    ready
                }
                Err(slot) => {
                    let ready = self.find(at, asked, near, there.as_deref_mut(), &mut counts);
                    coalescer.sent(slot, at, ready, *before);
                    soon += u64::from(self.is_soon(ready));
                    ready
                }
            };
            waited += u128::from(ready.since(self.now).0);
            slowest = slowest.max(ready);
        }
        let sent = u64::from(run.count) - joined;
        moved.sent += sent;
        moved.port += (joined_soon + soon) * run.size;
        moved.from_l2 += sent * run.size;
        moved.over_fabric += counts.over_fabric * run.size;
        moved.waited += u128::from(run.size) * waited;
        moved.slowest = slowest;
        let Moved { here, home, .. } = moved;
        here.requested += u64::from(run.count) * asked;
        here.coalesced += joined * asked;
        here.sectors += sent * asked;
        for (traffic, found) in [(&mut *here, counts.here), (&mut *home, counts.home)] {
            traffic.hits += found.hits;
            traffic.merged += found.merged;
            traffic.dram_written += found.written_back * self.geometry.block_bytes();
        }
        if there.is_some() {
            home.fabric += counts.home.hits + counts.fetched;
            home.dram_read += counts.fetched * SECTOR;
        } else {
            here.dram_read += counts.fetched * SECTOR;
        }
    }

    /// Finds a block in the reader's part, at home, or in DRAM: when it is there. What that moves is counted.
    #[inline(always)]
    fn find<S: Stack, P: Replacement>(
        &self,
        at: Address,
        asked: u64,
        near: &mut Part<S, P>,
        there: Option<&mut Part<S, P>>,
        counts: &mut Counts,
    ) -> Time {
        let found = near.look_up(at, self.dram);
        if found.missing == 0 {
            counts.here.hits += asked;
            counts.here.merged += if found.ready > self.soon { asked } else { 0 };
            return found.ready.max(self.soon);
        }
        let missing = self.missing(found, at, asked, &mut counts.here);
        let Some(there) = there else {
            counts.fetched += missing;
            return self.dram;
        };
        counts.over_fabric += 1;
        let at = Address { sectors: found.missing, ..at };
        // It is at home when it is where it was asked for: until then, it is on its way for all.
        let from_dram = self.far + self.dram;
        let at_home = there.look_up(at, from_dram);
        counts.fetched += self.missing(at_home, at, missing, &mut counts.home);
        let from_home = self.far + at_home.ready.max(self.soon);
        let ready = if at_home.missing == 0 { from_home } else { from_dram }.max(self.fabric);
        near.filled(found.entry, ready);
        ready
    }

    /// How many of the sectors that were asked for were not found. What was found is counted.
    #[inline(always)]
    fn missing(&self, found: Found, at: Address, asked: u64, counts: &mut Side) -> u64 {
        counts.written_back += u64::from(found.writes_back);
        if found.missing == at.sectors {
            return asked;
        }
        let missing = self.geometry.count(found.missing);
        counts.hits += asked - missing;
        counts.merged += if found.ready > self.soon { asked - missing } else { 0 };
        missing
    }
}
