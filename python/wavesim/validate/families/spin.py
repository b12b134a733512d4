"""One grid of blocks that wait: ``spin``, ``spin_regs``, ``spin_dist`` and ``spin_grid``."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim.devices import Device
from wavesim.durations import Duration
from wavesim.run import Run
from wavesim.validate import bodies, draws, programs
from wavesim.validate.families.common import (
    Family,
    completion_us,
    kernel_of,
    logged,
    resident,
    simulated,
    span_ns,
    spin_kernel,
)
from wavesim.validate.tables import Inputs, NotSimulated
from wavesim.workload import Kernel

__all__ = ["FAMILIES"]


def _spin(inputs: Inputs, device: Device) -> dict[str, float]:
    return {"span_ns": span_ns(simulated(device, spin_kernel(inputs, device)))}


def _spin_regs(inputs: Inputs, device: Device) -> dict[str, float]:
    kernel = _spin_regs_kernel(inputs, device)
    most = resident(kernel, device)
    run = simulated(device, kernel, detail="ctas")
    residents = np.where(_alone(run), 1, most).tolist()
    if most > 1 and 1 in residents:
        # Those left over at the end have their SM to themselves, and its multiply-adds.
        work = bodies.spin_regs_beside(inputs.number("cycles"), residents)
        run = simulated(device, kernel.edited(work=work))
    return {"span_ns": span_ns(run)}


def _alone(run: Run) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Tell of each CTA of a run whether it shared its SM for less than half of its time."""
    ctas = run.ctas.sort("cta")
    sms = ctas["sm"].to_numpy()
    starts, ends = ctas["start_ns"].to_numpy(), ctas["end_ns"].to_numpy()
    alone = np.empty(len(sms), dtype=np.bool_)
    for cta, (sm, start, end) in enumerate(zip(sms, starts, ends, strict=True)):
        beside = sms == sm
        shared = np.minimum(ends[beside], end) - np.maximum(starts[beside], start)
        # The CTA itself is among them.
        alone[cta] = np.maximum(shared, 0.0).sum() < 1.5 * (end - start)
    return alone


def _spin_regs_kernel(inputs: Inputs, device: Device) -> Kernel:
    cycles = inputs.number("cycles")
    kernel = logged(inputs, bodies.spin(cycles))
    return kernel.edited(work=bodies.spin_regs(cycles, resident(kernel, device)))


def _spin_dist(inputs: Inputs, device: Device) -> dict[str, float]:
    return {"span_ns": span_ns(simulated(device, _spin_dist_kernel(inputs, device)))}


def _spin_dist_kernel(inputs: Inputs, device: Device) -> Kernel:
    grid = inputs.count("grid")
    if inputs.block_cycles is None:
        return kernel_of(inputs, programs.spin_listed(draws.asked(inputs, grid, grid + 1)))
    if len(inputs.block_cycles) != grid:
        found = len(inputs.block_cycles)
        raise NotSimulated(f"blocks.parquet has {found} blocks of a grid of {grid}")
    # A block's clock starts with its first warp; the engine counts what the others take apart.
    warps = -(-inputs.count("block") // device.limits.warp_size)
    setup = device.dispatch.setup_cycles + warps * device.dispatch.setup_warp_cycles
    work = Duration.per_cta(cycles=np.maximum(inputs.block_cycles - setup, 0.0))
    return logged(inputs, work)


def _spin_grid(inputs: Inputs, device: Device) -> dict[str, float]:
    kernel = kernel_of(inputs, bodies.unlogged(inputs.number("cycles")))
    return {"event_us": completion_us(device, kernel) + device.launch.event_ns / 1e3}


FAMILIES = (
    Family("spin", ("span_ns",), _spin, placed=spin_kernel),
    Family("spin_regs", ("span_ns",), _spin_regs, placed=_spin_regs_kernel),
    Family("spin_dist", ("span_ns",), _spin_dist, with_blocks=True, placed=_spin_dist_kernel),
    Family("spin_grid", ("event_us",), _spin_grid),
)
