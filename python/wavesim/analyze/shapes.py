"""What each kernel's launch shape means on the device: residency, occupancy, waves."""

from __future__ import annotations

import polars as pl

from wavesim.devices import Device, occupancies

_SHAPE = ("block", "registers", "shared_memory")


def with_residency(kernels: pl.DataFrame, device: Device) -> pl.DataFrame:
    """Add residency, occupancy, limiter, refusal, waves, wave_efficiency, tail_share, sms_share.

    - residency (CTAs an SM), occupancy (resident warps over the SM's limit), limiter: by the rules
      of the device's compute capability, from block, registers and shared memory.
    - refusal: why the device would not launch this shape, null where it would.
    - waves = grid / (SMs x residency); wave_efficiency = waves / ceil(waves), the share of slot
      time that CTAs of equal length would use; tail_share is the rest, which for a grid smaller
      than one wave is the share of slots that stay empty.
    - sms_share: SMs that get a CTA at all.

    Null where the trace has no launch shape. Registers that the trace does not tell limit nothing.
    """
    shapes = kernels.filter(pl.col("block") > 0).select(_SHAPE).unique(maintain_order=True)
    found = occupancies(
        device,
        block=shapes["block"],
        registers=shapes["registers"].fill_null(0),
        shared_memory=shapes["shared_memory"].fill_null(0),
    )
    known = shapes.with_columns(
        residency=found["ctas_per_sm"],
        occupancy=found["occupancy"],
        limiter=found["limiter"],
        refusal=found["refusal"],
    )
    joined = kernels.join(known, on=_SHAPE, how="left", nulls_equal=True, maintain_order="left")
    slots = pl.col("residency").cast(pl.Float64) * device.sms
    waves = pl.when((pl.col("residency") > 0) & (pl.col("grid") > 0)).then(pl.col("grid") / slots)
    efficiency = pl.col("waves") / pl.col("waves").ceil()
    share = (pl.col("grid") / device.sms).clip(upper_bound=1.0)
    return (
        joined.with_columns(waves=waves)
        .with_columns(wave_efficiency=efficiency, tail_share=1.0 - efficiency)
        .with_columns(sms_share=pl.when(pl.col("waves").is_not_null()).then(share))
    )
