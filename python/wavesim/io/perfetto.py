"""Runs and traces as Chrome JSON, for Perfetto (ui.perfetto.dev) and chrome://tracing.

One process an SM, ordered by GPC, with one track a slot; one process of kernels with a track a
stream. Slices of one track have to nest, so a track is a slot, never an SM, and kernels of one
stream that overlap go to further lanes of that stream. Times are microseconds with three decimals;
starts and ends are each rounded to whole nanoseconds, so slices that touch still touch.
"""

from __future__ import annotations

import gzip
import heapq
import json
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import polars as pl

from wavesim.io.atomic import atomic_file, check_file
from wavesim.io.formats import TRACES

if TYPE_CHECKING:
    from wavesim.analyze import Analysis
    from wavesim.run import Run

MEASURED_PID = 1
"""Process of a trace's measured kernels and copies, where there are any."""

KERNELS_PID = 2
"""Process of the simulated kernels."""

FIRST_SM_PID = 10
"""SM s is process ``FIRST_SM_PID + s``."""

_CHUNK = 50_000

_KERNEL_ARGS = (
    "kernel",
    "grid",
    "block",
    "registers",
    "shared_memory",
    "residency",
    "limiter",
    "waves",
    "occupancy",
    "utilization",
    "launch_gap_ns",
    "tail_ns",
)


def write_run(run: Run, path: str | os.PathLike[str]) -> None:
    """Write a run as Chrome JSON: ``path`` ends in ``.json``, or in ``.gz`` to have it gzipped.

    A run of ``detail="kernels"`` has no CTAs: it gets the stream tracks only.

    Args:
        run: the run.
        path: the file to write; an existing one is replaced only when the new one is whole.

    Raises:
        InvalidInput: ``path`` is no path.
        WavesimError: the file cannot be written; names ``path``.
    """
    parts = [_kernel_events(run.kernels, KERNELS_PID, "kernels")]
    if run.detail != "kernels":
        parts.append(_slot_events(run))
    _write(path, parts)


def write_analysis(analysis: Analysis, path: str | os.PathLike[str]) -> None:
    """Write a trace's measured kernels and copies above its simulated kernels, on one clock.

    Args:
        analysis: the analysis of a trace.
        path: as in ``write_run``.

    Raises:
        InvalidInput: ``path`` is no path.
        WavesimError: the file cannot be written; names ``path``.
    """
    check_file(path, TRACES)  # before anything is simulated for it
    columns = ["name", "stream", "start_ns", "end_ns"]
    copies = analysis.work.filter(pl.col("what") != "kernel").select(columns)
    measured = pl.concat([analysis.kernels, copies], how="diagonal_relaxed")
    simulated = analysis.compare.select(
        "name",
        "stream",
        pl.col("simulated_start_ns").alias("start_ns"),
        (pl.col("simulated_start_ns") + pl.col("simulated_duration_ns")).alias("end_ns"),
    )
    # A replayed kernel may start a little before the trace's first event; times are not negative.
    first = pl.concat([measured["start_ns"], simulated["start_ns"]]).min()
    early = min(0.0, float(first)) if isinstance(first, int | float) else 0.0
    on_time = pl.col("start_ns", "end_ns") - early
    parts = [
        _kernel_events(measured.with_columns(on_time), MEASURED_PID, "measured"),
        _kernel_events(simulated.with_columns(on_time), KERNELS_PID, "simulated"),
    ]
    _write(path, parts)


def _write(path: str | os.PathLike[str], parts: Iterable[Iterator[str]]) -> None:
    """Write the events of all parts, each a line of JSON without its comma, as one document."""
    with atomic_file(path, TRACES) as temporary, temporary.open("wb") as raw:
        if Path(path).suffix.lower() == ".gz":
            # No name and no time in the gzip header: the same run gives the same bytes.
            with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
                _write_document(cast(BinaryIO, packed), parts)
        else:
            _write_document(raw, parts)


def _write_document(stream: BinaryIO, parts: Iterable[Iterator[str]]) -> None:
    stream.write(b'{"displayTimeUnit":"ns","traceEvents":[')
    separator = b"\n"
    for part in parts:
        for events in part:
            stream.write(separator + events.encode())
            separator = b",\n"
    stream.write(b"\n]}\n")


def _meta(pid: int, tid: int, what: str, **arguments: object) -> str:
    return json.dumps({"ph": "M", "pid": pid, "tid": tid, "name": what, "args": arguments})


def _kernel_events(frame: pl.DataFrame, pid: int, title: str) -> Iterator[str]:
    """A track a stream, with as many lanes as kernels overlap in it."""
    yield _meta(pid, 0, "process_name", name=title)
    yield _meta(pid, 0, "process_sort_index", sort_index=pid)
    tid = 0
    columns = [name for name in _KERNEL_ARGS if name in frame.columns]
    for (stream,), kernels in sorted(
        frame.group_by("stream", maintain_order=True), key=lambda group: _stream_key(group[0][0])
    ):
        placed = kernels.sort("start_ns", "end_ns", maintain_order=True)
        lanes = _lanes(placed)
        for lane in range(max(lanes, default=0) + 1):
            name = "no stream" if stream is None else f"stream {stream}"
            name += f", overlapping {lane}" if lane else ""
            yield _meta(pid, tid + lane, "thread_name", name=name)
            yield _meta(pid, tid + lane, "thread_sort_index", sort_index=tid + lane)
        for row, lane in zip(placed.iter_rows(named=True), lanes, strict=True):
            yield _slice(pid, tid + lane, row, columns)
        tid += max(lanes, default=0) + 1


