//! Residency against published edges, and cluster capacity against the measured chip. The 4,000 reference cases are held by
//! the Python tests, which read Parquet.

use proptest::prelude::*;
use wavesim::device::{Device, Limiter, Limits, RefusedBy, Shape, Status, Vendor, catalogue};

/// A device of the catalogue with the limits of another compute capability.
fn of_capability(capability: &str) -> Device {
    let mut device = catalogue::device("h200").unwrap();
    device.compute_capability = capability.parse().unwrap();
    device.limits = Limits::of(&device.compute_capability).unwrap();
    device.validate().unwrap();
    device
}

fn residency(capability: &str, threads: u32, registers: u32, shared_bytes: u32) -> u32 {
    let shape = Shape { threads, registers, shared_bytes, ..Shape::default() };
    of_capability(capability).occupancy(&shape).ctas_per_sm
}

const KB: u32 = 1024;

#[test]
fn the_systems_share_of_shared_memory_counts() {
    assert_eq!(residency("9.0", 32, 8, 12 * KB), 17);
}

#[test]
fn registers_are_split_over_the_sub_partitions() {
    assert_eq!(residency("8.0", 224, 92, 0), 2);
    assert_eq!(residency("8.0", 192, 92, 0), 3);
}

#[test]
fn registers_of_256_threads_step_where_the_guide_says() {
    for (registers, ctas) in
        [(33, 6), (40, 6), (41, 5), (48, 5), (49, 4), (64, 4), (65, 3), (80, 3), (81, 2), (128, 2), (129, 1), (255, 1)]
    {
        assert_eq!(residency("8.0", 256, registers, 0), ctas, "{registers} registers");
    }
}

#[test]
fn shared_memory_ends_at_the_opt_in_limit() {
    for (kb, ctas) in [(49, 2), (50, 1), (99, 1), (100, 0)] {
        assert_eq!(residency("8.6", 128, 16, kb * KB), ctas, "{kb} KB");
    }
    assert_eq!(residency("9.0", 384, 168, 227 * KB), 1);
}

#[test]
fn a_launch_is_checked_with_warps_in_fours() {
    let device = of_capability("10.3");
    let shape = |threads| Shape { threads, registers: 156, ..Shape::default() };
    let refusal = device.occupancy(&shape(512)).refusal.unwrap();
    assert_eq!((refusal.limit, refusal.wanted, refusal.allowed), (RefusedBy::RegistersPerCta, 81_920, 65_536));
    assert!(refusal.text.contains("16384 over the limit of 65536"), "{}", refusal.text);
    assert_eq!(device.occupancy(&shape(256)).ctas_per_sm, 1);
}

#[test]
fn barriers_limit_from_9_0_on() {
    let shape = Shape { threads: 128, registers: 16, barriers: 16, ..Shape::default() };
    let hopper = of_capability("9.0").occupancy(&shape);
    assert_eq!((hopper.ctas_per_sm, hopper.binding), (4, vec![Limiter::Barriers]));
    assert_eq!(of_capability("8.0").occupancy(&shape).by_barriers, None);
}

#[test]
fn limits_that_are_equal_are_all_named() {
    let occupancy = of_capability("9.0").occupancy(&Shape {
        threads: 1024,
        registers: 32,
        shared_bytes: 100 * KB,
        ..Shape::default()
    });
    assert_eq!(occupancy.limiter(), "REGS+SMEM+WARPS");
    assert_eq!(occupancy.ctas_per_sm, 2);
}

#[test]
fn every_refusal_names_its_limit() {
    let shape = Shape::default();
    let h200 = catalogue::device("h200").unwrap();
    for (shape, limit) in [
        (Shape { threads: 0, ..shape.clone() }, RefusedBy::ThreadsPerCta),
        (Shape { threads: 1025, ..shape.clone() }, RefusedBy::ThreadsPerCta),
        (Shape { registers: 256, ..shape.clone() }, RefusedBy::RegistersPerThread),
        (Shape { threads: 1024, registers: 65, ..shape.clone() }, RefusedBy::RegistersPerCta),
        (Shape { shared_bytes: 227 * KB + 1, ..shape.clone() }, RefusedBy::SharedOptinBytes),
        (Shape { barriers: 17, ..shape.clone() }, RefusedBy::BarriersPerCta),
        (Shape { cluster: 0, ..shape.clone() }, RefusedBy::Cluster),
        (Shape { cluster: 16, ..shape.clone() }, RefusedBy::Cluster),
        (Shape { cluster: 17, non_portable_cluster: true, ..shape.clone() }, RefusedBy::Cluster),
    ] {
        let occupancy = h200.occupancy(&shape);
        assert_eq!(occupancy.refusal.map(|refusal| refusal.limit), Some(limit), "{shape:?}");
        assert!(!occupancy.launchable && occupancy.ctas_per_sm == 0);
    }
}

