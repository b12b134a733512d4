"""``cluster``: ``spin`` launched in thread block clusters."""

from __future__ import annotations

from wavesim.devices import Device, occupancy
from wavesim.validate.families.common import Family, simulated, span_ns, spin_kernel
from wavesim.validate.tables import Inputs
from wavesim.workload import Kernel

__all__ = ["FAMILIES"]


def _kernel(inputs: Inputs, device: Device) -> Kernel:
    size = inputs.count("cluster", 1)
    large = size > device.limits.max_cluster
    return spin_kernel(
        inputs, device, cluster=size, cluster_launch=True, non_portable_cluster=large
    )


def _cluster(inputs: Inputs, device: Device) -> dict[str, float]:
    kernel = _kernel(inputs, device)
    residency = occupancy(
        device,
        block=kernel.threads,
        registers=kernel.registers,
        shared_memory=kernel.shared_memory,
        cluster=kernel.cluster,
        cluster_launch=True,
        non_portable_cluster=kernel.non_portable_cluster,
    )
    return {
        "span_ns": span_ns(simulated(device, kernel)),
        "max_active_clusters": float(residency.max_active_clusters),
    }


FAMILIES = (Family("cluster", ("span_ns", "max_active_clusters"), _cluster, placed=_kernel),)
