//! How long CTAs take to hear of each other through L2. The numbers; the mechanism is the model's (`gpu/sync.rs`).

use serde::{Deserialize, Serialize};

use super::in_range;
use crate::error::Result;

/// The timings of atomics on one word, and of grid barriers built on them. Cycles are SM cycles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncTimings {
    /// What one atomic costs the word it goes to.
    pub atomic_service_cycles: f64,
    /// A round trip to an idle word, on average over the die.
    pub atomic_latency_cycles: f64,
    /// By how much a round trip is shorter in the word's own half of L2, and longer in the other.
    pub atomic_half_cycles: f64,
    /// What a load that bypasses L1 costs it.
    pub load_service_cycles: f64,
    /// What going over from atomics to loads costs it, and back.
    pub change_cycles: f64,
    /// How many requests its queue holds; more than these wait outside, atomics and loads apart.
    pub queued_requests: u32,
    /// Grid barrier: from the end of a CTA's work to its atomic: the CTA's barrier, and the fence.
    pub barrier_arrive_cycles: f64,
    /// From a poll's answer to the next poll.
    pub barrier_poll_cycles: f64,
    /// From the answer that lets a CTA pass to the start of its next work.
    pub barrier_leave_cycles: f64,
}

impl SyncTimings {
    pub(super) fn validate(&self) -> Result<()> {
        for (field, value) in [
            ("atomic_service_cycles", self.atomic_service_cycles),
            ("atomic_latency_cycles", self.atomic_latency_cycles),
            ("atomic_half_cycles", self.atomic_half_cycles),
            ("load_service_cycles", self.load_service_cycles),
            ("change_cycles", self.change_cycles),
            ("barrier_arrive_cycles", self.barrier_arrive_cycles),
            ("barrier_poll_cycles", self.barrier_poll_cycles),
            ("barrier_leave_cycles", self.barrier_leave_cycles),
        ] {
            in_range(field, value, 0.0, 1e9)?;
        }
        in_range("queued_requests", self.queued_requests, 1.0, 1e9)
    }
}