#[test]
fn clusters_of_16_need_the_non_portable_size_to_be_allowed() {
    let h200 = catalogue::device("h200").unwrap();
    let portable = Shape { cluster: 16, ..Shape::default() };
    assert!(h200.occupancy(&portable).refusal.unwrap().text.contains("non_portable_cluster"));
    assert!(h200.occupancy(&Shape { non_portable_cluster: true, ..portable }).launchable);
}

#[test]
fn there_are_no_clusters_before_9_0() {
    let a100 = catalogue::device("a100").unwrap();
    let refusal = a100.occupancy(&Shape { cluster: 2, ..Shape::default() }).refusal.unwrap();
    assert!(refusal.text.contains("without clusters"));
}

#[test]
fn a_cluster_larger_than_every_group_is_refused() {
    let small = catalogue::device("h200").unwrap().scaled(4).unwrap();
    let refusal = small.occupancy(&Shape { cluster: 8, ..Shape::default() }).refusal.unwrap();
    assert_eq!((refusal.limit, refusal.wanted, refusal.allowed), (RefusedBy::ClusterCapacity, 8, 4));
}

#[test]
fn the_measured_chip_holds_as_many_clusters_as_its_driver_says() {
    let h200 = catalogue::device("h200").unwrap();
    // 128 threads, 18 registers: shared bytes, then clusters of 1, 2, 4, 8 and 16
    for (shared_bytes, clusters) in
        [(0, [1056, 528, 248, 124, 58]), (100_000, [264, 132, 62, 30, 14]), (200_000, [132, 66, 30, 15, 7])]
    {
        for (size, most) in [1, 2, 4, 8, 16].into_iter().zip(clusters) {
            let shape = Shape {
                threads: 128,
                registers: 18,
                shared_bytes,
                cluster: size,
                cluster_launch: true,
                non_portable_cluster: true,
                ..Shape::default()
            };
            let found = h200.occupancy(&shape).max_active_clusters;
            assert_eq!(found, most, "{shared_bytes} bytes, clusters of {size}");
        }
    }
}

#[test]
fn a_cluster_launch_holds_at_most_eight_ctas_an_sm_even_of_size_one() {
    let h200 = catalogue::device("h200").unwrap();
    let shape = Shape { threads: 32, registers: 16, ..Shape::default() };
    assert_eq!(h200.occupancy(&shape).ctas_per_sm, 32);
    assert_eq!(h200.occupancy(&Shape { cluster_launch: true, ..shape.clone() }).ctas_per_sm, 8);
    assert_eq!(h200.occupancy(&Shape { cluster: 2, ..shape }).ctas_per_sm, 8);
}

#[test]
fn cdna_waves_share_512_registers_a_lane_with_the_accumulation_registers() {
    let mi250x = catalogue::device("mi250x").unwrap();
    let waves = |registers, accumulation_registers| {
        let shape = Shape { threads: 64, registers, accumulation_registers, ..Shape::default() };
        mi250x.occupancy(&shape).warps
    };
    // 8 waves a SIMD at most, 4 SIMDs; registers go in eights
    assert_eq!(waves(64, 0), 32);
    assert_eq!(waves(65, 0), 28);
    assert_eq!(waves(128, 0), 16);
    // 61 is rounded up to 64 before 64 more follow it
    assert_eq!(waves(61, 64), 16);
    assert_eq!(waves(256, 256), 4);
}

#[test]
fn a_cdna_workgroup_of_one_wave_needs_no_barrier() {
    let mi210 = catalogue::device("mi210").unwrap();
    let shape = |threads| Shape { threads, registers: 32, ..Shape::default() };
    assert_eq!(mi210.occupancy(&shape(64)).ctas_per_sm, 32);
    assert_eq!(mi210.occupancy(&shape(128)).ctas_per_sm, 16);
    let lds = Shape { threads: 256, shared_bytes: 32 * KB, ..Shape::default() };
    assert_eq!(mi210.occupancy(&lds).ctas_per_sm, 2);
    let too_much = Shape { shared_bytes: 64 * KB + 1, ..lds };
    assert!(!mi210.occupancy(&too_much).launchable);
}

#[test]
fn every_device_of_the_catalogue_is_valid_and_says_where_its_numbers_are_from() {
    for name in catalogue::names() {
        let device = catalogue::device(name).unwrap();
        assert_eq!(device.name, name);
        assert_eq!(Device::from_json(&device.to_json()).unwrap(), device, "{name}");
        let json: serde_json::Value = serde_json::from_str(&device.to_json()).unwrap();
        let mut paths = Vec::new();
        for part in ["topology", "limits", "clock", "dispatch", "launch", "sync", "issue", "l2", "dram"] {
            leaves(&json[part], part.to_owned(), &mut paths);
        }
        for path in paths {
            assert!(device.provenance_of(&path).is_some(), "{name}: {path} has no source");
        }
        for path in device.provenance.keys() {
            let pointer = format!("/{}", path.replace('.', "/"));
            assert!(json.pointer(&pointer).is_some(), "{name}: provenance of {path}, which is no field");
        }
    }
}

