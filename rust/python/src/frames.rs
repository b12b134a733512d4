//! What a run leaves behind, as Arrow batches. Columns of the core become Arrow buffers in place where the width of
//! their type stays the same: a vector of times is turned into nanoseconds in its own memory.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Decimal128Type, Float64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch, RecordBatchIterator, StringArray};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use wavesim::device::{Device, Occupancy};
use wavesim::engine::Time;
use wavesim::records::{Account, CtaColumns, KernelColumns, Ledger, SmColumns, State, WarpColumns, WarpWindowColumns};
use wavesim::simulate::shape_of;
use wavesim::workload::{Kernel, Program};

/// A frame that any Arrow library takes over without a copy.
#[pyclass(frozen, module = "wavesim._wavesim")]
pub(crate) struct Frame {
    batch: RecordBatch,
}

impl From<RecordBatch> for Frame {
    fn from(batch: RecordBatch) -> Self {
        Self { batch }
    }
}

#[pymethods]
impl Frame {
    /// The frame as a stream of the Arrow C data interface. It has one schema and can't be had in another.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        const NAME: &CStr = c"arrow_array_stream";
        drop(requested_schema);
        let reader = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), NAME)
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }
}

fn batch<const N: usize>(columns: [(&str, ArrayRef); N]) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("a run's columns have one length")
}

/// A column whose items are as wide as the vector's: `collect` then reuses the vector's memory.
pub(crate) fn column<T: ArrowPrimitiveType, V>(values: Vec<V>, convert: impl Fn(V) -> T::Native) -> ArrayRef
where
    PrimitiveArray<T>: From<Vec<T::Native>>,
{
    let values: Vec<T::Native> = values.into_iter().map(convert).collect();
    Arc::new(PrimitiveArray::<T>::from(values))
}

fn floats(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    Arc::new(PrimitiveArray::<Float64Type>::from_iter_values(values))
}

pub(crate) fn nanoseconds(times: Vec<Time>) -> ArrayRef {
    column::<Float64Type, _>(times, Time::ns)
}

/// `part / whole`, and 0 of nothing.
fn share(part: u128, whole: u128) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// One row a CTA.
pub(crate) fn ctas(columns: CtaColumns) -> RecordBatch {
    batch([
        ("kernel", column::<UInt32Type, _>(columns.kernel, |id| id.0)),
        ("cta", column::<UInt32Type, _>(columns.cta, |id| id.0)),
        ("sm", column::<UInt16Type, _>(columns.sm, |id| id.0)),
        ("slot", column::<UInt16Type, _>(columns.slot, |id| id.0)),
        ("start_ns", nanoseconds(columns.start)),
        ("end_ns", nanoseconds(columns.end)),
    ])
}

/// One row an SM.
pub(crate) fn sms(columns: SmColumns, slots: u64, makespan: Time) -> RecordBatch {
    let slot_time = u128::from(slots) * u128::from(makespan.0);
    let sm_slot_time = slot_time / columns.sm.len().max(1) as u128;
    let utilization = floats(columns.busy_ps.iter().map(|&busy| share(busy, sm_slot_time)));
    batch([
        ("sm", column::<UInt16Type, _>(columns.sm, |id| id.0)),
        ("gpc", column::<UInt16Type, _>(columns.gpc, |gpc| gpc)),
        ("ctas", column::<UInt64Type, _>(columns.ctas, |ctas| ctas)),
        ("busy_ns", floats(columns.busy_ps.iter().map(|&ps| ps as f64 / 1e3))),
        ("active_ns", nanoseconds(columns.active)),
        ("utilization", utilization),
        ("last_end_ns", nanoseconds(columns.last_end)),
    ])
}

