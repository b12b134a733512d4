"""Kernels in which warps share the schedulers of an SM: ``fma``, ``smem_barrier``, ``mixed``."""

from __future__ import annotations

import math

import polars as pl

from wavesim.devices import Device
from wavesim.validate import programs
from wavesim.validate.families.common import Family, kernel_of, simulated, span_ns
from wavesim.validate.tables import Inputs, NotSimulated
from wavesim.warps import Warps

__all__ = ["FAMILIES"]

MB = 2**20
LINE = 128


def _measured(inputs: Inputs, device: Device, work: Warps) -> dict[str, float]:
    run = simulated(device, kernel_of(inputs, work), detail="ctas")
    lasted = run.ctas.select((pl.col("end_ns") - pl.col("start_ns")).mean()).item()
    return {"mean_cycles": lasted * device.clock.sm_mhz / 1e3, "span_ns": span_ns(run)}


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
    # Each warp reads lines at random: of the lines there are, so many are ever touched.
    warps = inputs.count("grid") * -(-inputs.count("block") // device.limits.warp_size)
    all_bytes = inputs.number("footprint_mb") * MB
    touched = all_bytes * -math.expm1(-warps * iterations * LINE / all_bytes) if all_bytes else 0
    work = programs.mixed(inputs.count("fma_per_load"), iterations, max(int(touched), LINE))
    return _measured(inputs, device, work)


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