fn leaves(value: &serde_json::Value, path: String, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, field) in fields {
                leaves(field, format!("{path}.{name}"), found);
            }
        }
        serde_json::Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                leaves(item, format!("{path}[{i}]"), found);
            }
        }
        serde_json::Value::Number(_) => found.push(path),
        _ => {}
    }
}

#[test]
fn figures_known_to_be_wrong_do_not_appear() {
    let device = |name| catalogue::device(name).unwrap();
    assert!(device("l4").dram.bandwidth_gb_s < 400.0);
    assert_eq!(device("b200").compute_capability.to_string(), "10.0");
    assert_eq!(device("b200").sm_count(), 148);
    assert_eq!(device("a100").sm_count(), 108);
}

#[test]
fn what_drivers_call_a_device_finds_it() {
    for (name, found) in [
        ("H100", "h100-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H200", "h200"),
        ("a100", "a100-sxm4-80"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm4-40"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("AMD Instinct MI300X", "mi300x"),
    ] {
        assert_eq!(catalogue::find(name), Some(found), "{name}");
    }
    for name in ["", "NVIDIA", "h100-nvl", "A100X"] {
        assert_eq!(catalogue::find(name), None, "{name}");
    }
}

#[test]
fn an_unknown_name_suggests_the_nearest() {
    let error = catalogue::device("h20").unwrap_err().to_string();
    assert!(error.contains("did you mean") && error.contains("h200"), "{error}");
    let error = catalogue::device("cerebras").unwrap_err().to_string();
    assert!(error.contains("must be v100-sxm2"), "{error}");
}

#[test]
fn a_device_of_an_unknown_capability_is_assumed_throughout() {
    let device = catalogue::generic(&"8.8".parse().unwrap(), "New Thing", 30).unwrap();
    assert_eq!((device.sm_count(), device.vendor), (30, Vendor::Nvidia));
    assert_eq!(device.limits, Limits::of(&"8.7".parse().unwrap()).unwrap());
    assert!(device.provenance.values().all(|entry| entry.status == Status::Assumed));
}

proptest! {
    #[test]
    fn residency_keeps_every_limit_and_reaches_one(
        name in proptest::sample::select(catalogue::names().collect::<Vec<_>>()),
        threads in 1_u32..=1024,
        registers in 1_u32..=255,
        shared_bytes in 0_u32..=200_000,
        barriers in 1_u32..=16,
    ) {
        let device = catalogue::device(name).unwrap();
        let shape = Shape { threads, registers, shared_bytes, barriers, ..Shape::default() };
        let found = device.occupancy(&shape);
        let limits = &device.limits;
        let holds = |ctas: u32| {
            ctas <= limits.ctas
                && ctas * found.warps_per_cta <= limits.warps
                && ctas * found.shared_per_cta_bytes <= limits.shared_bytes
                && ctas * found.registers_per_cta <= limits.registers
        };
        prop_assert_eq!(found.launchable, found.ctas_per_sm > 0);
        prop_assert_eq!(found.launchable, found.refusal.is_none());
        prop_assert!(!found.launchable || holds(found.ctas_per_sm));
        prop_assert!((0.0..=1.0).contains(&found.occupancy));
        for limiter in &found.binding {
            let bound = match limiter {
                Limiter::Barriers => found.by_barriers,
                Limiter::Blocks => Some(found.by_ctas),
                Limiter::Regs => found.by_registers,
                Limiter::Smem => found.by_shared,
                Limiter::Warps => Some(found.by_warps),
            };
            prop_assert!(!found.launchable || bound == Some(found.ctas_per_sm));
        }
    }

    #[test]
    fn no_shape_panics(
        threads: u32,
        registers: u32,
        accumulation_registers: u32,
        shared_bytes: u32,
        barriers: u32,
        cluster: u32,
        non_portable_cluster: bool,
    ) {
        let shape = Shape {
            threads,
            registers,
            accumulation_registers,
            shared_bytes,
            barriers,
            cluster,
            non_portable_cluster,
            ..Shape::default()
        };
        for name in ["h200", "mi300x", "v100-sxm2"] {
            let _ = catalogue::device(name).unwrap().occupancy(&shape);
        }
    }

    #[test]
    fn every_number_of_sms_gives_a_valid_device(sms in 1_usize..=2000) {
        for name in ["h200", "mi300x", "a100"] {
            let device = catalogue::device(name).unwrap().scaled(sms).unwrap();
            prop_assert_eq!(device.sm_count(), sms);
        }
    }
}
