"""Kernels in which warps share the schedulers of an SM: ``fma``, ``smem_barrier``, ``mixed``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from wavesim.devices import Device
from wavesim.validate import programs
from wavesim.validate.families.common import (
    Family,
    kernel_of,
    launches_to_settle,
    simulated,
)
from wavesim.validate.tables import Inputs, NotSimulated
from wavesim.warps import Warps
from wavesim.workload import Access, Kernel, Program

__all__ = ["FAMILIES"]

MB = 2**20
LINE = 128
PAGE = 4096
SHIFT = 37
"""Chunks by which passes over data differ, so that SMs of another part of L2 come by it."""
PASSES = 8
"""Passes over data until every part of L2 has a copy of all of it."""


def _measured(
    inputs: Inputs, device: Device, work: Warps, before: Sequence[Kernel] = (), launches: int = 1
) -> dict[str, float]:
    """Give what is measured of the last of so many launches, with others ``before`` them."""
    program = Program([*before, *[kernel_of(inputs, work)] * launches])
    run = simulated(device, program, detail="ctas")
    last = run.ctas.filter(pl.col("kernel") == len(before) + launches - 1)
    lasted = last.select((pl.col("end_ns") - pl.col("start_ns")).mean()).item()
    span = last["end_ns"].max() - last["start_ns"].min()  # type: ignore[operator]
    return {"mean_cycles": lasted * device.clock.sm_mhz / 1e3, "span_ns": span}


def _fma(inputs: Inputs, device: Device) -> dict[str, float]:
    ilp = inputs.count("ilp")
    if not 1 <= ilp <= 8:
        raise NotSimulated(f"ilp must be from 1 to 8 (got {ilp})")
    return _measured(inputs, device, programs.fma_chain(ilp, inputs.count("fma_per_thread")))


def _smem_barrier(inputs: Inputs, device: Device) -> dict[str, float]:
    work = programs.smem_barrier(inputs.count("fma_per_iter"), _iterations(inputs))
    return _measured(inputs, device, work)


def _mixed(inputs: Inputs, device: Device) -> dict[str, float]:
    iterations = _iterations(inputs)
    warps = -(-inputs.count("block") // device.limits.warp_size)
    footprint = max(int(inputs.number("footprint_mb") * MB), LINE)
    # Each warp reads lines at random, the same ones in each launch.
    access = Access.random(footprint, pieces=warps * iterations, piece_bytes=LINE)
    work = programs.mixed(inputs.count("fma_per_load"), iterations, access)
    if 2 * footprint <= device.l2.bytes:
        # Earlier launches have left copies of all of it in every part of L2.
        chunk = min(footprint, PAGE)
        passes = Access.reuse(chunk, footprint // chunk, passes=PASSES, shift=SHIFT)
        sweep = Kernel(grid=2 * device.sms, block=256, work=passes)
        return _measured(inputs, device, work, [sweep])
    # Of the lines there are, so many are ever touched.
    reads = inputs.count("grid") * warps * iterations
    touched = footprint * -math.expm1(-reads * LINE / footprint)
    return _measured(inputs, device, work, launches=launches_to_settle(device, touched))


def _iterations(inputs: Inputs) -> int:
    iterations = inputs.count("iters")
    if iterations < 1:
        raise NotSimulated(f"iters must be at least 1 (got {iterations})")
    return iterations


FAMILIES = (
    Family("fma", ("mean_cycles", "span_ns"), _fma),
    Family("mixed", ("mean_cycles", "span_ns"), _mixed),
    Family("smem_barrier", ("mean_cycles", "span_ns"), _smem_barrier),
)
