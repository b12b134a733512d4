"""Warp programs: what each warp of a CTA issues, so that its time follows from sharing the SM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from wavesim.access import Access
from wavesim.durations import Time
from wavesim.errors import InvalidInput
from wavesim.scalars import NUMBER, Truth, is_truth
from wavesim.spec import KINDS, LIST, Editable, Numbers, Spec, within

__all__ = [
    "Arithmetic",
    "Await",
    "Barrier",
    "Branch",
    "Load",
    "Loop",
    "Poll",
    "Segment",
    "Shared",
    "Store",
    "Tensor",
    "Warps",
]

Count = Annotated[int, Field(ge=1, le=2**40), NUMBER]
Latency = Annotated[int, Field(ge=1, le=1_000_000), NUMBER]
Chains = Annotated[int, Field(ge=1, le=1024), NUMBER]
WarpBytes = Annotated[int, Field(ge=1, le=4096), NUMBER]


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
    ways: Annotated[int, Field(ge=1, le=32), NUMBER] = 1
    wait: Truth = True

    if TYPE_CHECKING:

        def __init__(
            self,
            access: Literal["load", "store", "constant"],
            instructions: int = 1,
            **fields: Any,
        ) -> None: ...


class Load(Editable, Spec):
    """Loads from global memory that miss L1, back to back.

    What they take is said by one of ``access``, ``footprint_bytes`` and ``latency_cycles``.

    Args:
        instructions: that a warp issues.
        access: which bytes they move, such as ``Access.stream(65_536)``: they go through the
            simulated L2 and DRAM beside all other loads of the run, and count in ``run.l2``. What
            all warps of the CTA move by one instruction is an iteration of the pattern; the next
            instruction that names an equal access moves the next one, in whatever segment it is.
            A pattern that ends before the program does is refused; of one that goes on, the rest
            is not moved.
        footprint_bytes: the data that all CTAs together read again and again: what the device's
            L2 holds of it decides between near and DRAM latency, and the SM has its share of
            their bandwidth.
        latency_cycles: what each load takes.
        bytes: what an instruction moves for the whole warp.
        wait: the warp goes on only with the data of all; otherwise up to the next
            :class:`Await`.
    """

    positional: ClassVar[tuple[str, ...]] = ("instructions",)
    kind: Literal["load"] = "load"
    instructions: Count = 1
    access: Access | None = None
    footprint_bytes: Annotated[int, Field(ge=1, lt=2**63), NUMBER] | None = None
    latency_cycles: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False), NUMBER] | None = None
    bytes: WarpBytes = 128
    wait: Truth = True

    if TYPE_CHECKING:

        def __init__(self, instructions: int = 1, **fields: Any) -> None: ...

    def model_post_init(self, context: object) -> None:
        """See that one thing says how long it takes."""
        sources = ("access", "footprint_bytes", "latency_cycles")
        given = [name for name in sources if getattr(self, name) is not None]
        if len(given) != 1:
            got = " and ".join(given) or "none of them"
            why = f"give one of access, footprint_bytes and latency_cycles (got {got})"
            raise InvalidInput(f"footprint_bytes: {why}", "footprint_bytes", self.footprint_bytes)
        if self.access is not None:
            _check_access(self.access, write=False)


class Store(Editable, Spec):
    """Stores to global memory, of ``bytes`` a warp each; no warp waits for them.

    With an ``access`` (one with ``write=True``) they go through the simulated L2 as those of a
    :class:`Load` do; without, each SM has its share of the bandwidth for stores.
    """

    positional: ClassVar[tuple[str, ...]] = ("instructions",)
    kind: Literal["store"] = "store"
    instructions: Count = 1
    access: Access | None = None
    bytes: WarpBytes = 128

    def model_post_init(self, context: object) -> None:
        """See that the access writes."""
        if self.access is not None:
            _check_access(self.access, write=True)

    if TYPE_CHECKING:

        def __init__(self, instructions: int = 1, **fields: Any) -> None: ...


def _check_access(access: Access, *, write: bool) -> None:
    """See that a segment's access is a pattern that it can walk through, and nothing else."""
    if access.write != write:
        why = "a store needs an access with write=True" if write else "a load cannot write"
        raise InvalidInput(
            f"access.write: {why} (got {access.write})", "access.write", access.write
        )
    for name in ("startup_cycles", "cold_cycles", "overhead_cycles", "finish_cycles"):
        if got := getattr(access, name):
            why = "in a warp program, what takes time beside accesses is segments"
            raise InvalidInput(f"access.{name}: {why} (got {got})", f"access.{name}", got)


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
    body: Annotated[tuple[Segment, ...], LIST]
    unrolled: Truth = False

    if TYPE_CHECKING:

        def __init__(
            self, count: int, body: Sequence[Segment], *, unrolled: bool = False
        ) -> None: ...

    def model_post_init(self, context: object) -> None:
        """See that there is something to run through."""
        if not self.body:
            raise InvalidInput("body: a loop has at least one segment (got [])", "body", [])


