//! Simulation, and the records of a run.

use std::sync::{Arc, LazyLock};

use arrow_array::RecordBatch;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use wavesim::ids::SmId;
use wavesim::records::{Ledger, Records};
use wavesim::workload::Program;
use wavesim::{Detail, Options};

use crate::doorway::{Machine, enter};
use crate::frames::{self, Frame};
use crate::l2_frames;
use crate::numbers::Numbers;
use crate::program::parse;

/// A batch that is made when it is first asked for.
type Lazy = LazyLock<RecordBatch, Box<dyn FnOnce() -> RecordBatch + Send>>;

fn lazy(make: impl FnOnce() -> RecordBatch + Send + 'static) -> Lazy {
    LazyLock::new(Box::new(make))
}

/// All that a run leaves behind. Frames are handed over without a copy, as often as they are asked for.
#[pyclass(frozen, module = "wavesim._wavesim")]
pub(crate) struct RunRecords {
    kernels: Lazy,
    ctas: Option<Lazy>,
    sms: Lazy,
    l2: Lazy,
    l2_slices: Option<Lazy>,
    l2_windows: Option<Lazy>,
    warps: Lazy,
    warps_windows: Option<Lazy>,
    ledger: Ledger,
    slots: u64,
    makespan: wavesim::engine::Time,
    digest: u64,
}

impl RunRecords {
    fn new(records: Records, machine: &Machine, program: Program) -> Self {
        let Records {
            kernels,
            ctas,
            sms,
            l2,
            l2_slices,
            l2_windows,
            warps,
            warps_windows,
            ledger,
            slots,
            makespan,
            digest,
        } = records;
        let device = Arc::clone(&machine.device);
        let names: Vec<String> = l2.spec.iter().map(|&spec| program.kernels[spec as usize].name.clone()).collect();
        let launched: Vec<String> =
            warps.spec.iter().map(|&spec| program.kernels[spec as usize].name.clone()).collect();
        Self {
            warps: lazy(move || frames::warps(&warps, &launched)),
            warps_windows: warps_windows.map(|windows| lazy(move || frames::warps_windows(&windows))),
            l2: lazy(move || l2_frames::l2(l2, &names)),
            l2_slices: l2_slices.map(|slices| lazy(|| l2_frames::l2_slices(slices))),
            l2_windows: l2_windows.map(|windows| lazy(|| l2_frames::l2_windows(windows))),
            kernels: lazy(move || frames::kernels(kernels, &device, &program)),
            ctas: ctas.map(|ctas| lazy(|| frames::ctas(ctas))),
            sms: lazy(move || frames::sms(sms, slots, makespan)),
            ledger,
            slots,
            makespan,
            digest,
        }
    }
}

#[pymethods]
impl RunRecords {
    /// One row a launch, in issue order.
    fn kernels(&self) -> Frame {
        RecordBatch::clone(&self.kernels).into()
    }

    /// One row a CTA, in the order in which they ended; None if they were not recorded.
    fn ctas(&self) -> Option<Frame> {
        self.ctas.as_ref().map(|ctas| RecordBatch::clone(ctas).into())
    }

    /// One row an SM.
    fn sms(&self) -> Frame {
        RecordBatch::clone(&self.sms).into()
    }

    /// One row a launch with memory work, in issue order.
    fn l2(&self) -> Frame {
        RecordBatch::clone(&self.l2).into()
    }

    /// One row a launch with memory work and slice of L2; None if they were not recorded.
    fn l2_slices(&self) -> Option<Frame> {
        self.l2_slices.as_ref().map(|slices| RecordBatch::clone(slices).into())
    }

    /// One row a launch with memory work and window of time; None if they were not recorded.
    fn l2_windows(&self) -> Option<Frame> {
        self.l2_windows.as_ref().map(|windows| RecordBatch::clone(windows).into())
    }

    /// One row a launch with warp programs, and state of its warps.
    fn warps(&self) -> Frame {
        RecordBatch::clone(&self.warps).into()
    }

    /// One row a launch with warp programs, window of time and state; None if they were not recorded.
    fn warps_windows(&self) -> Option<Frame> {
        self.warps_windows.as_ref().map(|windows| RecordBatch::clone(windows).into())
    }

    /// One row an account; `time_ps` is a decimal without fraction.
    fn ledger(&self) -> Frame {
        frames::ledger(&self.ledger).into()
    }

    /// One row for each of `bins` equal parts of the run.
    fn timeline(&self, bins: u32) -> PyResult<Frame> {
        if bins == 0 {
            return Err(PyValueError::new_err("bins must be at least 1"));
        }
        Ok(frames::timeline(&self.ledger, bins as usize, self.slots, self.makespan).into())
    }

    /// The most CTAs that the device held at once in this run, had it been full.
    #[getter]
    fn slots(&self) -> u64 {
        self.slots
    }

    /// From the first issue to the last end, in picoseconds.
    #[getter]
    fn makespan_ps(&self) -> u64 {
        self.makespan.0
    }

    /// The digest of all that happened: 16 hex digits.
    #[getter]
    fn digest(&self) -> String {
        format!("{:016x}", self.digest)
    }
}

/// Simulates a program on a machine. `detail` is `kernels`, `ctas` or `memory`, `dispatcher` is `hardware` or `ideal`; `first_sms` are
/// up to two SMs, `issue` is `rates` or `exact`.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn simulate(
    py: Python<'_>,
    machine: &Machine,
    program: &str,
    arrays: Vec<Numbers>,
    seed: u64,
    detail: &str,
    dispatcher: &str,
    first_sms: Vec<u16>,
    issue: &str,
) -> PyResult<RunRecords> {
    let options = Options {
        seed,
        detail: choice("detail", detail)?,
        dispatcher: choice("dispatcher", dispatcher)?,
        issue: choice("issue", issue)?,
        first_sms: [0, 1].map(|i| first_sms.get(i).copied().map(SmId)),
    };
    let numbers: Vec<&[f64]> = arrays.iter().map(Numbers::as_slice).collect();
    enter(py, |interrupted| {
        let program = parse(program)?;
        let records = wavesim::simulate(&machine.device, &program, &numbers, &options, interrupted)?;
        Ok(RunRecords::new(records, machine, program))
    })
}

/// Simulates a program of one launch without random numbers: from its first CTA's start to its last one's end, in picoseconds.
#[pyfunction]
pub(crate) fn span_ps(py: Python<'_>, machine: &Machine, program: &str) -> PyResult<u64> {
    let options = Options { detail: Detail::Kernels, ..Options::default() };
    enter(py, |interrupted| {
        let program = parse(program)?;
        let records = wavesim::simulate(&machine.device, &program, &[], &options, interrupted)?;
        Ok(records.kernels.end[0].since(records.kernels.start[0]).0)
    })
}

fn choice<'a, T: serde::Deserialize<'a>>(field: &str, name: &'a str) -> PyResult<T> {
    let name: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
        serde::de::IntoDeserializer::into_deserializer(name);
    T::deserialize(name).map_err(|error| PyValueError::new_err(format!("{field}: {error}")))
}
