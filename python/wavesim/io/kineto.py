"""Reads the JSON that the PyTorch profiler (Kineto) writes, of any year, for CUDA and ROCm.

The file is read as a stream, an event at a time, so that memory holds columns and not the text: the
peak is about the size of the unpacked text if nearly every event belongs to a kernel launch, and
less otherwise; ``json.load`` alone needs four to five times that size. Every event is either used
or counted: see ``Trace.events`` and ``Trace.problems``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import polars as pl

from wavesim.errors import UnsupportedFile
from wavesim.io.detect import what_instead
from wavesim.io.json_events import JsonEvents, Truncated
from wavesim.io.trace import EVENTS, HOST, KERNELS, MEMORY, SYNCS, Problems, Rows, Trace

# Categories, lower case: capitals are of 2021 and 2022, the short ones of 2021.
_USES = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
    "cuda_runtime": "runtime",
    "hip_runtime": "runtime",
    "runtime": "runtime",
    "cuda_driver": "driver",
    "hip_driver": "driver",
    "driver": "driver",
    "cuda_sync": "sync",
}
_HEADER = frozenset({"deviceProperties", "computeProperties", "schema", "nodes", "displayTimeUnit"})
# Only these properties are kept of a device: numbers that describe it, and its name.
_DEVICE_KEYS = frozenset(
    [
        "id",
        "name",
        "totalGlobalMem",
        "computeMajor",
        "computeMinor",
        "major",
        "minor",
        "maxThreadsPerBlock",
        "maxThreadsPerMultiprocessor",
        "maxThreadsPerMultiProcessor",
        "regsPerBlock",
        "regsPerMultiprocessor",
        "warpSize",
        "sharedMemPerBlock",
        "numSms",
        "multiProcessorCount",
        "sharedMemPerBlockOptin",
        "sharedMemPerMultiprocessor",
        "maxSharedMemoryPerMultiProcessor",
    ]
)
_LAST_INTEGER = re.compile(r"(-?\d+)\D*$")
_FARTHEST_US = 4 * 10**15  # the year 2096; beyond it a time is a fault, and i64 ns soon ends
_I32 = 1 << 31
_I62 = 1 << 62
_DAY_NS = 86_400 * 10**9


def read_kineto(path: Path, *, keep_partial: bool = False) -> Trace:
    """Read the trace in ``path`` (.json or .json.gz, told apart by content).

    ``keep_partial``: if the file was cut off, keep what stands before the cut and report it in
    ``problems``, instead of raising.

    Raises UnsupportedFile if the text is not JSON, is cut off, is no profiler trace, or holds no
    work of a GPU; the message says what it is instead, where that can be told.
    """
    reader = _Reader(path)
    try:
        for index, event in reader.events:
            reader.take(index, event)
    except Truncated as cut:
        if not keep_partial:
            raise UnsupportedFile(
                f"{path.name} is cut off after {reader.count:,} events: {cut}; was the job stopped "
                "while the profiler wrote? keep_partial=True reads what is there",
                path,
            ) from None
        reader.problems.add("the file is cut off; later events are missing", str(cut))
    return reader.trace()


class _Reader:
    """What has been read of one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events = JsonEvents(path, _HEADER)
        self.problems = Problems()
        self.count = 0
        self._tally: Counter[tuple[str, str, str]] = Counter()
        self._names: dict[str, int] = {}
        self._threads: dict[str, int] = {}
        self._kernels = Rows(_raw(KERNELS))
        self._memory = Rows(_raw(MEMORY))
        self._host = Rows(_raw(HOST))
        self._syncs = Rows(_raw(SYNCS))
        self._whole_us = True
        self._quarter_us = True
        self._where = ""

    def take(self, index: int, event: object) -> None:
        """Use or count one element of traceEvents."""
        self.count += 1
        self._where = f"traceEvents[{index}]"
        if not isinstance(event, dict):
            self.problems.add("elements of traceEvents that are no object", self._where)
            self._tally["", "", "not used"] += 1
            return
        phase, category = event.get("ph"), event.get("cat")
        phase = phase if isinstance(phase, str) else ""
        category = category if isinstance(category, str) else ""
        use = _USES.get(category.lower()) if phase == "X" else None
        if use is None or not self._use(use, event):
            use = "not used"
        self._tally[phase, category, use] += 1

    def _use(self, use: str, event: Mapping[str, object]) -> bool:
        start = self._time(event.get("ts"))
        duration = self._time(event.get("dur", 0))
        if start is None or duration is None or duration < 0:
            what = "a negative duration" if duration and duration < 0 else "no usable time"
            self.problems.add(f"{use} events with {what}; left out", self._where)
            return False
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        name = self._name(event.get("name"))
        # The end is kept apart until the frame is made: only integers subtract exactly.
        times = (start, start + duration, duration)
        correlation = _integer(args.get("correlation"))
        if use in ("runtime", "driver"):
            thread = self._threads.setdefault(str(event.get("tid")), len(self._threads))
            self._host.add((self._row(), name, use, thread, *times, correlation))
            return True
        device = _first(args.get("device"), event.get("pid"))
        stream = _first(args.get("stream"), event.get("tid"))
        if use == "sync":
            waits = (
                _known(args.get("wait_on_stream")),
                _known(args.get("wait_on_cuda_event_record_corr_id")),
                _known(args.get("wait_on_cuda_event_id")),
            )
            kind = args.get("cuda_sync_kind", event.get("name"))
            kind = kind if isinstance(kind, str) else ""
            stream = _known(stream)
            self._syncs.add((self._row(), kind, device, stream, *times, correlation, *waits))
            return True
        if device is None or stream is None:
            self.problems.add(f"{use} events without a device or a stream", self._where)
        graph = (_integer(args.get("graph id")), _integer(args.get("graph node id")))
        if use == "kernel":
            shape = self._shape(args)
            priority = _integer(args.get("priority"))
            row = (self._row(), name, device, stream, *times, *shape, correlation, *graph)
            self._kernels.add((*row, priority, _share(args), None, None, None))
        else:
            moved = _integer(args.get("bytes", args.get("size")))
            copy = (self._row(), use, name, device, stream, *times, moved, correlation, *graph)
            self._memory.add((*copy, None, None, None))
        if duration == 0:
            self.problems.add(f"{use} events of zero duration; kept", self._where)
        return True

    def _shape(self, args: Mapping[str, object]) -> tuple[int | None, ...]:
        grid, block = _three(args.get("grid")), _three(args.get("block"))
        if grid is None or block is None:
            self.problems.add("kernels without a launch shape: no occupancy or waves", self._where)
        elif min(*grid, *block) == 0:
            self.problems.add("kernels with an empty grid or block; kept", self._where)
        registers = _count(args.get("registers per thread"))
        shared = _count(args.get("shared memory"))
        if grid is not None and (registers is None or shared is None):
            self.problems.add("kernels without registers or shared memory", self._where)
        return (*_product(grid, _I62), *_product(block, _I32), registers, shared)

    def _time(self, value: object) -> int | None:
        """Microseconds of any spelling as whole ns; None if it is no plausible time."""
        if isinstance(value, str):
            try:
                value = Decimal(value)
            except ArithmeticError:
                return None
        if type(value) is int:
            return value * 1000 if -_FARTHEST_US <= value <= _FARTHEST_US else None
        if not isinstance(value, Decimal) or not value.is_finite() or abs(value) > _FARTHEST_US:
            return None  # NaN and Infinity come as floats
        ns = round(value * 1000)
        if ns % 1000:
            self._whole_us = False
            self._quarter_us = self._quarter_us and ns % 250 == 0
        return ns

    def _name(self, value: object) -> int:
        name = value if isinstance(value, str) else ""
        return self._names.setdefault(name, len(self._names))

    def _row(self) -> int:
        return self.count - 1

    def trace(self) -> Trace:
        """Make the frames, once every event has been taken."""
        if self.events.repaired_text:
            self.problems.add("bytes that are no UTF-8; replaced by U+FFFD", self.path.name)
        raw = [rows.frame() for rows in (self._kernels, self._memory, self._host, self._syncs)]
        if not (raw[0].height or raw[1].height):
            categories = {category.lower() for _, category, _ in self._tally if category}
            called = any(use in ("runtime", "driver") for _, _, use in self._tally)
            what = what_instead(self.events, categories, called, self.count)
            raise UnsupportedFile(f"{self.path.name} {what}", self.path)
        starts = [int(frame["start_ns"].min()) for frame in raw if frame.height]  # type: ignore[arg-type]
        origin = min(starts)
        names = pl.Series("name", list(self._names), dtype=pl.String)
        kernels, memory, host, syncs = (_settle(frame, origin, names) for frame in raw)
        kernels = self._linked(kernels, host, "kernels")
        memory = self._linked(memory, host, "copies and sets")
        self._look(kernels)
        grain = 1000.0 if self._whole_us else 250.0 if self._quarter_us else 1.0
        devices = self._devices()
        tally = [(*key, count) for key, count in sorted(self._tally.items())]
        return Trace(
            kernels=kernels.select(pl.col(name).cast(kind) for name, kind in KERNELS.items()),
            memory=memory.select(pl.col(name).cast(kind) for name, kind in MEMORY.items()),
            host=host.select(pl.col(name).cast(kind) for name, kind in HOST.items()),
            syncs=syncs.select(pl.col(name).cast(kind) for name, kind in SYNCS.items()),
            events=pl.DataFrame(tally, schema=EVENTS, orient="row"),
            problems=self.problems.frame(),
            devices=devices,
            source=self.path.name,
            grain_ns=grain,
        )

    def _linked(self, work: pl.DataFrame, host: pl.DataFrame, what: str) -> pl.DataFrame:
        """Put the host call beside each row, joined by the correlation id.

        The runtime call and the driver call inside it may carry one id: the outer one, which
        started first, is what the program did.
        """
        calls = (
            host.filter(pl.col("correlation").is_not_null())
            .unique("correlation", keep="first", maintain_order=True)
            .select(
                "correlation",
                launch_name="name",
                launch_start_ns="start_ns",
                launch_end_ns="end_ns",
            )
        )
        bare = work.drop("launch_name", "launch_start_ns", "launch_end_ns")
        linked = bare.join(calls, on="correlation", how="left", maintain_order="left")
        lost = linked.filter(pl.col("launch_start_ns").is_null())
        if lost.height:
            self.problems.add(f"{what} whose launch is not in the trace", _named(lost), lost.height)
        return linked

    def _look(self, kernels: pl.DataFrame) -> None:
        """Report what is odd about the kernels as a whole; all of them stay."""
        if not kernels.height:
            self.problems.add("no kernels, only copies", self.path.name)
            return
        before = pl.col("end_ns").cum_max().shift(1).over("device", "stream")
        late = kernels.filter(pl.col("start_ns") < before - 1e-3)
        if late.height:
            what = "kernels that start before the one in front of them in their stream ended"
            self.problems.add(what, _named(late), late.height)
        early = kernels.filter(pl.col("start_ns") < pl.col("launch_start_ns"))
        if early.height:
            what = "kernels that start before their launch call: the clocks disagree"
            self.problems.add(what, _named(early), early.height)
        gpus = kernels["device"].n_unique()
        if gpus > 1:
            self.problems.add("GPUs in one trace; each is analyzed by itself", str(gpus), gpus)
        first, last = kernels["start_ns"].min(), kernels["end_ns"].max()
        assert isinstance(first, float)
        assert isinstance(last, float)
        if last - first > _DAY_NS:
            days = (last - first) / _DAY_NS
            what = "a span of days; some times are probably wrong"
            self.problems.add(what, f"{days:,.1f} days from the first kernel to the last")

    def _devices(self) -> tuple[dict[str, int | float | str], ...]:
        found = self.events.header.get("deviceProperties")
        if not found:
            found = self.events.header.get("computeProperties")
        if not isinstance(found, list) or not found:
            what = "no device properties in the file: which GPU it is has to be said"
            self.problems.add(what, self.path.name)
            return ()
        devices = []
        for number, entry in enumerate(found):
            if not isinstance(entry, dict):
                self.problems.add("device properties that are no object", f"[{number}]")
                continue
            kept = {
                key: float(value) if isinstance(value, Decimal) else value
                for key, value in entry.items()
                if key in _DEVICE_KEYS and isinstance(value, int | float | str | Decimal)
            }
            if not kept.get("name"):
                self.problems.add("devices without a name", f"deviceProperties[{number}]")
            devices.append(kept)
        return tuple(devices)


