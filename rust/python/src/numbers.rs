//! Lists of numbers, read where Python keeps them.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

/// A list of `float64`: the caller's own memory when that is contiguous, a copy when it is not.
pub(crate) enum Numbers {
    InPlace(PyBuffer<f64>),
    Copied(Vec<f64>),
}

impl<'py> FromPyObject<'_, 'py> for Numbers {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::<f64>::get(&object)?;
        if buffer.is_c_contiguous() { Ok(Self::InPlace(buffer)) } else { Ok(Self::Copied(buffer.to_vec(object.py())?)) }
    }
}

impl Numbers {
    pub(crate) fn as_slice(&self) -> &[f64] {
        match self {
            Self::InPlace(buffer) => in_place(buffer),
            Self::Copied(numbers) => numbers,
        }
    }
}

/// The memory of a contiguous buffer.
#[expect(unsafe_code, reason = "the numbers of a large grid are not copied: this is the one way to read them")]
fn in_place(buffer: &PyBuffer<f64>) -> &[f64] {
    let numbers = buffer.as_slice_ptr().expect("only contiguous buffers are kept in place");
    // SAFETY: the exporter keeps the memory alive and where it is for as long as `buffer` exists, and pyo3 has checked
    // its type, size and alignment. It is not written to meanwhile: `wavesim.workload.Numbers` hands over arrays that it
    // has made read-only and whose writable form it does not keep.
    unsafe { numbers.as_ref() }
}
