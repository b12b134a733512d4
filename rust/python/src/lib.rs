//! `wavesim._wavesim`: the doorway from Python into the core, and the only place with pyo3 and Arrow.
//!
//! Specs come in as JSON, lists of numbers as buffers that are read where they lie, and what a run leaves behind goes
//! out as Arrow streams. Every class is frozen.

mod device;
mod doorway;
mod frames;
mod l2_frames;
mod numbers;
mod program;
mod run;

use pyo3::prelude::*;

/// The engine of wavesim. Use the package `wavesim`; this module has no stable interface.
#[pymodule]
mod _wavesim {
    #[pymodule_export]
    use super::device::{
        catalogue_device, catalogue_find, catalogue_names, generic_device, limits_of, occupancies, occupancy,
        parts_near_to, scaled_device,
    };
    #[pymodule_export]
    use super::doorway::Machine;
    #[pymodule_export]
    use super::frames::Frame;
    #[pymodule_export]
    use super::program::{check_kernel, check_program};
    #[pymodule_export]
    use super::run::{RunRecords, simulate, span_ps};

    /// The version of the engine and of the package: Cargo's.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python packages use")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
