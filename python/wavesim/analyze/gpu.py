"""Which GPU of a trace is analyzed, and what device it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from wavesim.devices import Device
from wavesim.devices import device as catalogue_device
from wavesim.errors import InvalidInput

if TYPE_CHECKING:
    from wavesim.io.trace import Trace


def choose_gpu(trace: Trace, gpu: int | None) -> int | None:
    """Give the GPU's number in the trace: the one asked for, or the one with the most kernel time.

    Raises InvalidInput for a number that no kernel or copy of the trace has.
    """
    work = pl.concat(
        [
            trace.kernels.select("device", "duration_ns", kernel=pl.lit(value=True)),
            trace.memory.select("device", "duration_ns", kernel=pl.lit(value=False)),
        ]
    )
    known = work["device"].drop_nulls().unique().sort().to_list()
    if gpu is not None:
        if gpu not in known:
            raise InvalidInput(f"gpu: the trace has work on GPUs {known} (got {gpu!r})", "gpu", gpu)
        return gpu
    busiest = work.group_by("device").agg(
        pl.col("duration_ns").filter(pl.col("kernel")).sum().alias("kernels"),
        pl.col("duration_ns").sum().alias("all"),
    )
    found = busiest.sort(
        "kernels", "all", "device", descending=[True, True, False], nulls_last=True
    )
    number = found["device"][0]
    return None if number is None else int(number)


def device_for(trace: Trace, gpu: int | None, device: Device | str | None) -> Device:
    """Give the device to model: the one asked for, else the one that the trace describes.

    Raises InvalidInput, naming ``device``, if the trace does not say enough.
    """
    if isinstance(device, Device):
        return device
    if device is not None:
        return catalogue_device(device)
    described = [entry for entry in trace.devices if entry.get("id") == gpu]
    if not described:
        raise InvalidInput(
            "device: the trace does not say what GPU it is of; name one, such as device='h200' "
            "(wavesim.devices() lists them)",
            "device",
        )
    try:
        return Device.from_properties(described[0])
    except InvalidInput as error:
        raise InvalidInput(
            f"device: what the trace says of its GPU is not enough ({error}); name one, such as "
            "device='h200'",
            "device",
        ) from None
