"""What CTAs did while they were busy: issue, memory, or waiting for other warps and CTAs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from wavesim.access import Access
from wavesim.streaming import Streaming
from wavesim.tiles import Tiles
from wavesim.warps import Warps
from wavesim.workload import Kernel

if TYPE_CHECKING:
    from wavesim.devices import Device
    from wavesim.run import Run

__all__ = ["BUSY", "KINDS", "busy", "lane_cycles", "tensor_cycles"]

KINDS = ("issue", "memory", "sync", "unknown")
"""``issue``: instructions, tensor cores, lanes, and waiting for one's turn; ``memory``: waiting for
loads and stores; ``sync``: waiting for other warps or CTAs; ``unknown``: work told as a time."""

BUSY: dict[str, Any] = {
    "kind": pl.String,  # one of KINDS
    "time_ps": pl.Int128,  # slot time
    "share": pl.Float64,  # of all slot time
}
"""``run.busy``: a row a kind; ``time_ps`` adds up to the ledger's ``busy`` exactly."""


def busy(run: Run) -> pl.DataFrame:
    """Split the ledger's ``busy`` by what its CTAs did, in the columns of ``BUSY``.

    Warp programs are split by the states of their warps (``run.warps``). A tiled product is at
    ``issue`` for as much of the time as the tensor cores of its SMs work, at the mean clock of the
    GPCs, a streaming kernel for as much as their FP32 lanes do, and both wait for memory else.
    Memory work is ``memory``; work whose time is given says no more than that it is busy. What CTAs
    of any of these wait at counters, grid barriers and flags, or for the kernel ahead, is ``sync``.
    """
    warps = run.warps.group_by("kernel", "kind").agg(pl.col("share").sum())
    states: dict[int, dict[str, float]] = {}
    for kernel, kind, share in warps.iter_rows():
        states.setdefault(kernel, {})[kind] = share
    weights = dict.fromkeys(KINDS, 0.0)
    columns = ("kernel", "utilization", "duration_ns", "residency", "sync_ns")
    launches = zip(run.program.launches(), run.kernels.select(columns).iter_rows(), strict=True)
    for launch, (kernel, utilization, duration_ns, residency, sync_ns) in launches:
        slot_ns = utilization * duration_ns * residency * run.device.sms
        weights["sync"] += min(sync_ns, slot_ns)
        slot_ns -= min(sync_ns, slot_ns)
        found = _shares(launch.kernel, run.device, slot_ns, residency, states.get(kernel))
        for kind, share in found:
            weights[kind] += share * slot_ns
    total = int(run.ledger.row(by_predicate=pl.col("account") == "busy", named=True)["time_ps"])
    return pl.DataFrame(
        {
            "kind": KINDS,
            "time_ps": (times := _apportioned(total, list(weights.values()))),
            "share": [time / max(run.slots * run.makespan_ps, 1) for time in times],
        },
        schema=BUSY,
    )


def _shares(
    kernel: Kernel, device: Device, slot_ns: float, residency: int, states: dict[str, float] | None
) -> list[tuple[str, float]]:
    if isinstance(kernel.work, Warps) and states:
        return list(states.items())
    if isinstance(kernel.work, Access):
        return [("memory", 1.0)]
    if isinstance(kernel.work, Tiles | Streaming):
        arithmetic_ns = _arithmetic_cycles(kernel.work, device) / device.clock.sm_mhz * 1e3
        # How many of its CTAs an SM holds while it runs any.
        resident = min(max(kernel.ctas / device.sms, 1.0), residency)
        share = min(arithmetic_ns * resident / slot_ns, 1.0) if slot_ns else 0.0
        return [("issue", share), ("memory", 1.0 - share)]
    return [("unknown", 1.0)]


def _arithmetic_cycles(work: Tiles | Streaming, device: Device) -> float:
    return tensor_cycles(work, device) if isinstance(work, Tiles) else lane_cycles(work, device)


def tensor_cycles(work: Tiles, device: Device) -> float:
    """SM cycles, added up over the SMs, that the tensor cores work on a product's whole tiles."""
    rows, columns = work.grid
    m, n, step = work.tile
    flops = 2 * rows * m * columns * n * -(-work.k // step) * step
    return flops * work.element_bytes / 2 / device.limits.tensor_flops_per_cycle


def lane_cycles(work: Streaming, device: Device) -> float:
    """SM cycles, added up over the SMs, that the lanes work on a streaming kernel's elements."""
    return work.elements * work.operations / device.limits.fp32_lanes


def _apportioned(total: int, weights: list[float]) -> list[int]:
    """Whole parts of ``total`` in proportion to the weights, by largest remainder."""
    whole = sum(weights)
    if whole <= 0:
        return [0] * (len(weights) - 1) + [total]
    exact = [total * (weight / whole) for weight in weights]
    parts = [int(part) for part in exact]
    left = total - sum(parts)
    # What rounding of large totals leaves goes to the largest part.
    order = sorted(range(len(parts)), key=lambda i: parts[i] - exact[i])
    for i in order[: max(min(left, len(parts)), 0)]:
        parts[i] += 1
    parts[exact.index(max(exact))] += total - sum(parts)
    return parts
