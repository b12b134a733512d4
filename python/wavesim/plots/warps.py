"""What warps did: a stack of states for each launch, and over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import altair as alt
import polars as pl

from wavesim.plots.style import MAX_ROWS, WIDTH, maximum, titled, x_time
from wavesim.text import TimeUnit

STATES: Final[dict[str, str]] = {
    "selected": "#4c78a8",
    "not_selected": "#9ecae9",
    "math_pipe_throttle": "#72b7b2",
    "wait": "#eeca3b",
    "branch_resolving": "#d6b09c",
    "no_instruction": "#9d755d",
    "long_scoreboard": "#e45756",
    "short_scoreboard": "#ff9da6",
    "mio_throttle": "#b279a2",
    "barrier": "#f58518",
}
"""State of a warp -> colour, in stacking order: issue first, then memory, then other warps."""

MAX_LAUNCHES: Final = 40
"""The most launches that have a bar of their own."""


def warps(frame: pl.DataFrame, names: Sequence[str] = tuple(STATES)) -> alt.Chart:
    """Stack the shares of warps' states, a bar a launch.

    Args:
        frame: ``run.warps``. Of more than 40 launches, those whose warps took longest are shown.
        names: the states in stacking order.
    """
    launches = frame.group_by("kernel", "name", maintain_order=True).agg(
        pl.col("warp_cycles").sum()
    )
    shown = launches.top_k(MAX_LAUNCHES, by="warp_cycles").select("kernel")
    data = (
        frame.join(shown, on="kernel", how="semi")
        .filter(pl.col("share") > 0)
        .select(
            (pl.col("kernel").cast(pl.String) + " " + pl.col("name").str.slice(0, 40)).alias(
                "launch"
            ),
            "kernel",
            "state",
            "kind",
            "share",
            pl.col("state")
            .replace_strict({state: i for i, state in enumerate(names)})
            .alias("order"),
        )
    )
    order = [state for state in names if state in set(data["state"])]
    colours = [STATES.get(state, "#bab0ac") for state in order]
    left_out = launches.height - shown.height
    subtitle = f"{left_out:,} launches whose warps took less are left out" if left_out else None
    chart: alt.Chart = (
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=alt.X("share:Q", title="share of the warps' time", stack="zero")
            .axis(format="%")
            .scale(domain=[0, 1], nice=False),
            y=alt.Y("launch:N", title=None, sort=alt.SortField("kernel")),
            color=alt.Color("state:N", scale=alt.Scale(domain=order, range=colours), sort=order)
            .title(None)
            .legend(orient="bottom", columns=5),
            order="order:O",
            tooltip=["launch:N", "state:N", "kind:N", alt.Tooltip("share:Q", format=".2%")],
        )
        .properties(width=WIDTH, height=alt.Step(22), title=titled("Warp states", subtitle))
    )
    return chart


def warps_over_time(windows: pl.DataFrame, cycles_per_ns: float) -> alt.Chart:
    """Stack the warps of all launches over time, by what they are in.

    Where there are more windows than a chart holds, neighbours share a step.

    Args:
        windows: ``run.warps_windows``.
        cycles_per_ns: of the SM clock; cycles of warps over those of a window are warps.
    """
    width_ns = maximum((windows["end_ns"] - windows["start_ns"]).head(1))
    end_ns = maximum(windows["end_ns"])
    unit = TimeUnit.of(end_ns)
    there = set(windows.filter(pl.col("warp_cycles") > 0)["state"])
    order = [state for state in STATES if state in there]
    steps = round(end_ns / width_ns)
    joined = max(1, -(-(steps + 1) * max(len(order), 1) // MAX_ROWS))
    step_ns = width_ns * joined
    step = (pl.col("start_ns") / step_ns).floor()
    summed = (
        windows.group_by(step.alias("step"), "state")
        .agg(pl.col("warp_cycles").sum() / (step_ns * cycles_per_ns))
        .rename({"warp_cycles": "warps"})
    )
    # A step holds from its start on; states that nobody is in are 0, and all are at the end.
    grid = pl.DataFrame({"step": [float(i) for i in range(-(-steps // joined) + 1)]})
    data = (
        grid.join(pl.DataFrame({"state": order, "order": range(len(order))}), how="cross")
        .join(summed, on=["step", "state"], how="left")
        .sort("step", "order")
        .select(
            (pl.col("step") * step_ns / unit.ns).round_sig_figs(7).alias("start"),
            "state",
            pl.col("warps").fill_null(0.0).round(2),
            "order",
        )
    )
    rule = f"{joined} windows of {width_ns:g} ns share a step" if joined > 1 else None
    colours = [STATES[state] for state in order]
    chart: alt.Chart = (
        alt.Chart(data)
        .mark_area(interpolate="step-after")
        .encode(
            x=x_time("start", unit, end_ns / unit.ns),
            y=alt.Y("warps:Q", title="warps", stack="zero"),
            color=alt.Color("state:N", scale=alt.Scale(domain=order, range=colours), sort=order)
            .title(None)
            .legend(orient="bottom", columns=5),
            order="order:O",
            tooltip=["state:N", alt.Tooltip("warps:Q", format=",.1f")],
        )
        .properties(width=WIDTH, height=190, title=titled("Warp states over time", rule))
    )
    return chart
