//! How warps share an SM: which one issues, and how long instructions take. The numbers; the mechanism is the model's
//! (`gpu/warp.rs`).

use serde::{Deserialize, Serialize};

use super::in_range;
use crate::error::{Error, Result};

/// Which of the warps that could issue does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IssuePolicy {
    /// The same warp as long as it can; then one of the oldest CTA that can, its warps in turn.
    GreedyOldestCta,
    /// The same warp as long as it can, then the oldest.
    GreedyThenOldest,
    /// The oldest.
    OldestFirst,
    /// One after the other, those that can't are passed over.
    LooseRoundRobin,
    /// A few warps in turn; one that waits for memory or a barrier makes room for another.
    TwoLevel,
}

/// Issue and latencies inside an SM. Cycles are SM cycles; a sub-partition issues one instruction a cycle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssueTimings {
    /// Which warp issues.
    pub policy: IssuePolicy,
    /// From a multiply-add to one that needs its result.
    pub fma_latency_cycles: u32,
    /// How long an instruction of a pipe with half of the lanes keeps it: integers, comparisons, half precision.
    pub alu_interval_cycles: u32,
    /// How long a tensor-core instruction (16 x 8 x 16, half precision) keeps the tensor core of a sub-partition.
    pub tensor_interval_cycles: u32,
    /// From one to the next on the same accumulator.
    pub tensor_latency_cycles: u32,
    /// From a taken branch to the warp's next instruction.
    pub branch_cycles: u32,
    /// Issue slots that a taken branch costs its sub-partition beside its own.
    pub branch_slots: u32,
    /// From a branch that is not taken to the warp's next instruction.
    pub untaken_branch_cycles: u32,
    /// Between two memory instructions of one sub-partition.
    pub memory_interval_cycles: u32,
    /// What a load or store to shared memory costs the SM's memory unit, which serves one instruction after the other.
    pub shared_service_cycles: f64,
    /// What a load of constants costs it.
    pub constant_service_cycles: f64,
    /// What a load or store to global memory costs it.
    pub global_service_cycles: f64,
    /// What the arrival of a warp at a barrier costs the unit that counts them, one for the SM.
    pub barrier_service_cycles: f64,
    /// A load from shared memory, once served.
    pub shared_latency_cycles: u32,
    /// A load of constants, once served.
    pub constant_latency_cycles: u32,
    /// From the last arrival at a barrier to the next instruction of a warp.
    pub barrier_latency_cycles: u32,
    /// How far the latency of a load from L2 is from its mean, at most: slices are near and far.
    pub l2_spread_cycles: f64,
    /// How far the clock of a GPC whose tensor cores are busy is from the mean, at most, as a fraction: each has its own.
    pub gpc_clock_spread: f64,
}

impl IssueTimings {
    pub(super) fn validate(&self) -> Result<()> {
        for (field, value, least) in [
            ("fma_latency_cycles", self.fma_latency_cycles, 1),
            ("alu_interval_cycles", self.alu_interval_cycles, 1),
            ("tensor_interval_cycles", self.tensor_interval_cycles, 1),
            ("tensor_latency_cycles", self.tensor_latency_cycles, 1),
            ("branch_cycles", self.branch_cycles, 1),
            ("branch_slots", self.branch_slots, 0),
            ("untaken_branch_cycles", self.untaken_branch_cycles, 1),
            ("memory_interval_cycles", self.memory_interval_cycles, 1),
            ("shared_latency_cycles", self.shared_latency_cycles, 0),
            ("constant_latency_cycles", self.constant_latency_cycles, 0),
            ("barrier_latency_cycles", self.barrier_latency_cycles, 0),
        ] {
            if !(least..=1_000_000).contains(&value) {
                return Err(Error::invalid(field, value, format!("must be a number from {least} to 1000000")));
            }
        }
        for (field, value) in [
            ("shared_service_cycles", self.shared_service_cycles),
            ("constant_service_cycles", self.constant_service_cycles),
            ("global_service_cycles", self.global_service_cycles),
            ("barrier_service_cycles", self.barrier_service_cycles),
        ] {
            in_range(field, value, 0.0, 1e6)?;
        }
        in_range("l2_spread_cycles", self.l2_spread_cycles, 0.0, 1e6)?;
        in_range("gpc_clock_spread", self.gpc_clock_spread, 0.0, 0.5)
    }
}
