//! What CTAs do: tasks, barriers and waits, each against its arithmetic where nothing else takes time.

use proptest::prelude::*;
use wavesim::Dispatcher;
use wavesim::device::Device;
use wavesim::workload::work::{Needs, Tasks};
use wavesim::workload::{Duration, Kernel, Program, Span, Work};

use super::cases::{Case, config, devices, single_kernels, without_overhead};
use super::view::{of_kernel, rows};

const ONE_NS: Span = Span::Ns(1.0);

fn listed(array: usize) -> Duration {
    Duration::PerCta { array, unit: ONE_NS }
}

fn ideal(device: &Device, kernel: Kernel, arrays: Vec<Vec<f64>>) -> Case {
    Case { arrays, ..Case::ideal(without_overhead(device), kernel) }
}

/// Whole nanoseconds, so that sums are exact.
fn lengths(count: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((0..3_000_u32).prop_map(f64::from), count)
}

fn ps(ns: f64) -> u64 {
    (ns * 1e3) as u64
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_static_persistent_kernel_gives_cta_i_of_n_the_tasks_i_modulo_n(
        device in devices(), tasks in lengths(0..=200), ctas in 1..60_u32,
    ) {
        let work = Work::Persistent {
            tasks: tasks.len() as u64,
            duration: listed(0),
            schedule: Tasks::Static,
            overhead: Span::Ns(3.0),
            startup: Span::Ns(11.0),
        };
        let case = ideal(&device, Kernel { work, ..Kernel::of(ctas, 64) }, vec![tasks.clone()]);
        for row in rows(&case.simulate()) {
            let own = tasks.iter().skip(row.cta).step_by(ctas as usize);
            let expected = 11.0 + own.map(|task| task + 3.0).sum::<f64>();
            prop_assert_eq!(row.end - row.start, ps(expected));
        }
    }

    #[test]
    fn a_persistent_kernel_with_a_counter_does_every_task_once(
        device in devices(), tasks in lengths(0..=200), ctas in 1..60_u32,
    ) {
        let work = Work::Persistent {
            tasks: tasks.len() as u64,
            duration: listed(0),
            schedule: Tasks::Atomic,
            overhead: Span::Ns(3.0),
            startup: Span::Ns(11.0),
        };
        let case = ideal(&device, Kernel { work, ..Kernel::of(ctas, 64) }, vec![tasks.clone()]);
        let rows = rows(&case.simulate());
        let all: u64 = rows.iter().map(|row| row.end - row.start).sum();
        let expected = tasks.iter().map(|task| task + 3.0).sum::<f64>() + 11.0 * f64::from(ctas);
        prop_assert_eq!(all, ps(expected));
        // Whoever is free takes the next task: nobody who was there idles while tasks are left.
        let longest = tasks.iter().copied().fold(0.0, f64::max) + 3.0;
        let last = rows.iter().map(|row| row.end).max().unwrap();
        let first_wave = rows.iter().filter(|row| row.start == rows[0].start.min(row.start));
        prop_assert!(first_wave.map(|row| last - row.end).min().unwrap() <= ps(longest));
    }

    #[test]
    fn the_counter_never_loses_a_task_on_any_machine(case in single_kernels(), tasks in 0..300_u64) {
        let work = Work::Persistent {
            tasks,
            duration: Duration::Constant(Span::Ns(100.0)),
            schedule: Tasks::Atomic,
            overhead: Span::Ns(0.0),
            startup: Span::Ns(0.0),
        };
        let mut case = case;
        case.program.kernels[0].work = work;
        let records = case.simulate();
        let ran: u64 = rows(&records).iter().map(|row| row.end - row.start).sum();
        prop_assert!(ran >= tasks * 100_000);
    }

    #[test]
    fn a_cta_of_a_chain_goes_on_exactly_when_the_last_that_it_needs_has_ended(
        device in devices(), before in lengths(1..=150), after in lengths(150..=150), distance in 1..40_usize,
        two in any::<bool>(),
    ) {
        let ctas = before.len();
        let far: Vec<f64> = (0..ctas).map(|cta| cta.checked_sub(distance).map_or(-1.0, |on| on as f64)).collect();
        let half: Vec<f64> = (0..ctas).map(|cta| if two && cta > 0 { (cta / 2) as f64 } else { -1.0 }).collect();
        let needs = if two { Needs::Lists { arrays: vec![2, 3] } } else { Needs::Previous { distance: distance as u64 } };
        let work = Work::Chain { before: listed(0), after: listed(1), needs };
        let arrays = vec![before.clone(), after[..ctas].to_vec(), far.clone(), half.clone()];
        let case = ideal(&device, Kernel { work, ..Kernel::of(ctas as u32, 64) }, arrays);
        let rows = of_kernel(&rows(&case.simulate()), 0);
        for row in &rows {
            let needed = [far[row.cta], half[row.cta]].into_iter().filter(|&on| on >= 0.0);
            let free = needed.map(|on| rows[on as usize].end).max().unwrap_or(0);
            let expected = (row.start + ps(before[row.cta])).max(free) + ps(after[row.cta]);
            prop_assert_eq!(row.end, expected, "CTA {}", row.cta);
        }
    }

    #[test]
    fn nobody_leaves_a_grid_barrier_before_the_last_has_come(
        device in devices(), work_ns in lengths(1..=60), rounds in 1..4_u32,
    ) {
        let ctas = work_ns.len() as u32;
        let work = Work::GridSync { rounds, duration: listed(0) };
        let kernel = Kernel { work, cooperative: true, ..Kernel::of(ctas, 32) };
        let mut case = Case { arrays: vec![work_ns.clone()], ..Case::ideal(device, kernel) };
        let held = case.device.sm_count() * case.device.occupancy(&super::cases::shape_of(&case.program.kernels[0])).ctas_per_sm as usize;
        prop_assume!(case.device.dispatch.deal == wavesim::device::Deal::GpcBursts && held >= ctas as usize);
        for dispatcher in [Dispatcher::Ideal, Dispatcher::Hardware] {
            case.options.dispatcher = dispatcher;
            let rows = rows(&case.simulate());
            let longest = ps(work_ns.iter().copied().fold(0.0, f64::max));
            let first = rows.iter().map(|row| row.end).min().unwrap();
            let last_start = rows.iter().map(|row| row.start).max().unwrap();
            prop_assert!(first >= last_start);
            // Each round lasts at least as long as its longest CTA.
            let slowest = rows.iter().find(|row| ps(work_ns[row.cta]) == longest).unwrap();
            prop_assert!(first >= slowest.start + u64::from(rounds) * longest);
        }
    }

    #[test]
    fn the_work_of_a_launch_does_not_depend_on_the_machine_that_runs_it(case in single_kernels(), sms in 1..30_usize) {
        // Durations are drawn by CTA number, from a stream of the launch's own.
        let work = Work::Duration(Duration::Exponential { mean: Span::Ns(2_000.0) });
        let kernel = Kernel { work, ..Kernel::of(case.program.kernels[0].ctas() as u32, 64) };
        let case = Case { device: without_overhead(&case.device), program: Program::of(kernel), arrays: vec![], ..case };
        let other = Case { device: case.device.scaled(sms).unwrap(), ..case.clone() };
        let lengths = [case, other].map(|case| {
            of_kernel(&rows(&case.simulate()), 0).iter().map(|row| row.end - row.start).collect::<Vec<u64>>()
        });
        prop_assert_eq!(&lengths[0], &lengths[1]);
    }
}
