"""Many small kernels in a row: ``launch_stream``, ``launch_graph``, ``launch_graph_pdl``."""

from __future__ import annotations

from wavesim.devices import Device
from wavesim.run import Run
from wavesim.validate import bodies
from wavesim.validate.families.common import Family, simulated, spin_kernel
from wavesim.validate.tables import Inputs
from wavesim.workload import Graph, Launch, Program

__all__ = ["FAMILIES"]

LOGGED = 200
"""Kernels whose blocks are logged, from the first: what ``span_ns`` is over."""


def _launch_stream(inputs: Inputs, device: Device) -> dict[str, float]:
    kernel = spin_kernel(inputs, device)
    kernels = min(inputs.count("kernels"), LOGGED)
    return {"span_ns": _span_ns(simulated(device, Program([kernel] * kernels)))}


def _launch_graph(inputs: Inputs, device: Device) -> dict[str, float]:
    kernel = spin_kernel(inputs, device)
    return _graph(inputs, device, Launch(kernel))


def _launch_graph_pdl(inputs: Inputs, device: Device) -> dict[str, float]:
    kernel = spin_kernel(inputs, device)
    trigger = inputs.number("trigger", 0) > 0
    return _graph(inputs, device, Launch(kernel, dependent=True, trigger=trigger))


def _graph(inputs: Inputs, device: Device, launch: Launch) -> dict[str, float]:
    kernels = inputs.count("kernels")
    run = simulated(device, Program([Graph([launch] * min(kernels, LOGGED))]))
    span = _span_ns(run)
    whole = span + max(kernels - LOGGED, 0) * span / LOGGED
    return {"span_ns": span, "event_us": (whole + bodies.GRAPH_CALL_NS) / kernels / 1e3}


def _span_ns(run: Run) -> float:
    kernels = run.kernels
    return float(kernels["end_ns"][-1] - kernels["start_ns"][0])


FAMILIES = (
    Family("launch_stream", ("span_ns",), _launch_stream),
    Family("launch_graph", ("span_ns", "event_us"), _launch_graph),
    Family("launch_graph_pdl", ("span_ns", "event_us"), _launch_graph_pdl),
)
