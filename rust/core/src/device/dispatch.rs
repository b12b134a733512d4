//! How fast the global dispatcher places CTAs. The numbers; the mechanism is the model's (`gpu/policy/hardware.rs`).

use serde::{Deserialize, Serialize};

use super::in_range;
use crate::error::Result;

/// In which pattern CTAs go over the GPCs (AMD: XCDs).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deal {
    /// One CTA to each SM of a GPC, then the next GPC, breadth first (NVIDIA).
    GpcBursts,
    /// CTA `i` goes to GPC `i mod n`, whatever the load (AMD: workgroups over XCDs).
    RoundRobin,
}

/// The timings of placement. Cycles are SM cycles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dispatch {
    /// The pattern over the GPCs.
    pub deal: Deal,
    /// First placement: one visit of the dispatcher to a GPC, which gives each SM with room one CTA.
    pub visit_cycles: f64,
    /// The serial server of the whole die: what it costs to learn that a CTA has ended, and to give its slot away.
    pub refill_cycles: f64,
    /// What a cluster of a single CTA costs more than a visit, but for the first one on an SM.
    pub single_cluster_cycles: f64,
    /// What a cluster of several CTAs takes longer to be sent into slots that came back.
    pub cluster_latency_cycles: f64,
    /// From the dispatcher's decision to the first instruction of the CTA, on a near GPC.
    pub send_cycles: f64,
    /// From a CTA's last instruction to the dispatcher, from a near GPC.
    pub return_cycles: f64,
    /// What a far GPC adds to `send_cycles`.
    pub far_send_cycles: f64,
    /// What a far GPC adds to `return_cycles`.
    pub far_return_cycles: f64,
    /// What the first CTA of a launch on an SM takes longer to start: its instructions are fetched.
    pub cold_cycles: f64,
    /// What the first CTA of a launch that ends on an SM takes longer to return its slot, for the same reason.
    pub cold_return_cycles: f64,
    /// What the unit that the SMs of a TPC share takes to let a CTA out.
    pub out_cycles: f64,
    /// What each CTA of the same SM that is out and has no successor adds to that, this one counted.
    pub out_each_cycles: f64,
    /// The least time between a CTA of several warps that is let out of an SM, and the next one of that SM.
    pub out_gap_cycles: f64,
    /// Of the whole die, ends of CTAs that the dispatcher has not heard of: no more are let out until it has. Whole, one at least.
    pub unheard_ends: f64,
    /// What the unit takes to let a CTA in, without its warps' share.
    pub in_cycles: f64,
    /// What each warp adds to that.
    pub in_warp_cycles: f64,
    /// The least time between the starts of CTAs that arrived while their instructions were fetched.
    pub fetched_interval_cycles: f64,
    /// What an SM takes to set up a CTA, without its warps' share; CTAs are set up one after the other.
    pub setup_cycles: f64,
    /// What each warp adds to that.
    pub setup_warp_cycles: f64,
    /// Above this number of warps that run on the SM, setting up is slower.
    pub crowded_warps: f64,
    /// `setup_cycles` there.
    pub crowded_setup_cycles: f64,
    /// `setup_warp_cycles` there.
    pub crowded_setup_warp_cycles: f64,
    /// Setting up a CTA takes no longer than this.
    pub max_setup_cycles: f64,
}

impl Dispatch {
    pub(super) fn validate(&self) -> Result<()> {
        for (field, value) in [
            ("visit_cycles", self.visit_cycles),
            ("refill_cycles", self.refill_cycles),
            ("single_cluster_cycles", self.single_cluster_cycles),
            ("cluster_latency_cycles", self.cluster_latency_cycles),
            ("send_cycles", self.send_cycles),
            ("return_cycles", self.return_cycles),
            ("far_send_cycles", self.far_send_cycles),
            ("far_return_cycles", self.far_return_cycles),
            ("cold_cycles", self.cold_cycles),
            ("cold_return_cycles", self.cold_return_cycles),
            ("out_cycles", self.out_cycles),
            ("out_each_cycles", self.out_each_cycles),
            ("out_gap_cycles", self.out_gap_cycles),
            ("in_cycles", self.in_cycles),
            ("in_warp_cycles", self.in_warp_cycles),
            ("fetched_interval_cycles", self.fetched_interval_cycles),
            ("setup_cycles", self.setup_cycles),
            ("setup_warp_cycles", self.setup_warp_cycles),
            ("crowded_warps", self.crowded_warps),
            ("crowded_setup_cycles", self.crowded_setup_cycles),
            ("crowded_setup_warp_cycles", self.crowded_setup_warp_cycles),
            ("max_setup_cycles", self.max_setup_cycles),
        ] {
            in_range(field, value, 0.0, 1e9)?;
        }
        in_range("unheard_ends", self.unheard_ends, 1.0, 1e9)?;
        Ok(())
    }
}
