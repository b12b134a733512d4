"""Kernels side by side: ``streams``, ``two_kernels``, ``mixed_residency``, ``spoiler``."""

from __future__ import annotations

from wavesim.devices import Device
from wavesim.durations import Duration
from wavesim.validate import bodies
from wavesim.validate.families.common import Family, logged, simulated, span_ns
from wavesim.validate.tables import Inputs
from wavesim.workload import Copy, Kernel, Launch, Program, Record, Stream, Wait

__all__ = ["FAMILIES"]

HELD_NS = 1e9
"""How long ``spoiler`` holds its SMs: far longer than any measured kernel."""

SETTLED_NS = 1e5
"""When the held SMs are surely full, or the kernels behind a gate surely queued."""


def _span(program: Program, device: Device) -> dict[str, float]:
    return {"span_ns": span_ns(simulated(device, program))}


def _streams(inputs: Inputs, device: Device) -> Program:
    kernel = logged(inputs, bodies.spin(inputs.number("cycles")))
    return Program([Launch(kernel, stream=stream) for stream in range(inputs.count("streams"))])


def _two_kernels(inputs: Inputs, device: Device) -> Program:
    first = logged(inputs, bodies.spin(inputs.number("cycles")))
    work = bodies.spin(inputs.number("second_cycles"))
    second = logged(inputs, work, grid="second_grid")
    urgent = device.launch.greatest_priority if inputs.number("high_priority", 0) else 0
    return Program([Launch(first), Launch(second, stream=1)], {1: Stream(priority=urgent)})


def _mixed_residency(inputs: Inputs, device: Device) -> dict[str, float]:
    first = logged(inputs, bodies.spin(inputs.number("cycles")))
    second = logged(
        inputs,
        bodies.spin(inputs.number("second_cycles")),
        grid="second_grid",
        block="second_block",
        shared_memory="second_smem",
    )
    # The event lets streams go in their own order, whichever kernel was issued first.
    items: list[Copy | Record | Wait | Launch] = [Copy(SETTLED_NS), Record("gate")]
    for stream, kernel in enumerate((first, second), start=1):
        items += [Wait("gate", stream=stream), Launch(kernel, stream=stream)]
    return {"span_ns": span_ns(simulated(device, Program(items)))}


def _spoiler(inputs: Inputs, device: Device) -> dict[str, float]:
    kernel = logged(inputs, bodies.spin(inputs.number("cycles")))
    items = [Launch(kernel, stream=1, at_ns=SETTLED_NS)]
    if held := inputs.count("held_sms"):
        holder = Kernel(
            grid=held,
            block=32,
            shared_memory=device.limits.shared_optin_bytes,
            work=Duration.constant(ns=HELD_NS),
            name="holder",
        )
        items.insert(0, Launch(holder))
    run = simulated(device, Program(items), detail="ctas")
    last = run.kernels.height - 1
    return {
        "span_ns": float(run.kernels["duration_ns"][last]),
        "sms_used": float(run.ctas.filter(kernel=last)["sm"].n_unique()),
    }


FAMILIES = (
    Family("streams", ("span_ns",), lambda i, d: _span(_streams(i, d), d), placed=_streams),
    Family(
        "two_kernels", ("span_ns",), lambda i, d: _span(_two_kernels(i, d), d), placed=_two_kernels
    ),
    # Which of its kernels comes first is a race, so that where they lie cannot be compared.
    Family("mixed_residency", ("span_ns",), _mixed_residency),
    Family("spoiler", ("span_ns", "sms_used"), _spoiler),
)