/// One row a launch with warp programs, and state of its warps.
pub(crate) fn warps(columns: &WarpColumns, names: &[String]) -> RecordBatch {
    let rows = || columns.cycles.iter().enumerate().flat_map(|(row, _)| State::ALL.map(|state| (row, state)));
    let cycles = |(row, state): (usize, State)| columns.cycles[row][state as usize];
    let all = |row: usize| columns.cycles[row].iter().sum::<f64>();
    let share = |(row, state)| if all(row) > 0.0 { cycles((row, state)) / all(row) } else { 0.0 };
    batch([
        ("kernel", column::<UInt32Type, _>(rows().map(|(row, _)| columns.kernel[row]).collect(), |id| id.0)),
        ("name", Arc::new(StringArray::from_iter_values(rows().map(|(row, _)| &names[row])))),
        ("state", Arc::new(StringArray::from_iter_values(rows().map(|(_, state)| state.name())))),
        ("kind", Arc::new(StringArray::from_iter_values(rows().map(|(_, state)| state.kind())))),
        ("warp_cycles", floats(rows().map(cycles))),
        ("share", floats(rows().map(share))),
    ])
}

/// One row a launch with warp programs, window of time, and state of its warps.
pub(crate) fn warps_windows(columns: &WarpWindowColumns) -> RecordBatch {
    let rows = || (0..columns.kernel.len()).flat_map(|row| State::ALL.map(|state| (row, state)));
    batch([
        ("kernel", column::<UInt32Type, _>(rows().map(|(row, _)| columns.kernel[row]).collect(), |id| id.0)),
        ("start_ns", nanoseconds(rows().map(|(row, _)| columns.start[row]).collect())),
        ("end_ns", nanoseconds(rows().map(|(row, _)| columns.end[row]).collect())),
        ("state", Arc::new(StringArray::from_iter_values(rows().map(|(_, state)| state.name())))),
        ("kind", Arc::new(StringArray::from_iter_values(rows().map(|(_, state)| state.kind())))),
        ("warp_cycles", floats(rows().map(|(row, state)| columns.cycles[row][state as usize]))),
    ])
}

/// One row an account. Slot time is a whole number of picoseconds, of more than 64 bits if need be.
pub(crate) fn ledger(ledger: &Ledger) -> RecordBatch {
    let times = Account::ALL.map(|account| ledger.total(account));
    let whole: i128 = times.iter().sum();
    let shares = times.map(|time| if whole == 0 { 0.0 } else { time as f64 / whole as f64 });
    let times = PrimitiveArray::<Decimal128Type>::from_iter_values(times)
        .with_precision_and_scale(38, 0)
        .expect("38 digits and no fraction are a decimal");
    batch([
        ("account", Arc::new(StringArray::from_iter_values(Account::ALL.map(Account::name)))),
        ("time_ps", Arc::new(times)),
        ("share", floats(shares)),
    ])
}

/// One row for each of `bins` equal parts of the run.
pub(crate) fn timeline(ledger: &Ledger, bins: usize, slots: u64, makespan: Time) -> RecordBatch {
    let shares = ledger.timeline(bins, makespan);
    let width = makespan.ns() / bins as f64;
    let mut columns = vec![
        ("bin", column::<UInt32Type, _>((0..bins as u32).collect(), |bin| bin)),
        ("start_ns", floats((0..bins).map(|bin| bin as f64 * width))),
        ("end_ns", floats((1..=bins).map(|bin| bin as f64 * width))),
    ];
    for account in Account::ALL {
        let of_account = shares.iter().map(|bin| bin[account as usize]);
        columns.push((account.name(), floats(of_account)));
    }
    let running = shares.iter().map(|bin| bin[Account::Busy as usize] * slots as f64);
    columns.push(("running_ctas", floats(running)));
    RecordBatch::try_from_iter(columns).expect("a timeline's columns have one length")
}

