"""What warps did: a stack of states for each launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import altair as alt
import polars as pl

from wavesim.plots.style import WIDTH, titled

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
