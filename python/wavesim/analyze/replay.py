"""The trace once more, simulated, beside what was measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import polars as pl

from wavesim.durations import Constant
from wavesim.measured import solve
from wavesim.workload import Measured, Program

if TYPE_CHECKING:
    from wavesim.analyze.plan import Plan, Row
    from wavesim.analyze.stamps import Stamps
    from wavesim.devices import Device
    from wavesim.run import Run


def replay_device(device: Device) -> Device:
    """Give the device with a host that costs nothing: the trace tells when each call was made."""
    return device.edited({"launch.host_issue_ns": 0.0})


def measured(stamps: Stamps) -> Callable[[Row], Measured]:
    """Give what makes a row's work: the span of its CTAs, from the profiler's duration."""
    return lambda row: Measured(stamps.span_ns(row["duration_ns"]))


def cta_times(device: Device, program: Program, plan: Plan) -> dict[int, float]:
    """Solve the time of a CTA of each kernel on the device, in ns, by the kernel's id."""
    works = solve(program, device).works
    found = {}
    for kernel_id, launch in zip(plan.kernel_ids, program.launches(), strict=True):
        work = works[launch.kernel]
        assert isinstance(work, Constant)
        found[kernel_id] = work.ns or 0.0
    return found


def compare(kernels: pl.DataFrame, run: Run, plan: Plan, stamps: Stamps) -> pl.DataFrame:
    """Put the simulated kernels beside the measured ones.

    Columns: id, name, stream, measured_start_ns, simulated_start_ns, start_error_ns,
    measured_duration_ns, simulated_duration_ns, duration_error_ns. Simulated times are put in the
    profiler's terms (``Stamps``) and on the trace's clock; errors are simulated less measured.
    """
    simulated = run.kernels.sort("kernel").select(
        pl.Series("id", plan.kernel_ids, dtype=pl.UInt32),
        simulated_start_ns=pl.col("start_ns") + (plan.origin_ns - stamps.margin_ns / 2),
        simulated_duration_ns=pl.col("duration_ns") + stamps.margin_ns,
    )
    return (
        kernels.select(
            "id",
            "name",
            "stream",
            measured_start_ns="start_ns",
            measured_duration_ns="duration_ns",
        )
        .join(simulated, on="id", how="inner", maintain_order="left")
        .select(
            "id",
            "name",
            "stream",
            "measured_start_ns",
            "simulated_start_ns",
            start_error_ns=pl.col("simulated_start_ns") - pl.col("measured_start_ns"),
            measured_duration_ns="measured_duration_ns",
            simulated_duration_ns="simulated_duration_ns",
            duration_error_ns=pl.col("simulated_duration_ns") - pl.col("measured_duration_ns"),
        )
    )


def accuracy(compared: pl.DataFrame) -> pl.DataFrame:
    """Sum up ``compare``: measure, measured_ns, simulated_ns, error (share of the measured).

    Agreement, not prediction: durations are solved for, so kernel time agrees by construction; the
    host's call times are given; and ``Stamps`` are fitted to the trace.

    - ``makespan``: first kernel's start to last kernel's end;
    - ``kernel time``: sum of the durations;
    - ``gap before a kernel``: the median, of all that do not overlap the one before;
    - ``start, median`` and ``start, 95 %``: how far a start is off, as simulated_ns; no share.
    """
    if not compared.height:
        return pl.DataFrame(schema=_ACCURACY)
    rows: list[tuple[str, float | None, float, float | None]] = []
    ends = {}
    for side in ("measured", "simulated"):
        start, duration = pl.col(f"{side}_start_ns"), pl.col(f"{side}_duration_ns")
        ordered = compared.sort(f"{side}_start_ns")
        ends[side] = ordered.select(
            makespan=(start + duration).max() - start.min(),
            time=duration.sum(),
            gap=(start - (start + duration).cum_max().shift(1)).clip(lower_bound=0.0).median(),
        ).row(0)
    for name, measured, simulated in zip(
        ("makespan", "kernel time", "gap before a kernel"), *ends.values(), strict=True
    ):
        known = measured is not None and simulated is not None and measured > 0
        error = (simulated - measured) / measured if known else None
        rows.append((name, measured, simulated, error))
    off = compared["start_error_ns"].abs()
    for name, quantile in (("start, median", 0.5), ("start, 95 %", 0.95)):
        rows.append((name, None, float(off.quantile(quantile) or 0.0), None))
    return pl.DataFrame(rows, schema=_ACCURACY, orient="row")


_ACCURACY: dict[str, pl.DataType] = {
    "measure": pl.String(),
    "measured_ns": pl.Float64(),
    "simulated_ns": pl.Float64(),
    "error": pl.Float64(),
}
