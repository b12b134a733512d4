//! Streaming kernels iteration by iteration: loads, arithmetic on lanes that the CTAs of an SM share, stores.
//!
//! An iteration begins when the stores of the one before have been taken in. Its arithmetic waits for its turn at the lanes of
//! the SM, which serve one iteration after the other; so CTAs hide each other's waiting, for memory and for the lanes.

use super::Memory;
use super::accesses::Transfer;
use super::latency::Demand;
use super::moves::Moves;
use crate::device::Device;
use crate::engine::Time;
use crate::gpu::sm::Place;
use crate::ids::{IdVec, KernelId, SmId};
use crate::workload::streaming::{Array, Plan};
use crate::workload::{Kernel, Streaming};

/// A launch of a streaming kernel.
#[derive(Debug)]
pub(super) struct Streamed<'a> {
    plan: Plan,
    work: &'a Streaming,
    /// What an element keeps the lanes of an SM for, in picoseconds.
    lanes_ps: f64,
    /// What it takes on those lanes that the warps of one CTA reach.
    alone_ps: f64,
    overhead: Time,
}

impl<'a> Streamed<'a> {
    pub(super) fn new(work: &'a Streaming, kernel: &Kernel, device: &Device) -> Self {
        let (limits, cycle_ps) = (&device.limits, device.clock.cycles_to_ps(1.0));
        let lanes_ps = work.operations * cycle_ps / f64::from(limits.fp32_lanes);
        let reached = limits.warps_of(kernel.threads()).min(limits.sub_partitions);
        let time = |ps: f64| Time(ps.round() as u64);
        Self {
            plan: Plan::new(work, kernel.ctas(), kernel.threads()),
            work,
            lanes_ps,
            alone_ps: lanes_ps * f64::from(limits.sub_partitions) / f64::from(reached),
            overhead: time(work.times.overhead.ps(cycle_ps)),
        }
    }
}

/// The state of all streaming kernels.
#[derive(Debug)]
pub(super) struct Streams {
    /// When the lanes of each SM have done what they were given so far.
    lanes: IdVec<SmId, Time>,
    ctas: Vec<Cta>,
}

/// A CTA on its place.
#[derive(Clone, Copy, Debug, Default)]
struct Cta {
    does: Does,
    iteration: u64,
    iterations: u64,
    /// What its loads, or its stores, have in flight: it waits for all of them, so that they have come when it is next heard of.
    demand: Demand,
}

/// What a CTA does when it is next heard of.
#[derive(Clone, Copy, Debug, Default)]
enum Does {
    #[default]
    Start,
    Load,
    Work,
    Store,
    Result,
    End,
}

impl Streams {
    pub(super) fn new(sms: usize, places: usize) -> Self {
        Self { lanes: IdVec::filled(Time::ZERO, sms), ctas: vec![Cta::default(); places] }
    }
}

impl<'a> Memory<'a> {
    /// A CTA of a streaming kernel goes on: when it is to be heard of next; none if it has ended.
    pub(super) fn next_of_stream(&mut self, kernel: KernelId, cta: u32, place: Place, now: Time) -> Option<Time> {
        let mut state = self.streams().ctas[place.0 as usize];
        let iteration = state.iteration;
        loop {
            let at = match state.does {
                Does::Start => {
                    let iterations = self.streamed(kernel).plan.iterations(cta);
                    let does = if iterations > 0 { Does::Load } else { Does::Result };
                    state = Cta { does, iterations, ..Cta::default() };
                    self.first(kernel, place.sm(), now)
                }
                Does::Load => {
                    self.has_come(place.sm(), std::mem::take(&mut state.demand));
                    state.does = Does::Work;
                    self.load_elements(kernel, cta, place, &mut state, now)
                }
                Does::Work => {
                    self.has_come(place.sm(), std::mem::take(&mut state.demand));
                    state.does = Does::Store;
                    self.work_on_elements(kernel, cta, place, state.iteration, now)
                }
                Does::Store => {
                    let at = self.store_elements(kernel, cta, place, &mut state, now);
                    state.iteration += 1;
                    state.does = if state.iteration < state.iterations { Does::Load } else { Does::Result };
                    at
                }
                Does::Result => {
                    self.has_come(place.sm(), std::mem::take(&mut state.demand));
                    state.does = Does::End;
                    let result = (self.streamed(kernel).work.result.as_slice(), (u64::from(cta), 1));
                    self.store_each(kernel, place, result, &mut state, now) + self.launch(kernel).finish
                }
                Does::End => {
                    self.has_come(place.sm(), state.demand);
                    self.streams().ctas[place.0 as usize] = Cta::default();
                    return None;
                }
            };
            // At most one iteration at once, so that iterations without end can be interrupted.
            if at > now || state.iteration > iteration + 1 {
                self.streams().ctas[place.0 as usize] = state;
                return Some(at);
            }
        }
    }

