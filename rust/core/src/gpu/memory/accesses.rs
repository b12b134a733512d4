//! The way of a load or a store: SM port, merging in the GPC, the parts of L2, the fabric between them, DRAM.
//!
//! A load takes the latency of the nearest place that has its line, and longer when much is on its way at once: demand is
//! what all CTAs have in flight, and by Little's law a server of bandwidth `B` with `D` bytes in flight takes `D / B` for
//! each. [`loaded`] goes over from the one to the other.

use super::address::{Address, SECTOR};
use super::l2::Found;
use super::latency::{Demand, loaded, mean};
use super::moves::{Launch, Uneven};
use super::{Memory, Sm};
use crate::engine::Time;
use crate::engine::rng::even;
use crate::gpu::sm::Place;
use crate::ids::KernelId;
use crate::records::Traffic;
use crate::workload::walk::Bytes;

/// A run of bytes on its way between a buffer and a CTA.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer<'a> {
    pub(super) kernel: KernelId,
    pub(super) place: Place,
    pub(super) buffer: u16,
    pub(super) bytes: Bytes<'a>,
}

/// Who asks for a run of bytes, and when it would be there, by where it is.
struct Ways {
    kernel: KernelId,
    part: usize,
    gpc: usize,
    now: Time,
    /// Lines that its GPC had sent for before.
    asked: u64,
    /// With another SM's request, at the earliest.
    joined: Time,
    /// It is in DRAM, and nobody asks for it again.
    read_once: bool,
    /// In the reader's part.
    soon: Time,
    /// What another part adds.
    far: Time,
    /// When the fabric has brought what it has to bring before.
    fabric: Time,
    dram: Time,
}

/// What an iteration has asked for so far.
#[derive(Clone, Copy, Debug)]
struct Moved {
    /// Bytes that pass the SM's port, L2 and the fabric meanwhile.
    port: u64,
    from_l2: u64,
    over_fabric: u64,
    /// Blocks of which its GPC had to send a request.
    sent: u64,
    /// When its bytes come, added up from its beginning on, and the last of them.
    waited: u128,
    slowest: Time,
    /// Through the reader's part, and through homes in another.
    here: Traffic,
    home: Traffic,
}

impl Moved {
    fn new(now: Time) -> Self {
        let (here, home) = (Traffic::default(), Traffic::default());
        Self { port: 0, from_l2: 0, over_fabric: 0, sent: 0, waited: 0, slowest: now, here, home }
    }
}

impl<'a> Memory<'a> {
    /// Loads a run of bytes: when it is there, and what is in flight until then.
    pub(super) fn load(&mut self, transfer: Transfer<'a>, now: Time) -> (Time, Demand) {
        let timings = self.timings;
        let Transfer { kernel, place, buffer, bytes } = transfer;
        let Launch { overhead, uneven, together, read_once, .. } = *self.launch(kernel);
        let Sm { part, gpc, demand, .. } = self.sms[place.sm()];
        let cycles = |cycles: f64| Time((cycles * timings.cycle_ps + 0.5) as u64);
        let alone = timings.near + overhead;
        let at_port = loaded(alone, (demand + bytes.len) as f64 / timings.port_bytes, timings.l2_softness);
        let queue = (self.l2_demand + bytes.len) as f64 / timings.l2_bytes;
        let at_l2 = loaded(at_port, queue, timings.l2_softness) - alone;
        let (near, far) = (cycles(timings.near + at_l2), cycles(timings.far));
        let from_memory = self.dram_latency(alone, bytes.len, uneven);
        let dram = now + cycles(timings.near.max(at_l2 + from_memory));
        let soon = now + near;
        let fabric = now + cycles((self.fabric_demand + bytes.len) as f64 / timings.fabric_bytes);
        let ways = Ways {
            kernel,
            part,
            gpc,
            now,
            asked: if read_once { 0 } else { self.coalescers[gpc].before(now) },
            read_once,
            soon,
            joined: now + cycles(at_port - overhead),
            far,
            fabric,
            dram,
        };
        let mut moved = Moved::new(now);
        let geometry = self.geometry;
        if self.log.is_some() {
            geometry.for_each_block(buffer, bytes, |at, size| self.load_block_logged(at, size, &ways, &mut moved));
        } else {
            geometry.for_each_block(buffer, bytes, |at, size| self.load_block(at, size, &ways, &mut moved));
        }
        let from_dram = moved.here.dram_read + moved.home.dram_read + moved.here.dram_written + moved.home.dram_written;
        self.l2_demand += moved.from_l2;
        self.fabric_demand += moved.over_fabric;
        self.dram_demand += from_dram;
        self.sms[place.sm()].demand = demand + moved.port;
        let in_flight = Demand {
            port: moved.port as u32,
            l2: moved.from_l2 as u32,
            fabric: moved.over_fabric as u32,
            dram: from_dram as u32,
        };
        self.coalescers[gpc].issued(now, now + cycles(bytes.len as f64 / timings.port_bytes), moved.sent);
        self.counted(kernel, now, moved.here, moved.home);
        let mut done = if together { moved.slowest } else { now + Time(mean(moved.waited, bytes.len)) };
        let late = bytes.len - moved.port;
        if late > 0 {
            done = self.ports[place.sm()].pass(now, done, cycles(late as f64 / timings.port_bytes));
        }
        (done + cycles(overhead), in_flight)
    }

