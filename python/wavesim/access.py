"""Memory work: the bytes that a CTA reads or writes, in the order in which it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from wavesim.durations import Time
from wavesim.errors import InvalidInput
from wavesim.scalars import NUMBER, Truth
from wavesim.spec import KINDS, Editable, Numbers, Spec
from wavesim.tiles import Order, TileNumbers, raster

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "Access",
    "Attention",
    "Broadcast",
    "Chase",
    "Listed",
    "Panels",
    "Pattern",
    "Random",
    "Reuse",
    "Streamed",
    "Strided",
]

Bytes = Annotated[int, Field(ge=1, le=2**40), NUMBER]
Positive = Annotated[int, Field(ge=1, lt=2**32), NUMBER]
Whole = Annotated[int, Field(ge=0, lt=2**32), NUMBER]


class Streamed(Editable, Spec):
    """Each CTA has ``bytes`` of its own: CTA i those from ``i * bytes`` on."""

    kind: Literal["streamed"] = "streamed"
    bytes: Bytes


class Reuse(Editable, Spec):
    """Passes over ``chunks`` of ``chunk_bytes``.

    In pass p, CTA i of n moves chunks i, i + n, i + 2n ..., each shifted on by ``p * shift``.
    """

    kind: Literal["reuse"] = "reuse"
    chunk_bytes: Bytes
    chunks: Positive
    passes: Positive = 1
    shift: Whole = 0


class Panels(Editable, Spec):
    """The loads of a tiled matrix product, a CTA a tile.

    In each of ``steps``, the CTA of tile (m, n) reads ``a_bytes`` of panel m of A and ``b_bytes``
    of panel n of B; what it reads of a panel in one step is contiguous, and B lies behind A.
    ``order``: which CTA has which tile: ``"row"`` (CTA i has tile i), ``"column"``, a number g
    (g rows of tiles at a time, column by column), or a list of a tile ``m * tiles_n + n`` a CTA.
    """

    kind: Literal["panels"] = "panels"
    a_bytes: Bytes
    b_bytes: Bytes
    steps: Positive
    tiles_m: Positive
    tiles_n: Positive
    order: Order = "row"

    def tiles(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Give each CTA's tile."""
        return raster(self.order, self.tiles_m, self.tiles_n)


class Attention(Editable, Spec):
    """The loads of attention, a CTA a tile of queries.

    CTA i has tile ``i % q_tiles`` of head ``i // q_tiles``. It reads ``q_bytes`` once, and then in
    each of ``steps`` ``kv_bytes`` of its head's keys and values; ``heads`` are those of queries
    over all sequences, and as many of them share one of ``kv_heads`` (by default each has its own)
    as that takes. ``causal``: tile m takes the first (m + 1) / ``q_tiles`` of the steps only.
    """

    kind: Literal["attention"] = "attention"
    q_bytes: Bytes
    kv_bytes: Bytes
    steps: Positive
    q_tiles: Positive
    heads: Positive
    kv_heads: Positive
    causal: Truth = False


class Strided(Editable, Spec):
    """Pieces at equal distances: piece j of CTA i at ``i * cta_stride_bytes + j * stride_bytes``.

    Pieces shorter than what a CTA's threads move at once (16 bytes each) go several together, as
    many as there are threads for.
    """

    kind: Literal["strided"] = "strided"
    piece_bytes: Bytes
    pieces: Positive
    stride_bytes: Annotated[int, Field(ge=0, le=2**40), NUMBER]
    cta_stride_bytes: Annotated[int, Field(ge=0, le=2**40), NUMBER]


class Random(Editable, Spec):
    """Each CTA moves ``pieces`` pieces at random places of a buffer of ``bytes``.

    Places are multiples of ``piece_bytes``; which, follows from the run's seed.
    """

    kind: Literal["random"] = "random"
    bytes: Bytes
    piece_bytes: Bytes = 128
    pieces: Positive


class Offsets(Numbers):
    """Byte offsets, read in place as :class:`wavesim.spec.Numbers` are."""

    __slots__ = ()

    _rule: ClassVar[str] = "an offset is a whole number of bytes, 0 or more"


class Listed(Editable, Spec):
    """Pieces at given ``offsets`` (bytes); each CTA has an equal share of the list, in order.

    An array of ``float64`` is read in place; the offsets' numbers are whole.
    """

    kind: Literal["listed"] = "listed"
    offsets: Offsets
    piece_bytes: Bytes = 128


class Broadcast(Editable, Spec):
    """All CTAs read the same ``bytes``; CTA i begins at ``i * skew_bytes`` and wraps around."""

    kind: Literal["broadcast"] = "broadcast"
    bytes: Bytes
    skew_bytes: Annotated[int, Field(ge=0, le=2**40), NUMBER] = 0


class Chase(Editable, Spec):
    """One load follows the other, ``loads`` in all: a pointer chase over ``bytes``.

    It comes to each place, ``stride_bytes`` apart, once before it comes to one again.
    """

    kind: Literal["chase"] = "chase"
    bytes: Bytes
    stride_bytes: Bytes = 128
    loads: Annotated[int, Field(ge=1, le=2**40), NUMBER]


Pattern = Annotated[
    Streamed | Reuse | Panels | Attention | Strided | Random | Listed | Broadcast | Chase,
    Field(discriminator="kind"),
    KINDS,
]
"""Which bytes of a buffer a CTA moves; in files told by ``kind``."""


