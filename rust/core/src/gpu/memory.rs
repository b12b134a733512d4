//! Memory: what CTAs move through it, from the SM's port to DRAM. A file for each box on the way:
//!
//! ```text
//!  SM           GPC              two parts of L2 (sets: address)        DRAM
//!  port ----> coalescer ----> l2 (the reader's) --fabric--> l2 (home) ---->
//! ```
//!
//! `accesses` is the way of one load or store past all of them, `blocks` that of what it loads. What a CTA moves next is said
//! by its kind of work: a pattern (here), `tiles`, `streaming`, or `loads` of warp programs.

mod accesses;
mod address;
mod blocks;
mod coalescer;
mod l2;
mod lanes;
mod latency;
mod loads;
mod moves;
mod port;
mod stack;
mod streaming;
mod tiles;

pub(super) use loads::{Accessed, Request};

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use accesses::{Stored, Transfer};
use address::{Geometry, Run, block_bytes};
use coalescer::Coalescer;
use l2::Cache;
use latency::{Demand, Timings};
use loads::alignment;
use moves::{Launch, Moves};
use port::Port;
use streaming::Streams;
use tiles::Tiling;

use super::sm::Place;
use crate::device::Device;
use crate::engine::Time;
use crate::engine::rng::Draws;
use crate::ids::{IdVec, KernelId, SmId};
use crate::records::{L2Log, L2SliceColumns, L2WindowColumns, Traffic};
use crate::simulate::{Detail, Options};
use crate::workload::access::THREAD_BYTES;
use crate::workload::{Program, Work};

/// L2, DRAM, and who has what in flight. Latencies are cycles, demands are bytes.
#[derive(Debug)]
pub(crate) struct Memory<'a> {
    timings: Timings,
    geometry: Geometry,
    cache: Box<dyn Cache>,
    /// Those of the load that is being made.
    runs: Vec<Run>,
    sms: IdVec<SmId, Sm>,
    ports: IdVec<SmId, Port>,
    /// One a GPC.
    coalescers: Vec<Coalescer>,
    launches: IdVec<KernelId, Option<Launch<'a>>>,
    ctas: Vec<Cta>,
    /// Bytes in flight.
    l2_demand: u64,
    dram_demand: u64,
    written_demand: u64,
    fabric_demand: u64,
    /// When L2 has taken in all stores so far.
    stored: Time,
    draws: Draws,
    /// What is in flight while its CTA goes on, by when it comes. A CTA that waits for all that it asked for keeps that itself.
    landings: BinaryHeap<Reverse<(Time, SmId, Demand)>>,
    /// By slice and by window; only if the run keeps that.
    log: Option<L2Log>,
    /// Only if the program has tiled kernels.
    tiling: Option<Tiling>,
    /// Only if the program has streaming kernels.
    streams: Option<Streams>,
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
            cache: l2::cache(&device.l2, &geometry, options.seed),
            runs: Vec::new(),
            geometry,
            sms,
            ports: IdVec::filled(Port::default(), device.sm_count()),
            launches,
            ctas: vec![Cta::default(); places],
            l2_demand: 0,
            dram_demand: 0,
            written_demand: 0,
            fabric_demand: 0,
            stored: Time::ZERO,
            draws: Draws::default(),
            landings: BinaryHeap::new(),
            log,
            tiling: any(|work| matches!(work, Work::Tiles(_))).then(|| Tiling::new(device, options.seed, places)),
            streams: any(|work| matches!(work, Work::Streaming(_))).then(|| Streams::new(device.sm_count(), places)),
        })
    }

    /// Does without the short cut for what is read once.
    #[cfg(test)]
    fn look_everything_up(&mut self) {
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
        let Launch { write, buffer, turn, finish, .. } = *self.launch(kernel);
        let transfer = Transfer { kernel, place, buffer, bytes };
        let (done, demand) = if write {
            let Stored { taken, demand, .. } = self.store(transfer, now);
            (taken.max(now + turn), demand)
        } else {
            self.load(transfer, now)
        };
        let iteration = state.iteration + 1;
        self.ctas[place.0 as usize] = Cta { iteration, demand, ..state };
        Some(if iteration == state.iterations { done + finish } else { done })
    }

    #[inline]
    fn launch(&self, kernel: KernelId) -> &Launch<'a> {
        self.launches[kernel].as_ref().expect("only launches with memory work come here")
    }

    /// When a CTA that has begun at `now` makes its first access.
    fn first(&mut self, kernel: KernelId, sm: SmId, now: Time) -> Time {
        let Launch { cold, startup, .. } = *self.launch(kernel);
        let sm = &mut self.sms[sm];
        if sm.launch != Some(kernel) {
            sm.launch = Some(kernel);
            sm.warm = now + cold;
        }
        (now + startup).max(sm.warm)
    }

    /// What was asked for comes at `at`.
    fn lands(&mut self, at: Time, sm: SmId, demand: Demand) {
        self.landings.push(Reverse((at, sm, demand)));
    }

    /// Takes what has come by now out of what is in flight.
    #[inline]
    fn land(&mut self, now: Time) {
        while let Some(&Reverse((at, sm, demand))) = self.landings.peek()
            && at <= now
        {
            self.landings.pop();
            self.has_come(sm, demand);
        }
    }

    /// What was in flight has come.
    #[inline]
    fn has_come(&mut self, sm: SmId, demand: Demand) {
        self.sms[sm].demand -= u64::from(demand.port);
        self.l2_demand -= u64::from(demand.l2);
        self.fabric_demand -= u64::from(demand.fabric);
        self.dram_demand -= u64::from(demand.dram);
        self.written_demand -= u64::from(demand.written);
    }
}