    /// Loads a block, or so many bytes of it.
    #[inline]
    fn load_block(&mut self, at: Address, size: u64, ways: &Ways, moved: &mut Moved) {
        let sectors = self.geometry.count(at.sectors);
        moved.here.requested += sectors;
        let shared = if ways.read_once { None } else { Some(self.coalescers[ways.gpc].join(at, ways.now, ways.asked)) };
        let ready = if let Some(Ok(shared)) = shared {
            moved.here.coalesced += sectors;
            let ready = shared.max(ways.joined);
            moved.port += if ready > ways.soon { 0 } else { size };
            ready
        } else {
            let ready = self.find(at, size, ways, moved);
            if let Some(Err(slot)) = shared {
                self.coalescers[ways.gpc].sent(slot, at.mark, ready, ways.asked);
                moved.sent += 1;
            }
            // What waits for DRAM takes up nothing of L2 and the port meanwhile.
            if ready <= ways.soon + ways.far {
                moved.port += size;
                moved.from_l2 += size;
            }
            ready
        };
        moved.waited += u128::from(size) * u128::from(ready.since(ways.now).0);
        moved.slowest = moved.slowest.max(ready);
    }

    /// The same in a run that keeps what is moved by slice.
    fn load_block_logged(&mut self, at: Address, size: u64, ways: &Ways, moved: &mut Moved) {
        let Moved { here, home, .. } = *moved;
        self.load_block(at, size, ways, moved);
        self.log_slices(ways.kernel, at, usize::from(at.home), moved.home - home);
        self.log_slices(ways.kernel, at, ways.part, moved.here - here);
    }

    /// Finds a block in the reader's part, at home, or in DRAM: when it is there. What that moves is counted.
    #[inline]
    fn find(&mut self, at: Address, size: u64, ways: &Ways, moved: &mut Moved) -> Time {
        let Moved { here, home, over_fabric, .. } = moved;
        let asked = self.geometry.count(at.sectors);
        here.sectors += asked;
        let near = self.look_up(ways.part, at, ways.read_once);
        let missing = self.geometry.count(near.missing);
        here.hits += asked - missing;
        here.merged += if near.ready > ways.soon { asked - missing } else { 0 };
        if near.missing == 0 {
            return near.ready.max(ways.soon);
        }
        let mut ready = ways.dram;
        let part = usize::from(at.home);
        if part == ways.part {
            here.dram_read += missing * SECTOR;
        } else {
            home.fabric += missing;
            *over_fabric += size;
            let there = self.look_up(part, Address { sectors: near.missing, ..at }, ways.read_once);
            let fetched = self.geometry.count(there.missing);
            home.hits += missing - fetched;
            home.merged += if there.ready > ways.soon { missing - fetched } else { 0 };
            home.dram_read += fetched * SECTOR;
            // It is at home when it is where it was asked for: until then, it is on its way for all.
            ready = ways.far + if there.missing == 0 { there.ready.max(ways.soon) } else { ready };
            home.dram_written += self.fill(part, there, ready, ways.read_once);
            ready = ready.max(ways.fabric);
        }
        here.dram_written += self.fill(ways.part, near, ready, ways.read_once);
        ready
    }