class PollNumbers(Numbers):
    """Each CTA's cycles of a spin-wait; read in place as :class:`wavesim.spec.Numbers` are."""

    __slots__ = ()

    _what: ClassVar[str] = "a number or a list of numbers"


def _cycles(cycles: Any) -> Any:
    """Read a list of one time a CTA; a single time stays what it is."""
    if not hasattr(cycles, "__len__") and hasattr(cycles, "__float__") and not is_truth(cycles):
        return cycles
    return PollNumbers(cycles)


CLOCK_LOOP = (
    Arithmetic(1, latency_cycles=6, pipe="other"),
    Arithmetic(1, latency_cycles=5, pipe="alu"),
    Arithmetic(1, latency_cycles=1, pipe="heavy"),
    Arithmetic(1, latency_cycles=4, pipe="alu"),
    Arithmetic(1, latency_cycles=13, pipe="alu"),
)
"""A turn of ``while (clock64() - from < cycles) {}`` in the machine code of sm_90, without its
branch: the clock is read, subtracted in two halves, and compared in two."""


class Poll(Editable, Spec):
    """A spin-wait: the warp reads the clock over and over until ``cycles`` have passed.

    While it waits it takes issue slots: warps that come later may have to wait until it ends.

    Args:
        cycles: how long it waits; or a list with each CTA's.
        since: from when on: ``"here"``, its first reading of the clock, or ``"start"``, the first
            instruction that the warp issued.
        body: what a turn is made of, beside the taken branch at its end; its first instruction
            reads the clock. Arithmetic, tensor-core work, shared memory and branches. By default
            what ``while (clock64() - from < cycles) {}`` is compiled to.
    """

    positional: ClassVar[tuple[str, ...]] = ("cycles",)
    kind: Literal["poll"] = "poll"
    cycles: Annotated[
        Time | PollNumbers, Field(union_mode="left_to_right"), BeforeValidator(_cycles)
    ]
    since: Literal["here", "start"] = "here"
    body: Annotated[tuple[Segment, ...], LIST] = CLOCK_LOOP

    if TYPE_CHECKING:

        def __init__(self, cycles: object, **fields: Any) -> None: ...

    def model_post_init(self, context: object) -> None:
        """See that a turn is something that can be run through any number of times."""
        if not self.body:
            raise InvalidInput("body: a spin-wait has at least one segment (got [])", "body", [])
        for i, segment in enumerate(self.body):
            if not isinstance(segment, Arithmetic | Tensor | Shared | Branch):
                why = (
                    "how often a spin-wait is run through is not known before: it has only "
                    "arithmetic, tensor-core work, shared memory and branches"
                )
                at = f"body[{i}]"
                raise InvalidInput(f"{at}: {why} (got {segment!r})", at, segment)


