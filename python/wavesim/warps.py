"""Warp programs: what each warp of a CTA issues, so that its time follows from sharing the SM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from wavesim.durations import Time
from wavesim.errors import InvalidInput
from wavesim.spec import TAGS, CtaNumbers, Editable, Spec

__all__ = [
    "Arithmetic",
    "Await",
    "Barrier",
    "Branch",
    "Load",
    "Loop",
    "Segment",
    "Shared",
    "Store",
    "Tensor",
    "Warps",
]

Count = Annotated[int, Field(ge=1, le=2**40)]
Latency = Annotated[int, Field(ge=1, le=1_000_000)]
Chains = Annotated[int, Field(ge=1, le=1024)]
WarpBytes = Annotated[int, Field(ge=1, le=4096)]


class Arithmetic(Editable, Spec):
    """``instructions`` of which each waits for the one ``chains`` before it.

    Args:
        instructions: that a warp issues.
        chains: how many are independent of each other; 1 is one dependent chain.
        latency_cycles: from one to the next of its chain; by default that of a multiply-add.
        pipe: ``"fma"`` takes one a cycle, ``"alu"`` (integers, comparisons) and ``"heavy"``
            (integer multiply-adds, half precision) one every other cycle, ``"other"`` any number.
    """

    positional: ClassVar[tuple[str, ...]] = ("instructions", "chains")
    kind: Literal["arithmetic"] = "arithmetic"
    instructions: Count
    chains: Chains = 1
    latency_cycles: Latency | None = None
    pipe: Literal["fma", "alu", "heavy", "other"] = "fma"

    if TYPE_CHECKING:

        def __init__(self, instructions: int, chains: int = 1, **fields: Any) -> None: ...


class Tensor(Editable, Spec):
    """Tensor-core ``instructions`` on ``chains`` accumulators, one after the other on each.

    ``interval_cycles``: how long one keeps the tensor core of its sub-partition;
    ``latency_cycles``: from one to the next on the same accumulator. By default those of a
    16 x 8 x 16 product in half precision on the device.
    """

    positional: ClassVar[tuple[str, ...]] = ("instructions", "chains")
    kind: Literal["tensor"] = "tensor"
    instructions: Count
    chains: Chains = 1
    interval_cycles: Latency | None = None
    latency_cycles: Latency | None = None

    if TYPE_CHECKING:

        def __init__(self, instructions: int, chains: int = 1, **fields: Any) -> None: ...


class Shared(Editable, Spec):
    """Accesses to shared memory, or loads of constants, through the SM's memory unit.

    ``ways``: how often each is repeated because lanes meet in a bank. ``wait``: the warp goes on
    only with the answers; nothing waits for stores.
    """

    positional: ClassVar[tuple[str, ...]] = ("access", "instructions")
    kind: Literal["shared"] = "shared"
    access: Literal["load", "store", "constant"]
    instructions: Count = 1
    ways: Annotated[int, Field(ge=1, le=32)] = 1
    wait: bool = True

    if TYPE_CHECKING:

        def __init__(
            self,
            access: Literal["load", "store", "constant"],
            instructions: int = 1,
            **fields: Any,
        ) -> None: ...


class Load(Editable, Spec):
    """Loads from global memory that miss L1, back to back.

    Args:
        instructions: that a warp issues.
        footprint_bytes: the data that all CTAs together read again and again: what the device's
            L2 holds of it decides between near, far and DRAM latency.
        latency_cycles: in place of that, what each load takes.
        bytes: what an instruction moves for the whole warp; counts at the SM's port, and against
            the SM's share of L2's and DRAM's bandwidth.
        wait: the warp goes on only with the data of all; otherwise up to the next
            :class:`Await`.
    """

    positional: ClassVar[tuple[str, ...]] = ("instructions",)
    kind: Literal["load"] = "load"
    instructions: Count = 1
    footprint_bytes: Annotated[int, Field(ge=1, lt=2**63)] | None = None
    latency_cycles: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] | None = None
    bytes: WarpBytes = 128
    wait: bool = True

    if TYPE_CHECKING:

        def __init__(self, instructions: int = 1, **fields: Any) -> None: ...

    def model_post_init(self, context: object) -> None:
        """See that one thing says how long it takes."""
        if (self.footprint_bytes is None) == (self.latency_cycles is None):
            why = "give either footprint_bytes or latency_cycles"
            raise InvalidInput(f"footprint_bytes: {why}", "footprint_bytes", self.footprint_bytes)


class Store(Editable, Spec):
    """Stores to global memory, of ``bytes`` a warp each; no warp waits for them."""

    positional: ClassVar[tuple[str, ...]] = ("instructions",)
    kind: Literal["store"] = "store"
    instructions: Count = 1
    bytes: WarpBytes = 128

    if TYPE_CHECKING:

        def __init__(self, instructions: int = 1, **fields: Any) -> None: ...


class Await(Editable, Spec):
    """The warp waits for all that it has asked for with ``wait=False``."""

    kind: Literal["await"] = "await"


class Barrier(Editable, Spec):
    """The warp waits until all warps of its CTA have come here (``__syncthreads``)."""

    kind: Literal["barrier"] = "barrier"


class Branch(Editable, Spec):
    """A branch that is taken."""

    kind: Literal["branch"] = "branch"


class Loop(Editable, Spec):
    """A ``body`` that is run through ``count`` times, with a branch back unless ``unrolled``."""

    positional: ClassVar[tuple[str, ...]] = ("count", "body")
    kind: Literal["loop"] = "loop"
    count: Count
    body: tuple[Segment, ...]
    unrolled: bool = False

    if TYPE_CHECKING:

        def __init__(
            self, count: int, body: Sequence[Segment], *, unrolled: bool = False
        ) -> None: ...


Segment: TypeAlias = Annotated[
    Arithmetic | Tensor | Shared | Load | Store | Await | Barrier | Branch | Loop,
    Field(discriminator="kind"),
]
"""What a warp does next; in files told by ``kind``."""

MAX_DEPTH = 8


def _programs(programs: Any) -> Any:
    """Read one list of segments as the only program, and refuse loops in loops without end."""
    if not isinstance(programs, Sequence) or isinstance(programs, str):
        return programs
    several = bool(programs) and all(_is_list(program) for program in programs)
    all_programs = programs if several else (programs,)
    for i, program in enumerate(all_programs):
        if (depth := _depth(program)) > MAX_DEPTH:
            why = f"loops are nested at most {MAX_DEPTH} deep (got {depth})"
            raise InvalidInput(f"[{i}]: {why}", f"[{i}]", depth)
    return all_programs


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _depth(program: Any) -> int:
    """Give how deep loops are nested, without descending far beyond what is allowed."""
    depth, level = 0, list(program) if _is_list(program) else []
    while level and depth <= MAX_DEPTH:
        bodies = [
            segment.get("body") if isinstance(segment, dict) else getattr(segment, "body", None)
            for segment in level
        ]
        level = [inner for body in bodies if _is_list(body) for inner in body or ()]
        depth += any(_is_list(body) for body in bodies)
    return depth


class Warps(Editable, Spec):
    """What the warps of each CTA issue; all warps of a CTA run the same program.

    Args:
        programs: one list of segments, or several: CTA i of a kernel with n of them runs number
            ``i % n``.
        order: the number of each CTA's program, a list of one a CTA.
        startup_cycles: before a CTA's first instruction: its code is fetched.
        finish_cycles: behind its last one.

    ``run.warps`` has what the warps did, under the names that profilers use.
    """

    positional: ClassVar[tuple[str, ...]] = ("programs",)
    kind: Literal["warp_programs"] = "warp_programs"
    programs: Annotated[tuple[tuple[Segment, ...], ...], BeforeValidator(_programs)]
    order: CtaNumbers | None = None
    startup_cycles: Time = 0.0
    finish_cycles: Time = 0.0

    if TYPE_CHECKING:

        def __init__(
            self, programs: Sequence[Segment] | Sequence[Sequence[Segment]], **fields: Any
        ) -> None: ...

    def check_ctas(self, count: int) -> None:
        """See that there is a program's number for each CTA; raises InvalidInput."""
        if self.order is not None and len(self.order) != count:
            why = f"one program's number a CTA is needed, {count:,} in all"
            got = len(self.order)
            raise InvalidInput(f"order: {why} (got {got:,})", "order", got)


Loop.model_rebuild()
TAGS.update(
    (
        *("warp_programs", "arithmetic", "tensor", "shared", "load", "store"),
        *("await", "barrier", "branch", "loop"),
    )
)
