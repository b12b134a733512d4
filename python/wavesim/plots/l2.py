"""L2 over time: how much it holds of what is asked for, and what it and DRAM move."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import polars as pl

from wavesim.frames import SECTOR_BYTES
from wavesim.plots.streams import NAME_CHARACTERS, NAMED
from wavesim.plots.style import MAX_ROWS, WIDTH, maximum, titled, x_time
from wavesim.text import TimeUnit, shortened


def l2(windows: pl.DataFrame, names: Mapping[int, str] | None = None) -> alt.VConcatChart:
    """Draw the hit share of L2 over time, a line a launch, above the bytes that were moved.

    Where there are more windows than a chart holds, neighbours share a point. Launches behind the
    nine that look up the most share a line, ``other``.

    Args:
        windows: ``run.l2_windows``.
        names: of the launches, by number; by default their numbers.
    """
    data = _named(windows, names or {})
    width_ns = maximum((windows["end_ns"] - windows["start_ns"]).head(1))
    end_ns = maximum(windows["end_ns"])
    unit = TimeUnit.of(end_ns)
    lines = data["launch"].n_unique() + 2
    joined = max(1, -(-int(end_ns / width_ns) * lines // MAX_ROWS))
    start = (pl.col("start_ns") / (width_ns * joined)).floor() * width_ns * joined
    data = data.with_columns(start.alias("start_ns"))
    rule = None
    if joined > 1:
        rule = f"{joined} windows of {width_ns:g} ns share a point"
    shares = (
        data.group_by("launch", "start_ns")
        .agg(pl.col("hits").sum(), pl.col("lookups").sum())
        .filter(pl.col("lookups") > 0)
        .select(
            "launch",
            (pl.col("start_ns") / unit.ns).alias("start"),
            (pl.col("hits") / pl.col("lookups")).alias("hit_share"),
        )
        .sort("launch", "start")
    )
    moved = (
        data.group_by("start_ns")
        .agg(
            ((pl.col("lookups") + pl.col("written_sectors")).sum() * SECTOR_BYTES).alias("L2"),
            (pl.col("dram_read_bytes") + pl.col("dram_written_bytes")).sum().alias("DRAM"),
        )
        .unpivot(index="start_ns", variable_name="where", value_name="bytes")
        .select(
            "where",
            (pl.col("start_ns") / unit.ns).alias("start"),
            (pl.col("bytes") / (width_ns * joined)).alias("gb_s"),
        )
        .sort("where", "start")
    )
    end = end_ns / unit.ns
    above = (
        alt.Chart(shares)
        .mark_line(interpolate="step-after")
        .encode(
            x=x_time("start", unit, end, alt.Axis(labels=False, title=None)),
            y=alt.Y("hit_share:Q", title="hit share").scale(domain=[0, 1]).axis(format="%"),
            color=alt.Color("launch:N").title(None).scale(scheme="tableau10"),
        )
        .properties(width=WIDTH, height=160, title=titled("L2 over time", rule))
    )
    below = (
        alt.Chart(moved)
        .mark_line(interpolate="step-after")
        .encode(
            x=x_time("start", unit, end),
            y=alt.Y("gb_s:Q", title="GB/s"),
            strokeDash=alt.StrokeDash("where:N").title(None),
        )
        .properties(width=WIDTH, height=120)
    )
    chart: alt.VConcatChart = alt.vconcat(above, below)
    return chart


def _named(windows: pl.DataFrame, names: Mapping[int, str]) -> pl.DataFrame:
    """Give each window the name of its launch, or ``other`` behind the busiest few."""
    busiest = (
        windows.group_by("kernel")
        .agg(pl.col("lookups").sum())
        .sort("lookups", "kernel", descending=[True, False])["kernel"]
        .head(NAMED)
        .to_list()
    )
    known = {
        kernel: f"{kernel} {shortened(names.get(kernel, ''), NAME_CHARACTERS)}".strip()
        for kernel in busiest
    }
    shown = [known.get(kernel, "other") for kernel in windows["kernel"].to_list()]
    return windows.with_columns(pl.Series("launch", shown, dtype=pl.String))
