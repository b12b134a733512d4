//! The way of a CTA's loads and stores: SM port, merging in the GPC, the parts of L2, the fabric between them, DRAM.
//!
//! A load takes the latency of the nearest place that has its line, and longer when much is on its way at once: demand is
//! what all CTAs have in flight, and by Little's law a server of bandwidth `B` with `D` bytes in flight takes `D / B` for
//! each. [`loaded`] goes over from the one to the other.

use rand_core::Rng;

use super::coalescer::InFlight;
use super::l2::{Address, Cache, Found, block_bytes, hash};
use super::sm::Place;
use crate::device::{Device, WritePolicy};
use crate::engine::{Time, rng};
use crate::ids::{IdVec, KernelId, SmId};
use crate::records::{L2Log, L2SliceColumns, L2WindowColumns, Traffic};
use crate::simulate::{Detail, Options};
use crate::workload::walk::{Bytes, Walk};
use crate::workload::{Access, Kernel, Program, Work};

/// A sector, in bytes: what counters count.
const SECTOR: u64 = 32;

/// L2, DRAM, and who has what in flight. Latencies are cycles, demands are bytes.
#[derive(Debug)]
pub(crate) struct Memory<'a> {
    timings: Timings,
    cache: Cache,
    block_bytes: u64,
    sms: IdVec<SmId, Sm>,
    in_flight: Vec<InFlight>,
    launches: IdVec<KernelId, Option<Launch<'a>>>,
    ctas: Vec<Cta>,
    /// Bytes in flight.
    l2_demand: u64,
    dram_demand: u64,
    fabric_demand: u64,
    /// When L2 has taken in all stores so far.
    stored: Time,
    draws: u64,
    /// By slice and by window; only if the run keeps that.
    log: Option<L2Log>,
}

#[derive(Clone, Copy, Debug)]
struct Timings {
    cycle_ps: f64,
    near: f64,
    /// What the other part adds.
    far: f64,
    /// What DRAM adds.
    dram: f64,
    cold: Time,
    port_bytes: f64,
    l2_bytes: f64,
    l2_softness: f64,
    fabric_bytes: f64,
    dram_bytes: f64,
    dram_softness: f64,
    /// Half the width of the uniform law that DRAM's latency is drawn from.
    dram_spread: f64,
    burst: f64,
    line_bytes: u64,
    store_ps_per_byte: f64,
    /// Stores go on to DRAM at once.
    write_through: bool,
    coalesced_requests: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sm {
    part: usize,
    gpc: usize,
    /// Bytes in flight.
    demand: u64,
    /// The launch that ran here last, and when it may have its first data.
    launch: Option<KernelId>,
    warm: Time,
}

#[derive(Debug)]
struct Launch<'a> {
    walk: Walk<'a>,
    buffer: u16,
    write: bool,
    startup: Time,
    cold: Time,
    overhead: f64,
    /// An iteration takes as long as its slowest part, and not as long as its parts on average.
    together: bool,
    /// How far DRAM's latency is from its mean, at most, as a fraction.
    spread: f64,
    finish: Time,
    traffic: Traffic,
}

/// A CTA on its place.
#[derive(Clone, Copy, Debug, Default)]
struct Cta {
    started: bool,
    iteration: u64,
    iterations: u64,
    /// What it has in flight, in bytes: through its SM's port, from L2, over the fabric, from DRAM.
    port: u32,
    l2: u32,
    fabric: u32,
    dram: u32,
}