/// One row a launch: what was asked for, what the device makes of it, and when it happened.
pub(crate) fn kernels(columns: KernelColumns, device: &Device, program: &Program) -> RecordBatch {
    let launched: Vec<&Kernel> = columns.kernel.iter().map(|&kernel| &program.kernels[kernel as usize]).collect();
    // Programs launch few kernels many times: what only depends on the kernel is found once for each.
    let by_kernel: Vec<(Occupancy, String)> = program
        .kernels
        .iter()
        .map(|kernel| {
            let occupancy = device.occupancy(&shape_of(kernel));
            let limiter = occupancy.limiter();
            (occupancy, limiter)
        })
        .collect();
    let occupancy = |row: usize| &by_kernel[columns.kernel[row] as usize];
    let rows = 0..launched.len();
    let sms = device.sm_count() as u64;

    let slots = |row: usize| sms * u64::from(columns.residency[row]);
    let duration = |row: usize| columns.end[row].since(columns.start[row]);
    let slot_time = |row: usize| u128::from(slots(row)) * u128::from(duration(row).0);
    let of = |field: fn(&Kernel) -> u32| {
        column::<UInt32Type, _>(launched.iter().map(|kernel| field(kernel)).collect(), |x| x)
    };
    let per_row = |value: &dyn Fn(usize) -> f64| floats(rows.clone().map(value));
    let ps = |values: &[u128]| floats(values.iter().map(|&ps| ps as f64 / 1e3));

    let name = StringArray::from_iter_values(launched.iter().map(|kernel| &kernel.name));
    let limiter = StringArray::from_iter_values(rows.clone().map(|row| &occupancy(row).1));
    let gaps = launch_gaps(&columns.start, &columns.end);
    let head: Vec<(&str, ArrayRef)> = vec![
        ("kernel", column::<UInt32Type, _>(rows.clone().map(|row| row as u32).collect(), |x| x)),
        ("name", Arc::new(name)),
        ("stream", column::<UInt32Type, _>(columns.stream.clone(), |stream| stream)),
        ("grid", column::<UInt64Type, _>(columns.ctas.clone(), |ctas| ctas)),
        ("block", of(Kernel::threads)),
        ("registers", of(|kernel| kernel.registers)),
        ("shared_memory", of(|kernel| kernel.shared_memory)),
        ("cluster", of(|kernel| kernel.cluster)),
        ("residency", column::<UInt32Type, _>(columns.residency.clone(), |ctas| ctas)),
        ("occupancy", per_row(&|row| occupancy(row).0.occupancy)),
        ("limiter", Arc::new(limiter)),
        ("waves", per_row(&|row| columns.ctas[row] as f64 / slots(row).max(1) as f64)),
    ];
    let times: Vec<(&str, ArrayRef)> = vec![
        ("issue_ns", nanoseconds(columns.issue.clone())),
        ("ready_ns", nanoseconds(columns.ready.clone())),
        ("start_ns", nanoseconds(columns.start.clone())),
        ("end_ns", nanoseconds(columns.end.clone())),
        ("complete_ns", nanoseconds(columns.complete.clone())),
        ("duration_ns", per_row(&|row| duration(row).ns())),
        ("launch_gap_ns", Arc::new(PrimitiveArray::<Float64Type>::from(gaps))),
        ("placed_ns", nanoseconds(columns.placed.clone())),
        ("tail_ns", per_row(&|row| columns.end[row].since(columns.placed[row]).ns())),
        ("tail_share", per_row(&|row| share(columns.tail_ps[row], slot_time(row)))),
        ("utilization", per_row(&|row| share(columns.busy_ps[row], slot_time(row)))),
        ("dispatch_ns", ps(&columns.dispatch_ps)),
        ("sync_ns", ps(&columns.sync_ps)),
    ];
    RecordBatch::try_from_iter_with_nullable(
        head.into_iter().chain(times).map(|(name, column)| (name, column, name == "launch_gap_ns")),
    )
    .expect("a run's kernel columns have one length")
}

/// For each kernel the time in which nothing ran in front of it: from the last end of what started before, to its start.
/// None for the first one to start; 0 where something still ran.
fn launch_gaps(start: &[Time], end: &[Time]) -> Vec<Option<f64>> {
    let mut order: Vec<usize> = (0..start.len()).collect();
    order.sort_by_key(|&row| (start[row], row));
    let mut gaps = vec![None; start.len()];
    let mut last_end = None;
    for row in order {
        gaps[row] = last_end.map(|last: Time| start[row].since(last).ns());
        last_end = last_end.max(Some(end[row]));
    }
    gaps
}
