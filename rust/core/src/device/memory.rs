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
    /// The slices in use, of all parts together, without those that are part of `reserved_bytes`; a hash of a line's address
    /// says in which one it is.
    pub slices: u32,
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
    /// What the fabric between the parts carries, in GB/s, in all directions together.
    pub fabric_bandwidth_gb_s: f64,
    /// Lines that a set holds.
    pub ways: u32,
    /// Banks that the sets of a part are made of: contiguous data fill one after the other, in turns whose order a hash
    /// of the address says. With 1, they fill all sets alike. Of sets that do not split into so many, those left over are not used.
    pub banks: u32,
    /// Which of them makes room for a new one.
    pub replacement: Replacement,
    /// Under [`Replacement::Protected`], how many lines of a set are protected at most.
    pub protected_ways: u32,
    /// When DRAM gets what is written.
    pub write_policy: WritePolicy,
    /// How many lines of a set may be dirty: from there on the oldest of them is written back, and stays. All of them where
    /// a set has no more.
    pub dirty_ways: u32,
    /// Of dirty lines that would make room next, the share that stays for another round instead, as if it had been used: DRAM
    /// gets what was written later than the order of use would have it.
    pub dirty_stays: f64,
    /// What of it is not there for a kernel's data, in bytes: slices that are off; code and address tables.
    pub reserved_bytes: u64,
    /// What an SM takes in, in bytes a cycle.
    pub port_bytes_per_cycle: f64,
    /// Write bandwidth into L2 over the whole device, in GB/s.
    pub write_bandwidth_gb_s: f64,
    /// How many SMs of a GPC share one request for a line that is on its way; 1 merges none.
    pub coalesced_requests: u32,
    /// The lines, those asked for last, of which a GPC can tell that a request is on its way.
    pub coalesced_lines: u32,
    /// An SM's first access in a launch comes this much later, in SM cycles: addresses are translated, code is fetched.
    pub cold_cycles: f64,
    /// How gradually latency rises when demand comes near the bandwidth: 0 for a sharp bend.
    pub softness: f64,
}

/// Which line of a set makes room for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replacement {
    /// The one that was used least recently.
    Lru,
    /// One that was not used since all others were: a bit a line.
    NotRecentlyUsed,
    /// Any.
    Random,
    /// The least recently used of those that were not found again since they came, while others are protected.
    Protected,
}

/// When DRAM gets what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WritePolicy {
    /// When its line is driven out.
    WriteBack,
    /// At once.
    WriteThrough,
}

/// What is fetched and counted at the least.
pub(crate) const SECTOR_BYTES: u32 = 32;
/// The most SMs that share a request.
const MOST_SHARERS: u32 = 255;
/// The most lines of a set.
const MOST_WAYS: u32 = 256;
/// The most banks of sets.
const MOST_BANKS: u32 = 64;

/// The most bytes of an L2: more than any device has, and little enough to be simulated.
pub(super) const LARGEST_BYTES: u64 = 1 << 34;

