"""Charts by place: what ran in each slot, and how busy each SM was."""

from __future__ import annotations

import altair as alt
import polars as pl

from wavesim.plots.style import MAX_ROWS, WIDTH, maximum, titled, x_time
from wavesim.scalars import whole_from
from wavesim.text import TimeUnit

KERNEL_COLOURS = 10
"""Up to so many kernels are told apart by colour."""

EDGED = 100
"""Up to so many slots have bars with white edges; in more, edges would be most of what is seen."""


def slots(
    ctas: pl.DataFrame, names: dict[int, str] | None = None, limit: int = MAX_ROWS
) -> alt.Chart:
    """Every CTA as a bar in its slot.

    With more than ``limit`` CTAs, whole SMs are shown, evenly spaced, as many as fit; a single SM
    with more than ``limit`` CTAs is shown up to the time at which the limit is reached. A bar
    missing between two others is therefore always an idle slot.

    Args:
        ctas: ``run.ctas``: ``kernel``, ``cta``, ``sm``, ``slot``, ``start_ns``, ``end_ns``.
        names: kernel -> name, for the legend.
        limit: the most bars; 1 to ``MAX_ROWS``.

    Raises:
        InvalidInput: ``limit`` is out of range.
    """
    limit = whole_from("limit", limit, 1, MAX_ROWS)
    shown, rule = _whole_sms(ctas, limit)
    unit = TimeUnit.of(maximum(shown["end_ns"]))
    labels = {kernel: f"{kernel} {name}" for kernel, name in (names or {}).items()}
    data = shown.select(
        pl.format("{}.{}", "sm", "slot").alias("place"),
        "sm",
        "slot",
        "cta",
        pl.col("kernel")
        .cast(pl.Int64)
        .replace_strict(labels, default=pl.col("kernel").cast(str))
        .alias("kernel")
        if labels
        else pl.col("kernel").cast(str),
        (pl.col("start_ns") / unit.ns).alias("start"),
        (pl.col("end_ns") / unit.ns).alias("end"),
        (pl.col("cta") % 2).alias("parity"),
    )
    places = data.select("sm", "slot", "place").unique().sort("sm", "slot")["place"].to_list()
    few = data["kernel"].n_unique() <= KERNEL_COLOURS
    chart: alt.Chart = (
        alt.Chart(data)
        .mark_bar(stroke="white", strokeWidth=0.3 if len(places) <= EDGED else 0)
        .encode(
            x=x_time("start", unit),
            x2="end:Q",
            y=alt.Y("place:N", sort=places, title="SM.slot").axis(labelOverlap=True),
            color=alt.Color("kernel:N", title="kernel").legend(
                orient="bottom", labelLimit=260, columns=3
            )
            if few
            else alt.Color("kernel:N", legend=None),
            opacity=alt.Opacity("parity:O", legend=None, scale=alt.Scale(range=[0.75, 1.0])),
            tooltip=[
                "kernel:N",
                "cta:Q",
                "sm:Q",
                "slot:Q",
                alt.Tooltip("start:Q", title=unit.axis("start"), format=".5~g"),
                alt.Tooltip("end:Q", title=unit.axis("end"), format=".5~g"),
            ],
        )
        .properties(
            width=WIDTH,
            height=min(760, max(60, 6 * len(places))),
            title=titled("CTAs by slot", rule),
        )
    )
    return chart


def _whole_sms(ctas: pl.DataFrame, limit: int) -> tuple[pl.DataFrame, str | None]:
    """The CTAs to show, and the rule by which they were chosen (``None``: all)."""
    if ctas.height <= limit:
        return ctas, None
    counts = ctas.group_by("sm").len().sort("sm")
    total = counts.height
    most = int(maximum(counts["len"]))
    # Sized by the fullest SM, so that any choice of SMs fits.
    keep = min(total, max(1, limit // most))
    chosen = [counts["sm"][at * total // keep] for at in range(keep)]
    shown = ctas.filter(pl.col("sm").is_in(chosen)).sort("start_ns", "sm", "slot")
    count = min(shown.height, limit)
    rule = f"{keep} of {total} SMs, evenly spaced: {count:,} of {ctas.height:,} CTAs"
    if shown.height > limit:
        shown = shown.head(limit)
        rule += ", up to the time at which that many have started"
    return shown, rule


def sms(frame: pl.DataFrame) -> alt.Chart:
    """Utilization of each SM, by GPC.

    Args:
        frame: ``run.sms``.
    """
    unit = TimeUnit.of(maximum(frame["last_end_ns"]))
    data = frame.sort("gpc", "sm").with_columns(
        pl.int_range(pl.len()).over("gpc").alias("place"),
        (pl.col("last_end_ns") / unit.ns).alias("last_end"),
    )
    widest = int(maximum(data["place"], 0)) + 1
    gpcs = data["gpc"].n_unique()
    chart: alt.Chart = (
        alt.Chart(data)
        .mark_rect(stroke="white", strokeWidth=1)
        .encode(
            x=alt.X("place:O", title="SM within the GPC", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("gpc:O", title="GPC"),
            color=alt.Color("utilization:Q", title="utilization")
            .scale(scheme="blues", domain=[0, 1])
            .legend(format="%"),
            tooltip=[
                "sm:Q",
                "gpc:Q",
                "ctas:Q",
                alt.Tooltip("utilization:Q", format=".1%"),
                alt.Tooltip("last_end:Q", title=unit.axis("last end"), format=".5~g"),
            ],
        )
        .properties(
            width=min(WIDTH, 36 * widest),
            height=24 * gpcs,
            title=titled("Utilization of the SMs", "busy slot time over all slot time of the run"),
        )
    )
    return chart
