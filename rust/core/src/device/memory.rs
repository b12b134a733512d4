//! L2 and DRAM: sizes, latencies and bandwidths.

use serde::{Deserialize, Serialize};

use super::in_range;
use crate::error::{Error, Result};

/// The last cache before memory (AMD: L2 and, where there is one, the memory-side cache together).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct L2 {
    /// Its whole size in bytes.
    pub bytes: u64,
    /// The parts it is split into; a line is at home in one of them.
    pub halves: u8,
    /// A line in bytes.
    pub line_bytes: u32,
    /// A sector in bytes: the grain of transfers.
    pub sector_bytes: u32,
    /// A load that hits in the reader's own part, in SM cycles.
    pub near_latency_cycles: f64,
    /// A load that hits in the other part, in SM cycles.
    pub far_latency_cycles: f64,
    /// Read bandwidth from L2 over the whole device, in GB/s.
    pub bandwidth_gb_s: f64,
}

impl L2 {
    pub(super) fn validate(&self) -> Result<()> {
        if self.halves == 0 {
            return Err(Error::invalid("halves", 0, "must be at least 1"));
        }
        if !self.line_bytes.is_power_of_two() || !self.sector_bytes.is_power_of_two() {
            return Err(Error::invalid(
                "line_bytes",
                format!("{}, sectors of {}", self.line_bytes, self.sector_bytes),
                "lines and sectors must be powers of two",
            ));
        }
        if self.sector_bytes > self.line_bytes {
            return Err(Error::invalid(
                "sector_bytes",
                self.sector_bytes,
                format!("must not be larger than a line ({} bytes)", self.line_bytes),
            ));
        }
        if self.bytes < u64::from(self.line_bytes) * u64::from(self.halves) {
            return Err(Error::invalid("bytes", self.bytes, "must hold a line in each part"));
        }
        in_range("near_latency_cycles", self.near_latency_cycles, 0.0, 1e9)?;
        in_range("far_latency_cycles", self.far_latency_cycles, self.near_latency_cycles, 1e9)?;
        in_range("bandwidth_gb_s", self.bandwidth_gb_s, 1e-3, 1e9)
    }
}

/// The device's memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dram {
    /// The bandwidth of the interface, in GB/s.
    pub bandwidth_gb_s: f64,
    /// The read bandwidth that kernels reach, in GB/s.
    pub reached_gb_s: f64,
    /// A load that misses L2, in SM cycles.
    pub latency_cycles: f64,
}

impl Dram {
    pub(super) fn validate(&self) -> Result<()> {
        in_range("bandwidth_gb_s", self.bandwidth_gb_s, 1e-3, 1e9)?;
        in_range("reached_gb_s", self.reached_gb_s, 1e-3, self.bandwidth_gb_s)?;
        in_range("latency_cycles", self.latency_cycles, 0.0, 1e9)
    }
}
