"""What all charts share: the accounts' colours, units of time, sizes."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from wavesim.text import TimeUnit

MAX_ROWS: Final = 5_000
"""The most rows a chart holds: Altair's own limit, and about what a browser draws at once."""

WIDTH: Final = 900
"""Plot width in pixels, without axes and legend."""

ACCOUNTS: Final[dict[str, str]] = {
    "busy": "#4c78a8",
    "launch": "#9d755d",
    "fill": "#eeca3b",
    "starved": "#e45756",
    "blocked": "#b279a2",
    "tail": "#f58518",
    "dependency": "#54a24b",
}
"""Account of the ledger -> colour. In stacking order."""

TRACE_COLOURS: Final[dict[str, str]] = {
    "small_grid": "#ffbe7d",
    "kernel": "#a0b4c8",
    "copy": "#72b7b2",
    "host": "#9d755d",
    "latency": "#d6b09c",
    "queue": "#bab0ac",
    "unlinked": "#d67195",
}
"""Accounts that only a trace's ledger has -> colour."""

_OTHER_COLOURS: Final = ("#72b7b2", "#ff9da6", "#bab0ac", "#79706e", "#d67195")


def account_colour(account: str) -> str:
    """Colour of an account; one that ``ACCOUNTS`` does not name gets a colour by its name."""
    if account in ACCOUNTS:
        return ACCOUNTS[account]
    if account in TRACE_COLOURS:
        return TRACE_COLOURS[account]
    return _OTHER_COLOURS[sum(account.encode()) % len(_OTHER_COLOURS)]


def account_scale(accounts: list[str]) -> alt.Scale:
    """A colour scale in which an account has the same colour in every chart."""
    return alt.Scale(domain=accounts, range=[account_colour(account) for account in accounts])


def account_order(accounts: list[str]) -> list[str]:
    """The accounts in stacking order: busy first, then in the order they came."""
    return sorted(accounts, key=lambda account: account != "busy")


def x_time(
    column: str, unit: TimeUnit, end: float | None = None, axis: alt.Axis | None = None
) -> alt.X:
    """The time axis: from 0 to ``end`` (in ``unit``) without padding."""
    scale = alt.Scale(nice=False) if end is None else alt.Scale(domain=[0, end], nice=False)
    x = alt.X(f"{column}:Q", title=unit.axis(), scale=scale)
    return x if axis is None else x.axis(axis)


def maximum(values: pl.Series, default: float = 1.0) -> float:
    """The largest value of a column of numbers; ``default`` of an empty one."""
    largest = values.max()
    return float(largest) if isinstance(largest, int | float) else default


def titled(title: str, subtitle: str | None = None) -> alt.TitleParams:
    """A chart title, left-aligned, with the rule that the chart was drawn by beneath it."""
    if subtitle is None:
        return alt.TitleParams(title, anchor="start")
    return alt.TitleParams(title, subtitle=subtitle, anchor="start")
