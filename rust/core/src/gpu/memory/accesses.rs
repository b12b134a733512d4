//! The way of a load or a store: SM port, merging in the GPC, the parts of L2, the fabric between them, DRAM.
//!
//! A load takes the latency of the nearest place that has its line, and longer when much is on its way at once: demand is
//! what all CTAs have in flight, and by Little's law a server of bandwidth `B` with `D` bytes in flight takes `D / B` for
//! each. [`loaded`] goes over from the one to the other. A load counts at each server for as long as that has it, [`in_flight`].

use super::address::{Address, Geometry, SECTOR};
use super::blocks::{Load, Log, Moved, Sharing};
use super::latency::{Demand, float, in_flight, loaded, whole};
use super::moves::Launch;
use super::{Memory, Sm};
use crate::engine::Time;
use crate::engine::rng::even;
use crate::gpu::sm::Place;
use crate::ids::KernelId;
use crate::records::{L2Log, Traffic};
use crate::workload::walk::Bytes;

/// A run of bytes on its way between a buffer and a CTA.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer<'a> {
    pub(super) kernel: KernelId,
    pub(super) place: Place,
    pub(super) buffer: u16,
    pub(super) bytes: Bytes<'a>,
}

/// How stores go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    /// The SM's port and L2 have taken them in, and the next ones can follow.
    pub(super) passed: Time,
    /// DRAM has taken what they drive out, too, which is in flight until then.
    pub(super) taken: Time,
    pub(super) demand: Demand,
}

