"""Where the slots' time went: the ledger as one bar, and over time."""

from __future__ import annotations

import altair as alt
import polars as pl

from wavesim.errors import InvalidInput
from wavesim.frames import MEANINGS
from wavesim.plots.style import (
    WIDTH,
    account_order,
    account_scale,
    titled,
    x_time,
)
from wavesim.text import TimeUnit

MAX_BINS = 500
"""The most bins of ``timeline``: with seven accounts 500 bins are 3,507 rows."""


def ledger(frame: pl.DataFrame) -> alt.Chart:
    """The ledger as one stacked bar.

    Args:
        frame: ``run.ledger`` or an analysis's ledger: ``account`` and ``share``; ``meaning``, if
            there is one, is told where the pointer rests.
    """
    frame = frame.filter(pl.col("share") > 0)
    order = account_order(frame["account"].to_list())
    meaning = pl.col("account").replace_strict(MEANINGS, default="")
    data = frame.select(
        "account",
        "share",
        pl.col("meaning") if "meaning" in frame.columns else meaning.alias("meaning"),
        pl.col("account")
        .replace_strict({account: at for at, account in enumerate(order)}, return_dtype=pl.Int64)
        .alias("order"),
    )
    chart: alt.Chart = (
        alt.Chart(data)
        .mark_bar(height=32)
        .encode(
            x=alt.X("share:Q", title="share of the time", stack="zero")
            .axis(format="%")
            .scale(domain=[0, 1], nice=False),
            color=alt.Color("account:N", scale=account_scale(order), sort=order)
            .title(None)
            .legend(orient="bottom"),
            order="order:O",
            tooltip=["account:N", alt.Tooltip("share:Q", format=".2%"), "meaning:N"],
        )
        .properties(width=WIDTH, height=44, title=titled("Ledger"))
    )
    return chart


def timeline(frame: pl.DataFrame) -> alt.VConcatChart:
    """The accounts' shares over time, stacked, and the CTAs that run.

    Args:
        frame: ``run.timeline(bins=...)``: ``bin``, ``start_ns``, ``end_ns``, one share column an
            account, ``running_ctas``. At most ``MAX_BINS`` rows.

    Raises:
        InvalidInput: ``bins`` is over ``MAX_BINS``, more than the chart has pixels for.
    """
    if frame.height > MAX_BINS:
        raise InvalidInput(
            f"bins: a chart shows at most {MAX_BINS} (got {frame.height})", "bins", frame.height
        )
    fixed = {"bin", "start_ns", "end_ns", "running_ctas"}
    accounts = account_order([name for name in frame.columns if name not in fixed])
    accounts = [name for name in accounts if frame[name].sum() > 0] or accounts[:1]
    end_ns = float(frame["end_ns"][-1]) if frame.height else 1.0
    unit = TimeUnit.of(end_ns)
    # A step holds from its bin's start; the last bin needs a point at its end to have a width.
    steps = pl.concat(
        [frame, frame.tail(1).with_columns(pl.col("end_ns").alias("start_ns"))], how="vertical"
    ).select(
        # No screen shows more digits, and fewer halve the size of a report.
        (pl.col("start_ns") / unit.ns).round_sig_figs(7).alias("start"),
        (pl.col("end_ns") / unit.ns).round_sig_figs(7).alias("end"),
        pl.col(accounts).round(5),
        pl.col("running_ctas").round(2),
    )
    shares = steps.unpivot(
        accounts, index=["start", "end"], variable_name="account", value_name="share"
    ).with_columns(
        pl.col("account")
        .replace_strict({name: at for at, name in enumerate(accounts)}, return_dtype=pl.Int64)
        .alias("order")
    )
    stacked = (
        alt.Chart(shares)
        .mark_area(interpolate="step-after")
        .encode(
            x=x_time("start", unit, end_ns / unit.ns, axis=alt.Axis(labels=False, title=None)),
            y=alt.Y("share:Q", stack="zero", title="share of slots")
            .axis(format="%")
            .scale(domain=[0, 1], nice=False),
            color=alt.Color("account:N", scale=account_scale(accounts), sort=accounts)
            .title(None)
            .legend(orient="bottom"),
            order="order:O",
            tooltip=[
                "account:N",
                alt.Tooltip("share:Q", format=".1%"),
                alt.Tooltip("start:Q", title=unit.axis("from"), format=".4~g"),
                alt.Tooltip("end:Q", title=unit.axis("to"), format=".4~g"),
            ],
        )
        .properties(width=WIDTH, height=190, title=titled("Slots over time"))
    )
    running = (
        alt.Chart(steps.select("start", "running_ctas"))
        .mark_area(interpolate="step-after", color="#4c78a8", opacity=0.35, line={"strokeWidth": 1})
        .encode(
            x=x_time("start", unit, end_ns / unit.ns),
            y=alt.Y("running_ctas:Q", title="running CTAs").axis(tickCount=4),
            tooltip=[
                alt.Tooltip("start:Q", title=unit.axis("from"), format=".4~g"),
                alt.Tooltip("running_ctas:Q", title="running CTAs", format=".1f"),
            ],
        )
        .properties(width=WIDTH, height=90)
    )
    chart: alt.VConcatChart = alt.vconcat(stacked, running, spacing=8).resolve_scale(x="shared")
    return chart