class Access(Editable, Spec):
    """Memory work: a CTA's time follows from L2, DRAM, and what everybody else has in flight.

    A CTA is a loop: in each iteration every thread moves 16 bytes of one run of bytes, and the
    next iteration begins when all have come. Make one by :meth:`stream`, :meth:`reuse`,
    :meth:`panels`, :meth:`attention`, :meth:`strided`, :meth:`random`, :meth:`listed`,
    :meth:`broadcast` or :meth:`chase`, whose further arguments are these fields:

    Args:
        pattern: which bytes, in which order.
        write: stores in place of loads.
        buffer: a number; kernels that use the same one find what others left of it in L2.
        buffer_bytes: its size, if a pattern that leaves it is to be refused.
        startup_cycles: before the first iteration.
        cold_cycles: before an SM's first iteration in the launch; by default as the device says.
        overhead_cycles: what an iteration takes beside its accesses.
        finish_cycles: behind the last one.

    ``run.l2`` has what each launch moved.
    """

    positional: ClassVar[tuple[str, ...]] = ("pattern",)
    kind: Literal["access"] = "access"
    pattern: Pattern
    write: Truth = False
    buffer: Annotated[int, Field(ge=0, lt=2**16), NUMBER] = 0
    buffer_bytes: Bytes | None = None
    startup_cycles: Time = 0.0
    cold_cycles: Time | None = None
    overhead_cycles: Time = 0.0
    finish_cycles: Time = 0.0

    if TYPE_CHECKING:

        def __init__(self, pattern: Any, **fields: Any) -> None: ...

    @classmethod
    def stream(cls, bytes: int, **fields: Any) -> Self:
        """Have each CTA move ``bytes`` of its own."""
        return cls(Streamed(bytes=bytes), **fields)

    @classmethod
    def reuse(
        cls, chunk_bytes: int, chunks: int, passes: int = 1, shift: int = 0, **fields: Any
    ) -> Self:
        """Have the grid pass over chunks, again and again; see :class:`Reuse`."""
        pattern = Reuse(chunk_bytes=chunk_bytes, chunks=chunks, passes=passes, shift=shift)
        return cls(pattern, **fields)

    @classmethod
    def panels(
        cls,
        a_bytes: int,
        b_bytes: int,
        *,
        steps: int,
        tiles_m: int,
        tiles_n: int,
        order: Any = "row",
        **fields: Any,
    ) -> Self:
        """Read the panels of a tiled matrix product; see :class:`Panels`."""
        pattern = Panels(
            a_bytes=a_bytes,
            b_bytes=b_bytes,
            steps=steps,
            tiles_m=tiles_m,
            tiles_n=tiles_n,
            order=order,
        )
        return cls(pattern, **fields)

    @classmethod
    def attention(
        cls,
        q_bytes: int,
        kv_bytes: int,
        *,
        steps: int,
        q_tiles: int,
        heads: int,
        kv_heads: int | None = None,
        causal: bool = False,
        **fields: Any,
    ) -> Self:
        """Read the queries, keys and values of attention; see :class:`Attention`."""
        pattern = Attention(
            q_bytes=q_bytes,
            kv_bytes=kv_bytes,
            steps=steps,
            q_tiles=q_tiles,
            heads=heads,
            kv_heads=heads if kv_heads is None else kv_heads,
            causal=causal,
        )
        return cls(pattern, **fields)

    @classmethod
    def strided(
        cls,
        piece_bytes: int,
        pieces: int,
        stride_bytes: int,
        cta_stride_bytes: int | None = None,
        **fields: Any,
    ) -> Self:
        """Have each CTA move pieces at equal distances; see :class:`Strided`.

        By default each CTA goes on where the one before it ends.
        """
        pattern = Strided(
            piece_bytes=piece_bytes,
            pieces=pieces,
            stride_bytes=stride_bytes,
            cta_stride_bytes=pieces * stride_bytes
            if cta_stride_bytes is None
            else cta_stride_bytes,
        )
        return cls(pattern, **fields)

    @classmethod
    def random(cls, bytes: int, pieces: int, piece_bytes: int = 128, **fields: Any) -> Self:
        """Have each CTA move pieces at random places; see :class:`Random`."""
        return cls(Random(bytes=bytes, piece_bytes=piece_bytes, pieces=pieces), **fields)

    @classmethod
    def listed(cls, offsets: Any, piece_bytes: int = 128, **fields: Any) -> Self:
        """Have each CTA move its share of a list of pieces; see :class:`Listed`."""
        return cls(Listed(offsets=offsets, piece_bytes=piece_bytes), **fields)

    @classmethod
    def broadcast(cls, bytes: int, skew_bytes: int = 0, **fields: Any) -> Self:
        """Have all CTAs read the same bytes; see :class:`Broadcast`."""
        return cls(Broadcast(bytes=bytes, skew_bytes=skew_bytes), **fields)

    @classmethod
    def chase(cls, bytes: int, loads: int, stride_bytes: int = 128, **fields: Any) -> Self:
        """Chase a pointer; see :class:`Chase`."""
        return cls(Chase(bytes=bytes, stride_bytes=stride_bytes, loads=loads), **fields)

    def check_ctas(self, count: int) -> None:
        """See that tiles, and a list of them, are one a CTA; raises InvalidInput."""
        pattern = self.pattern
        if isinstance(pattern, Panels):
            tiles = pattern.tiles_m * pattern.tiles_n
            if tiles != count:
                why = f"{pattern.tiles_m} x {pattern.tiles_n} tiles need {tiles:,} CTAs"
                raise InvalidInput(f"grid: {why} (got {count:,})", "grid", count)
            if isinstance(pattern.order, TileNumbers) and len(pattern.order) != count:
                why = f"one tile a CTA is needed, {count:,} in all (got {len(pattern.order):,})"
                raise InvalidInput(f"pattern.order: {why}", "pattern.order", len(pattern.order))
