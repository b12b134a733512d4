"""Simulated CTAs against logged ones."""

from __future__ import annotations

import altair as alt
import polars as pl

from wavesim.errors import InvalidInput
from wavesim.plots.style import WIDTH, maximum, titled, x_time
from wavesim.text import TimeUnit

POINTS = 1_000
"""So many points of each curve are drawn; more would share pixels."""


def compare(ctas: pl.DataFrame, logged: pl.DataFrame) -> alt.VConcatChart:
    """Running CTAs over time, simulated and logged, and the differences of starts and of ends.

    CTAs are matched by rank (the k-th start with the k-th start, the k-th end with the k-th end):
    which CTA a slot gets is chance on the hardware, when slots are taken is not. Times count from
    each side's first start.

    Args:
        ctas: ``run.ctas``, or as many of its kernels as were logged.
        logged: one row a block with ``start_ns`` and ``end_ns``, in nanoseconds from any origin.

    Raises:
        InvalidInput: a column is missing, a table is empty, or the numbers of rows differ.
    """
    simulated = _times(ctas, "ctas")
    measured = _times(logged, "logged")
    if simulated.height != measured.height:
        raise InvalidInput(
            f"logged: has {measured.height:,} blocks, the simulation {simulated.height:,} CTAs",
            "logged",
            measured.height,
        )
    unit = TimeUnit.of(maximum(pl.concat([simulated["end_ns"], measured["end_ns"]])))
    running = pl.concat(
        [
            _running(simulated).with_columns(pl.lit("simulated").alias("which")),
            _running(measured).with_columns(pl.lit("logged").alias("which")),
        ]
    ).with_columns((pl.col("time_ns") / unit.ns).alias("time"))
    colours = alt.Scale(domain=["simulated", "logged"], range=["#4c78a8", "#e45756"])
    top = (
        alt.Chart(running.select("time", "running", "which"))
        .mark_line(interpolate="step-after", strokeWidth=1.4)
        .encode(
            x=x_time("time", unit),
            y=alt.Y("running:Q", title="running CTAs"),
            color=alt.Color("which:N", scale=colours, title=None).legend(orient="top"),
        )
        .properties(width=WIDTH, height=200, title=titled("Running CTAs"))
    )
    ranks = _ranks(simulated, measured)
    worst = maximum((ranks["simulated"] - ranks["logged"]).abs())
    small = TimeUnit.of(worst)
    bottom = (
        alt.Chart(
            ranks.select(
                (pl.col("logged") / unit.ns).alias("time"),
                ((pl.col("simulated") - pl.col("logged")) / small.ns).alias("difference"),
                "what",
            )
        )
        .mark_line(strokeWidth=1.2)
        .encode(
            x=alt.X("time:Q", title=unit.axis("logged time"), scale=alt.Scale(nice=False)),
            y=alt.Y("difference:Q", title=f"simulated - logged ({small.label})"),
            color=alt.Color("what:N", title=None)
            .scale(domain=["starts", "ends"], range=["#54a24b", "#b279a2"])
            .legend(orient="top"),
        )
        .properties(
            width=WIDTH,
            height=140,
            title=titled(
                "Difference by rank", "the k-th start against the k-th, the k-th end likewise"
            ),
        )
    )
    chart: alt.VConcatChart = alt.vconcat(top, bottom).resolve_scale(color="independent")
    return chart


def _times(frame: pl.DataFrame, field: str) -> pl.DataFrame:
    """``start_ns`` and ``end_ns`` from the first start."""
    for column in ("start_ns", "end_ns"):
        if column not in frame.columns:
            raise InvalidInput(
                f"{field}: has no column {column}; it has {', '.join(frame.columns)}", field, column
            )
    if frame.height == 0:
        raise InvalidInput(f"{field}: has no row", field, 0)
    first = pl.col("start_ns").min()
    return frame.select(
        (pl.col("start_ns") - first).cast(pl.Float64), (pl.col("end_ns") - first).cast(pl.Float64)
    )


def _running(times: pl.DataFrame) -> pl.DataFrame:
    """Running CTAs as steps, reduced to the last state before each of ``POINTS`` equal times."""
    steps = (
        pl.concat(
            [
                times.select(pl.col("start_ns").alias("time_ns"), pl.lit(1).alias("change")),
                times.select(pl.col("end_ns").alias("time_ns"), pl.lit(-1).alias("change")),
            ]
        )
        .group_by("time_ns")
        .agg(pl.col("change").sum())
        .sort("time_ns")
        .select("time_ns", pl.col("change").cum_sum().alias("running"))
    )
    if steps.height <= 2 * POINTS:
        return steps
    end_ns = float(steps["time_ns"][-1])
    return (
        steps.with_columns((pl.col("time_ns") / end_ns * POINTS).floor().alias("piece"))
        .group_by("piece", maintain_order=True)
        .last()
        .drop("piece")
    )


def _ranks(simulated: pl.DataFrame, logged: pl.DataFrame) -> pl.DataFrame:
    """Times of the same rank: ``what`` (starts or ends), ``simulated``, ``logged``."""
    every = max(1, -(-logged.height // POINTS))
    parts = [
        pl.DataFrame({"simulated": simulated[column].sort(), "logged": logged[column].sort()})
        .gather_every(every)
        .with_columns(pl.lit(what).alias("what"))
        for column, what in (("start_ns", "starts"), ("end_ns", "ends"))
    ]
    return pl.concat(parts)
