//! What the machine is: its GPCs and SMs, the limits of an SM, clocks, and the timings of dispatch, launch and memory.
//!
//! A [`Device`] is plain data. [`catalogue::device`] gives the known ones, [`Device::from_json`] reads one that a caller
//! wrote, [`Device::scaled`] makes a larger or smaller die of one. Each of these ends in [`Device::validate`], and nothing
//! changes a device afterwards. Every number says where it is from: [`Device::provenance_of`].
//!
//! ```
//! use wavesim::device::{Shape, catalogue};
//!
//! let h200 = catalogue::device("h200")?;
//! let shape = Shape { threads: 256, registers: 128, ..Shape::default() };
//! assert_eq!(h200.occupancy(&shape).ctas_per_sm, 2);
//! assert_eq!(h200.topology.max_active_clusters(8, 1), 15);
//! # Ok::<(), wavesim::error::Error>(())
//! ```

pub mod catalogue;
mod clock;
mod dispatch;
mod issue;
mod launch;
mod limits;
mod memory;
mod occupancy;
mod provenance;
mod scale;
mod sync;
mod topology;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use clock::Clock;
pub use dispatch::{Deal, Dispatch};
pub use issue::{IssuePolicy, IssueTimings};
pub use launch::LaunchTimings;
pub use limits::{ComputeCapability, Limits, Vendor};
pub(crate) use memory::SECTOR_BYTES;
pub use memory::{Dram, L2, Replacement, WritePolicy};
pub use occupancy::{Limiter, Occupancy, Refusal, RefusedBy, Shape};
pub use provenance::{Provenance, Status};
pub use sync::SyncTimings;
pub use topology::{Gpc, Group, Topology};

use crate::error::{Error, Result, Value};

/// A GPU: everything that a simulation knows of the hardware.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// The short name, such as `h200`.
    pub name: String,
    /// The product's name, such as `NVIDIA H200 SXM`.
    pub title: String,
    /// Who makes it; decides the words and the rules of residency that differ.
    pub vendor: Vendor,
    /// `9.0`, or `gfx942`.
    pub compute_capability: ComputeCapability,
    /// The GPCs (AMD: XCDs) in the order of dispatch, and their SMs (CUs).
    pub topology: Topology,
    /// What an SM and a launch may hold.
    pub limits: Limits,
    /// The clock that cycles are counted in.
    pub clock: Clock,
    /// How fast CTAs are placed.
    pub dispatch: Dispatch,
    /// How long it takes from one kernel to the next.
    pub launch: LaunchTimings,
    /// How long CTAs take to hear of each other.
    pub sync: SyncTimings,
    /// How warps share an SM.
    pub issue: IssueTimings,
    /// The last cache before memory.
    pub l2: L2,
    /// The device's memory.
    pub dram: Dram,
    /// Where each number is from: the path of a field, or of a part whose fields share a source.
    pub provenance: BTreeMap<String, Provenance>,
}

impl Device {
    /// Reads a device from JSON and validates it.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the field's path, for JSON of another shape and for values that can't be.
    pub fn from_json(json: &str) -> Result<Self> {
        let device: Self =
            serde_json::from_str(json).map_err(|error| Error::invalid("json", "a text", error.to_string()))?;
        device.validate()?;
        Ok(device)
    }

    /// The device as JSON; [`Device::from_json`] reads it back.
    ///
    /// # Panics
    /// Never for a validated device: its numbers are finite and its maps have string keys.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a device is plain data")
    }

    /// The number of SMs (AMD: CUs).
    pub fn sm_count(&self) -> usize {
        self.topology.sm_count()
    }

    /// How many CTAs of this shape an SM holds, what limits it, and whether it launches at all.
    pub fn occupancy(&self, shape: &Shape) -> Occupancy {
        occupancy::occupancy(self, shape)
    }

    /// Where the number at `path` is from: its own entry, or that of the nearest part that holds it.
    pub fn provenance_of(&self, path: &str) -> Option<&Provenance> {
        provenance::lookup(&self.provenance, path)
    }

    /// Checks that every value is one that a device can have.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the path of the first field that is wrong, such as `limits.warps`.
    pub fn validate(&self) -> Result<()> {
        if self.name.is_empty() {
            return Err(Error::invalid("name", "\"\"", "a device needs a name"));
        }
        self.topology.validate().map_err(|e| e.within("topology"))?;
        self.limits.validate().map_err(|e| e.within("limits"))?;
        self.clock.validate().map_err(|e| e.within("clock"))?;
        self.dispatch.validate().map_err(|e| e.within("dispatch"))?;
        self.launch.validate().map_err(|e| e.within("launch"))?;
        self.sync.validate().map_err(|e| e.within("sync"))?;
        self.issue.validate().map_err(|e| e.within("issue"))?;
        self.l2.validate().map_err(|e| e.within("l2"))?;
        self.dram.validate().map_err(|e| e.within("dram"))?;
        let halves = self.l2.halves;
        for (i, gpc) in self.topology.gpcs.iter().enumerate() {
            if gpc.half >= halves {
                return Err(Error::invalid(
                    format!("topology.gpcs[{i}].half"),
                    gpc.half,
                    format!("L2 has {halves} part(s), counted from 0"),
                ));
            }
        }
        Ok(())
    }
}

/// Refuses a number that is not finite or not in `low..=high`.
fn in_range(field: &str, value: impl Into<f64> + Into<Value> + Copy, low: f64, high: f64) -> Result<()> {
    let number: f64 = value.into();
    if number.is_finite() && (low..=high).contains(&number) {
        Ok(())
    } else {
        Err(Error::invalid(field, value, format!("must be a number from {low} to {high}")))
    }
}
