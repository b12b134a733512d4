"""``empty``: kernels that do nothing, launched one after the other from one host thread."""

from __future__ import annotations

from wavesim.devices import Device
from wavesim.validate import bodies
from wavesim.validate.families.common import Family, kernel_of, simulated
from wavesim.validate.tables import Inputs
from wavesim.workload import Program

__all__ = ["FAMILIES"]

SIMULATED = 4
"""Launches that are simulated; the others of the row follow at the last one's distance."""


def _empty(inputs: Inputs, device: Device) -> dict[str, float]:
    launches = max(inputs.count("launches"), 1)
    kernel = kernel_of(inputs, bodies.empty())
    kernels = simulated(device, Program([kernel] * min(launches, SIMULATED) + [kernel])).kernels
    ready = kernels["ready_ns"]
    first, period = ready[-1] - ready[0], ready[-1] - ready[-2]
    whole = first + period * (launches - (len(ready) - 1))
    return {"event_us": whole / launches / 1e3}


FAMILIES = (Family("empty", ("event_us",), _empty),)
