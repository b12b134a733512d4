//! Programs as they come from Python: JSON beside lists of numbers.

use pyo3::prelude::*;
use wavesim::error::{Error, Result};
use wavesim::workload::{Kernel, Program};

use crate::doorway::to_python;
use crate::numbers::Numbers;

/// Reads a program; that its values make sense is for `Program::validate` to say.
pub(crate) fn parse(json: &str) -> Result<Program> {
    serde_json::from_str(json).map_err(|error| Error::invalid("program", "JSON", error.to_string()))
}

/// Checks all of a program that needs no device.
#[pyfunction]
pub(crate) fn check_program(py: Python<'_>, program: &str, arrays: Vec<Numbers>) -> PyResult<()> {
    let lengths: Vec<usize> = arrays.iter().map(|numbers| numbers.as_slice().len()).collect();
    parse(program).and_then(|program| program.validate(&lengths)).map_err(|error| to_python(py, &error))
}

/// Checks all of a kernel that needs no device, the numbers of its lists too.
#[pyfunction]
pub(crate) fn check_kernel(py: Python<'_>, kernel: &str, arrays: Vec<Numbers>) -> PyResult<()> {
    let kernel: Result<Kernel> =
        serde_json::from_str(kernel).map_err(|error| Error::invalid("kernel", "JSON", error.to_string()));
    let arrays: Vec<&[f64]> = arrays.iter().map(Numbers::as_slice).collect();
    let lengths: Vec<usize> = arrays.iter().map(|array| array.len()).collect();
    let check = |kernel: Kernel| kernel.validate(&lengths).and_then(|()| kernel.validate_lists(&arrays));
    kernel.and_then(check).map_err(|error| to_python(py, &error))
}
