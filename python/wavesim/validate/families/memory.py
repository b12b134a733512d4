"""Kernels that read and write: streams, reuse, tile panels, broadcasts, stores, a pointer chase."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim.devices import Device
from wavesim.run import Run
from wavesim.validate import bodies
from wavesim.validate.families.common import (
    Family,
    kernel_of,
    launches_to_settle,
    simulated,
)
from wavesim.validate.tables import Inputs, NotSimulated
from wavesim.workload import Access, Kernel, Program

__all__ = ["FAMILIES"]

MB = 2**20
FLUSHED = 1
COUNTED = ("dram_bytes", "hit_share", "sm_sectors")
"""What the profiler counted, of the same launch."""


def _loop(**fields: Any) -> dict[str, Any]:
    return {
        "startup_cycles": bodies.LOOP_STARTUP,
        "overhead_cycles": bodies.LOOP_TURN,
        "finish_cycles": bodies.LOOP_FINISH,
        **fields,
    }


def _size(inputs: Inputs, name: str, unit: int) -> int:
    """Give a size of the table, in its ``unit`` of bytes, as whole bytes."""
    size = inputs.number(name) * unit
    if size != int(size) or size < 1:
        raise NotSimulated(f"{name} must be a whole number of bytes and not 0 (got {size:g} bytes)")
    return int(size)


def _flushed(device: Device, kernel: Kernel) -> Program:
    """Launch a kernel when a memset of more than L2 holds has gone before."""
    grid, page = 4 * device.sms, 4096
    each = int(device.l2.bytes / grid / page + 1) * page
    memset = Kernel(grid=grid, block=256, work=Access.stream(each, write=True, buffer=FLUSHED))
    return Program([memset, kernel])


def _last(run: Run) -> dict[str, float]:
    """What was measured of the last launch."""
    span = run.kernels["duration_ns"][-1]
    l2 = run.l2.row(-1, named=True)
    return {
        "span_ns": float(span),
        "dram_bytes": float(l2["dram_read_bytes"]),
        "hit_share": float(l2["hit_share"] or 0.0),
        "sm_sectors": float(l2["sm_sectors"]),
    }


def _timed_and_counted(device: Device, kernel: Kernel) -> dict[str, float]:
    """Time a kernel behind the memset, and count from an empty L2, as the profiler does."""
    timed = _last(simulated(device, _flushed(device, kernel)))
    return {**_last(simulated(device, Program([kernel]))), "span_ns": timed["span_ns"]}


def _stream(inputs: Inputs, device: Device) -> dict[str, float]:
    bytes_each = _size(inputs, "kb_per_block", 1024)
    kernel = kernel_of(inputs, Access.stream(bytes_each, **_loop()))
    launches = launches_to_settle(device, kernel.ctas * bytes_each)
    return _last(simulated(device, Program([kernel] * launches)))


def _write(inputs: Inputs, device: Device) -> dict[str, float]:
    work = Access.stream(_size(inputs, "kb_per_block", 1024), write=True)
    return _last(simulated(device, kernel_of(inputs, work)))


def _latency(inputs: Inputs, device: Device) -> dict[str, float]:
    line = device.l2.line_bytes
    # Of more than twice what L2 holds nothing is found again.
    chased = min(_size(inputs, "footprint_mb", MB), 2 * device.l2.bytes)
    loads = chased // line
    kernel = Kernel(grid=1, block=1, work=Access.chase(chased, loads, line))
    span = _last(simulated(device, Program([kernel, kernel])))["span_ns"]
    return {"cycles_per_load": span / loads * device.clock.sm_mhz / 1e3}


def _reuse(inputs: Inputs, device: Device) -> dict[str, float]:
    chunk = _size(inputs, "chunk_kb", 1024)
    work = Access.reuse(
        chunk,
        _size(inputs, "footprint_mb", MB) // chunk,
        inputs.count("passes"),
        inputs.count("shift_chunks"),
        **_loop(cold_cycles=bodies.FLUSHED_COLD),
    )
    return _timed_and_counted(device, kernel_of(inputs, work))


def _broadcast(inputs: Inputs, device: Device) -> dict[str, float]:
    size = _size(inputs, "footprint_mb", MB)
    work = Access.broadcast(
        size, inputs.count("skew_bytes"), **_loop(cold_cycles=bodies.FLUSHED_COLD)
    )
    return _timed_and_counted(device, kernel_of(inputs, work))


def _panel(inputs: Inputs, device: Device) -> dict[str, float]:
    m, n = inputs.count("tiles_m"), inputs.count("tiles_n")
    work = Access.panels(
        _size(inputs, "a_bytes", 1),
        _size(inputs, "b_bytes", 1),
        steps=inputs.count("ksteps"),
        tiles_m=m,
        tiles_n=n,
        order=_order(inputs.text("order"), m * n),
        **_loop(cold_cycles=bodies.FLUSHED_COLD),
    )
    return _timed_and_counted(device, kernel_of(inputs, work))


def _order(name: str, tiles: int) -> Any:
    if name == "row":
        return "row"
    if name == "col":
        return "column"
    if name == "random":
        # Which permutation was drawn is not in the tables.
        return np.random.default_rng(0).permutation(tiles)
    rows = name.removeprefix("group")
    if rows == name or not rows.isdecimal() or int(rows) == 0:
        raise NotSimulated(f"order must be row, col, random or group and a number (got {name!r})")
    return int(rows)


FAMILIES = (
    Family("stream_l2", ("span_ns",), _stream),
    Family("stream_dram", ("span_ns",), _stream),
    Family("write", ("span_ns",), _write),
    Family("latency", ("cycles_per_load",), _latency),
    Family("reuse", ("span_ns", *COUNTED), _reuse),
    Family("broadcast", ("span_ns", "sm_sectors"), _broadcast),
    Family("panel", ("span_ns", *COUNTED), _panel),
)
