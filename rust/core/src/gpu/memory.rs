//! The way of a CTA's loads and stores: SM port, merging in the GPC, the parts of L2, the fabric between them, DRAM.
//!
//! A load takes the latency of the nearest place that has its line, and longer when much is on its way at once: demand is
//! what all CTAs have in flight, and by Little's law a server of bandwidth `B` with `D` bytes in flight takes `D / B` for
//! each. [`loaded`] goes over from the one to the other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::address::{Address, Geometry, SECTOR, block_bytes, hash};
use super::coalescer::Coalescer;
use super::l2::{Cache, Found};
use super::latency::{Demand, Timings, loaded, mean};
use super::loads::alignment;
use super::moves::{Launch, Moves, Uneven};
use super::port::Port;
use super::sm::Place;
use super::streaming::Streams;
use super::tiles::Tiling;
use crate::device::Device;
use crate::engine::Time;
use crate::ids::{IdVec, KernelId, SmId};
use crate::records::{L2Log, L2SliceColumns, L2WindowColumns, Traffic};
use crate::simulate::{Detail, Options};
use crate::workload::access::THREAD_BYTES;
use crate::workload::walk::Bytes;
use crate::workload::{Program, Work};

/// L2, DRAM, and who has what in flight. Latencies are cycles, demands are bytes.
#[derive(Debug)]
pub(crate) struct Memory<'a> {
    pub(super) timings: Timings,
    geometry: Geometry,
    cache: Cache,
    sms: IdVec<SmId, Sm>,
    ports: IdVec<SmId, Port>,
    /// One a GPC.
    coalescers: Vec<Coalescer>,
    launches: IdVec<KernelId, Option<Launch<'a>>>,
    ctas: Vec<Cta>,
    /// Bytes in flight.
    l2_demand: u64,
    dram_demand: u64,
    fabric_demand: u64,
    /// When L2 has taken in all stores so far.
    stored: Time,
    pub(super) draws: u64,
    /// What is in flight longer than the step that asked for it lasts, by when it comes.
    pub(super) landings: BinaryHeap<Reverse<(Time, SmId, Demand)>>,
    /// By slice and by window; only if the run keeps that.
    log: Option<L2Log>,
    /// Only if the program has tiled kernels.
    pub(super) tiling: Option<Tiling>,
    /// Only if the program has streaming kernels.
    pub(super) streams: Option<Streams>,
}

#[derive(Clone, Copy, Debug)]
struct Sm {
    part: usize,
    gpc: usize,
    /// Bytes in flight through its port.
    demand: u64,
    /// When its port has passed all stores so far.
    stored: Time,
    /// The launch that ran here last, and when it may have its first data.
    launch: Option<KernelId>,
    warm: Time,
}

