"""The experiments: how a row of each becomes a workload, and what of the run is compared."""

from __future__ import annotations

from wavesim.validate.families import clusters, empty, launches, persistent, several, spin
from wavesim.validate.families.common import Family

__all__ = ["FAMILIES", "NOT_MODELLED", "Family"]

FAMILIES: dict[str, Family] = {
    family.name: family
    for module in (empty, spin, persistent, clusters, several, launches)
    for family in module.FAMILIES
}
"""Every experiment that is simulated, by name."""

_MEMORY = "the model has no memory hierarchy: what a CTA reads and writes takes no time of its own"
_ISSUE = "the model has no warp issue: how warps share a scheduler is not simulated"

NOT_MODELLED: dict[str, str] = {
    **dict.fromkeys(
        (
            "stream_l2",
            "stream_dram",
            "write",
            "latency",
            "mixed",
            "panel",
            "reuse",
            "broadcast",
            "cublas_gemm",
            "triton_gemm",
            "triton_tiles",
            "streamk_gemm",
            "flash_attention",
            "elementwise",
        ),
        _MEMORY,
    ),
    **dict.fromkeys(("fma", "fma1", "fma4", "smem_barrier"), _ISSUE),
}
"""Experiments and tables that are known and not simulated, and why."""