def _stream_key(stream: object) -> tuple[bool, int]:
    """Streams by number; a trace's kernels without a stream go last."""
    return (True, 0) if stream is None else (False, int(str(stream)))


def _lanes(kernels: pl.DataFrame) -> list[int]:
    """For kernels by start: the first lane that is free at the start."""
    lanes: list[int] = []
    running: list[tuple[int, int]] = []  # (end, lane)
    free: list[int] = []
    count = 0
    for start_ns, end_ns in kernels.select("start_ns", "end_ns").iter_rows():
        start = _whole_ns(start_ns)
        while running and running[0][0] <= start:
            heapq.heappush(free, heapq.heappop(running)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, count = count, count + 1
        lanes.append(lane)
        heapq.heappush(running, (_whole_ns(end_ns), lane))
    return lanes


def _slot_events(run: Run) -> Iterator[str]:
    """A process an SM by GPC, a track a slot, a slice a CTA."""
    by_gpc = run.sms.sort("gpc", "sm")
    used = run.ctas.select("sm", "slot").unique().sort("sm", "slot")
    slots: dict[int, list[int]] = {}
    for sm, slot in used.iter_rows():
        slots.setdefault(sm, []).append(slot)
    for order, (sm, gpc) in enumerate(by_gpc.select("sm", "gpc").iter_rows()):
        if sm not in slots:
            continue
        pid = FIRST_SM_PID + sm
        yield _meta(pid, 0, "process_name", name=f"GPC {gpc}, SM {sm}")
        yield _meta(pid, 0, "process_sort_index", sort_index=FIRST_SM_PID + order)
        for slot in slots[sm]:
            yield _meta(pid, slot, "thread_name", name=f"slot {slot}")
            yield _meta(pid, slot, "thread_sort_index", sort_index=slot)
    names = {
        kernel: json.dumps(name)
        for kernel, name in run.kernels.select("kernel", "name").iter_rows()
    }
    ctas = run.ctas
    for offset in range(0, ctas.height, _CHUNK):
        yield from _cta_lines(ctas.slice(offset, _CHUNK), names)


def _cta_lines(ctas: pl.DataFrame, names: dict[int, str]) -> Iterator[str]:
    """The slices of a piece of ``run.ctas``, made column by column: there may be millions."""
    whole = ctas.with_columns(
        pl.col("start_ns").round().cast(pl.Int64).alias("start"),
        pl.col("end_ns").round().cast(pl.Int64).alias("end"),
        pl.col("kernel").replace_strict(names, return_dtype=pl.String).alias("name"),
    )
    pieces = [
        pl.lit('{"ph":"X","pid":'),
        pl.col("sm").cast(pl.Int64) + FIRST_SM_PID,
        pl.lit(',"tid":'),
        pl.col("slot"),
        pl.lit(',"name":'),
        pl.col("name"),
        pl.lit(',"ts":'),
        _microseconds(pl.col("start")),
        pl.lit(',"dur":'),
        _microseconds(pl.col("end") - pl.col("start")),
        pl.lit(',"args":{"kernel":'),
        pl.col("kernel"),
        pl.lit(',"cta":'),
        pl.col("cta"),
        pl.lit("}}"),
    ]
    yield from whole.select(pl.concat_str(pieces).alias("line"))["line"]


def _slice(pid: int, tid: int, row: dict[str, Any], columns: list[str]) -> str:
    """One kernel as a slice; ``columns`` become its arguments."""
    start, end = _whole_ns(row["start_ns"]), _whole_ns(row["end_ns"])
    arguments = {column: row[column] for column in columns if _is_json(row[column])}
    # ts and dur are written by hand: a float would lose the nanoseconds of a long trace.
    return (
        f'{{"ph":"X","pid":{pid},"tid":{tid},"name":{json.dumps(row["name"])},'
        f'"ts":{_text(start)},"dur":{_text(end - start)},"args":{json.dumps(arguments)}}}'
    )


def _is_json(value: object) -> bool:
    """Whether JSON has the value: it has no infinity, and a null says nothing."""
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def _whole_ns(time_ns: float) -> int:
    return round(time_ns)


def _text(time_ns: int) -> str:
    """Microseconds with three decimals; times of a run are never negative."""
    return f"{time_ns // 1000}.{time_ns % 1000:03d}"


def _microseconds(time_ns: pl.Expr) -> pl.Expr:
    """``_text`` of a column."""
    thousandths = (time_ns % 1000).cast(pl.String).str.zfill(3)
    return pl.concat_str([time_ns // 1000, pl.lit("."), thousandths])