    /// Loads an iteration's elements of all inputs; when they are there.
    fn load_elements(&mut self, kernel: KernelId, cta: u32, place: Place, state: &mut Cta, now: Time) -> Time {
        let (work, elements) = self.elements(kernel, cta, state.iteration);
        let mut there = now;
        for input in &work.inputs {
            let (done, demand) = self.load(transfer(kernel, place, input, elements), now);
            state.demand += demand;
            there = there.max(done);
        }
        there
    }

    /// Works on an iteration's elements; when that is done.
    fn work_on_elements(&mut self, kernel: KernelId, cta: u32, place: Place, iteration: u64, now: Time) -> Time {
        let (_, (_, count)) = self.elements(kernel, cta, iteration);
        let &Streamed { lanes_ps, alone_ps, .. } = self.streamed(kernel);
        if lanes_ps == 0.0 {
            return now;
        }
        let takes = |ps: f64| Time((count as f64 * ps + 0.5) as u64);
        let lanes = &mut self.streams().lanes[place.sm()];
        *lanes = now.max(*lanes) + takes(lanes_ps);
        (*lanes).max(now + takes(alone_ps))
    }

    /// Stores an iteration's elements of all outputs; when they have been taken in.
    fn store_elements(&mut self, kernel: KernelId, cta: u32, place: Place, state: &mut Cta, now: Time) -> Time {
        let (work, elements) = self.elements(kernel, cta, state.iteration);
        let taken = self.store_each(kernel, place, (&work.outputs, elements), state, now);
        // Where there are loads, they have waited for the loop.
        if work.inputs.is_empty() { taken.max(now + self.streamed(kernel).overhead) } else { taken }
    }

    fn store_each(
        &mut self,
        kernel: KernelId,
        place: Place,
        (arrays, elements): (&[Array], (u64, u64)),
        state: &mut Cta,
        now: Time,
    ) -> Time {
        let mut taken = now;
        for array in arrays {
            let stored = self.store(transfer(kernel, place, array, elements), now);
            state.demand += stored.demand;
            taken = taken.max(stored.taken);
        }
        taken
    }

    fn elements(&self, kernel: KernelId, cta: u32, iteration: u64) -> (&'a Streaming, (u64, u64)) {
        let &Streamed { ref plan, work, .. } = self.streamed(kernel);
        (work, plan.elements(cta, iteration))
    }

    fn streamed(&self, kernel: KernelId) -> &Streamed<'a> {
        match &self.launch(kernel).moves {
            Moves::Stream(streamed) => streamed,
            _ => unreachable!("only launches of streaming kernels come here"),
        }
    }

    fn streams(&mut self) -> &mut Streams {
        self.streams.as_mut().expect("a program with a streaming kernel has their state")
    }
}

/// Some elements of an array, from number `first` on.
fn transfer(kernel: KernelId, place: Place, array: &Array, (first, count): (u64, u64)) -> Transfer<'static> {
    Transfer { kernel, place, buffer: array.buffer, bytes: array.run(first, count) }
}
