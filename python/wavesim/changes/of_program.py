"""Changes of the program: launched, shared out or ordered another way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from wavesim.changes.change import Change
from wavesim.devices import Device, Occupancy, occupancy
from wavesim.durations import AnyDuration, Constant, PerCta
from wavesim.workload import (
    Copy,
    Duration,
    Graph,
    GridSync,
    Kernel,
    Launch,
    Measured,
    Persistent,
    Program,
    Record,
    Tiles,
    Wait,
)

if TYPE_CHECKING:
    from wavesim.run import Run

__all__ = [
    "carve_outs",
    "dependent_launches",
    "even_rounds",
    "no_clusters",
    "no_order",
    "one_counter",
    "one_graph",
    "one_more_resident",
    "persistent",
    "whole_carve_out",
    "whole_waves",
]

Node = Launch | Record | Wait | Copy
"""What a graph holds."""


def one_graph(run: Run) -> Change | None:
    """Launch everything as one graph."""
    nodes = _flattened(run.program.items)
    if nodes is None or len(run.program.items) < 2:
        return None
    if sum(isinstance(node, Launch) for node in nodes) < 2:
        return None
    at_once = [
        node.edited(at_ns=None) if isinstance(node, Launch | Copy) else node for node in nodes
    ]
    program = run.program.edited(items=[Graph(at_once, stream=nodes[0].stream)])
    return Change("all launches in one graph", program, run.dispatcher)


def _flattened(items: Iterable[Node | Graph]) -> list[Node] | None:
    """The items without graphs; None if a graph is more than a chain, whose order would change."""
    nodes: list[Node] = []
    for item in items:
        if not isinstance(item, Graph):
            nodes.append(item)
            continue
        if len({node.stream for node in item.items}) > 1:
            return None
        nodes += [
            node.edited(stream=item.stream)
            for node in item.items
            if isinstance(node, Launch | Copy)  # in one stream, events order nothing
        ]
    return nodes


def dependent_launches(run: Run) -> Change | None:
    """Let every kernel behind another one of its stream be launched before that has ended."""
    if not run.device.has_dependent_launch:
        return None
    changed = 0

    def in_order(nodes: Sequence[Node | Graph]) -> list[Node | Graph]:
        nonlocal changed
        ahead: dict[int, bool] = {}
        found: list[Node | Graph] = []
        for node in nodes:
            item = node
            if isinstance(item, Graph):
                item = item.edited(items=in_order(item.items))
            elif isinstance(item, Launch) and not item.dependent and ahead.get(item.stream):
                item = item.edited(dependent=True)
                changed += 1
            ahead[item.stream] = isinstance(item, Launch)
            found.append(item)
        return found

    program = run.program.edited(items=in_order(run.program.items))
    if not changed:
        return None
    return Change("programmatic dependent launches", program, run.dispatcher)


def whole_waves(run: Run) -> Change | None:
    """Split each kernel's work into whole waves of equal CTAs."""
    works_ns = _works_ns(run)

    def whole(kernel: Kernel, residency: int) -> Kernel | None:
        # What memory and other warps have to do with a CTA's time does not change with the grid.
        if kernel.cooperative or not isinstance(kernel.work, Duration | Measured):
            return None
        slots = _slots(kernel, residency, run.device)
        if slots == 0 or (work_ns := works_ns(kernel)) == 0:
            return None
        grid = math.ceil(kernel.ctas / slots) * slots
        return kernel.edited(grid=grid, work=Duration.constant(ns=work_ns / grid))

    # One that fits at once has no last wave: what it lacks is CTAs.
    at_once = bool((run.kernels["waves"] < 1).all())
    how = "as many equal CTAs as there are slots" if at_once else "whole waves of equal CTAs"
    return _with_kernels(run, whole, f"the same work in {how}", _SPLIT)


_SPLIT = "the work can be split so at no cost"


