"""What the report of a run says of simulated work: memory, and what warps did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from wavesim.frames import SECTOR_BYTES
from wavesim.report.page import Section, table_of
from wavesim.text import counted

if TYPE_CHECKING:
    from wavesim.run import Run

TOP = 20
"""So many rows has a table."""

_MOVED = ("lookups", "hits", "sm_sectors", "written_sectors", "dram_read_bytes")
_MB = 1e6


def work_sections(run: Run) -> list[Section]:
    """Memory and warps, if the run has launches with such work."""
    return [section for section in (memory_section(run), warps_section(run)) if section is not None]


def memory_section(run: Run) -> Section | None:
    """What kernels of each name found in L2 and moved; over time, if that was recorded."""
    if run.l2.is_empty():
        return None
    totals = [pl.col(name).sum() for name in (*_MOVED, "dram_written_bytes")]
    grouped = (
        run.l2.join(run.kernels.select("kernel", "duration_ns"), on="kernel")
        .group_by("name", maintain_order=True)
        .agg(pl.len().alias("launches"), pl.col("duration_ns").sum().alias("total_ns"), *totals)
        .sort("total_ns", descending=True, maintain_order=True)
    )
    dram = pl.col("dram_read_bytes") + pl.col("dram_written_bytes")
    frame = grouped.select(
        "name",
        "launches",
        (pl.col("hits") / pl.col("lookups")).fill_nan(None).alias("hit_share"),
        (pl.col("sm_sectors") * SECTOR_BYTES / _MB).alias("read"),
        (pl.col("written_sectors") * SECTOR_BYTES / _MB).alias("written"),
        (pl.col("dram_read_bytes") / _MB).alias("dram_read"),
        (pl.col("dram_written_bytes") / _MB).alias("dram_written"),
        (dram / pl.col("total_ns")).alias("gb_s"),
    )
    headings = {
        "name": "kernel",
        "launches": "launches",
        "hit_share": "L2 hits",
        "read": "read of L2, MB",
        "written": "written, MB",
        "dram_read": "DRAM read, MB",
        "dram_written": "DRAM written, MB",
        "gb_s": "DRAM, GB/s",
    }
    charts: tuple[alt.TopLevelMixin, ...] = ()
    if run.detail == "memory" and not run.l2_windows.is_empty():
        charts = (run.plot.l2(),)
    note = "Bytes are sums over the launches of a name; GB/s is their mean while these ran."
    table = table_of(frame.head(TOP), headings, _with_rest(note, frame.height))
    return Section("Memory", table=table, charts=charts)


def warps_section(run: Run) -> Section | None:
    """What the warps of kernels of each name did, state by state."""
    if run.warps.is_empty():
        return None
    states = (
        run.warps.group_by("name", "state", "kind", maintain_order=True)
        .agg(pl.col("warp_cycles").sum())
        .with_columns(
            (pl.col("warp_cycles") / pl.col("warp_cycles").sum().over("name"))
            .fill_nan(0.0)
            .alias("share"),
            pl.col("warp_cycles").sum().over("name").alias("whole"),
        )
        .filter(pl.col("warp_cycles") > 0)
        .sort("whole", "name", "share", descending=[True, False, True], maintain_order=True)
    )
    headings = {
        "name": "kernel",
        "state": "state",
        "kind": "held by",
        "warp_cycles": "warp cycles",
        "share": "share",
    }
    note = "States have the profilers' names; share is of the time of the kernel's resident warps."
    table = table_of(states.head(TOP), headings, _with_rest(note, states.height))
    return Section("Warps", table=table, charts=(run.plot.warps(),))


def _with_rest(note: str, rows: int) -> str:
    return f"{note} {counted(rows - TOP, 'further row')} left out." if rows > TOP else note
