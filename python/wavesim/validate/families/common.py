"""What the experiments have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wavesim.devices import Device
from wavesim.durations import Duration
from wavesim.run import Run
from wavesim.simulate import simulate
from wavesim.validate import bodies
from wavesim.validate.placement import occupancy_of
from wavesim.validate.tables import Inputs
from wavesim.workload import Access, Graph, GridSync, Kernel, Persistent, Program, Tiles, Warps

__all__ = [
    "Family",
    "completion_us",
    "kernel_of",
    "lasting",
    "launches_to_settle",
    "logged",
    "resident",
    "simulated",
    "span_ns",
    "spin_kernel",
]

SEED = 0
"""Of every run. The dispatcher's first GPC follows from it; spans change by a few ns with it."""

LASTING = 1e6
"""Cycles in which any machine is filled."""

Predict = Callable[[Inputs, Device], Mapping[str, float]]


@dataclass(frozen=True)
class Family:
    """An experiment."""

    name: str
    measures: tuple[str, ...]
    """What of a row is predicted."""
    predict: Predict
    """Gives these, from the row's inputs."""
    with_blocks: bool = False
    """Whether what each block took is among the inputs."""
    placed: Callable[[Inputs, Device], Program | Kernel] | None = None
    """Gives what runs, where placement is compared too."""


def kernel_of(
    inputs: Inputs,
    work: Duration | Persistent | GridSync | Access | Tiles | Warps,
    *,
    grid: str = "grid",
    block: str = "block",
    shared_memory: str = "smem",
    **fields: Any,
) -> Kernel:
    """Give the row's kernel; the names are those of its columns."""
    return Kernel(
        grid=inputs.count(grid),
        block=inputs.count(block),
        shared_memory=inputs.count(shared_memory, 0),
        registers=inputs.count("regs", 0) or bodies.UNNOTED_REGISTERS,
        work=work,
        **fields,
    )


def resident(kernel: Kernel, device: Device) -> int:
    """Give how many of a kernel's CTAs share an SM, when it has the device to itself."""
    most = occupancy_of(kernel, device).ctas_per_sm
    return max(min(most, -(-kernel.ctas // device.sms)), 1)


def logged(inputs: Inputs, work: Duration, **fields: Any) -> Kernel:
    """Give the row's kernel where one warp of a block writes its record when the others leave."""
    return kernel_of(inputs, work, last_warp_cycles=bodies.LAST_WARP, **fields)


def spin_kernel(inputs: Inputs, device: Device, **fields: Any) -> Kernel:
    """Give the row's kernel where that is ``spin``."""
    cycles = inputs.number("cycles")
    kernel = logged(inputs, bodies.spin(cycles), **fields)
    return kernel.edited(work=bodies.spin(cycles, resident(kernel, device)))


def lasting(inputs: Inputs, device: Device, **fields: Any) -> Kernel:
    """Give the row's kernel with blocks that last: where they go first depends on its shape."""
    return kernel_of(inputs, Duration.constant(cycles=LASTING), **fields)


def simulated(
    device: Device, program: Program | Kernel, detail: Literal["kernels", "ctas"] = "kernels"
) -> Run:
    """Run a workload as all rows are run."""
    return simulate(device, program, seed=SEED, detail=detail)


def launches_to_settle(device: Device, touched_bytes: float) -> int:
    """Give the launch of a kernel that finds in L2 what all later ones find there too.

    Each launch touches so many bytes, the same ones. A launch leaves in L2 what it touched last, so
    a second finds what a third does; unless there is room for copies in other parts of L2, of which
    each launch adds some: from the fourth on, times differ by less than a per cent and in either
    direction. Of more than twice what L2 holds nothing is found again.
    """
    held = device.l2.bytes
    return 4 if touched_bytes <= held else 2 if touched_bytes <= 2 * held else 1


def span_ns(run: Run) -> float:
    """From the first CTA's start to the last one's end, over all kernels."""
    start, end = run.kernels["start_ns"].min(), run.kernels["end_ns"].max()
    assert isinstance(start, float)  # a run has at least one kernel
    assert isinstance(end, float)
    return end - start


def completion_us(device: Device, kernel: Kernel) -> float:
    """From a kernel's first CTA's start to its completion: when the end of its last CTA is known.

    That is when what follows in a graph becomes runnable, less the gap to it.
    """
    behind = Kernel(grid=1, block=32, work=Duration.constant(ns=0.0))
    kernels = simulated(device, Program([Graph([kernel, behind])])).kernels
    complete = kernels["ready_ns"][1] - device.launch.graph_gap_ns
    return float(complete - kernels["start_ns"][0]) / 1e3
