//! The one way into the core: it lets go of the interpreter, comes back for Ctrl-C, and turns the core's errors into
//! Python's.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use wavesim::device::Device;
use wavesim::error::{Error, Value};

/// How often a run comes back to ask whether the user pressed Ctrl-C. Coming back may have to wait for another thread
/// to let go of the interpreter (5 ms by default), so it is not done on every call of the core.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs `work` without the interpreter. What it is given says, when called, whether it should stop.
///
/// # Errors
/// The core's error as a Python exception, or the exception of a signal handler (`KeyboardInterrupt`).
pub(crate) fn enter<T: Send>(
    py: Python<'_>,
    work: impl Send + FnOnce(&mut dyn FnMut() -> bool) -> wavesim::error::Result<T>,
) -> PyResult<T> {
    let (result, raised) = py.detach(|| {
        let mut raised = None;
        let mut asked = Instant::now();
        let mut interrupted = || {
            if raised.is_none() && asked.elapsed() >= SIGNAL_INTERVAL {
                #[expect(
                    clippy::redundant_closure_for_method_calls,
                    reason = "the method alone does not live long enough"
                )]
                let checked = Python::attach(|py| py.check_signals());
                raised = checked.err();
                asked = Instant::now();
            }
            raised.is_some()
        };
        let result = work(&mut interrupted);
        (result, raised)
    });
    match raised {
        Some(exception) => Err(exception),
        None => result.map_err(|error| to_python(py, &error)),
    }
}

/// The exception of `wavesim.errors` that says what a core error says.
pub(crate) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    let message = error.to_string();
    let of = |name, field: &String, value: &Value| {
        let class = class(py, name)?;
        match value {
            Value::Whole(value) => class.call1((message.as_str(), field, value)),
            Value::Number(value) => class.call1((message.as_str(), field, value)),
            other => class.call1((message.as_str(), field, other.to_string())),
        }
    };
    let exception = match error {
        Error::Invalid { field, value, .. } => of("InvalidInput", field, value),
        Error::CannotLaunch { field, value, .. } => of("CannotLaunch", field, value),
        Error::Deadlock { .. } => class(py, "Deadlock").and_then(|class| class.call1((message.as_str(),))),
        other => return PyRuntimeError::new_err(other.to_string()),
    };
    exception.map_or_else(|failure| failure, PyErr::from_value)
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    Ok(py.import("wavesim.errors")?.getattr(name)?.cast_into::<PyType>()?)
}

/// A device that was read from JSON and validated, to be used for any number of runs.
#[pyclass(frozen, module = "wavesim._wavesim")]
pub(crate) struct Machine {
    pub(crate) device: std::sync::Arc<Device>,
}

#[pymethods]
impl Machine {
    #[new]
    fn new(py: Python<'_>, json: &str) -> PyResult<Self> {
        let device = Device::from_json(json).map_err(|error| to_python(py, &error.within("device")))?;
        Ok(Self { device: device.into() })
    }

    fn __repr__(&self) -> String {
        format!("Machine({}, {} SMs)", self.device.name, self.device.sm_count())
    }
}
