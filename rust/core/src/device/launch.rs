//! How long it takes from one kernel to the next. The numbers; the mechanism is the model's front end.

use serde::{Deserialize, Serialize};

use super::in_range;
use crate::error::{Error, Result};

/// The timings and limits of launches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchTimings {
    /// From one launch call of a host thread to the next.
    pub host_issue_ns: f64,
    /// From a launch call to the dispatcher of an idle device.
    pub submit_ns: f64,
    /// Two kernels of one stream: from the first's completion to the second at the dispatcher.
    pub stream_gap_ns: f64,
    /// The same between two nodes of a graph.
    pub graph_gap_ns: f64,
    /// Programmatic dependent launch: from the last signal or end of a CTA to the dependent kernel at the dispatcher.
    pub dependent_gap_ns: f64,
    /// Dependent CTAs that wait: from the completion of the kernel ahead to the start of their work.
    pub release_ns: f64,
    /// The same from when its last stores have been acknowledged.
    pub flush_ns: f64,
    /// What a dependent CTA takes from its first instruction to the start of its work, when nothing holds it.
    pub dependent_check_ns: f64,
    /// The longest time that a CTA's last stores take to be acknowledged; a kernel is complete only then.
    pub drain_ns: f64,
    /// From the last placement of one kernel to the first of the next that was ready already.
    pub switch_ns: f64,
    /// What two CUDA events around a launch see beside the kernel itself.
    pub event_ns: f64,
    /// Kernels that can be on the device at once.
    pub resident_kernels: u32,
    /// The most urgent stream priority (the least urgent is 0; a lower number is more urgent).
    pub greatest_priority: i32,
}

impl LaunchTimings {
    pub(super) fn validate(&self) -> Result<()> {
        for (field, value) in [
            ("host_issue_ns", self.host_issue_ns),
            ("submit_ns", self.submit_ns),
            ("stream_gap_ns", self.stream_gap_ns),
            ("graph_gap_ns", self.graph_gap_ns),
            ("dependent_gap_ns", self.dependent_gap_ns),
            ("release_ns", self.release_ns),
            ("flush_ns", self.flush_ns),
            ("dependent_check_ns", self.dependent_check_ns),
            ("drain_ns", self.drain_ns),
            ("switch_ns", self.switch_ns),
            ("event_ns", self.event_ns),
        ] {
            in_range(field, value, 0.0, 1e9)?;
        }
        if self.resident_kernels == 0 {
            return Err(Error::invalid("resident_kernels", 0, "must be at least 1"));
        }
        if self.greatest_priority > 0 {
            return Err(Error::invalid(
                "greatest_priority",
                self.greatest_priority,
                "must be 0 or less: a lower number is more urgent",
            ));
        }
        Ok(())
    }
}
