"""Persistent blocks and grid barriers: ``persistent_*``, ``persistent_*_dist``, ``gridsync``."""

from __future__ import annotations

from functools import partial
from typing import Literal

from wavesim.devices import Device
from wavesim.durations import Duration
from wavesim.validate import bodies, draws
from wavesim.validate.families.common import (
    Family,
    kernel_of,
    lasting,
    resident,
    simulated,
    span_ns,
)
from wavesim.validate.tables import Inputs
from wavesim.workload import GridSync, Kernel, Persistent

__all__ = ["FAMILIES"]

Schedule = Literal["static", "atomic"]
SCHEDULES: tuple[Schedule, ...] = ("static", "atomic")


def _persistent(inputs: Inputs, device: Device, schedule: Schedule) -> dict[str, float]:
    shares = _shares(inputs, device)
    wait, body = _body(inputs, device, schedule).of_tasks(inputs.number("cycles"), shares)
    kernel = _kernel(inputs, Duration.constant(cycles=wait), schedule, body)
    return {"span_ns": span_ns(simulated(device, kernel))}


def _persistent_dist(inputs: Inputs, device: Device, schedule: Schedule) -> dict[str, float]:
    body = _body(inputs, device, schedule)
    asked = draws.asked(inputs, inputs.count("tasks"), draws.TASK_SEED)
    waits = Duration.per_cta(cycles=body.loaded_waits(asked))
    kernel = _kernel(inputs, waits, schedule, body.loaded())
    return {"span_ns": span_ns(simulated(device, kernel))}


def _gridsync(inputs: Inputs, device: Device) -> dict[str, float]:
    body = bodies.GridBarrier.of(*_sharing(inputs, device))
    time = Duration.constant(cycles=body.wait(inputs.number("cycles")))
    work = GridSync(inputs.count("rounds"), time)
    return {"span_ns": span_ns(simulated(device, kernel_of(inputs, work, cooperative=True)))}


def _kernel(inputs: Inputs, time: Duration, schedule: Schedule, body: bodies.TaskLoop) -> Kernel:
    work = Persistent(
        inputs.count("tasks"),
        time,
        schedule,
        overhead_cycles=body.overhead,
        startup_cycles=body.startup,
    )
    return kernel_of(inputs, work)


def _body(inputs: Inputs, device: Device, schedule: Schedule) -> bodies.TaskLoop:
    return bodies.TaskLoop.of(schedule, *_sharing(inputs, device))


def _shares(inputs: Inputs, device: Device) -> list[int]:
    """Give how many tasks of a static schedule each block of the fullest SM works off."""
    # Nothing to do, or nobody to do it, is refused with the kernel.
    tasks, grid = max(inputs.count("tasks"), 1), max(inputs.count("grid"), 1)
    blocks = range(0, grid, device.sms)
    return [max(-(-(tasks - block) // grid), 0) for block in blocks]


def _sharing(inputs: Inputs, device: Device) -> tuple[int, int]:
    """Give the warps of a block, and how many blocks share an SM at once."""
    warps = -(-inputs.count("block") // device.limits.warp_size)
    return warps, resident(kernel_of(inputs, bodies.empty()), device)


FAMILIES = (
    *(
        Family(
            f"persistent_{schedule}{suffix}",
            ("span_ns",),
            partial(predict, schedule=schedule),
            placed=lasting,
        )
        for suffix, predict in (("", _persistent), ("_dist", _persistent_dist))
        for schedule in SCHEDULES
    ),
    Family(
        "gridsync", ("span_ns",), _gridsync, placed=lambda i, d: lasting(i, d, cooperative=True)
    ),
)