impl L2 {
    pub(super) fn validate(&self) -> Result<()> {
        if self.halves == 0 {
            return Err(Error::invalid("halves", 0, "must be at least 1"));
        }
        if !self.line_bytes.is_power_of_two() {
            return Err(Error::invalid("line_bytes", self.line_bytes, "must be a power of two"));
        }
        if self.sector_bytes != SECTOR_BYTES {
            let why = format!("only sectors of {SECTOR_BYTES} bytes are simulated");
            return Err(Error::invalid("sector_bytes", self.sector_bytes, why));
        }
        if !(32..=256).contains(&self.line_bytes) {
            return Err(Error::invalid("line_bytes", self.line_bytes, "a line has 32 to 256 bytes"));
        }
        if self.bytes > LARGEST_BYTES {
            return Err(Error::invalid("bytes", self.bytes, format!("at most {LARGEST_BYTES}")));
        }
        if self.bytes < u64::from(self.line_bytes) * u64::from(self.halves) {
            return Err(Error::invalid("bytes", self.bytes, "must hold a line in each part"));
        }
        let set = u64::from(self.ways) * u64::from(self.line_bytes) * u64::from(self.halves);
        if !(1..=MOST_WAYS).contains(&self.ways) {
            return Err(Error::invalid("ways", self.ways, format!("a set holds 1 to {MOST_WAYS} lines")));
        }
        if !(1..=MOST_BANKS).contains(&self.banks) {
            return Err(Error::invalid("banks", self.banks, format!("from 1 to {MOST_BANKS} banks are simulated")));
        }
        if self.replacement == Replacement::Protected && self.protected_ways >= self.ways {
            let why = format!("must leave one of {} ways to lines that are new", self.ways);
            return Err(Error::invalid("protected_ways", self.protected_ways, why));
        }
        if !(1..=MOST_WAYS).contains(&self.dirty_ways) {
            let why = format!("from 1 to {MOST_WAYS} lines of a set may be dirty");
            return Err(Error::invalid("dirty_ways", self.dirty_ways, why));
        }
        if !self.bytes.is_multiple_of(set) {
            let why =
                format!("{} bytes in {} part(s) are no whole number of sets of so many lines", self.bytes, self.halves);
            return Err(Error::invalid("ways", self.ways, why));
        }
        if self.reserved_bytes > self.bytes - set {
            let why = format!("must leave a set of the {} bytes in each part", self.bytes);
            return Err(Error::invalid("reserved_bytes", self.reserved_bytes, why));
        }
        let sets = (self.bytes - self.reserved_bytes) / set;
        let (parts, slices) = (u64::from(self.halves), u64::from(self.slices));
        let [below, above] = [slices / parts, slices.div_ceil(parts)].map(|each| each.clamp(1, sets) * parts);
        if below != slices {
            let near = if below == above { below.to_string() } else { format!("{below} or {above}") };
            let why = format!(
                "each of the {parts} part(s) of L2 has as many slices, of a set or more: a multiple of {parts} up to {}, \
                 such as {near}",
                parts * sets
            );
            return Err(Error::invalid("slices", self.slices, why));
        }
        if !(1..=MOST_SHARERS).contains(&self.coalesced_requests) {
            let why = format!("from 1 to {MOST_SHARERS} SMs share a request");
            return Err(Error::invalid("coalesced_requests", self.coalesced_requests, why));
        }
        if !(1..=1 << 20).contains(&self.coalesced_lines) {
            let why = format!("must be from 1 to {}", 1 << 20);
            return Err(Error::invalid("coalesced_lines", self.coalesced_lines, why));
        }
        in_range("port_bytes_per_cycle", self.port_bytes_per_cycle, 1e-3, 1e9)?;
        in_range("write_bandwidth_gb_s", self.write_bandwidth_gb_s, 1e-3, 1e9)?;
        in_range("dirty_stays", self.dirty_stays, 0.0, 1.0)?;
        in_range("fabric_bandwidth_gb_s", self.fabric_bandwidth_gb_s, 1e-3, 1e9)?;
        in_range("cold_cycles", self.cold_cycles, 0.0, 1e9)?;
        in_range("softness", self.softness, 0.0, 4.0)?;
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
    /// A load that misses L2, in SM cycles; the mean over near and far homes.
    pub latency_cycles: f64,
    /// By how much the last line of a CTA's run comes later than a line alone, in SM cycles.
    pub burst_cycles: f64,
    /// Standard deviation of a read's latency over its mean.
    pub spread: f64,
    /// How gradually latency rises when demand comes near the bandwidth: 0 for a sharp bend.
    pub softness: f64,
    /// What it costs to turn from reading to writing and back, over what it takes to write, where writes come one by one. The
    /// busier it is, the more of them it takes at a turn.
    pub turnaround: f64,
}

impl Dram {
    pub(super) fn validate(&self) -> Result<()> {
        in_range("bandwidth_gb_s", self.bandwidth_gb_s, 1e-3, 1e9)?;
        in_range("reached_gb_s", self.reached_gb_s, 1e-3, self.bandwidth_gb_s)?;
        in_range("latency_cycles", self.latency_cycles, 0.0, 1e9)?;
        in_range("burst_cycles", self.burst_cycles, 0.0, 1e9)?;
        in_range("spread", self.spread, 0.0, 0.5)?;
        in_range("turnaround", self.turnaround, 0.0, 100.0)?;
        in_range("softness", self.softness, 0.0, 4.0)
    }
}
