//! The clock that the model's cycles are counted in.

use serde::{Deserialize, Serialize};

use super::in_range;
use crate::error::Result;

/// The SM clock. The model has one: what is given in nanoseconds stays, what is given in cycles scales with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    /// The SM clock under load, in MHz.
    pub sm_mhz: f64,
}

impl Clock {
    /// The length of `cycles` in picoseconds.
    pub fn cycles_to_ps(&self, cycles: f64) -> f64 {
        cycles * 1e6 / self.sm_mhz
    }

    /// The length of `cycles` in nanoseconds.
    pub fn cycles_to_ns(&self, cycles: f64) -> f64 {
        cycles * 1e3 / self.sm_mhz
    }

    /// The number of cycles in `ns` nanoseconds.
    pub fn ns_to_cycles(&self, ns: f64) -> f64 {
        ns * self.sm_mhz / 1e3
    }

    pub(super) fn validate(&self) -> Result<()> {
        in_range("sm_mhz", self.sm_mhz, 1.0, 100_000.0)
    }
}
