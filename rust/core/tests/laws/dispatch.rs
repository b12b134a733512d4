//! The dispatcher: whose turn it is, and where CTAs go.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;
use wavesim::device::{Deal, Gpc, catalogue};
use wavesim::workload::{Duration, Kernel, Span, Work};
use wavesim::{Dispatcher, Options};

use super::cases::{Case, cases, config, plain_cases, single_kernels, without_overhead};
use super::view::{of_kernel, rows};

/// Starts and ends of CTAs of these lengths, when whichever of `slots` is free first takes the next one.
fn list_schedule(lengths: &[u64], slots: usize, from: u64) -> Vec<(u64, u64)> {
    let mut free: BinaryHeap<Reverse<u64>> = (0..slots).map(|_| Reverse(from)).collect();
    let mut out = Vec::new();
    for &length in lengths {
        let start = free.pop().map_or(from, |Reverse(at)| at);
        out.push((start, start + length));
        free.push(Reverse(start + length));
    }
    out
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_ideal_dispatcher_is_list_scheduling_to_the_picosecond(case in plain_cases()) {
        let kernel = case.program.kernels[0].clone();
        let mut case = Case { program: wavesim::workload::Program::of(kernel), ..case };
        case.options.dispatcher = Dispatcher::Ideal;
        let records = case.simulate();
        let rows = rows(&records);
        let lengths: Vec<u64> = of_kernel(&rows, 0).iter().map(|row| row.end - row.start).collect();
        let times: Vec<(u64, u64)> = of_kernel(&rows, 0).iter().map(|row| (row.start, row.end)).collect();
        prop_assert_eq!(times, list_schedule(&lengths, records.slots as usize, records.kernels.ready[0].0));
    }

    #[test]
    fn the_makespan_lies_between_the_bounds_of_list_scheduling(case in plain_cases()) {
        // Graham 1966: with m slots, work W and longest CTA L, from max(L, W / m) to W / m + (1 - 1 / m) L.
        let mut case = Case { program: wavesim::workload::Program::of(case.program.kernels[0].clone()), ..case };
        for dispatcher in [Dispatcher::Ideal, Dispatcher::Hardware] {
            case.options.dispatcher = dispatcher;
            let records = case.simulate();
            let lengths: Vec<u64> = rows(&records).iter().map(|row| row.end - row.start).collect();
            let (work, longest) = (lengths.iter().sum::<u64>() as f64, lengths.iter().copied().max().unwrap() as f64);
            let slots = records.slots as f64;
            let span = (records.makespan.0 - records.kernels.ready[0].0) as f64;
            prop_assert!(span >= longest.max(work / slots) - 1.0);
            let most = work / slots + (1.0 - 1.0 / slots) * longest;
            prop_assert!(dispatcher == Dispatcher::Hardware || span <= most + 1.0, "{span} over {most}");
        }
    }

    #[test]
    fn a_real_dispatcher_is_never_faster_than_a_free_one_for_equal_ctas(case in plain_cases(), ns in 0..5_000_u32) {
        let work = Work::Duration(Duration::Constant(Span::Ns(f64::from(ns))));
        let kernel = Kernel { work, ..case.program.kernels[0].clone() };
        let mut case = Case { program: wavesim::workload::Program::of(kernel), ..case };
        let spans = [Dispatcher::Ideal, Dispatcher::Hardware].map(|dispatcher| {
            case.options.dispatcher = dispatcher;
            case.simulate().makespan
        });
        prop_assert!(spans[0] <= spans[1], "{spans:?}");
    }

    #[test]
    fn no_kernel_gets_a_slot_while_one_with_an_earlier_turn_has_ctas_to_place(case in plain_cases()) {
        // Where nothing lies between a decision and the start of its CTA, starts are decisions.
        let device = without_overhead(&case.device);
        let case = Case { device, ..case };
        let records = case.simulate();
        let rows = rows(&records);
        let greatest = case.device.launch.greatest_priority;
        let turn: Vec<(i32, u64)> = case.launches().iter().enumerate().map(|(id, launch)| {
            let priority = case.program.streams.get(&launch.stream).map_or(0, |stream| stream.priority);
            (priority.clamp(greatest, 0), records.kernels.ready[id].0)
        }).collect();
        for row in &rows {
            for (ahead, &of_ahead) in turn.iter().enumerate() {
                if of_ahead < turn[row.kernel] && of_ahead.1 < row.start {
                    let placed = records.kernels.placed[ahead].0;
                    prop_assert!(placed <= row.start, "{row:?} before all of kernel {ahead} was placed at {placed}");
                }
            }
        }
    }

    #[test]
    fn ctas_of_a_kernel_are_placed_in_the_order_of_their_numbers(case in plain_cases()) {
        let case = Case { device: without_overhead(&case.device), ..case };
        let rows = rows(&case.simulate());
        for id in 0..case.launches().len() {
            prop_assert!(of_kernel(&rows, id).is_sorted_by_key(|row| row.start));
        }
    }

    #[test]
    fn workgroups_are_dealt_over_gpcs_by_their_number_where_the_device_says_so(case in cases()) {
        let mut case = case;
        prop_assume!(case.device.dispatch.deal == Deal::RoundRobin);
        let gpcs = case.device.topology.gpcs.len();
        for dispatcher in [Dispatcher::Ideal, Dispatcher::Hardware] {
            case.options.dispatcher = dispatcher;
            let records = case.simulate();
            for row in rows(&records) {
                prop_assert_eq!(usize::from(records.sms.gpc[row.sm]), row.cta % gpcs);
            }
        }
    }

    #[test]
    fn the_first_ctas_go_to_as_many_sms_as_there_are(case in single_kernels()) {
        prop_assume!(case.device.dispatch.deal == Deal::GpcBursts && case.program.kernels[0].cluster == 1);
        prop_assume!(!case.program.kernels[0].cluster_launch);
        let mut case = case;
        // So long that no slot comes back before all have been given away.
        case.program.kernels[0].work = Work::Duration(Duration::Constant(Span::Ns(1e9)));
        let rows = rows(&case.simulate());
        let sms = case.device.sm_count();
        let mut of_sm = vec![0; sms];
        rows.iter().filter(|row| row.cta < sms).for_each(|row| of_sm[row.sm] += 1);
        let grid = case.program.kernels[0].ctas() as usize;
        prop_assert_eq!(of_sm.iter().sum::<u32>() as usize, grid.min(sms));
        // Left-over TPCs are visited once in a while, so others may be a CTA ahead of them.
        let left_over = case.device.topology.gpcs.iter().flat_map(|gpc| &gpc.groups).any(|group| group.max_cluster.is_some());
        prop_assert!(left_over || of_sm.iter().all(|&ctas| ctas <= 1 + u32::from(grid > sms)), "{of_sm:?}");
    }
}

#[test]
fn the_mi300x_runs_workgroup_i_on_xcd_i_mod_8_however_uneven_their_lengths() {
    let device = catalogue::device("mi300x").unwrap();
    let work = Work::Duration(Duration::Exponential { mean: Span::Ns(20_000.0) });
    let kernel = Kernel { work, ..Kernel::of(20_000, 256) };
    let program = wavesim::workload::Program::of(kernel);
    for dispatcher in [Dispatcher::Hardware, Dispatcher::Ideal] {
        let options = Options { dispatcher, ..Options::default() };
        let case = Case { device: device.clone(), program: program.clone(), arrays: vec![], options };
        let records = case.simulate();
        assert!(rows(&records).iter().all(|row| usize::from(records.sms.gpc[row.sm]) == row.cta % 8));
    }
    assert!(device.topology.gpcs.iter().all(|gpc: &Gpc| gpc.sm_count() == 38));
}
