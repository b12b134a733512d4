//! A device whose numbers are small enough to work everything out by hand.

use wavesim::device::{Device, Gpc, Topology, catalogue};
use wavesim::ids::SmId;

/// A load that hits, and what DRAM adds, in cycles of a nanosecond.
pub(crate) const NEAR: u64 = 100;
pub(crate) const DRAM: u64 = 300;

/// One GPC, and an L2 of one part; bandwidths without end.
pub(crate) fn device(sms: u16) -> Device {
    let mut device = catalogue::device("h200").unwrap();
    device.topology = Topology { gpcs: vec![Gpc::of((0..sms).map(SmId), 0)] };
    device.clock.sm_mhz = 1000.0;
    device.dispatch.setup_cycles = 0.0;
    device.dispatch.setup_warp_cycles = 0.0;
    let l2 = &mut device.l2;
    (l2.halves, l2.bytes) = (1, l2.bytes / 2);
    (l2.near_latency_cycles, l2.far_latency_cycles, l2.cold_cycles, l2.softness) = (NEAR as f64, NEAR as f64, 0.0, 0.0);
    (l2.bandwidth_gb_s, l2.write_bandwidth_gb_s, l2.port_bytes_per_cycle) = (1e9, 1e9, 1e9);
    let dram = &mut device.dram;
    (dram.bandwidth_gb_s, dram.reached_gb_s, dram.latency_cycles) = (1e9, 1e9, (NEAR + DRAM) as f64);
    (dram.burst_cycles, dram.spread, dram.softness, dram.turnaround) = (0.0, 0.0, 0.0, 0.0);
    device.issue.l2_spread_cycles = 0.0;
    device.issue.gpc_clock_spread = 0.0;
    device
}
