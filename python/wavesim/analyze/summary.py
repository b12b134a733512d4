"""The analysis in a few short tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from wavesim.scalars import whole_from
from wavesim.text import counted, shortened, time_text, value_text

if TYPE_CHECKING:
    from wavesim.analyze.analysis import Analysis

_RIGHT = (pl.Float64, pl.Float32, pl.UInt64, pl.UInt32, pl.Int64, pl.Int32)
_WIDEST = 90


@dataclass(frozen=True, eq=False)
class Summary:
    """Frames for people, each with a heading.

    - ``top``: kernel, calls, total_ns, share, mean_ns, residency, limiter, occupancy, waves, tail
      (share), host_gap_ns; the longest first.
    - ``ledger``: account, time_ns, share, meaning; accounts with no time left out.
    - ``replay``: measure, measured_ns, simulated_ns, error.
    - ``what_if``: change, bound, makespan_ns, saved_ns, speedup, note.
    - ``problems``: what, count, example.
    """

    title: str
    top: pl.DataFrame
    ledger: pl.DataFrame
    replay: pl.DataFrame
    what_if: pl.DataFrame
    problems: pl.DataFrame

    @property
    def frames(self) -> dict[str, pl.DataFrame]:
        """The frames that have rows, by heading, in the order in which they are read."""
        found = {
            "Kernels by time": self.top,
            "Where the time went": self.ledger,
            "Replay beside the measured trace": self.replay,
            "What if": self.what_if,
            "Problems": self.problems,
        }
        return {heading: frame for heading, frame in found.items() if frame.height}

    def __str__(self) -> str:
        parts = [self.title]
        parts += [f"{heading}\n{_table(frame)}" for heading, frame in self.frames.items()]
        return "\n\n".join(parts)


def summary_of(analysis: Analysis, rows: int) -> Summary:
    """Make the summary with at most ``rows`` kernels; simulates what has not been simulated."""
    rows = whole_from("rows", rows, 1, 2**32 - 1)
    device, trace = analysis.device, analysis.trace
    kernels, copies = analysis.kernels.height, analysis.work.height - analysis.kernels.height
    gpu = "" if analysis.gpu is None or trace.kernels["device"].n_unique() < 2 else analysis.gpu
    title = (
        f"{trace.source}: {device.title}{f' (GPU {gpu})' if gpu != '' else ''}, "
        f"{counted(kernels, 'kernel')} and {copies:,} {'copy' if copies == 1 else 'copies'} "
        f"in {time_text(analysis.span_ns)}"
    )
    top = analysis.by_name.head(rows).select(
        pl.col("short_name").alias("kernel"),
        "calls",
        "total_ns",
        "share",
        "mean_ns",
        "residency",
        "limiter",
        "occupancy",
        "waves",
        (pl.col("tail_ns") / pl.col("total_ns")).alias("tail_share"),
        pl.col("gap_host_ns").alias("host_gap_ns"),
    )
    ledger = analysis.ledger.filter(pl.col("time_ns") > 0.0)
    what_if = analysis.what_if
    notes = what_if["note"].unique().to_list()
    what_if = what_if.drop("device", *([] if any(notes) else ["note"]))
    return Summary(title, top, ledger, analysis.accuracy, what_if, analysis.problems)


def _table(frame: pl.DataFrame) -> str:
    """Lay a frame out in columns, numbers to the right."""
    heads = [name.removesuffix("_ns").replace("_", " ") for name in frame.columns]
    cells = [
        [shortened(value_text(name, value), _WIDEST) for name, value in row.items()]
        for row in frame.iter_rows(named=True)
    ]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    right = [kind in _RIGHT for kind in frame.dtypes]
    lines = []
    for row in (heads, *cells):
        pairs = zip(row, widths, right, strict=True)
        line = "  ".join(text.rjust(w) if r else text.ljust(w) for text, w, r in pairs)
        lines.append(f"  {line.rstrip()}")
    return "\n".join(lines)
