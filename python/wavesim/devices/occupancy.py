"""Residency: how many CTAs of a kernel an SM holds, and what limits it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from wavesim import _wavesim
from wavesim.devices.catalogue import device as catalogue_device
from wavesim.devices.device import Device
from wavesim.errors import InvalidInput
from wavesim.scalars import is_truth, whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

__all__ = ["Occupancy", "Refusal", "occupancies", "occupancy"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a kernel does not launch."""

    limit: str
    """The limit, such as ``registers_per_cta``, ``shared_optin_bytes`` or ``cluster``."""
    wanted: int
    """What the kernel asks for."""
    allowed: int
    """What the device allows."""
    text: str
    """The same as a sentence."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How many CTAs of a kernel an SM holds, and why."""

    launchable: bool
    ctas_per_sm: int
    """Residency; 0 when the kernel does not launch."""
    warps_per_cta: int
    warps: int
    """Resident warps an SM."""
    occupancy: float
    """Resident warps over the SM's limit, 0 to 1."""
    limiters: tuple[str, ...]
    """As the CUDA occupancy calculator names them: REGS, SMEM, WARPS and BLOCKS where they are the
    least among these four, and BARRIERS where it is no greater."""
    binding: tuple[str, ...]
    """The limits that equal the residency: ``limiters`` without those that BARRIERS undercuts."""
    by_registers: int | None
    """CTAs by registers alone; None when the register count is not known (0)."""
    by_shared: int | None
    """CTAs by shared memory alone; None when a CTA takes none."""
    by_warps: int
    by_blocks: int
    by_barriers: int | None
    """CTAs by barriers alone; None where barriers do not limit residency."""
    registers_per_cta: int
    """Registers that a CTA takes, with rounding."""
    shared_per_cta_bytes: int
    """Shared memory that a CTA takes, with the system's share and rounding."""
    carve_out_bytes: int
    """What an idle SM's shared memory is set to: the smallest split of shared memory and L1 that
    does not cost residency."""
    needs_optin: bool
    """Whether the kernel must opt in to that much shared memory."""
    max_active_clusters: int
    """Clusters (CTAs when there are none) that the whole device holds at once."""
    refusal: Refusal | None
    """Which limit refuses the launch, and by how much."""

    @property
    def limiter(self) -> str:
        """The limiters joined by ``+``."""
        return "+".join(self.limiters)


def occupancy(
    device: Device | str,
    *,
    block: int | Sequence[int],
    registers: int = 32,
    shared_memory: int = 0,
    barriers: int = 1,
    cluster: int = 1,
    cluster_launch: bool = False,
    non_portable_cluster: bool = False,
    accumulation_registers: int = 0,
) -> Occupancy:
    """Say how many CTAs of a kernel an SM holds, and what limits it.

    Args:
        device: the device or its name.
        block: threads a CTA, or their number in x, y and z.
        registers: registers a thread (AMD: architectural VGPRs); 0 if not known.
        shared_memory: static and dynamic shared memory a CTA, in bytes; opted in where needed.
        barriers: named barriers a CTA; 0 if not known.
        cluster: CTAs a cluster.
        cluster_launch: whether a kernel with ``cluster`` 1 is launched with a cluster size all the
            same; an SM then holds at most 8 CTAs, as with any cluster.
        non_portable_cluster: whether the kernel allows clusters of more than 8.
        accumulation_registers: AMD: accumulation VGPRs a thread.

    The rules are the CUDA occupancy calculator's; for CDNA, LLVM's. A kernel that does not launch
    is an answer, not an error: ``launchable`` is False and ``refusal`` says why.

    Raises:
        InvalidInput: for numbers that no kernel can have (negative, no integer), or a block with
            more threads in one dimension than the device takes.

    """
    target = device if isinstance(device, Device) else catalogue_device(device)
    shape = {
        "threads": _threads(target, block),
        "registers": _count("registers", registers),
        "accumulation_registers": _count("accumulation_registers", accumulation_registers),
        "shared_bytes": _count("shared_memory", shared_memory),
        "barriers": _count("barriers", barriers),
        "cluster": _count("cluster", cluster),
        "cluster_launch": _truth("cluster_launch", cluster_launch),
        "non_portable_cluster": _truth("non_portable_cluster", non_portable_cluster),
    }
    answer: dict[str, Any] = json.loads(_wavesim.occupancy(target.machine, json.dumps(shape)))
    answer["by_blocks"] = answer.pop("by_ctas")
    refusal = answer["refusal"]
    answer["refusal"] = None if refusal is None else Refusal(**refusal)
    for names in ("limiters", "binding"):
        answer[names] = tuple(answer[names])
    return Occupancy(**answer)


