"""Placement: whether the CTAs of the first wave lie on the SMs on which they were logged.

A launch begins with the GPC, and with the left-over TPC, at which the launches before it left off.
Nothing in a row says which these are, so they are read from its log: the first SM logged in a whole
GPC, and the first one in a left-over TPC. All other SMs follow from the model. Only runs that fill
the machine are looked at, and of these the CTAs that were given slots before any came back: behind
them, which CTA gets a slot is chance.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import polars as pl

from wavesim.compare import first_wave
from wavesim.devices import Device, Occupancy, occupancy
from wavesim.simulate import simulate
from wavesim.workload import Kernel, Launch, Program

__all__ = ["Sms", "occupancy_of", "share_placed"]

Sms: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
"""The SM of each block of a run, by the block's number over the run's kernels."""


def share_placed(workload: Program | Kernel, device: Device, logged: Sms) -> float | None:
    """Give the share of the first wave's CTAs that lie on their logged SMs.

    Args:
        workload: what ran.
        device: what it ran on.
        logged: where its blocks were.

    Returns:
        0 to 1; None if the run does not fill the machine, or if the log is not one of its blocks.
    """
    program = workload if isinstance(workload, Program) else Program([Launch(workload)])
    first = next(iter(program.launches())).kernel
    if first.ctas < _filling(first, device) or not (0 <= logged.min() <= logged.max() < device.sms):
        return None
    ctas = first_wave(simulate(device, program, first_sms=_first_sms(logged, device)))
    if ctas.height != len(logged):
        return None
    wave = ctas.with_columns(logged=logged).filter("first_wave")
    return float(wave.select((pl.col("sm") == pl.col("logged")).mean()).item())


def occupancy_of(kernel: Kernel, device: Device) -> Occupancy:
    """Give what an SM holds of a kernel, when it has the device to itself."""
    return occupancy(
        device,
        block=kernel.threads,
        registers=kernel.registers,
        shared_memory=kernel.shared_memory,
        barriers=kernel.barriers,
        cluster=kernel.cluster,
        cluster_launch=kernel.cluster_launch,
        non_portable_cluster=kernel.non_portable_cluster,
    )


def _filling(kernel: Kernel, device: Device) -> int:
    """How many CTAs bring one to each SM that the kernel can use."""
    most = occupancy_of(kernel, device)
    return most.max_active_clusters * kernel.cluster // max(most.ctas_per_sm, 1)


def _first_sms(logged: Sms, device: Device) -> tuple[int, ...]:
    """Read where the launch began, in whole GPCs and in left-over TPCs."""
    groups = [group for gpc in device.topology.gpcs for group in gpc.groups]
    left_over = [sm for group in groups if group.max_cluster is not None for sm in group.sms]
    among = np.isin(logged, left_over)
    return tuple(int(sms[0]) for sms in (logged[~among], logged[among]) if len(sms))
