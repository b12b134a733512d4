//! Slots and SMs: every CTA runs once, in a slot of its own, and no SM holds more than it can.

use proptest::prelude::*;
use wavesim::device::Vendor;
use wavesim::workload::Work;
use wavesim::{Dispatcher, Options};

use super::cases::{Case, cases, config, plain_cases, shape_of, without_overhead};
use super::view::{of_kernel, rows, union};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_cta_of_every_grid_runs_exactly_once(case in cases()) {
        let records = case.simulate();
        let rows = rows(&records);
        let kernels = case.kernels();
        prop_assert_eq!(records.kernels.ctas.len(), kernels.len());
        for (id, kernel) in kernels.iter().enumerate() {
            prop_assert_eq!(records.kernels.ctas[id], kernel.ctas());
            let ran: Vec<usize> = of_kernel(&rows, id).iter().map(|row| row.cta).collect();
            prop_assert_eq!(ran, (0..kernel.ctas() as usize).collect::<Vec<_>>());
        }
        prop_assert!(rows.is_sorted_by_key(|row| row.end), "rows come in the order in which CTAs ended");
    }

    #[test]
    fn no_two_ctas_overlap_in_a_slot_and_every_slot_is_one_of_the_device(case in cases()) {
        let records = case.simulate();
        let mut rows = rows(&records);
        let per_sm = records.slots as usize / case.device.sm_count();
        prop_assert_eq!(per_sm * case.device.sm_count(), records.slots as usize);
        rows.sort_unstable_by_key(|row| (row.sm, row.slot, row.start, row.end));
        for pair in rows.windows(2) {
            let same = (pair[0].sm, pair[0].slot) == (pair[1].sm, pair[1].slot);
            prop_assert!(!same || pair[0].end <= pair[1].start, "{pair:?}");
        }
        for row in &rows {
            prop_assert!(row.sm < case.device.sm_count() && row.slot < per_sm, "{row:?}");
        }
    }

    #[test]
    fn no_sm_ever_holds_more_than_its_limits(case in cases()) {
        let records = case.simulate();
        let limits = &case.device.limits;
        let takes: Vec<[u64; 6]> = case.kernels().iter().map(|kernel| {
            let fit = case.device.occupancy(&shape_of(kernel));
            // On AMD a workgroup of one wave needs no barrier.
            let barriers = if case.device.vendor == Vendor::Amd && fit.warps_per_cta == 1 { 0 } else { kernel.barriers };
            [1, fit.warps_per_cta, kernel.threads(), fit.registers_per_cta, fit.shared_per_cta_bytes, barriers].map(u64::from)
        }).collect();
        let barriers = limits.barriers.unwrap_or(u32::MAX);
        let most = [limits.ctas, limits.warps, limits.threads, limits.registers, limits.shared_bytes, barriers];
        // What ends at a moment makes room for what starts at it.
        let rows = rows(&records);
        let lasting = rows.iter().filter(|row| row.end > row.start);
        let mut changes: Vec<(usize, u64, bool, usize)> =
            lasting.flat_map(|row| [(row.sm, row.start, true, row.kernel), (row.sm, row.end, false, row.kernel)]).collect();
        changes.sort_unstable();
        let (mut on, mut held) = (usize::MAX, [0_u64; 6]);
        for (sm, at, starts, kernel) in changes {
            if sm != on {
                (on, held) = (sm, [0; 6]);
            }
            for ((held, take), &most) in held.iter_mut().zip(takes[kernel]).zip(&most) {
                *held = if starts { *held + take } else { *held - take };
                prop_assert!(*held <= u64::from(most), "SM {sm} at {at} ps holds {held} of {most}");
            }
        }
    }

    #[test]
    fn a_kernel_alone_never_has_more_ctas_on_an_sm_than_its_residency(case in cases()) {
        let records = case.simulate();
        let rows = rows(&records);
        for (id, kernel) in case.kernels().iter().enumerate() {
            let residency = case.device.occupancy(&shape_of(kernel)).ctas_per_sm;
            prop_assert_eq!(records.kernels.residency[id], residency);
            let of = of_kernel(&rows, id);
            for row in &of {
                let beside = of.iter().filter(|o| o.sm == row.sm && o.start <= row.start && row.start < o.end);
                prop_assert!(beside.count() <= residency as usize);
            }
        }
    }

    #[test]
    fn resident_ctas_are_never_stopped_whatever_comes_with_more_priority(case in plain_cases()) {
        let case = Case { device: without_overhead(&case.device), ..case };
        let options = Options { dispatcher: Dispatcher::Ideal, ..case.options };
        let records = case.simulate_with(&options).unwrap();
        let rows = rows(&records);
        for (id, launch) in case.launches().iter().enumerate() {
            // A dependent CTA waits in its slot for the kernel ahead of it.
            if launch.dependent {
                continue;
            }
            let Work::Duration(wavesim::workload::Duration::PerCta { array, .. }) =
                case.program.kernels[launch.kernel].work else { continue };
            for row in of_kernel(&rows, id) {
                let length = (case.arrays[array][row.cta] * 1e3).round() as u64;
                prop_assert!((row.end - row.start).abs_diff(length) <= 1, "{row:?} should run for {length} ps");
            }
        }
    }

    #[test]
    fn the_columns_of_kernels_and_sms_are_those_of_their_ctas(case in cases()) {
        let records = case.simulate();
        let rows = rows(&records);
        for id in 0..case.launches().len() {
            let of = of_kernel(&rows, id);
            let columns = &records.kernels;
            prop_assert_eq!(columns.start[id].0, of.iter().map(|row| row.start).min().unwrap());
            prop_assert_eq!(columns.placed[id].0, of.iter().map(|row| row.start).max().unwrap());
            prop_assert_eq!(columns.end[id].0, of.iter().map(|row| row.end).max().unwrap());
            prop_assert_eq!(columns.busy_ps[id], of.iter().map(|row| u128::from(row.end - row.start)).sum::<u128>());
            prop_assert!(columns.complete[id] >= columns.end[id]);
        }
        for sm in 0..case.device.sm_count() {
            let spans: Vec<(u64, u64)> = rows.iter().filter(|row| row.sm == sm).map(|row| (row.start, row.end)).collect();
            let columns = &records.sms;
            prop_assert_eq!(columns.ctas[sm], spans.len() as u64);
            prop_assert_eq!(columns.busy_ps[sm], spans.iter().map(|&(a, b)| u128::from(b - a)).sum::<u128>());
            prop_assert_eq!(columns.last_end[sm].0, spans.iter().map(|&(_, end)| end).max().unwrap_or(0));
            let lower = union(spans);
            prop_assert!((lower..=records.makespan.0).contains(&columns.active[sm].0));
            prop_assert!(case.options.dispatcher == Dispatcher::Hardware || columns.active[sm].0 == lower);
        }
    }
}