def _works_ns(run: Run) -> Callable[[Kernel], float]:
    """The work of all CTAs of a kernel: how long they run where nobody has to set them up.

    The same times are drawn for the same launches; of several of a kernel it is the mean.
    """

    @cache
    def of_all() -> dict[Kernel, float]:
        slot_ns = pl.col("duration_ns") * pl.col("residency") * run.device.sms
        worked = run.ideal.kernels.select(
            (pl.col("utilization") * slot_ns - pl.col("sync_ns")).alias("ns")
        )
        works: dict[Kernel, list[float]] = {}
        for launch, ns in zip(run.program.launches(), worked["ns"], strict=True):
            works.setdefault(launch.kernel, []).append(ns)
        return {kernel: max(0.0, math.fsum(ns) / len(ns)) for kernel, ns in works.items()}

    return lambda kernel: of_all()[kernel]


def _slots(kernel: Kernel, residency: int, device: Device) -> int:
    """How many CTAs the device holds, in whole clusters."""
    return device.sms * residency // kernel.cluster * kernel.cluster


def _is_even(duration: AnyDuration) -> bool:
    """Tell whether all CTAs take the same time."""
    if isinstance(duration, PerCta):
        values = duration.values.array
        return bool((values == values[:1]).all())
    return isinstance(duration, Constant)


def even_rounds(run: Run) -> Change | None:
    """Share out the work between grid barriers evenly."""
    works_ns = _works_ns(run)

    def even(kernel: Kernel, _: int) -> Kernel | None:
        work = kernel.work
        if not isinstance(work, GridSync) or work.rounds == 0 or _is_even(work.duration):
            return None
        round_ns = works_ns(kernel) / (kernel.ctas * work.rounds)
        return kernel.edited(work=work.edited(duration=Duration.constant(ns=round_ns)))

    words = "the same work between grid barriers in equal parts"
    return _with_kernels(run, even, words, _SPLIT, limit="uneven work between grid barriers")


def persistent(run: Run) -> Change | None:
    """Start as many CTAs as there are slots, and have them take the others' work as tasks."""
    works_ns = _works_ns(run)

    def as_persistent(kernel: Kernel, residency: int) -> Kernel | None:
        slots = _slots(kernel, residency, run.device)
        if kernel.cooperative or not 0 < slots < kernel.ctas:
            return None
        if isinstance(kernel.work, Measured):
            duration: Duration = Duration.constant(ns=works_ns(kernel) / kernel.ctas)
        elif isinstance(kernel.work, Duration):
            duration = kernel.work
        else:
            return None
        return kernel.edited(grid=slots, work=Persistent(kernel.ctas, duration), last_warp_cycles=0)

    return _with_kernels(run, as_persistent, "persistent kernels of a CTA a slot")


def one_counter(run: Run) -> Change | None:
    """Have the CTAs of persistent kernels take uneven tasks from one counter, as they get free."""

    def dynamic(kernel: Kernel, _: int) -> Kernel | None:
        work = kernel.work
        if not isinstance(work, Persistent) or _is_even(work.duration):
            return None
        return kernel.edited(work=work.edited(schedule="atomic"))

    return _with_kernels(run, dynamic, "tasks taken from one atomic counter")


def one_more_resident(run: Run) -> Change | None:
    """Cut registers and shared memory so far that an SM holds one CTA more."""

    def smaller(kernel: Kernel, residency: int) -> Kernel | None:
        return _one_more(kernel, run.device, residency)

    words = "registers and shared memory cut until an SM holds one CTA more"
    return _with_kernels(run, smaller, words, "a CTA takes no longer for it")


def _occupancy(kernel: Kernel, device: Device, registers: int, shared_memory: int) -> Occupancy:
    return occupancy(
        device,
        block=kernel.threads,
        registers=registers,
        shared_memory=shared_memory,
        barriers=kernel.barriers,
        cluster=kernel.cluster,
        non_portable_cluster=kernel.non_portable_cluster,
    )