    /// What is read once is not there, and nobody asks for it again: a lookup would say so, and change nothing that matters.
    #[inline]
    fn look_up(&mut self, part: usize, at: Address, read_once: bool) -> Found {
        if read_once {
            return Found { entry: 0, missing: at.sectors, ready: Time::ZERO, writes_back: false };
        }
        self.cache.look_up(part, at)
    }

    /// What was missing of a block comes at `ready`, if anything was: how many bytes have to be written back for it.
    #[inline]
    fn fill(&mut self, part: usize, found: Found, ready: Time, read_once: bool) -> u64 {
        if found.missing != 0 && !read_once {
            self.cache.filled(part, found.entry, ready);
        }
        if found.writes_back { self.geometry.block_bytes() } else { 0 }
    }

    #[cold]
    fn log_slices(&mut self, kernel: KernelId, at: Address, part: usize, moved: Traffic) {
        let Some(log) = &mut self.log else { return };
        if moved == Traffic::default() {
            return;
        }
        let slices = self.geometry.slices(at, part);
        let each = moved / slices.len() as u64;
        for slice in slices {
            log.through(kernel, slice, each);
        }
    }

    /// An iteration's accesses have been counted, those at one place and those at another.
    #[inline]
    fn counted(&mut self, kernel: KernelId, now: Time, here: Traffic, home: Traffic) {
        let traffic = &mut self.launches[kernel].as_mut().expect("only launches with memory work come here").traffic;
        *traffic += here;
        *traffic += home;
        if let Some(log) = &mut self.log {
            log.at(kernel, now, here);
            log.at(kernel, now, home);
        }
    }

    /// How long a run of bytes takes from DRAM, in cycles: its latency is drawn, and longer the more is on its way.
    fn dram_latency(&mut self, alone: f64, bytes: u64, uneven: Uneven) -> f64 {
        let timings = &self.timings;
        let burst = if bytes > timings.line_bytes { timings.burst } else { 0.0 };
        let latency = timings.dram + burst;
        let mean = alone + 0.5 * timings.far + latency;
        let queue = (self.dram_demand + bytes) as f64 / timings.dram_bytes;
        let longer = loaded(mean, queue, timings.dram_softness);
        let near = timings.near;
        near + latency + longer * (1.0 + uneven.later + uneven.spread * self.draw()) - mean
    }

    /// The next draw of the even law from -1 to 1.
    pub(super) fn draw(&mut self) -> f64 {
        even(self.draws.next())
    }

    /// Stores are handed on: when the SM's port and L2 have taken them in, and DRAM what they drive out, which is in flight until
    /// then. There it shares the bandwidth with what is loaded.
    pub(super) fn store(&mut self, transfer: Transfer<'a>, now: Time) -> (Time, Demand) {
        let Transfer { kernel, place, buffer, bytes } = transfer;
        let sm = place.sm();
        let part = self.sms[sm].part;
        let (mut written, mut dram) = (0, 0);
        let geometry = self.geometry;
        geometry.for_each_block(buffer, bytes, |at, _| {
            let sectors = geometry.count(at.sectors);
            let through = if self.timings.write_through { sectors * SECTOR } else { 0 };
            let back = self.cache.write(part, at, now, through == 0) * geometry.block_bytes();
            written += sectors;
            dram += through + back;
            if self.log.is_some() {
                let moved = Traffic { written: sectors, dram_written: through + back, ..Traffic::default() };
                self.log_slices(kernel, at, usize::from(at.home), moved);
            }
        });
        let takes = |bytes: u64, ps_per_byte: f64| Time((bytes as f64 * ps_per_byte + 0.5) as u64);
        self.stored = self.stored.max(now) + takes(bytes.len, self.timings.store_ps_per_byte);
        let waits = if dram > 0 { self.dram_demand + dram } else { 0 };
        let written_back = now + takes(waits, self.timings.cycle_ps / self.timings.dram_bytes);
        self.dram_demand += dram;
        let through_port = takes(bytes.len, self.timings.cycle_ps / self.timings.port_bytes);
        let port = &mut self.sms[sm].stored;
        *port = (*port).max(now) + through_port;
        let taken = self.stored.max(written_back).max(*port);
        self.counted(kernel, now, Traffic { written, dram_written: dram, ..Traffic::default() }, Traffic::default());
        (taken, Demand { dram: dram as u32, ..Demand::default() })
    }
}
