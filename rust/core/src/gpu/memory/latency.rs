//! How long memory takes, from the numbers of a device, and how latency grows with what is in flight.

use std::ops::AddAssign;

use crate::device::{Device, WritePolicy};
use crate::engine::Time;
use crate::workload::Span;

#[derive(Clone, Copy, Debug)]
pub(super) struct Timings {
    pub(super) cycle_ps: f64,
    pub(super) near: f64,
    /// What the other part adds, in cycles and as a time.
    pub(super) far: f64,
    pub(super) farther: Time,
    /// What DRAM adds.
    pub(super) dram: f64,
    pub(super) cold: Time,
    pub(super) port_bytes: f64,
    pub(super) l2_bytes: f64,
    pub(super) l2_softness: f64,
    pub(super) fabric_bytes: f64,
    pub(super) dram_bytes: f64,
    pub(super) dram_softness: f64,
    pub(super) dram_turnaround: f64,
    /// Half the width of the uniform law that DRAM's latency is drawn from.
    pub(super) dram_spread: f64,
    /// The same of what L2 answers; single warps see it.
    pub(super) l2_spread: f64,
    pub(super) burst: f64,
    pub(super) line_bytes: u64,
    pub(super) store_ps_per_byte: f64,
    /// Stores go on to DRAM at once.
    pub(super) write_through: bool,
}

impl Timings {
    pub(super) fn time(&self, span: Span) -> Time {
        Time(span.ps(self.cycle_ps).round() as u64)
    }

    #[inline]
    pub(super) fn cycles(&self, cycles: f64) -> Time {
        Time(whole(cycles * self.cycle_ps + 0.5))
    }

    pub(super) fn new(device: &Device) -> Self {
        let (l2, dram) = (&device.l2, &device.dram);
        let cycle_ps = device.clock.cycles_to_ps(1.0);
        let bytes_per_cycle = |gb_s: f64| gb_s * cycle_ps / 1e3;
        let far = if l2.halves > 1 { l2.far_latency_cycles - l2.near_latency_cycles } else { 0.0 };
        let (write, write_through) = (l2.write_bandwidth_gb_s, l2.write_policy == WritePolicy::WriteThrough);
        let homes_elsewhere = 1.0 - 1.0 / f64::from(l2.halves);
        Self {
            cycle_ps,
            near: l2.near_latency_cycles,
            far,
            farther: Time((far * cycle_ps + 0.5) as u64),
            dram: (dram.latency_cycles - l2.near_latency_cycles - homes_elsewhere * far).max(0.0),
            cold: Time((l2.cold_cycles * cycle_ps).round() as u64),
            port_bytes: l2.port_bytes_per_cycle,
            l2_bytes: bytes_per_cycle(l2.bandwidth_gb_s),
            l2_softness: l2.softness,
            fabric_bytes: bytes_per_cycle(l2.fabric_bandwidth_gb_s),
            dram_bytes: bytes_per_cycle(dram.bandwidth_gb_s),
            dram_softness: dram.softness,
            dram_turnaround: dram.turnaround,
            dram_spread: 3.0_f64.sqrt() * dram.spread,
            l2_spread: device.issue.l2_spread_cycles,
            burst: dram.burst_cycles,
            line_bytes: u64::from(l2.line_bytes),
            store_ps_per_byte: 1e3 / if write_through { write.min(dram.reached_gb_s) } else { write },
            write_through,
        }
    }
}

/// Bytes in flight, by what they wait for: their SM's port, L2, the fabric, DRAM, and to be written there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Demand {
    pub(super) port: u32,
    pub(super) l2: u32,
    pub(super) fabric: u32,
    pub(super) dram: u32,
    pub(super) written: u32,
}

impl AddAssign for Demand {
    fn add_assign(&mut self, other: Self) {
        self.port += other.port;
        self.l2 += other.l2;
        self.fabric += other.fabric;
        self.dram += other.dram;
        self.written += other.written;
    }
}

/// What a load of `takes` cycles counts for at a server that has so many bytes of it for `there` of them. By Little's law, what is in
/// flight is bytes times time: a server's bytes over what it has in flight come out alike for a load that waits elsewhere, too.
#[inline]
pub(super) fn in_flight(bytes: u64, there: f64, takes: f64) -> u32 {
    // What takes no time is in flight for none.
    if takes > 0.0 { (float(bytes) * there / takes + 0.5) as u32 } else { 0 }
}

/// As a float: of 63 bits, which is one instruction of a host, where of 64 it is seven.
#[inline]
pub(super) fn float(count: u64) -> f64 {
    count.cast_signed() as f64
}

/// The whole part of what is not negative. Of 63 bits, likewise: longer than the longest run.
#[inline]
pub(super) fn whole(number: f64) -> u64 {
    (number as i64).max(0).cast_unsigned()
}

/// Latency under load: `alone` when nothing else is in flight, `queue` when all of it is waiting, and between the two a
/// bend of the given softness. Only sums, products and a square root, so that it is the same on every machine.
#[inline]
pub(super) fn loaded(alone: f64, queue: f64, softness: f64) -> f64 {
    let apart = alone - queue;
    0.5 * (alone + queue + (apart * apart + softness * alone * queue).sqrt())
}

/// A sum over bytes, for each of them. Almost all sums fit into half of the bits, which are divided in a tenth of the time.
#[inline]
pub(super) fn mean(sum: u128, bytes: u64) -> u64 {
    u64::try_from(sum).map_or_else(|_| (sum / u128::from(bytes)) as u64, |sum| sum / bytes)
}
