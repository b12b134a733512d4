"""Kernels over time, a row a stream."""

from __future__ import annotations

import altair as alt
import polars as pl

from wavesim.plots.style import MAX_ROWS, WIDTH, maximum, titled, x_time
from wavesim.scalars import whole_from
from wavesim.text import TimeUnit, shortened

NAMED = 9
"""So many kernel names have a colour of their own; the rest are ``other``."""

NAME_CHARACTERS = 60

EDGED = 200
"""Up to so many bars have white edges; of more, edges would be most of what is seen."""


def kernels(frame: pl.DataFrame, limit: int = 3_000, title: str = "Kernels") -> alt.Chart:
    """Every kernel as a bar from its first CTA's start to its last CTA's end.

    With more than ``limit`` kernels, the time axis is cut into equal pieces and the kernels of one
    stream that start in the same piece share one bar, so that no time disappears.

    Args:
        frame: ``name``, ``stream``, ``start_ns``, ``end_ns``; of a run, or of a trace.
        limit: the most kernels with a bar each; 1 to ``MAX_ROWS``.
        title: of the chart.

    Raises:
        InvalidInput: ``limit`` is out of range.
    """
    limit = whole_from("limit", limit, 1, MAX_ROWS)
    bars, rule = _bars(frame.select("name", "stream", "start_ns", "end_ns"), limit)
    end_ns = maximum(bars["end_ns"])
    unit = TimeUnit.of(end_ns)
    by_time = (
        bars.group_by("name")
        .agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("time"))
        .sort("time", "name", descending=[True, False])["name"]
        .to_list()
    )
    named = by_time[:NAMED]
    data = bars.with_columns(
        (pl.col("start_ns") / unit.ns).alias("start"),
        (pl.col("end_ns") / unit.ns).alias("end"),
        ((pl.col("end_ns") - pl.col("start_ns")) / unit.ns).alias("duration"),
        pl.when(pl.col("name").is_in(named))
        .then(short("name"))
        .otherwise(pl.lit("other"))
        .alias("colour"),
        short("name").alias("name"),
    ).drop("start_ns", "end_ns")
    order = [shortened(name, NAME_CHARACTERS) for name in named] + (
        ["other"] if len(by_time) > NAMED else []
    )
    streams = data["stream"].n_unique()
    chart: alt.Chart = (
        alt.Chart(data)
        .mark_bar(stroke="white", strokeWidth=0.2 if data.height <= EDGED else 0)
        .encode(
            x=x_time("start", unit, end_ns / unit.ns),
            x2="end:Q",
            y=alt.Y("stream:O", title="stream"),
            color=alt.Color("colour:N", sort=list(dict.fromkeys(order)))
            .title(None)
            .scale(scheme="tableau10")
            .legend(orient="bottom", columns=2, labelLimit=420),
            tooltip=[
                "name:N",
                alt.Tooltip("kernels:Q", title="kernels in the bar"),
                alt.Tooltip("start:Q", title=unit.axis("start"), format=".5~g"),
                alt.Tooltip("duration:Q", title=unit.axis("duration"), format=".5~g"),
            ],
        )
        .properties(width=WIDTH, height=min(400, 28 * streams + 10), title=titled(title, rule))
    )
    return chart


def _bars(frame: pl.DataFrame, limit: int) -> tuple[pl.DataFrame, str | None]:
    """Bars with the number of kernels in each, and the rule by which they were joined."""
    if frame.height <= limit:
        return frame.with_columns(pl.lit(1).alias("kernels")), None
    streams = frame["stream"].n_unique()
    pieces = max(1, limit // streams)
    first = -maximum(-frame["start_ns"])
    piece_ns = (maximum(frame["end_ns"]) - first) / pieces or 1.0
    longest = pl.col("name").sort_by(pl.col("end_ns") - pl.col("start_ns")).last()
    bars = (
        frame.with_columns(((pl.col("start_ns") - first) / piece_ns).floor().alias("piece"))
        .group_by("stream", "piece")
        .agg(
            longest.alias("name"),
            pl.col("start_ns").min(),
            pl.col("end_ns").max(),
            pl.len().alias("kernels"),
        )
        .sort("stream", "piece")
        .drop("piece")
    )
    unit = TimeUnit.of(piece_ns * 2)
    rule = (
        f"{frame.height:,} kernels in {bars.height:,} bars: kernels of one stream that start "
        f"within the same {piece_ns / unit.ns:.3g} {unit.label} share one, coloured by the longest"
    )
    return bars, rule


def short(column: str) -> pl.Expr:
    """A name column cut to ``NAME_CHARACTERS``; C++ kernel names run to thousands."""
    name = pl.col(column)
    return (
        pl.when(name.str.len_chars() > NAME_CHARACTERS)
        .then(name.str.slice(0, NAME_CHARACTERS - 1) + "…")
        .otherwise(name)
    )
