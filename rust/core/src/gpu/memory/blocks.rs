//! The blocks of a load on their way: merging in the GPC, the parts of L2, the fabric between them, DRAM.
//!
//! This is where a run that moves much spends its time. It is one loop for each kind of cache, in which nothing that each block
//! needs is a call: what it looks up and counts would go through the host's memory otherwise. What the blocks of a run have in
//! common is found out once.
#![expect(clippy::inline_always, reason = "the loop over blocks is half as long again with calls")]

use super::address::{Address, Geometry, Run, SECTOR};
use super::coalescer::Coalescer;
use super::l2::Part;
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

impl Load<'_> {
    /// Loads what is read once: it is nowhere but in DRAM, and nobody asks for it again. Lookups would say so, and change
    /// nothing that matters.
    pub(super) fn once(&self, moved: &mut Moved, log: Option<Log<'_>>) {
        self.logged(moved, log, |runs, moved| runs.iter().for_each(|&run| self.run_once(run, moved)));
    }

    /// Loads through the parts of L2, and through a coalescer.
    pub(super) fn through<S: Stack, P: Replacement>(
        &self,
        parts: &mut [Part<S, P>],
        coalescer: &mut Coalescer,
        moved: &mut Moved,
        log: Option<Log<'_>>,
    ) {
        self.logged(moved, log, |runs, moved| self.all(runs, parts, coalescer, moved));
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
        if self.is_soon(ready) {
            moved.port += bytes;
            moved.from_l2 += bytes;
        }
        moved.waited += u128::from(bytes) * u128::from(ready.since(self.now).0);
        moved.slowest = moved.slowest.max(ready);
    }

    /// Whether what comes at `ready` takes up something of L2 and the port meanwhile: what waits for DRAM does not.
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
        coalescer: &mut Coalescer,
        moved: &mut Moved,
    ) {
        for &run in runs {
            let home = usize::from(run.first.home);
            if home == self.part {
                self.run(run, &mut parts[home], None, coalescer, moved);
            } else {
                let [near, there] = parts.get_disjoint_mut([self.part, home]).expect("these are two parts");
                self.run(run, near, Some(there), coalescer, moved);
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
        coalescer: &mut Coalescer,
        moved: &mut Moved,
    ) {
        let Run { first, count, size } = run;
        let sectors = self.geometry.count(first.sectors);
        let first_set = coalescer.set_of(first);
        let mut waited = 0;
        let mut slowest = moved.slowest;
        for (i, at) in run.blocks().enumerate() {
            let ready = match coalescer.join(first_set + i, at, self.now, self.asked) {
                Ok(done) => {
                    moved.here.coalesced += sectors;
                    let ready = done.max(self.joined);
                    moved.port += if ready > self.soon { 0 } else { size };
                    ready
                }
                Err(slot) => {
                    let ready = self.find(at, sectors, size, near, there.as_deref_mut(), moved);
                    coalescer.sent(slot, at, ready, self.asked);
                    moved.sent += 1;
                    if self.is_soon(ready) {
                        moved.port += size;
                        moved.from_l2 += size;
                    }
                    ready
                }
            };
            waited += u128::from(ready.since(self.now).0);
            slowest = slowest.max(ready);
        }
        moved.here.requested += u64::from(count) * sectors;
        moved.waited += u128::from(size) * waited;
        moved.slowest = slowest;
    }

    /// Finds a block in the reader's part, at home, or in DRAM: when it is there. What that moves is counted.
    #[inline(always)]
    fn find<S: Stack, P: Replacement>(
        &self,
        at: Address,
        asked: u64,
        size: u64,
        near: &mut Part<S, P>,
        there: Option<&mut Part<S, P>>,
        moved: &mut Moved,
    ) -> Time {
        let Moved { here, home, over_fabric, .. } = moved;
        here.sectors += asked;
        let found = near.look_up(at);
        if found.missing == 0 {
            here.hits += asked;
            here.merged += if found.ready > self.soon { asked } else { 0 };
            return found.ready.max(self.soon);
        }
        let missing = self.geometry.count(found.missing);
        here.hits += asked - missing;
        here.merged += if found.ready > self.soon { asked - missing } else { 0 };
        let mut ready = self.dram;
        if let Some(there) = there {
            home.fabric += missing;
            *over_fabric += size;
            let at_home = there.look_up(Address { sectors: found.missing, ..at });
            let fetched = self.geometry.count(at_home.missing);
            home.hits += missing - fetched;
            home.merged += if at_home.ready > self.soon { missing - fetched } else { 0 };
            home.dram_read += fetched * SECTOR;
            // It is at home when it is where it was asked for: until then, it is on its way for all.
            ready = self.far + if at_home.missing == 0 { at_home.ready.max(self.soon) } else { ready };
            if at_home.missing != 0 {
                there.filled(at_home.entry, ready);
            }
            home.dram_written += self.written_back(at_home.writes_back);
            ready = ready.max(self.fabric);
        } else {
            here.dram_read += missing * SECTOR;
        }
        near.filled(found.entry, ready);
        here.dram_written += self.written_back(found.writes_back);
        ready
    }

    /// What has to be written back for a block that takes a place, in bytes.
    #[inline]
    fn written_back(&self, writes_back: bool) -> u64 {
        if writes_back { self.geometry.block_bytes() } else { 0 }
    }
}
