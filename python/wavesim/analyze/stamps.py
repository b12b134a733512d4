"""From the profiler's time stamps to the model's times.

A profiler stamps a kernel when the front end takes it up and when it is retired, so its duration is
longer than the time from the first CTA's start to the last CTA's end, which is what the model
simulates, and its gaps are shorter by as much. The difference follows from a trace itself: where a
launch was queued, the profiler's gap and the model's, from last CTA's end to next first start, are
the same event seen twice.

So a replay is fitted to its trace in two numbers (this margin, and the median launch latency): its
agreement with that trace shows that the program was understood, not that the model predicts. What
follows for short kernels leans on the margin, which is 400 to 800 ns in the traces at hand and so
no constant of the device: with 176 kernels of 3 us, 100 ns of it are 3 % of the makespan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from wavesim.simulate import simulate
from wavesim.workload import Duration, Graph, Kernel, Launch, Program

if TYPE_CHECKING:
    from wavesim.devices import Device

# Of the five H200 traces in reference/h200/kineto (580.159 driver, CUPTI 13.0): a graph's gaps are
# 0.86 us by the CTAs' own clocks and 0.13 us by the profiler, a stream's 1.6 and 0.96 us.
DEFAULT_MARGIN_NS = 700.0
# There, kernels start 1.8 to 2.3 us after their launch call returned, in the median.
DEFAULT_LATENCY_NS = 1_900.0
_FEWEST = 5  # samples for a median that is used instead of a default
_WELL_AHEAD_NS = 2_000.0  # a call that returned so long before the device was free was queued
_MOST_NS = 3_000.0
_LONG_NS = 20_000.0  # launches are queued by then
_ENDS, _SPREAD_NS = 16, 37.0


@dataclass(frozen=True)
class Stamps:
    """How the stamps of one trace relate to what CTAs do.

    - ``margin_ns``: a kernel's duration by the profiler less the time from its first CTA's start to
      its last CTA's end. Half of it is taken to lie at each end.
    - ``latency_ns``: from the return of a launch call to the profiler's start on an idle device.
    - ``submit_ns``: from a launch to the first CTA's start on an idle device in the model.
    - ``measured``: (gaps, starts) that the two were taken from; 0 means that the default stands.
    """

    margin_ns: float
    latency_ns: float
    submit_ns: float
    measured: tuple[int, int]

    def span_ns(self, duration_ns: float) -> float:
        """Take the margin off a duration; a tenth of it is left at the least."""
        return max(duration_ns - self.margin_ns, 0.1 * duration_ns)


def stamps_of(work: pl.DataFrame, kernels: pl.DataFrame, device: Device) -> Stamps:
    """Find both figures in the frame of ``with_gaps``; where too few rows tell, take the defaults.

    Only gaps between neighbours of one stream count whose launch call returned at least 2 us before
    the device was free. ``kernels`` has their shapes (see ``with_residency``).
    """
    ahead = work.with_columns(
        before=pl.col("end_ns").cum_max().shift(1),
        same_stream=pl.col("stream") == pl.col("stream").shift(1),
        same_graph=pl.col("correlation") == pl.col("correlation").shift(1),
    ).filter(
        pl.col("same_stream")
        & (pl.col("launch_gap_ns") > 0.0)
        & (pl.col("launch_end_ns") < pl.col("before") - _WELL_AHEAD_NS)
    )
    margins = pl.concat(
        [
            _margins(ahead.filter(pl.col("same_graph")), kernels, device, graph=True),
            _margins(ahead.filter(~pl.col("same_graph")), kernels, device, graph=False),
        ]
    )
    idle = work.filter((pl.col("gap_cause") == "host") & (pl.col("queued_ns") > 0.0))
    margin, found = _median(margins, DEFAULT_MARGIN_NS)
    latency, starts = _median(idle["queued_ns"], DEFAULT_LATENCY_NS)
    submit = _submit_ns(device)
    return Stamps(min(max(margin, 0.0), _MOST_NS), latency, submit, (found, starts))


def _margins(
    rows: pl.DataFrame, kernels: pl.DataFrame, device: Device, *, graph: bool
) -> pl.Series:
    """By how much each row's gap is shorter than the model's for a kernel as is usual among them.

    The model's gap depends on the grid, so one of a single CTA would not do: the one with the
    median grid stands for all, at one wave at most (what comes before the last does not matter).
    """
    shapes = kernels.filter(pl.col("residency") > 0).select(
        "id", "grid", "block", "registers", "shared_memory", "residency"
    )
    usual = (
        rows.filter(pl.col("what") == "kernel")
        .select("id")
        .join(shapes, on="id")
        .sort("grid", "id")
    )
    if not usual.height:
        return pl.Series("margin", [], dtype=pl.Float64)
    shape = usual.row(usual.height // 2, named=True)
    gap = _gap_ns(device, shape, graph=graph)
    return rows.select((gap - pl.col("launch_gap_ns")).alias("margin"))["margin"]


def _gap_ns(device: Device, shape: Mapping[str, int | None], *, graph: bool) -> float:
    """Simulate kernels of a shape back to back: the mean gap, in ns.

    Their ends are spread, because what is waited for in a gap comes round at fixed times.
    """
    wave = device.sms * (shape["residency"] or 1)
    launches = [
        Launch(
            Kernel(
                grid=min(shape["grid"] or 1, wave),
                block=shape["block"] or 1,
                registers=shape["registers"] or 0,
                shared_memory=shape["shared_memory"] or 0,
                work=Duration.constant(ns=_LONG_NS + _SPREAD_NS * number),
            )
        )
        for number in range(_ENDS + 1)
    ]
    program = Program([Graph(launches)] if graph else launches)
    gaps = simulate(device, program, detail="kernels").kernels["launch_gap_ns"]
    return float(gaps.drop_nulls().sum()) / _ENDS


def _submit_ns(device: Device) -> float:
    """Simulate one small kernel: from the launch to the first CTA's start, in ns."""
    block = min(32, device.limits.threads_per_cta)
    kernel = Kernel(grid=1, block=block, work=Duration.constant(ns=_LONG_NS))
    return float(simulate(device, kernel, detail="kernels").kernels["start_ns"][0])


def _median(values: pl.Series, default: float) -> tuple[float, int]:
    found = values.drop_nulls()
    middle = found.median() if found.len() >= _FEWEST else None
    return (default, 0) if not isinstance(middle, float) else (middle, found.len())
