//! Clusters: whole, inside one group of SMs, and each CTA on an SM of its own.

use proptest::prelude::*;
use wavesim::device::{Deal, catalogue};
use wavesim::workload::{Duration, Item, Kernel, Launch, Program, Span, Work};
use wavesim::{Dispatcher, Error, Options};

use super::cases::{Case, cases, config, shape_of, single_kernels};
use super::view::{of_kernel, rows};

/// The number of each SM's group, and how large a cluster may be there.
fn groups(case: &Case) -> Vec<(usize, u32)> {
    let mut of_sm = vec![(0, 0); case.device.sm_count()];
    let all = case.device.topology.gpcs.iter().flat_map(|gpc| &gpc.groups);
    for (i, group) in all.enumerate() {
        let most = group.max_cluster.unwrap_or(u32::MAX).min(group.sms.len() as u32);
        group.sms.iter().for_each(|sm| of_sm[usize::from(sm.0)] = (i, most));
    }
    of_sm
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_cluster_lies_in_one_group_on_different_sms(case in cases()) {
        let records = case.simulate();
        let (rows, groups) = (rows(&records), groups(&case));
        for (id, kernel) in case.kernels().iter().enumerate().filter(|(_, kernel)| kernel.cluster > 1) {
            let size = kernel.cluster as usize;
            for cluster in of_kernel(&rows, id).chunks(size) {
                let (group, most) = groups[cluster[0].sm];
                prop_assert!(cluster.iter().all(|row| groups[row.sm].0 == group), "{cluster:?}");
                prop_assert!(kernel.cluster <= most, "{cluster:?} in a group that takes up to {most}");
                let mut sms: Vec<usize> = cluster.iter().map(|row| row.sm).collect();
                sms.sort_unstable();
                sms.dedup();
                prop_assert_eq!(sms.len(), size);
                if case.options.dispatcher == Dispatcher::Ideal {
                    prop_assert!(cluster.iter().all(|row| row.start == cluster[0].start), "{cluster:?}");
                }
            }
        }
    }

    #[test]
    fn no_more_clusters_are_active_than_the_occupancy_rules_say(case in single_kernels()) {
        let kernel = &case.program.kernels[0];
        let most = case.device.occupancy(&shape_of(kernel)).max_active_clusters;
        let rows = of_kernel(&rows(&case.simulate()), 0);
        // While all of its CTAs run: a slot of one that ended early may go to the next cluster.
        let clusters: Vec<(u64, u64)> = rows.chunks(kernel.cluster as usize).map(|rows| {
            (rows.iter().map(|row| row.start).max().unwrap(), rows.iter().map(|row| row.end).min().unwrap())
        }).collect();
        for &(start, _) in &clusters {
            let active = clusters.iter().filter(|&&(from, to)| from <= start && start < to).count();
            prop_assert!(active <= most as usize, "{active} active, {most} by the rules");
        }
    }
}

/// The most clusters of a kernel that are active at once, when CTAs fill an SM and never end while others are placed.
fn active(name: &str, size: u32) -> usize {
    let work = Work::Duration(Duration::Constant(Span::Ns(1e6)));
    let kernel = Kernel {
        work,
        shared_memory: 200 * 1024,
        cluster: size,
        cluster_launch: true,
        non_portable_cluster: size > 8,
        ..Kernel::of(size * 140, 256)
    };
    let case = Case::ideal(catalogue::device(name).unwrap(), kernel);
    let rows = rows(&case.simulate());
    let first = rows.iter().map(|row| row.start).min().unwrap();
    rows.iter().filter(|row| row.start == first).count() / size as usize
}

#[test]
fn an_h200_runs_as_many_clusters_at_once_as_were_measured() {
    for (size, count) in [(1, 132), (2, 66), (4, 30), (8, 15), (16, 7)] {
        assert_eq!(active("h200", size), count, "clusters of {size}");
    }
}

#[test]
fn a_cluster_of_16_is_refused_unless_the_non_portable_size_is_allowed() {
    let device = catalogue::device("h200").unwrap();
    let kernel = Kernel { cluster: 16, ..Kernel::of(160, 128) };
    let portable = Case::ideal(device.clone(), kernel.clone());
    let refused = portable.simulate_with(&portable.options).unwrap_err();
    assert!(matches!(refused, Error::CannotLaunch { .. }), "{refused}");
    assert!(refused.to_string().contains("cluster of 16 CTAs, 8 over the portable limit of 8"), "{refused}");
    Case::ideal(device, Kernel { non_portable_cluster: true, ..kernel }).simulate();
}

#[test]
fn a_device_without_clusters_refuses_them() {
    for name in ["a100-sxm4-80", "mi300x"] {
        let device = catalogue::device(name).unwrap();
        assert!(name != "mi300x" || device.dispatch.deal == Deal::RoundRobin);
        let case = Case::ideal(device, Kernel { cluster: 2, ..Kernel::of(10, 64) });
        let refused = case.simulate_with(&case.options).unwrap_err().to_string();
        assert!(refused.contains("on a device without clusters"), "{refused}");
    }
}

#[test]
fn beside_another_kernel_an_sm_takes_no_more_clusters_than_alone() {
    let device = catalogue::device("h200").unwrap().scaled(2).unwrap();
    let work = Work::Duration(Duration::Constant(Span::Ns(50_000.0)));
    let guest = Kernel { work: work.clone(), registers: 16, ..Kernel::of(2, 32) };
    let clustered = Kernel { work, registers: 16, cluster: 2, ..Kernel::of(60, 96) };
    let residency = device.occupancy(&shape_of(&clustered)).ctas_per_sm as usize;
    assert_eq!(residency, 8);
    let items = (0..2).map(|kernel| {
        Item::Launch(Launch { kernel, stream: kernel as u32, at_ns: None, dependent: false, trigger: false })
    });
    let program = Program { kernels: vec![guest, clustered], items: items.collect(), ..Program::default() };
    let case = Case { device, program, arrays: vec![], options: Options::default() };
    let rows = of_kernel(&rows(&case.simulate()), 1);
    let first = rows.iter().map(|row| row.end).min().unwrap();
    let beside = rows.iter().filter(|row| row.sm == 0 && row.start < first).count();
    assert!(beside <= residency, "{beside} on SM 0, {residency} alone");
}
