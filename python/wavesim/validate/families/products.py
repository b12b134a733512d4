"""Tiled matrix products of which the profiler counted the traffic."""

from __future__ import annotations

from wavesim.devices import Device
from wavesim.validate import bodies
from wavesim.validate.families.common import Family, kernel_of, simulated
from wavesim.validate.tables import Inputs
from wavesim.workload import Tiles

__all__ = ["FAMILIES"]


def _triton_gemm(inputs: Inputs, device: Device) -> dict[str, float]:
    """``gemm`` of ``kernels.py``: bf16, a tile a CTA, or persistent with a static stride."""
    work = Tiles(
        inputs.count("M"),
        inputs.count("N"),
        inputs.count("K"),
        (inputs.count("bm"), inputs.count("bn"), inputs.count("bk")),
        stages=inputs.count("stages"),
        order=max(inputs.count("group_m"), 1),
        startup_cycles=bodies.PRODUCT_STARTUP,
        overhead_cycles=bodies.PRODUCT_STEP,
        epilogue_cycles=bodies.PRODUCT_EPILOGUE,
    )
    l2 = simulated(device, kernel_of(inputs, work)).l2.row(-1, named=True)
    return {
        "dram_bytes": float(l2["dram_read_bytes"]),
        "hit_share": float(l2["hit_share"]),
        # The profiler's sectors of SMs are reads and writes.
        "sm_sectors": float(l2["sm_sectors"] + l2["written_sectors"]),
    }


FAMILIES = (Family("triton_gemm", ("dram_bytes", "hit_share", "sm_sectors"), _triton_gemm),)