/// A CTA on its place.
#[derive(Clone, Copy, Debug, Default)]
struct Cta {
    started: bool,
    iteration: u64,
    iterations: u64,
    demand: Demand,
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
    /// The memory of a program; none if it has no work for it.
    pub(crate) fn new(
        device: &Device,
        program: &'a Program,
        launches: impl Iterator<Item = usize>,
        arrays: &[&'a [f64]],
        places: usize,
        options: &Options,
    ) -> Option<Self> {
        let alignment = program
            .kernels
            .iter()
            .filter_map(|kernel| match &kernel.work {
                Work::Access(access) => Some(access.pattern.alignment(u64::from(kernel.threads()) * THREAD_BYTES)),
                Work::Tiles(tiles) => Some(tiles.alignment()),
                Work::Streaming(stream) => Some(stream.alignment(kernel.threads())),
                Work::Warps(programs) => alignment(programs, kernel, device, options.issue),
                _ => None,
            })
            .min()?;
        let timings = Timings::new(device);
        let mut launches: IdVec<KernelId, Option<Launch<'a>>> =
            launches.map(|spec| Launch::new(spec, &program.kernels[spec], device, &timings, arrays, options)).collect();
        let log = (options.detail == Detail::Memory)
            .then(|| L2Log::new(launches.len(), device.l2.slices as usize, usize::from(device.l2.halves)));
        let block_bytes = block_bytes(&device.l2, alignment);
        let mut with_memory = launches.values_mut().flatten();
        if let (Some(only), None) = (with_memory.next(), with_memory.next()) {
            only.read_once &= block_bytes <= alignment;
        } else {
            launches.values_mut().flatten().for_each(|launch| launch.read_once = false);
        }
        let any = |of: fn(&Work) -> bool| program.kernels.iter().any(|kernel| of(&kernel.work));
        let geometry = Geometry::new(&device.l2, block_bytes);
        let coalescer = || Coalescer::new(&device.l2, &geometry);
        let mut sms = IdVec::filled(
            Sm { part: 0, gpc: 0, demand: 0, stored: Time::ZERO, launch: None, warm: Time::ZERO },
            device.sm_count(),
        );
        for (i, gpc) in device.topology.gpcs.iter().enumerate() {
            for sm in gpc.sms() {
                sms[sm].part = usize::from(gpc.half);
                sms[sm].gpc = i;
            }
        }
        Some(Self {
            timings,
            coalescers: device.topology.gpcs.iter().map(|_| coalescer()).collect(),
            cache: Cache::new(&device.l2, &geometry, options.seed),
            geometry,
            sms,
            ports: IdVec::filled(Port::default(), device.sm_count()),
            launches,
            ctas: vec![Cta::default(); places],
            l2_demand: 0,
            dram_demand: 0,
            fabric_demand: 0,
            stored: Time::ZERO,
            draws: 0,
            landings: BinaryHeap::new(),
            log,
            tiling: any(|work| matches!(work, Work::Tiles(_))).then(|| Tiling::new(device.sm_count(), places)),
            streams: any(|work| matches!(work, Work::Streaming(_))).then(|| Streams::new(device.sm_count(), places)),
        })
    }

    /// Does without the short cut for what is read once.
    #[cfg(test)]
    pub(super) fn look_everything_up(&mut self) {
        self.launches.values_mut().flatten().for_each(|launch| launch.read_once = false);
    }

    /// What a launch moved; none if memory is not its work.
    pub(crate) fn traffic(&self, kernel: KernelId) -> Option<Traffic> {
        self.launches[kernel].as_ref().map(|launch| launch.traffic)
    }

    /// What all launches moved by slice and by window, if that was kept; nothing is left of it here.
    pub(crate) fn take_log(&mut self) -> Option<(L2SliceColumns, L2WindowColumns)> {
        self.log.take().map(L2Log::close)
    }

    /// What a CTA on `place` had in flight has come: when that of its next iteration will have; none if it has ended.
    pub(crate) fn next(&mut self, kernel: KernelId, cta: u32, place: Place, now: Time) -> Option<Time> {
        self.land(now);
        let walk = match &self.launch(kernel).moves {
            Moves::Walk(walk) => walk,
            Moves::Tiles(_) => return self.next_of_tiles(kernel, cta, place, now),
            Moves::Stream(_) => return self.next_of_stream(kernel, cta, place, now),
            Moves::Programs(_) => unreachable!("warps ask for what they load one by one"),
        };
        let mut state = self.ctas[place.0 as usize];
        let begins = !state.started;
        if begins {
            state = Cta { started: true, iterations: walk.iterations(cta), ..Cta::default() };
        }
        let bytes = (state.iteration < state.iterations).then(|| walk.bytes(cta, state.iteration));
        if begins {
            let first = self.first(kernel, place.sm(), now);
            if first > now {
                self.ctas[place.0 as usize] = state;
                return Some(first);
            }
        }
        self.has_come(place.sm(), state.demand);
        let Some(bytes) = bytes else {
            self.ctas[place.0 as usize] = Cta::default();
            return None;
        };
        let Launch { write, buffer, overhead, finish, .. } = *self.launch(kernel);
        let (done, demand) = if write {
            let turn = Time((overhead * self.timings.cycle_ps + 0.5) as u64);
            let (taken, demand) = self.store(kernel, place.sm(), buffer, bytes, now);
            (taken.max(now + turn), demand)
        } else {
            self.load(kernel, place, buffer, bytes, now)
        };
        let iteration = state.iteration + 1;
        self.ctas[place.0 as usize] = Cta { iteration, demand, ..state };
        Some(if iteration == state.iterations { done + finish } else { done })
    }

    #[inline]
    pub(super) fn launch(&self, kernel: KernelId) -> &Launch<'a> {
        self.launches[kernel].as_ref().expect("only launches with memory work come here")
    }

    /// When a CTA that has begun at `now` makes its first access.
    pub(super) fn first(&mut self, kernel: KernelId, sm: SmId, now: Time) -> Time {
        let Launch { cold, startup, .. } = *self.launch(kernel);
        let sm = &mut self.sms[sm];
        if sm.launch != Some(kernel) {
            sm.launch = Some(kernel);
            sm.warm = now + cold;
        }
        (now + startup).max(sm.warm)
    }

    /// What was in flight has come.
    #[inline]
    pub(super) fn has_come(&mut self, sm: SmId, demand: Demand) {
        self.sms[sm].demand -= u64::from(demand.port);
        self.l2_demand -= u64::from(demand.l2);
        self.fabric_demand -= u64::from(demand.fabric);
        self.dram_demand -= u64::from(demand.dram);
    }

    /// Loads a run of bytes: when it is there, and what is in flight until then.
    pub(super) fn load(
        &mut self,
        kernel: KernelId,
        place: Place,
        buffer: u16,
        bytes: Bytes<'a>,
        now: Time,
    ) -> (Time, Demand) {
        let timings = self.timings;
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
        self.cache.go_on(now);
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
        self.draws += 1;
        let draw = (hash(self.draws) >> 40) as f64 / f64::from(1_u32 << 23) - 1.0;
        timings.near + latency + longer * (1.0 + uneven.later + uneven.spread * draw) - mean
    }

    /// Stores are handed on: when the SM's port and L2 have taken them in, and DRAM what they drive out, which is in flight until
    /// then. There it shares the bandwidth with what is loaded.
    pub(super) fn store(
        &mut self,
        kernel: KernelId,
        sm: SmId,
        buffer: u16,
        bytes: Bytes<'a>,
        now: Time,
    ) -> (Time, Demand) {
        let part = self.sms[sm].part;
        self.cache.go_on(now);
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
