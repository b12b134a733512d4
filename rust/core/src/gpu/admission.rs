//! What is found out before a run: what a CTA of each kernel takes, and whether the device can run it at all.

use crate::device::{Deal, Device, RefusedBy};
use crate::error::{Error, Result};
use crate::simulate::shape_of;
use crate::workload::{Kernel, Program, Work};

use super::memory::Accessed;
use super::sm::Footprint;

/// No CTA of a warp program comes to the end of a pattern that it walks through.
pub(super) fn check_walks(device: &Device, program: &Program, arrays: &[&[f64]]) -> Result<()> {
    for (i, kernel) in program.kernels.iter().enumerate() {
        let Work::Warps(warps) = &kernel.work else { continue };
        for (number, accessed) in Accessed::all_of(warps, kernel, device, arrays, 0).iter().enumerate() {
            let asked: Vec<u128> = (0..warps.programs.len()).map(|program| warps.asked(program, number)).collect();
            let most = asked.iter().copied().max().unwrap_or(0);
            // Of each pattern, either the first CTA or the last has the fewest.
            let last = kernel.ctas() as u32 - 1;
            if most <= accessed.iterations(0).min(accessed.iterations(last)).into() {
                continue;
            }
            let of_cta = |cta: u32| {
                let own = warps.order.map_or(cta as usize % asked.len(), |order| arrays[order][cta as usize] as usize);
                (asked[own], u128::from(accessed.iterations(cta)))
            };
            if let Some(cta) = (0..=last).find(|&cta| of_cta(cta).0 > of_cta(cta).1) {
                let (asked, there) = of_cta(cta);
                let field = format!("program.kernels[{i}].work.warps.accesses[{number}].pattern");
                let why = format!(
                    "CTA {cta} walks through it in {asked} steps of {} bytes, and it ends after {there}",
                    accessed.step()
                );
                return Err(Error::invalid(field, asked, why));
            }
        }
    }
    Ok(())
}

/// A grid barrier needs every CTA at once. A cooperative launch of more than the device holds is refused; without one,
/// they would wait for each other for ever.
pub(super) fn check_barriers(device: &Device, program: &Program, footprints: &[Footprint]) -> Result<()> {
    for (i, (kernel, footprint)) in program.kernels.iter().zip(footprints).enumerate() {
        let (ctas, held) = (kernel.ctas(), held_at_once(device, kernel, footprint));
        if !kernel.is_cooperative() || ctas <= held {
            continue;
        }
        let at_most = if kernel.cluster > 1 || dealt_to(device).is_some() { "at most " } else { "" };
        let room = format!("{at_most}{} on each of {} SMs", footprint.residency, device.sm_count());
        if kernel.cooperative {
            return Err(Error::CannotLaunch {
                field: format!("program.kernels[{i}].grid"),
                value: ctas.into(),
                kernel: kernel.name.clone(),
                device: device.name.clone(),
                why: format!(
                    "a cooperative launch of {ctas} CTAs, and {held} are the most that it holds at once ({room})"
                ),
            });
        }
        let who = format!(
            "kernel `{}`: its grid barrier needs all {ctas} CTAs at once and {} holds {held} ({room}): \
             CTAs 0 to {} wait at the barrier for CTAs {held} to {}, which wait for their slots",
            kernel.name,
            device.name,
            held.saturating_sub(1),
            ctas - 1,
        );
        return Err(Error::Deadlock { at_ns: None, who });
    }
    Ok(())
}

/// The most CTAs of a grid that are resident at once, all of them of this kernel.
fn held_at_once(device: &Device, kernel: &Kernel, footprint: &Footprint) -> u64 {
    let residency = u64::from(footprint.residency);
    if kernel.cluster > 1 {
        let clusters = device.topology.max_active_clusters(kernel.cluster, footprint.residency);
        return u64::from(clusters) * u64::from(kernel.cluster);
    }
    match dealt_to(device) {
        None => device.sm_count() as u64 * residency,
        // The GPC that is full first holds up the grid: of `n` GPCs the `j`th is full with CTA `n * room + j`.
        Some(gpcs) => (0..gpcs)
            .map(|j| device.topology.gpcs[j].sm_count() as u64 * residency * gpcs as u64 + j as u64)
            .min()
            .unwrap_or(0),
    }
}

/// The GPCs between which CTAs are dealt by their number, if they are.
pub(super) fn dealt_to(device: &Device) -> Option<usize> {
    let gpcs = device.topology.gpcs.len();
    (device.dispatch.deal == Deal::RoundRobin && gpcs > 1).then_some(gpcs)
}

/// Which of a kernel's fields a limit refuses, and its value.
fn asked_too_much(kernel: &Kernel, limit: RefusedBy) -> (&'static str, u32) {
    match limit {
        RefusedBy::ThreadsPerCta | RefusedBy::Warps => ("block", kernel.threads()),
        RefusedBy::RegistersPerThread | RefusedBy::RegistersPerCta => ("registers", kernel.registers),
        RefusedBy::SharedOptinBytes => ("shared_memory", kernel.shared_memory),
        RefusedBy::BarriersPerCta => ("barriers", kernel.barriers),
        RefusedBy::Cluster | RefusedBy::ClusterCapacity => ("cluster", kernel.cluster),
    }
}

/// What a CTA of each of the program's kernels takes of an SM; an error for the first that can't launch.
pub(super) fn footprints(device: &Device, program: &Program) -> Result<Vec<Footprint>> {
    let mut footprints: Vec<Footprint> = program
        .kernels
        .iter()
        .enumerate()
        .map(|(i, kernel)| {
            let occupancy = device.occupancy(&shape_of(kernel));
            match occupancy.refusal {
                Some(refusal) => {
                    let (field, value) = asked_too_much(kernel, refusal.limit);
                    Err(Error::CannotLaunch {
                        field: format!("program.kernels[{i}].{field}"),
                        value: value.into(),
                        kernel: kernel.name.clone(),
                        device: device.name.clone(),
                        why: refusal.text,
                    })
                }
                None => Ok(Footprint::new(&occupancy, kernel.barriers)),
            }
        })
        .collect::<Result<_>>()?;
    let mut distinct: Vec<Footprint> = Vec::new();
    for footprint in &mut footprints {
        let known = distinct.iter().position(|other| other == footprint);
        let shape = known.unwrap_or(distinct.len());
        if known.is_none() {
            distinct.push(*footprint);
        }
        footprint.shape = shape as u32;
    }
    Ok(footprints)
}
