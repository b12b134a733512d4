"""Kernels grouped for people: those of one name and shape in one row."""

from __future__ import annotations

import polars as pl

from wavesim.text import counted

__all__ = ["KERNEL_HEADINGS", "by_shape", "rest_of"]

_SHAPE = ("name", "grid", "block", "registers", "shared_memory", "residency", "limiter")
_MEANS = ("waves", "utilization", "tail_share", "launch_gap_ns")

KERNEL_HEADINGS = {
    "name": "kernel",
    "launches": "launches",
    "total_ns": "total",
    "share": "share",
    "mean_ns": "mean",
    "grid": "grid",
    "block": "block",
    "residency": "CTAs/SM",
    "limiter": "limited by",
    "waves": "waves",
    "utilization": "slots busy",
    "tail_share": "tail",
    "launch_gap_ns": "gap before",
}
"""Columns of :func:`by_shape` -> headings, in the order in which they are shown."""


def by_shape(kernels: pl.DataFrame) -> pl.DataFrame:
    """Kernels of the same name and shape in one row, the longest in total first.

    Args:
        kernels: ``run.kernels``, or a frame with at least ``name`` and ``duration_ns``.

    Returns:
        What ``kernels`` has of name, grid, block, registers, shared_memory, residency and limiter;
        ``launches``; ``total_ns`` and ``mean_ns`` of the durations; ``share`` of the sum of all
        durations; the means of what it has of waves, utilization, tail_share and launch_gap_ns.
    """
    shape = [name for name in _SHAPE if name in kernels.columns]
    means = [name for name in _MEANS if name in kernels.columns]
    grouped = kernels.group_by(shape, maintain_order=True).agg(
        pl.len().alias("launches"),
        pl.col("duration_ns").sum().alias("total_ns"),
        pl.col("duration_ns").mean().alias("mean_ns"),
        *(pl.col(name).mean() for name in means),
    )
    return grouped.with_columns(
        (pl.col("total_ns") / pl.max_horizontal(pl.col("total_ns").sum(), 1e-12)).alias("share")
    ).sort("total_ns", descending=True, maintain_order=True)


def rest_of(grouped: pl.DataFrame, shown: int) -> str:
    """What lies behind the first ``shown`` rows of :func:`by_shape`: a sentence or nothing."""
    rest = grouped.height - shown
    if rest <= 0:
        return ""
    share = float(grouped["share"][shown:].sum())
    return f"{counted(rest, 'further shape')}, {share:.1%} of the time, not shown."
