"""Changes of the device: what the program asks for is faster, or costs nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import UnionType
from typing import TYPE_CHECKING

from wavesim.changes.change import WORTH_SIMULATING, Change, does, has
from wavesim.text import all_of
from wavesim.warps import Arithmetic, Load, Store, Tensor
from wavesim.workload import Access, Chain, GridSync, Persistent, Streaming, Tiles

if TYPE_CHECKING:
    from wavesim.run import Run

__all__ = [
    "cheaper_sync",
    "faster_arithmetic",
    "faster_dram",
    "faster_l2",
    "faster_tensor_cores",
    "ideal_dispatcher",
    "more_lanes",
    "nearer_memory",
]


def ideal_dispatcher(run: Run) -> Change | None:
    """Place CTAs at no cost."""
    if run.dispatcher == "ideal":
        return None
    return Change("a dispatcher that costs nothing", run.program, "ideal")


def faster_dram(run: Run) -> Change | None:
    """Double the bandwidth of DRAM, if that moves enough to be waited for."""
    moved = float(run.l2["dram_read_bytes"].sum()) + float(run.l2["dram_written_bytes"].sum())
    if _is_negligible(run, moved / run.device.dram.reached_gb_s):
        return None
    numbers = {"dram.bandwidth_gb_s": 2.0, "dram.reached_gb_s": 2.0}
    return _on_device(run, "DRAM of twice the bandwidth", "DRAM bandwidth", numbers)


def faster_l2(run: Run) -> Change | None:
    """Double the bandwidth of L2, on the way to each SM too, if enough is moved there."""
    l2 = run.device.l2
    port_gb_s = l2.port_bytes_per_cycle * run.device.clock.sm_mhz / 1e3
    sectors_ns = (
        float(run.l2["sm_sectors"].sum()) / l2.bandwidth_gb_s
        + float(run.l2["fabric_sectors"].sum()) / l2.fabric_bandwidth_gb_s
        + float(run.l2["written_sectors"].sum()) / l2.write_bandwidth_gb_s
        # as if one SM had moved it all
        + float((run.l2["requested_sectors"] + run.l2["written_sectors"]).sum()) / port_gb_s
    )
    if _is_negligible(run, sectors_ns * l2.sector_bytes):
        return None
    numbers = {
        "l2.bandwidth_gb_s": 2.0,
        "l2.write_bandwidth_gb_s": 2.0,
        "l2.fabric_bandwidth_gb_s": 2.0,
        "l2.port_bytes_per_cycle": 2.0,
    }
    return _on_device(run, "L2 of twice the bandwidth", "L2 bandwidth", numbers)


def _is_negligible(run: Run, busy_ns: float) -> bool:
    """Whether moving what the run did takes so little time that it can't be worth simulating.

    ``run.l2`` counts nothing of loads and stores that only say from how many bytes they are.
    """
    return not has(run.program, Load | Store) and busy_ns < WORTH_SIMULATING * run.makespan_ns


def nearer_memory(run: Run) -> Change | None:
    """Halve the latencies of L2 and DRAM."""
    numbers = {
        "l2.near_latency_cycles": 0.5,
        "l2.far_latency_cycles": 0.5,
        "dram.latency_cycles": 0.5,
    }
    return _on_device(run, "half the latency of L2 and DRAM", "memory latency", numbers)


def faster_tensor_cores(run: Run) -> Change | None:
    """Double the rate of the tensor cores."""
    numbers = {
        "limits.tensor_flops_per_cycle": 2.0,
        "issue.tensor_interval_cycles": 0.5,
        "issue.tensor_latency_cycles": 0.5,
    }
    words = "tensor cores of twice the rate"
    return _on_device(run, words, "tensor cores", numbers, Tiles | Tensor)


def faster_arithmetic(run: Run) -> Change | None:
    """Halve the latency of dependent multiply-adds."""
    numbers = {"issue.fma_latency_cycles": 0.5}
    words = "multiply-adds of half the latency"
    return _on_device(run, words, "arithmetic latency", numbers, Arithmetic)


def more_lanes(run: Run) -> Change | None:
    """Double the FP32 lanes of an SM, if some kernel has anything to do on them."""
    works = (launch.kernel.work for launch in run.program.launches())
    if not any(isinstance(work, Streaming) and work.operations for work in works):
        return None
    numbers = {"limits.fp32_lanes": 2.0}
    return _on_device(run, "twice the FP32 lanes", "arithmetic", numbers, Streaming)


def cheaper_sync(run: Run) -> Change | None:
    """Halve what grid barriers, counters and flags cost."""
    timings = type(run.device.sync).model_fields
    numbers = {f"sync.{name}": 0.5 for name in timings if name.endswith("_cycles")}
    found = [name for kind, name in _WORDS.items() if has(run.program, kind)]
    if not found:
        return None
    named = all_of(found)
    words = f"{named} that cost half as much"
    return _on_device(run, words, f"the cost of {named}", numbers, GridSync | Chain | Persistent)


_WORDS = {GridSync: "grid barriers", Persistent: "counters", Chain: "flags"}
"""What CTAs of such work wait at."""


def _on_device(
    run: Run,
    words: str,
    limit: str,
    factors: Mapping[str, float],
    work: type | UnionType = Access | Tiles | Streaming | Load | Store,
) -> Change | None:
    """The same program on a device whose numbers are multiplied.

    None if launches with such work last too short for it to be worth simulating.
    """
    if _lasting_ns(run, work) < WORTH_SIMULATING * run.makespan_ns:
        return None
    edits: dict[str, float] = {}
    for path, factor in factors.items():
        part, name = path.split(".")
        value = getattr(getattr(run.device, part), name)
        whole = isinstance(value, int)
        edits[path] = max(round(value * factor), 1) if whole else value * factor
    device = run.device.edited(edits)
    return Change(words, run.program, run.dispatcher, device=device, limit=limit)


def _lasting_ns(run: Run, kinds: type | UnionType) -> float:
    """For how long launches with such work run, added up: no change of it gives back more."""
    lasting = zip(run.program.launches(), run.kernels["duration_ns"].to_list(), strict=True)
    return math.fsum(ns for launch, ns in lasting if does(launch.kernel.work, kinds))