def occupancies(
    device: Device | str,
    *,
    block: ArrayLike | pl.Series,
    registers: ArrayLike | pl.Series = 32,
    shared_memory: ArrayLike | pl.Series = 0,
    barriers: ArrayLike | pl.Series = 1,
    cluster: ArrayLike | pl.Series = 1,
) -> pl.DataFrame:
    """Give the residency of many shapes at once: :func:`occupancy` for each row.

    Args:
        device: the device or its name.
        block: threads a CTA; it and the others are integers or columns of them (NumPy, Polars,
            lists), all of one length where they are columns.
        registers: registers a thread.
        shared_memory: bytes a CTA.
        barriers: named barriers a CTA.
        cluster: CTAs a cluster.

    Returns:
        A row a shape: the five columns as given (``block``, ``registers``, ``shared_memory``,
        ``barriers``, ``cluster``), ``ctas_per_sm`` u32, ``warps`` u32, ``occupancy`` f64,
        ``limiter`` (joined by ``+``), ``refusal`` (null when it launches).

    Raises:
        InvalidInput: for columns of unequal length and values that are no counts.

    """
    import numpy as np  # noqa: PLC0415 (takes a fifth of the time that wavesim takes to load)

    target = device if isinstance(device, Device) else catalogue_device(device)
    given = {
        "block": block,
        "registers": registers,
        "shared_memory": shared_memory,
        "barriers": barriers,
        "cluster": cluster,
    }
    columns = {name: _column(name, values) for name, values in given.items()}
    rows = max((len(column) for column in columns.values() if column.ndim), default=1, key=int)
    for name, column in columns.items():
        if column.ndim and len(column) != rows:
            why = f"{name}: must have {rows} values, as the longest column (got {len(column)})"
            raise InvalidInput(why, name, len(column))
    wide = {name: np.broadcast_to(column, rows) for name, column in columns.items()}
    lists = [column.tolist() for column in wide.values()]
    ctas, warps, limiter, refusal = _wavesim.occupancies(target.machine, *lists)
    return pl.DataFrame(
        {
            **{name: column.astype(np.uint32) for name, column in wide.items()},
            "ctas_per_sm": pl.Series(ctas, dtype=pl.UInt32),
            "warps": pl.Series(warps, dtype=pl.UInt32),
            "limiter": pl.Series(limiter, dtype=pl.String),
            "refusal": pl.Series(refusal, dtype=pl.String),
        }
    ).with_columns(occupancy=pl.col("warps") / target.limits.warps)


def _count(field: str, value: object) -> int:
    count = whole(value)
    if count is None:
        raise InvalidInput(f"{field}: must be an integer (got {value!r})", field, value)
    if not 0 <= count < 2**32:
        raise InvalidInput(f"{field}: must be from 0 to 2^32 - 1 (got {value!r})", field, value)
    return count


def _truth(field: str, value: object) -> bool:
    if not is_truth(value):
        raise InvalidInput(f"{field}: must be true or false (got {value!r})", field, value)
    return bool(value)


def _threads(device: Device, block: int | Sequence[int]) -> int:
    if isinstance(block, str | bytes) or not isinstance(block, Sequence):
        return _count("block", block)
    if not 1 <= len(block) <= 3:
        raise InvalidInput(f"block: must have 1 to 3 dimensions (got {block!r})", "block", block)
    sizes = [_count(f"block[{i}]", size) for i, size in enumerate(block)]
    for i, (size, most) in enumerate(zip(sizes, device.limits.block, strict=False)):
        if not 1 <= size <= most:
            field = f"block[{i}]"
            raise InvalidInput(f"{field}: must be from 1 to {most} (got {size})", field, size)
    return math.prod(sizes)


def _column(field: str, values: ArrayLike | pl.Series) -> np.ndarray[Any, np.dtype[np.int64]]:
    import numpy as np  # noqa: PLC0415 (loaded when there are columns)

    column = np.asarray(values)
    if column.ndim > 1 or not (np.issubdtype(column.dtype, np.integer) or column.size == 0):
        why = f"{field}: must be an integer or a column of integers (got {column.dtype} values)"
        raise InvalidInput(why, field, values)
    outside = (column < 0) | (column >= 2**32)
    if outside.any():
        row = int(np.argmax(outside)) if column.ndim else 0
        value = column.reshape(-1)[row].item()
        raise InvalidInput(
            f"{field}[{row}]: must be from 0 to 2^32 - 1 (got {value})", f"{field}[{row}]", value
        )
    return column.astype(np.int64)
