"""Tiled kernels: a matrix product cut into tiles, whose operands come through L2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from wavesim.durations import Time
from wavesim.errors import InvalidInput
from wavesim.scalars import NUMBER
from wavesim.spec import Editable, Numbers, Spec

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Order", "TileNumbers", "Tiles", "raster"]

Extent = Annotated[int, Field(ge=1, le=2**32), NUMBER]
Side = Annotated[int, Field(ge=1, le=2**16), NUMBER]
ElementBytes = Annotated[int, Field(ge=1, le=16), NUMBER]


class TileNumbers(Numbers):
    """A tile's number at each place of an order; read in place as :class:`Numbers` are."""

    __slots__ = ()

    _rule: ClassVar[str] = "a tile is a whole number from 0 on"


def _order(order: Any) -> Any:
    """Read a list of tiles; names and group sizes stay what they are."""
    if isinstance(order, TileNumbers):
        return order
    if isinstance(order, str | int | float):
        named = order in ("row", "column")
        if not named and (isinstance(order, str | bool) or not order >= 1 or order % 1 != 0):
            raise ValueError("must be 'row', 'column', a number of rows from 1 on, or a list")
        return order if named else min(int(order), MOST_ROWS)
    return TileNumbers(order)


MOST_ROWS = 2**32
"""Rows of tiles that are taken together; there never are more."""

Order = Annotated[
    Literal["row", "column"] | int | TileNumbers,
    Field(union_mode="left_to_right"),
    BeforeValidator(_order),
]
"""Which tile comes when: ``"row"`` (row by row), ``"column"``, a number g (g rows of tiles at a
time, column by column), or a list with a tile ``row * columns + column`` at each place."""


def raster(
    order: Literal["row", "column"] | int | TileNumbers, rows: int, columns: int
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Give the tile at each place of an order."""
    import numpy as np  # noqa: PLC0415 (loaded when there are lists)

    if isinstance(order, TileNumbers):
        return order.array
    named = {"row": 1, "column": rows}.get(str(order), order)
    assert isinstance(named, int)
    together = min(named, rows)
    place = np.arange(rows * columns, dtype=np.int64)
    first = place // (together * columns) * together
    height = np.minimum(rows - first, together)
    within = place - first * columns
    column, row = within // height, first + within % height
    return np.asarray(row * columns + column, dtype=np.float64)


class Tiles(Editable, Spec):
    """A tiled matrix product, C (m x n) = A (m x k) B (k x n).

    A CTA takes a tile of C and goes along k step by step. The operands of a step are loaded some
    steps ahead, through L2; the tensor cores of the SM, which its CTAs share, work on them; behind
    the last step the tile is stored. So a CTA's time follows from what its tiles share with those
    of others at that moment, and the grid's raster order changes it. Matrices are padded to whole
    tiles and steps.

    A grid of fewer CTAs than tiles is a persistent kernel: CTA i of n takes the tiles at places
    i, i + n, i + 2n ... of ``order``.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: what is summed over.
        tile: rows and columns of a tile of C, and how much of k a step covers.
        element_bytes: of an element of A and B; tensor cores are twice as fast on 1 as on 2.
        output_bytes: of an element of C.
        stages: steps whose operands shared memory holds; loads are issued ``stages - 1`` ahead.
        order: which tile comes when; see :data:`Order`.
        buffer: a number; kernels that use the same one find what others left of it in L2.
        startup_cycles: before a CTA's first loads.
        cold_cycles: before an SM's first loads in the launch; by default as the device says.
        overhead_cycles: from the end of a step's arithmetic to the next step.
        epilogue_cycles: behind the last step of a tile, before it is stored.

    ``run.l2`` has what each launch moved.
    """

    positional: ClassVar[tuple[str, ...]] = ("m", "n", "k", "tile")
    kind: Literal["tiles"] = "tiles"
    m: Extent
    n: Extent
    k: Extent
    tile: tuple[Side, Side, Side] = (128, 128, 64)
    element_bytes: ElementBytes = 2
    output_bytes: ElementBytes = 2
    stages: Annotated[int, Field(ge=2, le=64), NUMBER] = 3
    order: Order = "row"
    buffer: Annotated[int, Field(ge=0, lt=2**16), NUMBER] = 0
    startup_cycles: Time = 0.0
    cold_cycles: Time | None = None
    overhead_cycles: Time = 0.0
    epilogue_cycles: Time = 0.0

    if TYPE_CHECKING:

        def __init__(
            self,
            m: int,
            n: int,
            k: int,
            tile: tuple[int, int, int] = (128, 128, 64),
            **fields: Any,
        ) -> None: ...

    @property
    def grid(self) -> tuple[int, int]:
        """Tiles along m and n."""
        return -(-self.m // self.tile[0]), -(-self.n // self.tile[1])

    @property
    def shared_memory(self) -> int:
        """The bytes of shared memory that the operands of all stages take."""
        m, n, k = self.tile
        return self.stages * (m + n) * k * self.element_bytes

    @property
    def flops(self) -> int:
        """The operations of the whole product, a multiply-add being two."""
        return 2 * self.m * self.n * self.k

    @property
    def output_offset_bytes(self) -> int:
        """Where C begins in its buffer, behind the padded A and B."""
        (rows, columns), (m, n, k) = self.grid, self.tile
        return (rows * m + columns * n) * -(-self.k // k) * k * self.element_bytes

    def check_ctas(self, count: int, shared_memory: int) -> None:
        """See that a grid of ``count`` CTAs can do this; raises InvalidInput."""
        rows, columns = self.grid
        if count > rows * columns:
            why = f"the product's {rows} x {columns} tiles are for {rows * columns:,} CTAs at most"
            raise InvalidInput(f"grid: {why} (got {count:,})", "grid", count)
        if self.shared_memory > shared_memory:
            why = (
                f"{self.shared_memory:,} bytes of operands do not fit into the CTA's "
                f"{shared_memory:,} of shared memory"
            )
            raise InvalidInput(f"stages: {why} (got {self.stages})", "stages", self.stages)
        if isinstance(self.order, TileNumbers) and len(self.order) != rows * columns:
            why = f"one place a tile is needed, {rows * columns:,} in all"
            got = len(self.order)
            raise InvalidInput(f"order: {why} (got {got:,})", "order", got)
