//! Tiled kernels step by step: loads run ahead, the tensor cores of an SM are shared by its CTAs, tiles are stored.
//!
//! A step begins when the one before is done and its own operands are there. It frees a stage, into which loads are issued at
//! once; then its arithmetic waits for its turn at the tensor cores, which serve one step after the other. So one CTA alone
//! is as slow as the slower of its arithmetic and its loads, and several hide each other's waiting.

use std::collections::VecDeque;

use rand_core::Rng;

use super::Memory;
use super::accesses::{Stored, Transfer};
use super::address::PAGE_BYTES;
use super::moves::Moves;
use crate::device::Device;
use crate::engine::Time;
use crate::engine::rng::{self, even};
use crate::gpu::sm::Place;
use crate::ids::{IdVec, KernelId, SmId};
use crate::workload::access::THREAD_BYTES;
use crate::workload::tiles::Plan;
use crate::workload::walk::Bytes;
use crate::workload::{Kernel, Tiles};

/// A launch of a tiled kernel.
#[derive(Debug)]
pub(super) struct Tiled<'a> {
    plan: Plan<'a>,
    ctas: u64,
    stages: u64,
    /// What the threads of a CTA store at once, in whole pages.
    piece: u64,
    /// A step's arithmetic.
    arithmetic: Time,
    overhead: Time,
}

impl<'a> Tiled<'a> {
    pub(super) fn new(work: &Tiles, plan: Plan<'a>, kernel: &Kernel, device: &Device) -> Self {
        let cycle_ps = device.clock.cycles_to_ps(1.0);
        // Twice the operations on operands of half the size.
        let rate = f64::from(device.limits.tensor_flops_per_cycle) * 2.0 / work.element_bytes as f64;
        let time = |ps: f64| Time(ps.round() as u64);
        Self {
            plan,
            ctas: kernel.ctas(),
            stages: work.stages,
            piece: (u64::from(kernel.threads()) * THREAD_BYTES).next_multiple_of(PAGE_BYTES),
            arithmetic: time(work.flops_of_step() as f64 / rate * cycle_ps),
            overhead: time(work.times.overhead.ps(cycle_ps)),
        }
    }
}

/// The state of all tiled kernels.
#[derive(Debug)]
pub(super) struct Tiling {
    tensor_cores: IdVec<SmId, TensorCores>,
    ctas: Vec<Cta>,
}

/// Those of an SM.
#[derive(Clone, Copy, Debug)]
struct TensorCores {
    /// When they have done what they were given so far.
    free: Time,
    /// How long a cycle of their GPC is, in mean ones.
    pace: f64,
}

/// A CTA on its place.
#[derive(Clone, Debug, Default)]
struct Cta {
    does: Does,
    /// The place of its tile in the order.
    at: u64,
    /// The step that is next; behind the last one, how many bytes of the tile are stored.
    step: u64,
    /// When all stores so far are taken in.
    stored: Time,
    /// When the operands of this step and of those behind it are there, as far as they have been asked for.
    coming: VecDeque<Time>,
}

/// What a CTA does when it is next heard of.
#[derive(Clone, Copy, Debug, Default)]
enum Does {
    #[default]
    Start,
    BeginTile,
    Step,
    Store,
    End,
}

impl Tiling {
    pub(super) fn new(device: &Device, seed: u64, places: usize) -> Self {
        let mut tensor_cores = IdVec::filled(TensorCores { free: Time::ZERO, pace: 1.0 }, device.sm_count());
        for (i, gpc) in device.topology.gpcs.iter().enumerate() {
            let off = even(rng::stream(seed, "clock", i as u64).next_u64());
            gpc.sms().for_each(|sm| tensor_cores[sm].pace += off * device.issue.gpc_clock_spread);
        }
        Self { tensor_cores, ctas: vec![Cta::default(); places] }
    }
}

impl Memory<'_> {
    /// A CTA of a tiled kernel goes on: when it is to be heard of next; none if it has ended.
    pub(super) fn next_of_tiles(&mut self, kernel: KernelId, cta: u32, place: Place, now: Time) -> Option<Time> {
        let (does, at, step) = {
            let state = self.tile_of(place);
            (state.does, state.at, state.step)
        };
        let &Tiled { ctas, stages, piece, arithmetic, overhead, ref plan } = self.tiled(kernel);
        let (tiles, steps) = (plan.tiles, plan.steps);
        match does {
            Does::Start => {
                let state = self.tile_of(place);
                (state.does, state.at) = (Does::BeginTile, u64::from(cta));
                Some(self.first(kernel, place.sm(), now))
            }
            Does::BeginTile => {
                for step in 0..steps.min(stages - 1) {
                    self.fetch(kernel, place, at, step, now);
                }
                let state = self.tile_of(place);
                (state.does, state.step) = (Does::Step, 0);
                state.coming.front().copied()
            }
            Does::Step => {
                if step + stages - 1 < steps {
                    self.fetch(kernel, place, at, step + stages - 1, now);
                }
                let TensorCores { free, pace } = &mut self.tiling().tensor_cores[place.sm()];
                let at_pace = |time: Time| Time((time.0 as f64 * *pace).round() as u64);
                let done = now.max(*free) + at_pace(arithmetic);
                let next = done + at_pace(overhead);
                *free = done;
                let state = self.tile_of(place);
                state.step += 1;
                state.coming.pop_front();
                if let Some(&there) = state.coming.front() {
                    return Some(there.max(next));
                }
                (state.does, state.step) = (Does::Store, 0);
                Some(done + self.launch(kernel).finish)
            }
            Does::Store => {
                // Piece by piece, so that CTAs that store at the same time share what takes it in.
                let (start, len) = plan.output(plan.tile(at));
                let piece = piece.min(len - step);
                let (bytes, buffer) = (Bytes::run(start + step, piece), self.launch(kernel).buffer);
                let Stored { passed, taken, demand } = self.store(Transfer { kernel, place, buffer, bytes }, now);
                self.lands(taken, place.sm(), demand);
                let state = self.tile_of(place);
                state.step += piece;
                state.stored = state.stored.max(taken);
                if state.step < len {
                    return Some(passed);
                }
                state.at += ctas;
                state.does = if state.at < tiles { Does::BeginTile } else { Does::End };
                Some(state.stored)
            }
            Does::End => {
                self.tile_of(place).does = Does::Start;
                None
            }
        }
    }

    /// Loads what a step needs.
    fn fetch(&mut self, kernel: KernelId, place: Place, at: u64, step: u64, now: Time) {
        let plan = &self.tiled(kernel).plan;
        let (operands, buffer) = (plan.operands(plan.tile(at), step), self.launch(kernel).buffer);
        let mut there = now;
        for bytes in operands {
            let (done, demand) = self.load(Transfer { kernel, place, buffer, bytes }, now);
            self.lands(done, place.sm(), demand);
            there = there.max(done);
        }
        self.tile_of(place).coming.push_back(there);
    }

    fn tiled(&self, kernel: KernelId) -> &Tiled<'_> {
        match &self.launch(kernel).moves {
            Moves::Tiles(tiled) => tiled,
            _ => unreachable!("only launches of tiled kernels come here"),
        }
    }

    fn tiling(&mut self) -> &mut Tiling {
        self.tiling.as_mut().expect("a program with a tiled kernel has their state")
    }

    fn tile_of(&mut self, place: Place) -> &mut Cta {
        &mut self.tiling().ctas[place.0 as usize]
    }
}
