//! The catalogue, scaling and residency. Devices cross as JSON.

use pyo3::prelude::*;
use wavesim::device::{Device, Limits, Shape, Topology, catalogue};
use wavesim::error::{Error, Result};

use crate::doorway::{Machine, to_python};

fn answer<T>(py: Python<'_>, result: Result<T>) -> PyResult<T> {
    result.map_err(|error| to_python(py, &error))
}

/// The names of the catalogue's devices.
#[pyfunction]
pub(crate) fn catalogue_names() -> Vec<&'static str> {
    catalogue::names().collect()
}

/// The catalogue's name of the device that `name` means, or None.
#[pyfunction]
pub(crate) fn catalogue_find(name: &str) -> Option<&'static str> {
    catalogue::find(name)
}

/// A device of the catalogue, as JSON.
#[pyfunction]
pub(crate) fn catalogue_device(py: Python<'_>, name: &str) -> PyResult<String> {
    answer(py, catalogue::device(name)).map(|device| device.to_json())
}

/// A device that the catalogue does not have, from its compute capability and number of SMs, as JSON.
#[pyfunction]
pub(crate) fn generic_device(py: Python<'_>, capability: &str, title: &str, sms: usize) -> PyResult<String> {
    let device = capability.parse().and_then(|capability| catalogue::generic(&capability, title, sms));
    answer(py, device).map(|device| device.to_json())
}

/// The limits of a compute capability, as JSON.
#[pyfunction]
pub(crate) fn limits_of(py: Python<'_>, capability: &str) -> PyResult<String> {
    let limits = capability.parse().and_then(|capability| Limits::of(&capability));
    answer(py, limits).and_then(|limits| json(&limits))
}

/// To which part of L2 each of so many GPCs is near, if nothing is known of it.
#[pyfunction]
pub(crate) fn parts_near_to(gpcs: usize, halves: u8) -> Vec<u16> {
    Topology::parts_near_to(gpcs, halves).map(u16::from).collect()
}

/// The device with another number of SMs, as JSON.
#[pyfunction]
pub(crate) fn scaled_device(py: Python<'_>, json: &str, sms: usize) -> PyResult<String> {
    let device = Device::from_json(json).and_then(|device| device.scaled(sms));
    answer(py, device).map(|device| device.to_json())
}

/// The residency of one shape (JSON), as JSON.
#[pyfunction]
pub(crate) fn occupancy(py: Python<'_>, machine: &Machine, shape: &str) -> PyResult<String> {
    let shape: Result<Shape> =
        serde_json::from_str(shape).map_err(|error| Error::invalid("shape", shape, error.to_string()));
    let shape = answer(py, shape)?;
    json(&machine.device.occupancy(&shape))
}

/// The columns of residency of many shapes: CTAs an SM, resident warps, limiter names joined by `+`, refusals.
type Residencies = (Vec<u32>, Vec<u32>, Vec<String>, Vec<Option<String>>);

/// The residency of many shapes: columns of equal length in, columns out.
#[pyfunction]
pub(crate) fn occupancies(
    py: Python<'_>,
    machine: &Machine,
    threads: Vec<u32>,
    registers: Vec<u32>,
    shared_bytes: Vec<u32>,
    barriers: Vec<u32>,
    cluster: Vec<u32>,
) -> PyResult<Residencies> {
    let rows = threads.len();
    for (field, length) in [
        ("registers", registers.len()),
        ("shared_memory", shared_bytes.len()),
        ("barriers", barriers.len()),
        ("cluster", cluster.len()),
    ] {
        if length != rows {
            let why = format!("must be as long as block ({rows})");
            return answer(py, Err(Error::invalid(field, length, why)));
        }
    }
    Ok(py.detach(|| {
        let mut columns = Residencies::default();
        for row in 0..rows {
            let occupancy = machine.device.occupancy(&Shape {
                threads: threads[row],
                registers: registers[row],
                shared_bytes: shared_bytes[row],
                barriers: barriers[row],
                cluster: cluster[row],
                ..Shape::default()
            });
            columns.0.push(occupancy.ctas_per_sm);
            columns.1.push(occupancy.warps);
            columns.2.push(occupancy.limiter());
            columns.3.push(occupancy.refusal.map(|refusal| refusal.text));
        }
        columns
    }))
}

fn json<T: serde::Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
}