impl<'a> Memory<'a> {
    /// Loads a run of bytes: when it is there, and what is in flight until then.
    pub(super) fn load(&mut self, transfer: Transfer<'a>, now: Time) -> (Time, Demand) {
        let timings = self.timings;
        let Transfer { kernel, place, buffer, bytes } = transfer;
        let Launch { overhead, turn, uneven, together, read_once, .. } = *self.launch(kernel);
        let Sm { part, gpc, demand, .. } = self.sms[place.sm()];
        let cycles = |cycles: f64| timings.cycles(cycles);
        let through_port = |bytes: u64| cycles(float(bytes) / timings.port_bytes);
        let alone = timings.near + overhead;
        let at_port = loaded(alone, float(demand + bytes.len) / timings.port_bytes, timings.l2_softness);
        let queue = float(self.l2_demand + bytes.len) / timings.l2_bytes;
        let in_l2 = loaded(at_port, queue, timings.l2_softness);
        let draw = self.draw();
        let (later, in_dram) = self.dram_latency(in_l2, bytes.len, uneven.later + uneven.spread * draw);
        let dram = now + cycles(timings.near.max(in_l2 - overhead + later));
        let soon = now + cycles(in_l2 - overhead);
        let over_fabric = float(self.fabric_demand + bytes.len) / timings.fabric_bytes;
        let fabric = now + cycles(over_fabric);
        self.runs.clear();
        self.geometry.for_each_run(buffer, bytes, |run| self.runs.push(run));
        let (geometry, runs) = (&self.geometry, self.runs.as_slice());
        let load = Load { geometry, runs, part, now, soon, far: timings.farther, fabric, dram };
        let mut moved = Moved::new(now);
        let mut by_slice = self.log.as_mut().map(|log| {
            |at: Address, here, home| {
                log_slices(log, geometry, kernel, at, at.home.into(), home);
                log_slices(log, geometry, kernel, at, part, here);
            }
        });
        let log = by_slice.as_mut().map(|log| log as Log<'_>);
        if read_once {
            load.once(&mut moved, log);
        } else {
            let coalescer = &mut self.coalescers[gpc];
            let (before, joined) = (coalescer.before(now), now + cycles(at_port - overhead));
            self.cache.load(&load, Sharing { coalescer, before, joined }, &mut moved, log);
            self.coalescers[gpc].issued(now, now + through_port(bytes.len), moved.sent);
        }
        let from_dram = moved.here.dram_read + moved.home.dram_read;
        let written = moved.here.dram_written + moved.home.dram_written;
        self.counted(kernel, now, &moved.here, &moved.home);
        let mut done = moved.done(now, bytes.len, together);
        if from_dram + written == 0 {
            // Each line comes from a slice of its own, near or further from the SM. What DRAM takes has its own draw.
            let off =
                draw * uneven.near * (float(timings.line_bytes) / float(bytes.len)).sqrt().min(1.0) * timings.cycle_ps;
            done = Time((done.0 as f64 + off).max(now.0 as f64) as u64);
        }
        let late = bytes.len - moved.port;
        if late > 0 {
            done = self.ports[place.sm()].pass(now, done, through_port(late));
        }
        let done = done + turn;
        let takes = float(done.since(now).0) / timings.cycle_ps;
        let in_flight = Demand {
            port: moved.port as u32,
            l2: in_flight(moved.from_l2, in_l2.min(takes), takes),
            fabric: in_flight(moved.over_fabric, over_fabric.max(takes), takes),
            dram: in_flight(from_dram, in_dram, takes),
            written: in_flight(written, in_dram, takes),
        };
        self.sms[place.sm()].demand = demand + u64::from(in_flight.port);
        self.l2_demand += u64::from(in_flight.l2);
        self.fabric_demand += u64::from(in_flight.fabric);
        self.dram_demand += u64::from(in_flight.dram);
        self.written_demand += u64::from(in_flight.written);
        (done, in_flight)
    }

    /// An iteration's accesses have been counted, those at one place and those at another.
    #[inline]
    fn counted(&mut self, kernel: KernelId, now: Time, here: &Traffic, home: &Traffic) {
        let traffic = &mut self.launches[kernel].as_mut().expect("only launches with memory work come here").traffic;
        *traffic += *here;
        *traffic += *home;
        if let Some(log) = &mut self.log {
            log.at(kernel, now, *here);
            log.at(kernel, now, *home);
        }
    }

    /// What DRAM adds to what a run of bytes takes in L2, and for how long it has the bytes in flight, in cycles: longer the more
    /// is on its way, and by a share. What is written goes first; DRAM turns around for it, for each by itself where it is idle.
    fn dram_latency(&self, in_l2: f64, bytes: u64, longer_by: f64) -> (f64, f64) {
        let timings = &self.timings;
        let burst = if bytes > timings.line_bytes { timings.burst } else { 0.0 };
        let latency = timings.dram + burst;
        let mean = in_l2 + 0.5 * timings.far + latency;
        let queue = float(self.dram_demand + bytes) / timings.dram_bytes;
        let read = loaded(mean, queue, timings.dram_softness);
        let idle = (read - queue) / read.max(f64::MIN_POSITIVE);
        let written = float(self.written_demand) / timings.dram_bytes * (1.0 + timings.dram_turnaround * idle);
        let longer = (read + written) * (1.0 + longer_by);
        (latency + longer - mean, longer)
    }

    /// The next draw of the even law from -1 to 1.
    pub(super) fn draw(&mut self) -> f64 {
        even(self.draws.next())
    }

    /// Stores are handed on. What they drive out is in flight to DRAM, where it shares the bandwidth with what is loaded.
    pub(super) fn store(&mut self, transfer: Transfer<'a>, now: Time) -> Stored {
        let Transfer { kernel, place, buffer, bytes } = transfer;
        let sm = place.sm();
        let part = self.sms[sm].part;
        let (mut written, mut dram) = (0, 0);
        let geometry = self.geometry;
        let mut block = |at: Address| {
            let sectors = geometry.count(at.sectors);
            let through = if self.timings.write_through { sectors * SECTOR } else { 0 };
            let back = self.cache.write(part, at, now, through == 0) * geometry.block_bytes();
            written += sectors;
            dram += through + back;
            if let Some(log) = &mut self.log {
                let moved = Traffic { written: sectors, dram_written: through + back, ..Traffic::default() };
                log_slices(log, &geometry, kernel, at, at.home.into(), moved);
            }
        };
        geometry.for_each_run(buffer, bytes, |run| run.blocks().for_each(&mut block));
        let takes = |bytes: u64, ps_per_byte: f64| Time(whole(float(bytes) * ps_per_byte + 0.5));
        self.stored = self.stored.max(now) + takes(bytes.len, self.timings.store_ps_per_byte);
        let waits = if dram > 0 { self.dram_demand + self.written_demand + dram } else { 0 };
        let written_back = now + takes(waits, self.timings.cycle_ps / self.timings.dram_bytes);
        self.written_demand += dram;
        let through_port = takes(bytes.len, self.timings.cycle_ps / self.timings.port_bytes);
        let port = &mut self.sms[sm].stored;
        *port = (*port).max(now) + through_port;
        let passed = self.stored.max(*port);
        let written = Traffic { written, dram_written: dram, ..Traffic::default() };
        self.counted(kernel, now, &written, &Traffic::default());
        Stored { passed, taken: passed.max(written_back), demand: Demand { written: dram as u32, ..Demand::default() } }
    }
}

/// What a block has moved is kept by slice.
fn log_slices(log: &mut L2Log, geometry: &Geometry, kernel: KernelId, at: Address, part: usize, moved: Traffic) {
    if moved == Traffic::default() {
        return;
    }
    let slices = geometry.slices(at, part);
    let each = moved / slices.len() as u64;
    for slice in slices {
        log.through(kernel, slice, each);
    }
}
