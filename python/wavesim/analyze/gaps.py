"""Why the device was idle in front of each kernel and copy, as the trace shows it."""

from __future__ import annotations

import polars as pl

CAUSES = ("host", "device", "unknown")


def on_one_clock(kernels: pl.DataFrame, memory: pl.DataFrame) -> pl.DataFrame:
    """Put kernels and copies of one GPU in one frame, in the order in which they started.

    Columns: what ("kernel", "memcpy" or "memset"), id (row of its own frame), name, stream,
    start_ns, end_ns, duration_ns, correlation, graph, launch_name, launch_start_ns, launch_end_ns.
    """
    columns = ["id", "name", "stream", "start_ns", "end_ns", "duration_ns", "correlation", "graph"]
    columns += ["launch_name", "launch_start_ns", "launch_end_ns"]
    parts = [
        kernels.select(pl.lit("kernel").alias("what"), *columns),
        memory.select(pl.col("kind").alias("what"), *columns),
    ]
    return pl.concat(parts).sort("start_ns", "end_ns", maintain_order=True)


def with_gaps(work: pl.DataFrame) -> pl.DataFrame:
    """Add launch_gap_ns, gap_cause, gap_host_ns, gap_latency_ns and queued_ns.

    - launch_gap_ns: from the end of all that ran before on the device to the start; 0 if something
      still ran, null for the first.
    - gap_host_ns: the part of it in which the host had not yet finished the launch call.
      gap_latency_ns: the rest, from the call (or the end before, if later) to the start.
    - gap_cause: "host" if the call ended after the device was free (host bound: the device would
      have gone on, had it been told earlier), "device" if the launch was queued by then (launch
      latency, graph edges, waiting for other streams), "unknown" if the trace has no launch call.
      Null without a gap.
    - queued_ns: from the end of the launch call to the start; 0 if it started during the call.
    """
    before = pl.col("end_ns").cum_max().shift(1)
    gap = (pl.col("start_ns") - before).clip(lower_bound=0.0)
    # A call is reckoned by its end: the first launches of a process take milliseconds in the call
    # (modules are loaded) before the device is told, while the end comes right after.
    told = pl.min_horizontal("launch_end_ns", "start_ns")
    host = pl.when(pl.col("launch_end_ns").is_not_null()).then(
        pl.min_horizontal((told - before).clip(lower_bound=0.0), pl.col("launch_gap_ns"))
    )
    cause = (
        pl.when(pl.col("launch_gap_ns") > 0.0)
        .then(
            pl.when(pl.col("gap_host_ns").is_null())
            .then(pl.lit("unknown"))
            .when(pl.col("gap_host_ns") > 0.0)
            .then(pl.lit("host"))
            .otherwise(pl.lit("device"))
        )
        .otherwise(None)
    )
    return (
        work.with_columns(launch_gap_ns=gap)
        .with_columns(gap_host_ns=host)
        .with_columns(
            gap_cause=cause,
            gap_latency_ns=pl.col("launch_gap_ns") - pl.col("gap_host_ns").fill_null(0.0),
            queued_ns=pl.when(pl.col("launch_end_ns").is_not_null()).then(
                pl.col("start_ns") - told
            ),
        )
    )
