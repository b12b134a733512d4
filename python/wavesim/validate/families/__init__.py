"""The experiments: how a row of each becomes a workload, and what of the run is compared."""

from __future__ import annotations

from wavesim.validate.families import (
    clusters,
    elementwise,
    empty,
    issue,
    launches,
    memory,
    persistent,
    products,
    several,
    spin,
)
from wavesim.validate.families.common import Family

__all__ = ["FAMILIES", "NOT_MODELLED", "Family"]

FAMILIES: dict[str, Family] = {
    family.name: family
    for module in (
        empty,
        spin,
        persistent,
        clusters,
        several,
        launches,
        memory,
        products,
        elementwise,
        issue,
    )
    for family in module.FAMILIES
}
"""Every experiment that is simulated, by name."""

_BOTH = "the model has memory and arithmetic apart: work that is both has no form yet"
_PROFILED = "profiled runs of `fma`: counters, and no time of a block"

NOT_MODELLED: dict[str, str] = {
    **dict.fromkeys(
        (
            "cublas_gemm",
            "triton_tiles",
            "streamk_gemm",
            "flash_attention",
        ),
        _BOTH,
    ),
    **dict.fromkeys(("fma1", "fma4"), _PROFILED),
}
"""Experiments and tables that are known and not simulated, and why."""