def _one_more(kernel: Kernel, device: Device, residency: int) -> Kernel | None:
    def resident(registers: int, shared_memory: int) -> int:
        return _occupancy(kernel, device, registers, shared_memory).ctas_per_sm

    if resident(min(kernel.registers, 16), 0) <= residency:
        return None  # neither is what holds it
    registers = kernel.registers
    while resident(registers, 0) <= residency:
        registers -= 1
    fits, too_large = 0, kernel.shared_memory + 1
    if isinstance(kernel.work, Tiles):
        fits = kernel.work.shared_memory
        if resident(registers, fits) <= residency:
            return None  # its operands need what they have
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        if resident(registers, middle) > residency:
            fits = middle
        else:
            too_large = middle
    return kernel.edited(registers=registers, shared_memory=fits)


def whole_carve_out(run: Run) -> Change | None:
    """Set shared memory as large as it gets for every kernel, so that no split refuses another."""
    sizes = run.device.limits.carve_outs_bytes
    if len(set(carve_outs(run))) < 2:
        return None
    device = run.device.edited({"limits.carve_outs_bytes": sizes[-1:]})
    return Change(
        "a shared memory carve-out of 100% preferred by every kernel",
        run.program,
        run.dispatcher,
        "no kernel needs the L1 that this takes",
        device=device,
    )


def carve_outs(run: Run) -> list[int]:
    """What each launch sets an idle SM's shared memory to."""
    found: dict[Kernel, int] = {}
    for launch in run.program.launches():
        kernel = launch.kernel
        if kernel not in found:
            held = _occupancy(kernel, run.device, kernel.registers, kernel.shared_memory)
            found[kernel] = held.carve_out_bytes
    return [found[launch.kernel] for launch in run.program.launches()]


def no_clusters(run: Run) -> Change | None:
    """Launch clusters as single CTAs."""

    def single(kernel: Kernel, _: int) -> Kernel | None:
        return kernel.edited(cluster=1) if kernel.cluster > 1 else None

    return _with_kernels(run, single, "no clusters", "the CTAs of a cluster do not need each other")


def no_order(run: Run) -> Change | None:
    """Put every kernel into a stream of its own, and drop waits."""
    launches = list(run.program.launches())
    if len(launches) < 2:
        return None
    streams = dict(run.program.streams)
    count = 0

    def free(items: Iterable[Node | Graph]) -> list[Node | Graph]:
        nonlocal count
        found: list[Node | Graph] = []
        for item in items:
            if isinstance(item, Record | Wait):
                continue
            count += 1
            if item.stream in run.program.streams:
                streams[_FIRST_FREE + count] = run.program.streams[item.stream]
            changed = item.edited(stream=_FIRST_FREE + count)
            if isinstance(changed, Graph):
                changed = changed.edited(items=free(changed.items))
            found.append(changed)
        return found

    program = Program(free(run.program.items), streams)
    return Change(
        "every kernel in a stream of its own and no waits",
        program,
        run.dispatcher,
        "no kernel needs another's results, so it is the most that more streams can give",
    )


_FIRST_FREE = 1_000_000
"""Streams of :func:`no_order` are numbered from here on, apart from the program's own."""


def _with_kernels(
    run: Run,
    change: Callable[[Kernel, int], Kernel | None],
    words: str,
    assuming: str = "",
    limit: str = "",
) -> Change | None:
    """The run's program with changed kernels; None if none changes.

    ``change`` gets a kernel and its residency. The rest is as in :class:`Change`.
    """
    launched = (launch.kernel for launch in run.program.launches())
    residency: dict[Kernel, int] = dict(zip(launched, run.kernels["residency"], strict=True))
    new: dict[Kernel, Kernel] = {}
    for kernel, resident in residency.items():
        made = change(kernel, resident)
        if made is not None and made != kernel:
            new[kernel] = made
    if not new:
        return None
    program = run.program.edited(items=[_replaced(item, new) for item in run.program.items])
    return Change(words, program, run.dispatcher, assuming, limit=limit)


def _replaced(item: Node | Graph, new: Mapping[Kernel, Kernel]) -> Node | Graph:
    if isinstance(item, Graph):
        return item.edited(items=[_replaced(node, new) for node in item.items])
    if isinstance(item, Launch) and item.kernel in new:
        return item.edited(kernel=new[item.kernel])
    return item