Segment: TypeAlias = Annotated[
    Arithmetic | Tensor | Shared | Load | Store | Await | Barrier | Branch | Poll | Loop,
    Field(discriminator="kind"),
    KINDS,
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


def _accesses(segments: Sequence[Any], path: str) -> Iterator[tuple[str, Access]]:
    for i, segment in enumerate(segments):
        at = f"{path}[{i}]"
        if isinstance(segment, Loop):
            yield from _accesses(segment.body, f"{at}.body")
        elif isinstance(segment, Load | Store) and segment.access is not None:
            yield f"{at}.access", segment.access


def _polls(segments: Sequence[Any], path: str) -> Iterator[tuple[str, PollNumbers]]:
    for i, segment in enumerate(segments):
        at = f"{path}[{i}]"
        if isinstance(segment, Loop):
            yield from _polls(segment.body, f"{at}.body")
        elif isinstance(segment, Poll) and isinstance(segment.cycles, PollNumbers):
            yield f"{at}.cycles", segment.cycles


class ProgramNumbers(Numbers):
    """One program's number a CTA; read in place as :class:`wavesim.spec.Numbers` are."""

    __slots__ = ()

    _rule: ClassVar[str] = "a CTA's program is one of the list, counted from 0"


class Warps(Editable, Spec):
    """What the warps of each CTA issue; all warps of a CTA run the same program.

    Args:
        programs: one list of segments, or several: CTA i of a kernel with n of them runs number
            ``i % n``, and there are at least n CTAs.
        order: the number of each CTA's program, a list of one a CTA.
        startup_cycles: before a CTA's first instruction: its code is fetched.
        finish_cycles: behind its last one.

    ``run.warps`` has what the warps did, under the names that profilers use, and ``run.l2`` what
    loads and stores with an ``access`` moved.
    """

    positional: ClassVar[tuple[str, ...]] = ("programs",)
    kind: Literal["warp_programs"] = "warp_programs"
    programs: Annotated[tuple[tuple[Segment, ...], ...], BeforeValidator(_programs), LIST]
    order: ProgramNumbers | None = None
    startup_cycles: Time = 0.0
    finish_cycles: Time = 0.0

    if TYPE_CHECKING:

        def __init__(
            self, programs: Sequence[Segment] | Sequence[Sequence[Segment]], **fields: Any
        ) -> None: ...

    def model_post_init(self, context: object) -> None:
        """See that there is something to run."""
        for i, program in enumerate(self.programs or ((),)):
            if not program:
                at = f"programs[{i}]"
                raise InvalidInput(f"{at}: a program has at least one segment (got [])", at, [])

    def accesses(self) -> dict[Access, str]:
        """Give the accesses that segments name, and where the first that names each stands."""
        found: dict[Access, str] = {}
        for i, program in enumerate(self.programs):
            for path, access in _accesses(program, f"programs[{i}]"):
                found.setdefault(access, path)
        return found

    def check_ctas(self, count: int) -> None:
        """See that each CTA has its program, and its tile of a pattern; raises InvalidInput."""
        for access, path in self.accesses().items():
            try:
                access.check_ctas(count)
            except InvalidInput as error:
                if error.field == "grid":
                    why = str(error).removeprefix("grid")
                    raise InvalidInput(f"grid: {path}{why}", "grid", count) from None
                raise within(path, error) from None
        for i, program in enumerate(self.programs):
            for path, cycles in _polls(program, f"programs[{i}]"):
                if len(cycles) != count:
                    why = f"one time a CTA is needed, {count:,} in all"
                    got = len(cycles)
                    raise InvalidInput(f"{path}: {why} (got {got:,})", path, got)
        if self.order is not None and len(self.order) != count:
            why = f"one program's number a CTA is needed, {count:,} in all"
            got = len(self.order)
            raise InvalidInput(f"order: {why} (got {got:,})", "order", got)


Poll.model_rebuild()
Loop.model_rebuild()