/// Latency under load: `alone` when nothing else is in flight, `queue` when all of it is waiting, and between the two a
/// bend of the given softness. Only sums, products and a square root, so that it is the same on every machine.
#[inline]
fn loaded(alone: f64, queue: f64, softness: f64) -> f64 {
    let apart = alone - queue;
    0.5 * (alone + queue + (apart * apart + softness * alone * queue).sqrt())
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
        let accesses = |kernel: &'a Kernel| match &kernel.work {
            Work::Access(access) => Some((kernel, access)),
            _ => None,
        };
        let alignment =
            program.kernels.iter().filter_map(accesses).map(|(k, a)| a.pattern.alignment(k.threads())).min()?;
        let timings = Timings::new(device);
        let time = |span: crate::workload::Span| Time(span.ps(timings.cycle_ps).round() as u64);
        let launch = |number: usize, kernel: &'a Kernel, access: &Access| Launch {
            walk: Walk::new(
                &access.pattern,
                kernel.ctas(),
                kernel.threads(),
                arrays,
                rng::stream(options.seed, "places", number as u64).next_u64(),
            ),
            buffer: access.buffer,
            write: access.write,
            startup: time(access.startup),
            cold: access.cold.map_or(timings.cold, time),
            overhead: access.overhead.ps(timings.cycle_ps) / timings.cycle_ps,
            together: access.pattern.together(),
            spread: if access.pattern.together() {
                timings.dram_spread
            } else {
                timings.dram_spread / f64::from(kernel.threads().div_ceil(device.limits.warp_size)).sqrt()
            },
            finish: time(access.finish),
            traffic: Traffic::default(),
        };
        let launches: IdVec<KernelId, Option<Launch<'a>>> = launches
            .enumerate()
            .map(|(i, spec)| accesses(&program.kernels[spec]).map(|(kernel, access)| launch(i, kernel, access)))
            .collect();
        let log = (options.detail == Detail::Memory)
            .then(|| L2Log::new(launches.len(), device.l2.slices as usize, usize::from(device.l2.halves)));
        let block_bytes = block_bytes(&device.l2, alignment);
        let mut sms =
            IdVec::filled(Sm { part: 0, gpc: 0, demand: 0, launch: None, warm: Time::ZERO }, device.sm_count());
        for (i, gpc) in device.topology.gpcs.iter().enumerate() {
            for sm in gpc.sms() {
                sms[sm].part = usize::from(gpc.half);
                sms[sm].gpc = i;
            }
        }
        // Enough for all that the warps of a GPC have in flight.
        let threads = device.limits.warps * device.limits.warp_size;
        let most =
            |gpc: &crate::device::Gpc| gpc.sm_count() * (u64::from(threads) * 16 / block_bytes).max(8) as usize * 2;
        Some(Self {
            timings,
            cache: Cache::new(&device.l2, block_bytes, options.seed),
            block_bytes,
            sms,
            in_flight: device.topology.gpcs.iter().map(|gpc| InFlight::new(most(gpc))).collect(),
            launches,
            ctas: vec![Cta::default(); places],
            l2_demand: 0,
            dram_demand: 0,
            fabric_demand: 0,
            stored: Time::ZERO,
            draws: 0,
            log,
        })
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
        let launch = self.launches[kernel].as_mut().expect("only launches with memory work come here");
        let sm = &mut self.sms[place.sm()];
        let state = &mut self.ctas[place.0 as usize];
        sm.demand -= u64::from(state.port);
        self.l2_demand -= u64::from(state.l2);
        self.fabric_demand -= u64::from(state.fabric);
        self.dram_demand -= u64::from(state.dram);
        (state.port, state.l2, state.fabric, state.dram) = (0, 0, 0, 0);
        if !state.started {
            *state = Cta { started: true, iterations: launch.walk.iterations(cta), ..Cta::default() };
            if sm.launch != Some(kernel) {
                sm.launch = Some(kernel);
                sm.warm = now + launch.cold;
            }
            return Some((now + launch.startup).max(sm.warm));
        }
        if state.iteration == state.iterations {
            *state = Cta::default();
            return None;
        }
        let bytes = launch.walk.bytes(cta, state.iteration);
        state.iteration += 1;
        let last = state.iteration == state.iterations;
        let (write, finish) = (launch.write, launch.finish);
        let done = if write { self.store(kernel, bytes, now) } else { self.load(kernel, place, bytes, now) };
        Some(if last { done + finish } else { done })
    }

    /// The blocks of an iteration's bytes, and how many bytes of each.
    fn blocks(&self, buffer: u16, bytes: Bytes<'a>) -> impl Iterator<Item = (Address, u64)> + use<'a> {
        let (size, geometry) = (self.block_bytes, self.cache.geometry());
        let mut runs = bytes.runs();
        let (mut at, mut left) = (0, 0);
        std::iter::from_fn(move || {
            if left == 0 {
                (at, left) = runs.next()?;
            }
            let part = (size - (at & (size - 1))).min(left).min(bytes.wrap - at);
            let address = geometry.address(buffer, at);
            at += part;
            left -= part;
            if at == bytes.wrap {
                at = 0;
            }
            Some((address, part))
        })
    }

    fn load(&mut self, kernel: KernelId, place: Place, bytes: Bytes<'a>, now: Time) -> Time {
        let timings = self.timings;
        let launch = self.launches[kernel].as_ref().expect("only launches with memory work come here");
        let &Launch { buffer, overhead, spread, together, mut traffic, .. } = launch;
        let Sm { part, gpc, demand, .. } = self.sms[place.sm()];
        let cycles = |cycles: f64| Time((cycles * timings.cycle_ps + 0.5) as u64);
        let alone = timings.near + overhead;
        let at_port = loaded(alone, (demand + bytes.len) as f64 / timings.port_bytes, timings.l2_softness);
        let queue = (self.l2_demand + bytes.len) as f64 / timings.l2_bytes;
        let at_l2 = loaded(at_port, queue, timings.l2_softness) - alone;
        let (near, far) = (cycles(timings.near + at_l2), cycles(timings.far));
        let from_memory = self.dram_latency(alone, bytes.len, spread);
        let dram = now + cycles(timings.near.max(at_l2 + from_memory));
        let soon = now + near;
        let fabric_queue = now + cycles((self.fabric_demand + bytes.len) as f64 / timings.fabric_bytes);
        let (mut port, mut from_l2, mut over_fabric, mut from_dram, mut back) = (0, 0, 0, 0, 0);
        let (mut waited, mut slowest) = (0_u128, now);
        let before = traffic;
        for (at, size) in self.blocks(buffer, bytes) {
            let sectors = size.div_ceil(SECTOR);
            // What the block moves through the reader's part of L2, and through its home if that is another.
            let mut here = Traffic { requested: sectors, ..Traffic::default() };
            let request = match self.in_flight[gpc].join(at.block(), now, timings.coalesced_requests) {
                Ok(shared) => {
                    here.coalesced = sectors;
                    self.count(&mut traffic, kernel, at, part, here);
                    let ready = shared.max(now + cycles(at_port - overhead));
                    waited += u128::from(size) * u128::from(ready.since(now).0);
                    slowest = slowest.max(ready);
                    port += if ready > soon { 0 } else { size };
                    continue;
                }
                Err(request) => request,
            };
            here.sectors = sectors;
            let ready = match self.cache.look_up(part, at) {
                Found::Hit { ready, .. } => {
                    here.hits = sectors;
                    here.merged = if ready > soon { sectors } else { 0 };
                    ready.max(soon)
                }
                Found::Miss { entry, writes_back } => {
                    here.dram_written = if writes_back { self.block_bytes } else { 0 };
                    let mut ready = dram;
                    if at.home == part {
                        here.dram_read = size;
                    } else {
                        let mut home = Traffic { fabric: sectors, ..Traffic::default() };
                        match self.cache.look_up(at.home, at) {
                            Found::Hit { ready: at_home, .. } => {
                                home.hits = sectors;
                                home.merged = if at_home > soon { sectors } else { 0 };
                                ready = soon.max(at_home) + far;
                            }
                            Found::Miss { entry, writes_back } => {
                                home.dram_written = if writes_back { self.block_bytes } else { 0 };
                                home.dram_read = size;
                                self.cache.filled(at.home, entry, ready);
                                ready += far;
                            }
                        }
                        over_fabric += size;
                        ready = ready.max(fabric_queue);
                        self.count(&mut traffic, kernel, at, at.home, home);
                        from_dram += home.dram_read;
                        back += home.dram_written;
                    }
                    from_dram += here.dram_read;
                    back += here.dram_written;
                    self.cache.filled(part, entry, ready);
                    ready
                }
            };
            self.count(&mut traffic, kernel, at, part, here);
            self.in_flight[gpc].sent(request, at.block(), ready);
            waited += u128::from(size) * u128::from(ready.since(now).0);
            slowest = slowest.max(ready);
            // What waits for DRAM takes up nothing of L2 and the port meanwhile.
            if ready <= soon + far {
                port += size;
                from_l2 += size;
            }
        }
        self.l2_demand += from_l2;
        self.fabric_demand += over_fabric;
        self.dram_demand += from_dram + back;
        self.sms[place.sm()].demand = demand + port;
        let state = &mut self.ctas[place.0 as usize];
        (state.port, state.l2) = (port as u32, from_l2 as u32);
        (state.fabric, state.dram) = (over_fabric as u32, (from_dram + back) as u32);
        self.counted(kernel, now, before, traffic);
        let done = if together { slowest } else { now + Time((waited / u128::from(bytes.len)) as u64) };
        done + cycles(overhead)
    }

    /// A block moves something through one part of L2.
    #[inline]
    fn count(&mut self, traffic: &mut Traffic, kernel: KernelId, at: Address, part: usize, moved: Traffic) {
        *traffic += moved;
        if self.log.is_some() {
            self.log_slices(kernel, at, part, moved);
        }
    }

    #[cold]
    fn log_slices(&mut self, kernel: KernelId, at: Address, part: usize, moved: Traffic) {
        let Some(log) = &mut self.log else { return };
        let slices = self.cache.geometry().slices(at, part);
        let each = moved / slices.len() as u64;
        for slice in slices {
            log.through(kernel, slice, each);
        }
    }

    /// An iteration's accesses have been counted.
    fn counted(&mut self, kernel: KernelId, now: Time, before: Traffic, traffic: Traffic) {
        self.launches[kernel].as_mut().expect("only launches with memory work come here").traffic = traffic;
        if let Some(log) = &mut self.log {
            log.at(kernel, now, traffic - before);
        }
    }

    /// How long a run of bytes takes from DRAM, in cycles: its latency is drawn, and longer the more is on its way.
    fn dram_latency(&mut self, alone: f64, bytes: u64, spread: f64) -> f64 {
        let timings = &self.timings;
        let burst = if bytes > timings.line_bytes { timings.burst } else { 0.0 };
        let latency = timings.dram + burst;
        let mean = alone + 0.5 * timings.far + latency;
        let queue = (self.dram_demand + bytes) as f64 / timings.dram_bytes;
        let longer = loaded(mean, queue, timings.dram_softness);
        self.draws += 1;
        let draw = (hash(self.draws) >> 40) as f64 / f64::from(1_u32 << 23) - 1.0;
        timings.near + latency + longer * (1.0 + spread * draw) - mean
    }

    /// Stores are handed on: the next ones follow when L2 has taken these in.
    fn store(&mut self, kernel: KernelId, bytes: Bytes<'a>, now: Time) -> Time {
        let launch = self.launches[kernel].as_ref().expect("only launches with memory work come here");
        let (buffer, overhead, mut traffic) = (launch.buffer, launch.overhead, launch.traffic);
        let before = traffic;
        for (at, size) in self.blocks(buffer, bytes) {
            let through = if self.timings.write_through { size } else { 0 };
            let back = if self.cache.write(at, now, through == 0) { self.block_bytes } else { 0 };
            let moved = Traffic { written: size.div_ceil(SECTOR), dram_written: through + back, ..Traffic::default() };
            self.count(&mut traffic, kernel, at, at.home, moved);
        }
        self.stored = self.stored.max(now) + Time((bytes.len as f64 * self.timings.store_ps_per_byte + 0.5) as u64);
        self.counted(kernel, now, before, traffic);
        self.stored.max(now + Time((overhead * self.timings.cycle_ps + 0.5) as u64))
    }
}

