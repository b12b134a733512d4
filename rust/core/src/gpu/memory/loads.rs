//! Loads and stores of warp programs on their way through L2 and DRAM.
//!
//! A CTA walks through each pattern that its program names. What all of its warps move by one instruction is an iteration of
//! the pattern, which is asked for as a whole, or warp by warp where warps are stepped. It is in flight until it has come,
//! beside everybody else's loads.

use super::Memory;
use super::accesses::{Stored, Transfer};
use super::address::SECTOR;
use super::moves::{Launch, Moves};
use crate::device::Device;
use crate::engine::Time;
use crate::engine::rng::mix;
use crate::gpu::sm::Place;
use crate::ids::KernelId;
use crate::simulate::IssueMode;
use crate::workload::walk::Walk;
use crate::workload::{Access, Kernel, Warps};

/// A pattern that a kernel's programs walk through.
#[derive(Debug)]
pub(crate) struct Accessed<'a> {
    walk: Walk<'a>,
    buffer: u16,
    write: bool,
    /// The warps of a CTA, and what an instruction of one moves.
    warps: u64,
    bytes: u64,
}

/// What is asked for: an iteration of a CTA's walk through an access, or one warp's part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) kernel: KernelId,
    pub(crate) cta: u32,
    pub(crate) place: Place,
    pub(crate) access: usize,
    pub(crate) iteration: u64,
    pub(crate) warp: Option<u32>,
}

/// What memory answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    /// What was loaded has come, on average over its bytes; what was stored has been taken in.
    pub(crate) at: Time,
    /// How much the times of single warps differ from that: their variance, in square cycles.
    pub(crate) variance: f64,
}

impl<'a> Accessed<'a> {
    /// All that a kernel's programs name; random places are drawn from `key`.
    pub(crate) fn all_of(
        programs: &Warps,
        kernel: &Kernel,
        device: &Device,
        arrays: &[&'a [f64]],
        key: u64,
    ) -> Vec<Self> {
        let (warps, lanes) = warps_and_lanes(kernel, device);
        let accessed = |(i, access): (usize, &Access)| {
            let bytes = programs.bytes_through(i);
            let steps = (warps * bytes, bytes.div_ceil(lanes));
            let walk = Walk::of_steps(&access.pattern, kernel.ctas(), steps, arrays, mix(key.wrapping_add(i as u64)));
            Self { walk, buffer: access.buffer, write: access.write, warps, bytes }
        };
        programs.accesses.iter().enumerate().map(accessed).collect()
    }

    /// What the warps of a CTA move at once, in bytes.
    pub(crate) fn step(&self) -> u64 {
        self.warps * self.bytes
    }

    /// Iterations of a CTA.
    pub(crate) fn iterations(&self, cta: u32) -> u64 {
        self.walk.iterations(cta)
    }
}

fn warps_and_lanes(kernel: &Kernel, device: &Device) -> (u64, u64) {
    let lanes = device.limits.warp_size;
    (kernel.threads().div_ceil(lanes).into(), lanes.into())
}

/// The largest power of two that divides the start and the length of all that a kernel's programs ask for at once.
pub(super) fn alignment(programs: &Warps, kernel: &Kernel, device: &Device, issue: IssueMode) -> Option<u64> {
    let (warps, _) = warps_and_lanes(kernel, device);
    let at_once = if issue == IssueMode::Exact { 1 } else { warps };
    let of = |(i, access): (usize, &Access)| access.pattern.alignment(at_once * programs.bytes_through(i));
    programs.accesses.iter().enumerate().map(of).min()
}

impl Memory<'_> {
    /// Asks for an iteration at `now`.
    pub(crate) fn ask(&mut self, request: Request, now: Time) -> Reply {
        self.land(now);
        let Request { kernel, cta, place, access, iteration, warp } = request;
        let Moves::Programs(accessed) = &self.launch(kernel).moves else {
            unreachable!("only launches of warp programs come here")
        };
        let &Accessed { ref walk, buffer, write, warps, bytes } = &accessed[access];
        let mut moved = walk.bytes(cta, iteration);
        if let Some(warp) = warp {
            moved = moved.of_warp(warp.into(), warps, bytes);
        }
        if moved.len == 0 {
            return Reply { at: now, variance: 0.0 };
        }
        let transfer = Transfer { kernel, place, buffer, bytes: moved };
        if write {
            let Stored { taken: at, demand, .. } = self.store(transfer, now);
            self.lands(at, place.sm(), demand);
            return Reply { at, variance: 0.0 };
        }
        let before = self.launch(kernel).traffic;
        let (mut at, demand) = self.load(transfer, now);
        let Launch { traffic, .. } = *self.launch(kernel);
        let seen = traffic - before;
        let timings = self.timings;
        let share = |sectors: u64| (sectors as f64 / seen.requested.max(1) as f64).min(1.0);
        let (far, missed) = (share(seen.fabric), share(seen.dram_read / SECTOR));
        if warp.is_some() {
            let off = (1.0 - missed) * timings.l2_spread * self.draw() * timings.cycle_ps;
            at = Time((at.0 as f64 + off).max(now.0 as f64) as u64);
        }
        self.lands(at, place.sm(), demand);
        // Of a uniform law, the variance is a third of the square of its half width.
        let of_dram = timings.dram_spread * (timings.near + timings.dram);
        let variance = far * (1.0 - far) * timings.far * timings.far
            + missed * (1.0 - missed) * timings.dram * timings.dram
            + missed * of_dram * of_dram / 3.0
            + (1.0 - missed) * timings.l2_spread * timings.l2_spread / 3.0;
        Reply { at, variance }
    }
}
