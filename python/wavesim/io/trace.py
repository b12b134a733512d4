"""A profile of a GPU, in frames; the same whichever profiler wrote it.

Times are nanoseconds from the trace's first device or host-call event. A null means that the trace
does not say. Of the file's metadata nothing is kept but device properties: traces carry host
names, paths and tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from wavesim.text import counted

_TIMES: dict[str, pl.DataType] = {
    "start_ns": pl.Float64(),
    "end_ns": pl.Float64(),
    "duration_ns": pl.Float64(),
}
_LAUNCH: dict[str, pl.DataType] = {
    "launch_name": pl.String(),
    "launch_start_ns": pl.Float64(),
    "launch_end_ns": pl.Float64(),
}

KERNELS: dict[str, pl.DataType] = {
    "id": pl.UInt32(),
    "name": pl.String(),
    "device": pl.Int64(),
    "stream": pl.Int64(),
    **_TIMES,
    "grid": pl.UInt64(),
    "grid_x": pl.Int64(),
    "grid_y": pl.Int64(),
    "grid_z": pl.Int64(),
    "block": pl.Int64(),
    "block_x": pl.Int64(),
    "block_y": pl.Int64(),
    "block_z": pl.Int64(),
    "registers": pl.Int64(),
    "shared_memory": pl.Int64(),
    "correlation": pl.Int64(),
    "graph": pl.Int64(),
    "graph_node": pl.Int64(),
    "priority": pl.Int64(),
    "profiler_occupancy": pl.Float64(),
    **_LAUNCH,
}
MEMORY: dict[str, pl.DataType] = {
    "id": pl.UInt32(),
    "kind": pl.String(),
    "name": pl.String(),
    "device": pl.Int64(),
    "stream": pl.Int64(),
    **_TIMES,
    "bytes": pl.Int64(),
    "correlation": pl.Int64(),
    "graph": pl.Int64(),
    "graph_node": pl.Int64(),
    **_LAUNCH,
}
HOST: dict[str, pl.DataType] = {
    "id": pl.UInt32(),
    "name": pl.String(),
    "kind": pl.String(),
    "thread": pl.Int64(),
    **_TIMES,
    "correlation": pl.Int64(),
}
SYNCS: dict[str, pl.DataType] = {
    "id": pl.UInt32(),
    "kind": pl.String(),
    "device": pl.Int64(),
    "stream": pl.Int64(),
    **_TIMES,
    "correlation": pl.Int64(),
    "wait_stream": pl.Int64(),
    "wait_record": pl.Int64(),
    "wait_event": pl.Int64(),
}
EVENTS: dict[str, pl.DataType] = {
    "phase": pl.String(),
    "category": pl.String(),
    "used_as": pl.String(),
    "count": pl.Int64(),
}
PROBLEMS: dict[str, pl.DataType] = {
    "what": pl.String(),
    "count": pl.Int64(),
    "example": pl.String(),
}


@dataclass(frozen=True, eq=False)
class Trace:
    """One profile. Frames are sorted by start time and ``id`` numbers their rows.

    - ``kernels``: name, device, stream, start_ns, end_ns, duration_ns, grid (CTAs), grid_x/y/z,
      block (threads), block_x/y/z, registers (a thread), shared_memory (static and dynamic bytes
      a CTA), correlation (joins the host call), graph, graph_node, priority, profiler_occupancy
      (the profiler's own estimate, 0 to 1; known to be 0 for kernels with more than 48 KB of
      shared memory), launch_name, launch_start_ns, launch_end_ns (the host call).
    - ``memory``: copies and sets. kind ("memcpy" or "memset"), bytes, and as above.
    - ``host``: runtime and driver calls. kind ("runtime" or "driver"), thread (numbered as met).
    - ``syncs``: what waited for what. kind as the profiler words it, wait_stream, wait_record
      (correlation of the host call that recorded the event), wait_event.
    - ``events``: how many events of each phase and category the file had, and as what they were
      used; the counts add up to the file's events.
    - ``problems``: what could not be used or looks wrong: what, count, example.
    - ``devices``: the properties of each GPU, under the profiler's names.
    - ``source``: the file's name without its folder.
    - ``grain_ns``: the step in which the file tells time (1000 for whole microseconds).
    """

    kernels: pl.DataFrame
    memory: pl.DataFrame
    host: pl.DataFrame
    syncs: pl.DataFrame
    events: pl.DataFrame
    problems: pl.DataFrame
    devices: tuple[dict[str, int | float | str], ...]
    source: str
    grain_ns: float

    @property
    def span_ns(self) -> float:
        """From the start of the first kernel or copy to the end of the last, in ns."""
        work = [frame for frame in (self.kernels, self.memory) if frame.height]
        if not work:
            return 0.0
        first = min(float(frame["start_ns"].min() or 0.0) for frame in work)  # type: ignore[arg-type]
        return max(float(frame["end_ns"].max() or 0.0) for frame in work) - first  # type: ignore[arg-type]

    def __repr__(self) -> str:
        gpus = ", ".join(str(device.get("name") or "unnamed") for device in self.devices[:1])
        return (
            f"Trace({self.source!r}: {counted(self.kernels.height, 'kernel')}, "
            f"{self.memory.height:,} copies and sets, {self.span_ns / 1e6:.3f} ms, "
            f"{len(self.devices)} GPUs{f' ({gpus})' if gpus else ''}, "
            f"{self.problems.height} kinds of problem)"
        )


@dataclass
class Problems:
    """Counts what went wrong while a file is read; one example of each kind is kept."""

    _found: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, what: str, example: str, count: int = 1) -> None:
        """Count one more of ``what``; the first example stays."""
        if count <= 0:
            return
        before, first = self._found.get(what, (0, example))
        self._found[what] = (before + count, first)

    def frame(self) -> pl.DataFrame:
        """Give what, count and example, in the order in which they were met."""
        rows = [(what, count, example) for what, (count, example) in self._found.items()]
        return pl.DataFrame(rows, schema=PROBLEMS, orient="row")


class Rows:
    """Rows that arrive one at a time, kept as typed frames: Python rows need ten times as much."""

    _BATCH = 1 << 15

    def __init__(self, schema: dict[str, pl.DataType]) -> None:
        self._schema = schema
        self._rows: list[tuple[Any, ...]] = []
        self._frames: list[pl.DataFrame] = []

    def add(self, row: tuple[Any, ...]) -> None:
        """Append one row, in the schema's order."""
        self._rows.append(row)
        if len(self._rows) >= self._BATCH:
            self._flush()

    def frame(self) -> pl.DataFrame:
        """All rows so far as one frame."""
        self._flush()
        if not self._frames:
            return pl.DataFrame(schema=self._schema)
        return pl.concat(self._frames, rechunk=True)

    def _flush(self) -> None:
        if self._rows:
            self._frames.append(pl.DataFrame(self._rows, schema=self._schema, orient="row"))
            self._rows = []
