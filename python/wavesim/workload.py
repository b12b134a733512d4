"""What a device is asked to do: kernels, what their CTAs do, and the programs that launch them.

All of it is frozen and checked when made; ``spec.edited(field=...)`` makes a changed copy. Faults
are :class:`wavesim.errors.InvalidInput` with the path of the field and the value it got.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from wavesim.access import Access
from wavesim.devices import Device
from wavesim.devices import device as catalogue_device
from wavesim.durations import AnyDuration, Duration, PerCta, Time, for_count
from wavesim.errors import InvalidInput
from wavesim.scalars import KEY, NUMBER, Truth, is_truth
from wavesim.spec import KINDS, LIST, CtaNumbers, Editable, Spec, within
from wavesim.streaming import Streaming
from wavesim.tiles import Tiles
from wavesim.warps import Warps
from wavesim.wire import Wire, check_shape, check_work, wire_of

__all__ = [
    "Access",
    "Chain",
    "Copy",
    "Duration",
    "Graph",
    "GridSync",
    "Item",
    "Kernel",
    "Launch",
    "Measured",
    "Persistent",
    "Program",
    "Record",
    "Stream",
    "Streaming",
    "Tiles",
    "Wait",
    "Warps",
    "Work",
]

Count = Annotated[int, Field(ge=0, lt=2**32), NUMBER]
"""What the engine counts in 32 bits; where its limits are narrower, it says so itself."""
StreamNumber = Annotated[int, Field(ge=0, lt=2**32), NUMBER]
StreamKey = Annotated[int, Field(ge=0, lt=2**32), KEY]
"""The same as a key of a mapping, which is text in JSON."""


def _three(value: Any) -> Any:
    """Read ``n``, ``(x,)``, ``(x, y)`` and ``(x, y, z)`` as x, y, z."""
    if isinstance(value, str | bytes) or is_truth(value):
        raise ValueError("must be a number or (x, y, z)")
    if hasattr(value, "tolist"):  # an array, or a number of NumPy's
        value = value.tolist()
    if isinstance(value, Sequence) and not 1 <= len(value) <= 3:
        raise ValueError("must be a number or (x, y, z)")
    if isinstance(value, Sequence):
        return (*value, 1, 1)[:3]
    return (value, 1, 1)


Dimensions = Annotated[tuple[Count, Count, Count], BeforeValidator(_three)]


class Persistent(Editable, Spec):
    """A persistent kernel: its CTAs work off a list of tasks, each of its own duration.

    ``schedule="static"``: CTA i of n takes tasks i, i + n, i + 2n ... ``"atomic"``: each CTA takes
    the next task from one counter in global memory, which costs a round trip a task.
    ``overhead_cycles``: what each task costs beside its duration (the loop and its barriers);
    ``startup_cycles``: what each CTA does before its first task. A grid has at most 2^24 CTAs.
    """

    positional: ClassVar[tuple[str, ...]] = ("tasks", "duration", "schedule")
    kind: Literal["persistent"] = "persistent"
    tasks: Annotated[int, Field(ge=0, lt=2**32), NUMBER]
    duration: AnyDuration
    schedule: Literal["static", "atomic"] = "static"
    overhead_cycles: Time = 0.0
    startup_cycles: Time = 0.0

    if TYPE_CHECKING:

        def __init__(
            self,
            tasks: int,
            duration: Duration,
            schedule: Literal["static", "atomic"] = "static",
            *,
            overhead_cycles: float = 0.0,
            startup_cycles: float = 0.0,
        ) -> None: ...

    def model_post_init(self, context: object) -> None:
        """See that there is a value for each task."""
        self.__dict__["duration"] = for_count(self.duration, self.tasks, "a task", "duration")


class GridSync(Editable, Spec):
    """Rounds of work with a grid-wide barrier behind each: all CTAs have to be resident at once."""

    positional: ClassVar[tuple[str, ...]] = ("rounds", "duration")
    kind: Literal["grid_sync"] = "grid_sync"
    rounds: Annotated[int, Field(ge=0, lt=2**32), NUMBER]
    duration: AnyDuration

    if TYPE_CHECKING:

        def __init__(self, rounds: int, duration: Duration) -> None: ...


def _lists(needs: Any) -> Any:
    """Read one list of CTA numbers, or several, as a tuple of lists."""
    if isinstance(needs, str | bytes) or is_truth(needs):
        raise ValueError("must be a number from 1 on, or one or more lists of CTAs")
    if isinstance(needs, int):
        return needs
    import numpy as np  # noqa: PLC0415 (loaded when there are arrays)

    if not np.ndim(needs) and not isinstance(needs, list | tuple):
        return needs
    several = isinstance(needs, list | tuple) and len(needs) > 0 and np.ndim(needs[0]) > 0
    return tuple(CtaNumbers(numbers) for numbers in (needs if several else (needs,)))


class Chain(Editable, Spec):
    """CTAs that wait for others of their grid: look-back scans, semaphores, spin-waits on flags.

    A CTA runs ``before``, waits until those it ``needs`` have ended, runs ``after``, and ends,
    which sets its own flag. ``needs``: a number ``d`` (CTA i waits for CTA i - d), or one or more
    lists of one CTA's number a CTA, -1 for none. A flag takes an atomic's way through L2 to be
    seen. A grid has at most 2^24 CTAs. Waiting CTAs keep their slots: a grid whose CTAs wait for
    others that find no slot ends in a :class:`wavesim.errors.Deadlock` that names them.
    """

    positional: ClassVar[tuple[str, ...]] = ("before", "after", "needs")
    kind: Literal["chain"] = "chain"
    before: AnyDuration
    after: AnyDuration
    needs: Annotated[
        Annotated[int, Field(ge=1, lt=2**32)] | tuple[CtaNumbers, ...],
        Field(union_mode="left_to_right"),
        BeforeValidator(_lists),
    ] = 1

    if TYPE_CHECKING:

        def __init__(self, before: Duration, after: Duration, needs: object = 1) -> None: ...

    def for_ctas(self, count: int) -> Chain:
        """Give the same with as many values as there are CTAs; raises InvalidInput."""
        for i, needed in enumerate(() if isinstance(self.needs, int) else self.needs):
            if len(needed) != count:
                why = f"one CTA's number a CTA is needed, {count:,} in all (got {len(needed):,})"
                raise InvalidInput(f"needs[{i}]: {why}", f"needs[{i}]", len(needed))
        before = for_count(self.before, count, "a CTA", "before")
        after = for_count(self.after, count, "a CTA", "after")
        if before is self.before and after is self.after:
            return self
        return self.edited(before=before, after=after)


def _device_or_name(on: Any) -> Any:
    if on is not None and not isinstance(on, Device | str | Mapping):
        raise ValueError("must be a device or the name of one")
    if isinstance(on, str):
        try:
            catalogue_device(on)
        except InvalidInput as error:
            raise InvalidInput(str(error).removeprefix("device: "), None, on) from None
    return on


class Measured(Editable, Spec):
    """A kernel of which only the whole time was measured, as a profiler's trace has it.

    ``span_ns``: from its first CTA's start to its last one's end. ``on``: the device that it was
    measured on, by default the one it is simulated on. Before a run, the one CTA duration is found
    for which the kernel, alone on that device, spans this time. On another device the duration is
    multiplied by ``scale``, by default the ratio of the SM clocks. A span shorter than empty CTAs
    take is replayed with empty CTAs, and ``run.notes`` says so.
    """

    positional: ClassVar[tuple[str, ...]] = ("span_ns", "on", "scale")
    kind: Literal["measured"] = "measured"
    span_ns: Time
    on: Annotated[Device | str | None, BeforeValidator(_device_or_name)] = None
    scale: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False), NUMBER] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            span_ns: float,
            on: Device | str | None = None,
            scale: float | None = None,
        ) -> None: ...


Work = Annotated[
    AnyDuration | Persistent | GridSync | Chain | Access | Tiles | Streaming | Warps | Measured,
    Field(discriminator="kind"),
    KINDS,
]
"""What the CTAs of a kernel do; in files told by ``kind``."""


class Kernel(Editable, Spec):
    """A kernel's launch shape, resources and work.

    Args:
        grid: CTAs, as a number or (x, y, z).
        block: threads a CTA, as a number or (x, y, z).
        registers: registers a thread (AMD: architectural VGPRs); 0 if not known.
        shared_memory: static and dynamic shared memory a CTA, in bytes; opted in where needed.
        cluster: CTAs a cluster; the grid is a whole number of clusters.
        barriers: named barriers a CTA; 0 if not known.
        cooperative: all CTAs must be resident at once, or the device refuses the launch.
        cluster_launch: launched with a cluster size although that is 1; the dispatcher then places
            it as it places clusters, and an SM holds fewer.
        non_portable_cluster: allow cluster sizes that not every device takes.
        last_warp_cycles: how long one warp of a CTA runs on when the others have ended, such as the
            one that writes the result: what they held of warps, threads and registers is given
            away by then. For work that is a :class:`Duration`.
        name: for people; need not be unique.
        work: what a CTA does: a :class:`Duration`, or one of :class:`Persistent`,
            :class:`GridSync`, :class:`Chain`, :class:`Access`, :class:`Tiles`, :class:`Streaming`,
            :class:`Warps` and :class:`Measured`.

    What only a device can say, such as that no SM holds a CTA of this size, is said when the kernel
    is simulated.
    """

    positional: ClassVar[tuple[str, ...]] = ("grid", "block")
    grid: Dimensions
    block: Dimensions = (256, 1, 1)
    registers: Count = 32
    shared_memory: Count = 0
    cluster: Count = 1
    cluster_launch: Truth = False
    barriers: Count = 1
    cooperative: Truth = False
    non_portable_cluster: Truth = False
    last_warp_cycles: Time = 0.0
    name: str = "kernel"
    work: Work

    if TYPE_CHECKING:

        def __init__(
            self,
            grid: int | Sequence[int],
            block: int | Sequence[int] = 256,
            *,
            work: Duration
            | Persistent
            | GridSync
            | Chain
            | Access
            | Tiles
            | Streaming
            | Warps
            | Measured,
            registers: int = 32,
            shared_memory: int = 0,
            cluster: int = 1,
            cluster_launch: bool = False,
            barriers: int = 1,
            cooperative: bool = False,
            non_portable_cluster: bool = False,
            last_warp_cycles: float = 0.0,
            name: str = "kernel",
        ) -> None: ...

    def model_post_init(self, context: object) -> None:
        """Have the engine check it all, and see that there is a value for each CTA."""
        check_shape(self)
        work = self.work
        try:
            if isinstance(work, Duration):
                self.__dict__["work"] = for_count(work, self.ctas, "a CTA")
            elif isinstance(work, GridSync):
                duration = for_count(work.duration, self.ctas, "a CTA", "duration")
                if duration is not work.duration:
                    self.__dict__["work"] = work.edited(duration=duration)
            elif isinstance(work, Chain):
                self.__dict__["work"] = work.for_ctas(self.ctas)
            elif isinstance(work, Access | Warps):
                work.check_ctas(self.ctas)
            elif isinstance(work, Tiles):
                work.check_ctas(self.ctas, self.shared_memory)
        except InvalidInput as error:
            if error.field == "grid":
                raise
            raise within("work", error) from None
        if not isinstance(work, Duration | Measured):  # of which nothing is left to check
            check_work(self)

    @property
    def ctas(self) -> int:
        """CTAs of the grid."""
        return math.prod(self.grid)

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return math.prod(self.block)


def _launched(item: Any) -> Any:
    return Launch(item) if isinstance(item, Kernel) else item


class Launch(Editable, Spec):
    """A kernel launch.

    Args:
        kernel: what is launched.
        stream: in which stream.
        at_ns: the host issues it no earlier than this, counted from the start of the run; not in
            a graph, which is issued as a whole.
        dependent: programmatic dependent launch: CTAs may start before the kernel ahead of it in
            the stream has ended. NVIDIA's devices have it from compute capability 9.0 on; it is
            simulated on any.
        trigger: its CTAs let the dependent launch behind it go as soon as they start.
    """

    positional: ClassVar[tuple[str, ...]] = ("kernel", "stream", "at_ns", "dependent", "trigger")
    kind: Literal["launch"] = "launch"
    kernel: Kernel
    stream: StreamNumber = 0
    at_ns: Time | None = None
    dependent: Truth = False
    trigger: Truth = False

    if TYPE_CHECKING:

        def __init__(
            self,
            kernel: Kernel,
            stream: int = 0,
            at_ns: float | None = None,
            dependent: bool = False,
            trigger: bool = False,
        ) -> None: ...


class Record(Editable, Spec):
    """Marks a point in a stream, as an event."""

    positional: ClassVar[tuple[str, ...]] = ("event", "stream")
    kind: Literal["record"] = "record"
    event: str
    stream: StreamNumber = 0

    if TYPE_CHECKING:

        def __init__(self, event: str, stream: int = 0) -> None: ...


class Wait(Editable, Spec):
    """Holds a stream until the last :class:`Record` of the event issued before is reached."""

    positional: ClassVar[tuple[str, ...]] = ("event", "stream")
    kind: Literal["wait"] = "wait"
    event: str
    stream: StreamNumber = 0

    if TYPE_CHECKING:

        def __init__(self, event: str, stream: int = 0) -> None: ...


class Copy(Editable, Spec):
    """A copy or fill by a copy engine: takes time in its stream, and no SM."""

    positional: ClassVar[tuple[str, ...]] = ("duration_ns", "stream", "at_ns")
    kind: Literal["copy"] = "copy"
    duration_ns: Time
    stream: StreamNumber = 0
    at_ns: Time | None = None

    if TYPE_CHECKING:

        def __init__(
            self, duration_ns: float, stream: int = 0, at_ns: float | None = None
        ) -> None: ...


class Graph(Editable, Spec):
    """Items that the host launches with one call, as a captured CUDA Graph.

    Streams and events inside give the order of its nodes. A graph holds no graph.
    """

    positional: ClassVar[tuple[str, ...]] = ("items", "stream", "at_ns")
    kind: Literal["graph"] = "graph"
    items: Annotated[
        tuple[
            Annotated[
                Annotated[Launch | Record | Wait | Copy, Field(discriminator="kind"), KINDS],
                BeforeValidator(_launched),
            ],
            ...,
        ],
        LIST,
    ]
    stream: StreamNumber = 0
    at_ns: Time | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            items: Iterable[Launch | Record | Wait | Copy | Kernel],
            stream: int = 0,
            at_ns: float | None = None,
        ) -> None: ...


Item = Annotated[
    Annotated[Launch | Record | Wait | Copy | Graph, Field(discriminator="kind"), KINDS],
    BeforeValidator(_launched),
]
"""One thing that the host issues; in files told by ``kind``."""


class Stream(Editable, Spec):
    """A stream's properties. ``priority``: lower is more urgent, clamped to the device's range."""

    priority: Annotated[int, Field(ge=-(2**31), lt=2**31), NUMBER] = 0


def _or_none_at_all(streams: Any) -> Any:
    return {} if streams is None else streams


class Program(Editable, Spec):
    """What a run simulates: items in the order in which the host issues them.

    Streams order their own items; between streams only events do. A kernel among the items is
    launched in stream 0. ``streams`` has the properties of those that are not plain.
    """

    positional: ClassVar[tuple[str, ...]] = ("items", "streams")
    items: Annotated[tuple[Item, ...], LIST]
    streams: Annotated[Mapping[StreamKey, Stream], BeforeValidator(_or_none_at_all)] = {}

    if TYPE_CHECKING:

        def __init__(
            self,
            items: Iterable[Launch | Record | Wait | Copy | Graph | Kernel],
            streams: Mapping[int, Stream] | None = None,
        ) -> None: ...

    def model_post_init(self, context: object) -> None:
        """Have the engine check what is between the items."""
        self.wire.check()

    @cached_property
    def wire(self) -> Wire:
        """The engine's form of this program, with empty CTAs for measured kernels."""
        return wire_of(self)

    def launches(self) -> Iterator[Launch]:
        """The launches, in the order of ``run.kernels``: those of a graph where it is launched."""
        for item in self.items:
            for inner in item.items if isinstance(item, Graph) else (item,):
                if isinstance(inner, Launch):
                    yield inner

    def __hash__(self) -> int:
        return hash((self.items, tuple(sorted(self.streams.items(), key=lambda item: item[0]))))

    def __repr__(self) -> str:
        streams = {item.stream for item in self.items}
        launches = sum(1 for _ in self.launches())
        return f"Program({len(self.items)} items, {launches} launches, {len(streams)} streams)"


def work_of(kernel: Kernel) -> str:
    """Describe a kernel's work in a few words, as for a report."""
    work = kernel.work
    if isinstance(work, PerCta):
        return f"one duration a CTA, {len(work.values):,} in all"
    return repr(work)