impl Timings {
    fn new(device: &Device) -> Self {
        let (l2, dram) = (&device.l2, &device.dram);
        let cycle_ps = device.clock.cycles_to_ps(1.0);
        let bytes_per_cycle = |gb_s: f64| gb_s * cycle_ps / 1e3;
        let far = if l2.halves > 1 { l2.far_latency_cycles - l2.near_latency_cycles } else { 0.0 };
        let (write, write_through) = (l2.write_bandwidth_gb_s, l2.write_policy == WritePolicy::WriteThrough);
        let homes_elsewhere = 1.0 - 1.0 / f64::from(l2.halves);
        Self {
            cycle_ps,
            near: l2.near_latency_cycles,
            far,
            dram: (dram.latency_cycles - l2.near_latency_cycles - homes_elsewhere * far).max(0.0),
            cold: Time((l2.cold_cycles * cycle_ps).round() as u64),
            port_bytes: l2.port_bytes_per_cycle,
            l2_bytes: bytes_per_cycle(l2.bandwidth_gb_s),
            l2_softness: l2.softness,
            fabric_bytes: bytes_per_cycle(l2.fabric_bandwidth_gb_s),
            dram_bytes: bytes_per_cycle(dram.bandwidth_gb_s),
            dram_softness: dram.softness,
            dram_spread: 3.0_f64.sqrt() * dram.spread,
            burst: dram.burst_cycles,
            line_bytes: u64::from(l2.line_bytes),
            store_ps_per_byte: 1e3 / if write_through { write.min(dram.reached_gb_s) } else { write },
            write_through,
            coalesced_requests: u64::from(l2.coalesced_requests),
        }
    }
}
