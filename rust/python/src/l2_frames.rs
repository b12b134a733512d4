//! What moved through L2, as Arrow batches: by launch, by slice, by window of time.

use std::sync::Arc;

use arrow_array::types::{Float64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch, StringArray};
use wavesim::ids::KernelId;
use wavesim::records::{L2Columns, L2SliceColumns, L2WindowColumns, Traffic};

use crate::frames::{column, nanoseconds};

/// The columns that all three frames end with.
fn moved(traffic: &[Traffic]) -> Vec<(&'static str, ArrayRef)> {
    let of = |field: fn(&Traffic) -> u64| column::<UInt64Type, _>(traffic.iter().map(field).collect(), |n| n);
    let lookups = |traffic: &Traffic| traffic.sectors + traffic.fabric;
    let shares = traffic.iter().map(|t| (lookups(t) > 0).then(|| t.hits as f64 / lookups(t) as f64));
    let shares: ArrayRef = Arc::new(shares.collect::<PrimitiveArray<Float64Type>>());
    vec![
        ("requested_sectors", of(|traffic| traffic.requested)),
        ("coalesced_sectors", of(|traffic| traffic.coalesced)),
        ("sm_sectors", of(|traffic| traffic.sectors)),
        ("fabric_sectors", of(|traffic| traffic.fabric)),
        ("lookups", of(lookups)),
        ("hits", of(|traffic| traffic.hits)),
        ("merged_sectors", of(|traffic| traffic.merged)),
        ("hit_share", shares),
        ("written_sectors", of(|traffic| traffic.written)),
        ("dram_read_bytes", of(|traffic| traffic.dram_read)),
        ("dram_written_bytes", of(|traffic| traffic.dram_written)),
    ]
}

fn kernels(ids: Vec<KernelId>) -> (&'static str, ArrayRef) {
    ("kernel", column::<UInt32Type, _>(ids, |id| id.0))
}

fn batch(head: Vec<(&'static str, ArrayRef)>, traffic: &[Traffic]) -> RecordBatch {
    let columns = head.into_iter().chain(moved(traffic));
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, name == "hit_share")))
        .expect("the columns of L2 have one length")
}

/// One row a launch with memory work.
pub(crate) fn l2(columns: L2Columns, names: &[String]) -> RecordBatch {
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(names));
    batch(vec![kernels(columns.kernel), ("name", names)], &columns.traffic)
}

/// One row a launch with memory work and slice.
pub(crate) fn l2_slices(columns: L2SliceColumns) -> RecordBatch {
    let part = column::<UInt16Type, _>(columns.part, |part| part);
    let slice = column::<UInt32Type, _>(columns.slice, |slice| slice);
    batch(vec![kernels(columns.kernel), ("part", part), ("slice", slice)], &columns.traffic)
}

/// One row a launch with memory work and window of time.
pub(crate) fn l2_windows(columns: L2WindowColumns) -> RecordBatch {
    let (start, end) = (nanoseconds(columns.start), nanoseconds(columns.end));
    batch(vec![kernels(columns.kernel), ("start_ns", start), ("end_ns", end)], &columns.traffic)
}
