"""The same program elsewhere, or launched another way."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from wavesim.analyze.replay import replay_device
from wavesim.devices import occupancies
from wavesim.simulate import simulate
from wavesim.text import counted
from wavesim.workload import Duration

if TYPE_CHECKING:
    from wavesim.analyze.plan import Plan, Row
    from wavesim.analyze.stamps import Stamps
    from wavesim.devices import Device

# What people compare with, newest first; of the vendor of the trace's own device.
DEFAULT_DEVICES = {
    "nvidia": ("b200", "h200", "h100-sxm", "a100-sxm4-80", "l40s"),
    "amd": ("mi300x", "mi250x"),
}
AS_REPLAYED = "as replayed"
BOUNDS = ("compute", "bandwidth")
SCHEMA: dict[str, pl.DataType] = {
    "change": pl.String(),
    "device": pl.String(),
    "bound": pl.String(),
    "makespan_ns": pl.Float64(),
    "saved_ns": pl.Float64(),
    "speedup": pl.Float64(),
    "note": pl.String(),
}


@dataclass(frozen=True)
class Baseline:
    """What changes are held against.

    ``cta_ns``: the time of a CTA of each kernel on the source device, by the kernel's id.
    ``makespan_ns``: of the replay.
    """

    device: Device
    plan: Plan
    stamps: Stamps
    cta_ns: Mapping[int, float]
    makespan_ns: float


def as_replayed(base: Baseline) -> dict[str, Any]:
    """Give the row that the others are held against."""
    return _row(base, AS_REPLAYED, base.device, base.makespan_ns)


def in_one_graph(base: Baseline) -> list[dict[str, Any]]:
    """Simulate all of the trace in one graph: the host's pace is gone, and gaps are a graph's.

    What the program waited for on the host (a copy back, a synchronization) is not in a graph; a
    trace in which the host needs results from the device cannot be launched like this as a whole.
    """
    rows = []
    for dependent in (False, True) if base.device.has_dependent_launch else (False,):
        program = base.plan.program(_scaled(base), base.stamps, one_graph=True, dependent=dependent)
        run = simulate(base.device, program, detail="kernels")
        change = "all launches in one graph" + (", dependent launch" if dependent else "")
        rows.append(_row(base, change, base.device, run.makespan_ns))
    return rows


def on_devices(base: Baseline, others: Sequence[Device]) -> list[dict[str, Any]]:
    """Simulate the same host calls on other devices, each at both bounds.

    A trace does not say what held a kernel, so two answers stand side by side:

    - compute: an SM does as much a clock as the source's. A CTA's time scales with the clock ratio
      and with how many CTAs share the SM.
    - bandwidth: DRAM gives as much of its bandwidth as the source's. A CTA's time scales with the
      bandwidth ratio and with how many CTAs of the kernel share the device.

    Neither knows of new instructions, tensor cores or a larger L2. The host calls keep their times:
    a trace that is host bound stays so on any device. Where a kernel's launch shape is refused,
    there is no answer, and ``note`` says why. A trace without launch shapes has no rows.
    """
    rows: list[dict[str, Any]] = []
    if not base.plan.kernels():
        return rows
    for other in others:
        target, change = replay_device(other), f"on {other.title}"
        fits, refusals = _residency(other, base.plan)
        if refusals:
            do = "does" if len(refusals) == 1 else "do"
            some = f"{len(refusals):,} of {counted(len(fits), 'kernel')}"
            note = f"{some} {do} not launch there: {refusals[0]}"
            rows.append(_row(base, change, other, None, note=note))
            continue
        for bound in BOUNDS:
            work = _scaled(base, _scaling(base.device, other, fits, bound))
            program = base.plan.program(work, base.stamps)
            run = simulate(target, program, detail="kernels")
            rows.append(_row(base, change, other, run.makespan_ns, bound=bound))
    return rows


def _scaling(
    source: Device, target: Device, fits: dict[int, int], bound: str
) -> Callable[[Row], float]:
    """Give by how much a CTA of a row is slower on the target, at one bound."""

    def compute(row: Row) -> float:
        on_an_sm = min(row["residency"], math.ceil(row["grid"] / source.sms))
        there = min(fits[row["id"]], math.ceil(row["grid"] / target.sms))
        clocks = source.clock.sm_mhz / target.clock.sm_mhz
        return float(clocks * there / on_an_sm)

    def bandwidth(row: Row) -> float:
        at_once = min(row["grid"], source.sms * row["residency"])
        there = min(row["grid"], target.sms * fits[row["id"]])
        reached = source.dram.reached_gb_s / target.dram.reached_gb_s
        return float(reached * there / at_once)

    return compute if bound == "compute" else bandwidth


def _residency(device: Device, plan: Plan) -> tuple[dict[int, int], list[str]]:
    """Find how many CTAs of each kernel an SM holds there, and why some do not launch."""
    rows = plan.kernels()
    found = occupancies(
        device,
        block=[row["block"] for row in rows],
        registers=[row["registers"] or 0 for row in rows],
        shared_memory=[row["shared_memory"] or 0 for row in rows],
    )
    ids = (row["id"] for row in rows)
    fits = dict(zip(ids, found["ctas_per_sm"].to_list(), strict=True))
    return fits, found["refusal"].drop_nulls().to_list()


def _scaled(
    base: Baseline, scale: Callable[[Row], float] = lambda _: 1.0
) -> Callable[[Row], Duration]:
    """Give what makes a row's work: the time of its CTAs, scaled."""
    return lambda row: Duration.constant(ns=base.cta_ns[row["id"]] * scale(row))


def _row(
    base: Baseline,
    change: str,
    device: Device,
    makespan_ns: float | None,
    *,
    bound: str | None = None,
    note: str = "",
) -> dict[str, Any]:
    return {
        "change": change,
        "device": device.name,
        "bound": bound,
        "makespan_ns": makespan_ns,
        "saved_ns": None if makespan_ns is None else base.makespan_ns - makespan_ns,
        "speedup": base.makespan_ns / makespan_ns if makespan_ns else None,
        "note": note,
    }
