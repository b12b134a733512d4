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


def _stream(inputs: Inputs, device: Device) -> Program:
    return Program([spin_kernel(inputs, device)] * min(inputs.count("kernels"), LOGGED))


def _graph(inputs: Inputs, device: Device) -> Program:
    launch = Launch(spin_kernel(inputs, device))
    return Program([Graph([launch] * min(inputs.count("kernels"), LOGGED))])


def _graph_pdl(inputs: Inputs, device: Device) -> Program:
    trigger = inputs.number("trigger", 0) > 0
    launch = Launch(spin_kernel(inputs, device), dependent=True, trigger=trigger)
    return Program([Graph([launch] * min(inputs.count("kernels"), LOGGED))])


def _launch_stream(inputs: Inputs, device: Device) -> dict[str, float]:
    return {"span_ns": _span_ns(simulated(device, _stream(inputs, device)))}


def _launch_graph(inputs: Inputs, device: Device, program: Program) -> dict[str, float]:
    kernels = inputs.count("kernels")
    span = _span_ns(simulated(device, program))
    whole = span + max(kernels - LOGGED, 0) * span / LOGGED
    return {"span_ns": span, "event_us": (whole + bodies.GRAPH_CALL_NS) / kernels / 1e3}


def _span_ns(run: Run) -> float:
    kernels = run.kernels
    return float(kernels["end_ns"][-1] - kernels["start_ns"][0])


FAMILIES = (
    Family("launch_stream", ("span_ns",), _launch_stream, placed=_stream),
    Family(
        "launch_graph",
        ("span_ns", "event_us"),
        lambda i, d: _launch_graph(i, d, _graph(i, d)),
        placed=_graph,
    ),
    Family(
        "launch_graph_pdl",
        ("span_ns", "event_us"),
        lambda i, d: _launch_graph(i, d, _graph_pdl(i, d)),
        placed=_graph_pdl,
    ),
)