def _raw(schema: Mapping[str, pl.DataType]) -> dict[str, pl.DataType]:
    """Give the schema while reading: times are exact integers, names are numbers."""
    exact = {"start_ns": pl.Int64(), "end_ns": pl.Int64(), "duration_ns": pl.Int64()}
    return {**schema, **exact, **({"name": pl.UInt32()} if "name" in schema else {})}


def _settle(frame: pl.DataFrame, origin: int, names: pl.Series) -> pl.DataFrame:
    """Sort by start (ties as in the file), number the rows, make times relative, names text."""
    frame = frame.sort("start_ns", "id", maintain_order=True)
    columns = [
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("id"),
        (pl.col("start_ns") - origin).cast(pl.Float64),
        (pl.col("end_ns") - origin).cast(pl.Float64),
        pl.col("duration_ns").cast(pl.Float64),
    ]
    if "name" in frame.columns:
        frame = frame.with_columns(names.gather(frame["name"]).alias("name"))
    return frame.with_columns(columns)


def _named(rows: pl.DataFrame) -> str:
    row = rows.row(0, named=True)
    return f"{row['name'][:80]} at {row['start_ns'] / 1e3:.3f} us"


def _integer(value: object) -> int | None:
    """Take an integer however it is spelled: 7, 7.0, "7", "stream 7"; None if it is none."""
    if type(value) is int:  # the usual case, and no bool
        return value if -_I62 < value < _I62 else None
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        found = _LAST_INTEGER.search(value[-64:])
        value = int(found.group(1)) if found else None
    elif isinstance(value, Decimal):
        whole = value.is_finite() and abs(value) < _I62 and value == value.to_integral_value()
        value = int(value) if whole else None
    return value if isinstance(value, int) and -_I62 < value < _I62 else None


def _first(*values: object) -> int | None:
    return next((found for found in map(_integer, values) if found is not None), None)


def _known(value: object) -> int | None:
    """Ids of which the profiler writes -1 (or all ones) for "none"."""
    number = _integer(value)
    return None if number is None or number in (-1, 0xFFFFFFFF) else number


def _count(value: object) -> int | None:
    number = _integer(value)
    return number if number is not None and 0 <= number < _I32 else None


def _three(value: object) -> tuple[int, int, int] | None:
    if not isinstance(value, list) or not 1 <= len(value) <= 3:
        return None
    found = [_count(part) for part in value] + [1] * (3 - len(value))
    if any(part is None for part in found):
        return None
    x, y, z = (part for part in found if part is not None)
    return x, y, z


def _product(three: tuple[int, int, int] | None, limit: int) -> tuple[int | None, ...]:
    if three is None:
        return (None, None, None, None)
    x, y, z = three
    total = x * y * z
    return (total if total < limit else None, x, y, z)


def _share(args: Mapping[str, object]) -> float | None:
    value = args.get("est. achieved occupancy %", args.get("theoretical occupancy %"))
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    share = float(value) / 100
    return share if 0 <= share <= 1 else None
