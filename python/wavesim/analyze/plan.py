"""A program that does what a trace did: the same kernels, streams, events and host calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from wavesim.errors import InvalidInput
from wavesim.io.trace import Problems
from wavesim.workload import (
    Copy,
    Duration,
    Graph,
    Kernel,
    Launch,
    Measured,
    Program,
    Record,
    Stream,
    Wait,
)

if TYPE_CHECKING:
    from wavesim.analyze.stamps import Stamps

Row = dict[str, Any]
Work = Duration | Measured
WorkOf = Callable[[Row], Work]
Item = Launch | Record | Wait | Copy
_OVERLAP_NS = 1.0


@dataclass(frozen=True)
class Step:
    """One thing that the host did: a row of work, or an event recorded or waited for."""

    at_ns: float
    order: int
    row: Row | None = None
    record: tuple[str, int] | None = None
    wait: tuple[str, int] | None = None


@dataclass(frozen=True)
class Plan:
    """What a trace did, ready to be made into programs.

    - ``steps``: in host order; ``at_ns`` on the trace's clock.
    - ``origin_ns``: where on the trace's clock the program's time 0 lies.
    - ``streams``: the trace's stream ids, numbered from 0.
    - ``notes``: what the programs cannot show: what, count, example.
    """

    steps: tuple[Step, ...]
    origin_ns: float
    streams: dict[int | None, int]
    priorities: dict[int, int]
    notes: pl.DataFrame

    @property
    def kernel_ids(self) -> tuple[int, ...]:
        """The trace's ids of the kernels that a program launches, in the order of its launches."""
        return tuple(row["id"] for row in self.kernels())

    def kernels(self) -> list[Row]:
        """Give the rows that are simulated CTA by CTA, in the order in which they are issued."""
        rows = [step.row for step in self.steps if step.row is not None]
        return [row for row in rows if row["simulated"]]

    def program(
        self,
        work_of: WorkOf,
        stamps: Stamps,
        *,
        one_graph: bool = False,
        dependent: bool = False,
    ) -> Program:
        """Make the program.

        ``work_of`` gives a kernel's work from its row. ``one_graph``: all of it in one graph that
        is launched once, without the host's times; ``dependent``: with programmatic dependent
        launch.
        """
        make = _Maker(self, work_of, stamps, dependent=dependent)
        streams = {stream: Stream(priority=value) for stream, value in self.priorities.items()}
        if one_graph:
            return Program([Graph([make.item(step) for step in self.steps])], streams=streams)
        items: list[Item | Graph] = []
        for steps in self._calls():
            at = max(steps[0].at_ns - self.origin_ns, 0.0)
            if len(steps) == 1:
                items.append(make.item(steps[0], at))
            else:
                stream = self.streams[steps[0].row["stream"]] if steps[0].row else 0
                items.append(Graph([make.item(step) for step in steps], stream=stream, at_ns=at))
        return Program(items, streams=streams)

    def _calls(self) -> Iterable[list[Step]]:
        """Group steps that one host call made: the kernels of a launched graph."""
        together: list[Step] = []
        for step in self.steps:
            if together and not _one_call(together[-1], step):
                yield together
                together = []
            together.append(step)
        if together:
            yield together


@dataclass(frozen=True)
class _Maker:
    """Makes the items of one program."""

    plan: Plan
    work_of: WorkOf
    stamps: Stamps
    dependent: bool

    def item(self, step: Step, at_ns: float | None = None) -> Item:
        if step.record is not None:
            return Record(event=step.record[0], stream=step.record[1])
        if step.wait is not None:
            return Wait(event=step.wait[0], stream=step.wait[1])
        assert step.row is not None
        row, stream = step.row, self.plan.streams[step.row["stream"]]
        if not row["simulated"]:
            return Copy(self.stamps.span_ns(row["duration_ns"]), stream=stream, at_ns=at_ns)
        return Launch(
            kernel_of(row, self.work_of(row)),
            stream=stream,
            at_ns=at_ns,
            dependent=self.dependent or row["overlaps"],
            trigger=row["overlapped"],
        )


def plan_of(
    work: pl.DataFrame,
    kernels: pl.DataFrame,
    syncs: pl.DataFrame,
    host: pl.DataFrame,
    stamps: Stamps,
) -> Plan:
    """Plan the work of one GPU.

    Frames are those of ``with_gaps`` and ``with_residency``, and the trace's own.

    A launch is issued so that an idle device starts it when the trace's would have:
    ``latency_ns`` after the call returned.
    """
    notes = Problems()
    rows = _rows(work, kernels, stamps, notes)
    streams: dict[int | None, int] = {}
    priorities: dict[int, int] = {}
    steps = []
    for number, row in enumerate(rows):
        stream = streams.setdefault(row["stream"], len(streams))
        if row["priority"] is not None:
            priorities.setdefault(stream, row["priority"])
        steps.append(Step(row["at_ns"], number, row=row))
    shift = stamps.latency_ns + stamps.margin_ns / 2 - stamps.submit_ns
    steps += _waits(syncs, host, streams, shift, notes)
    # Recording and waiting stand in front of work that is issued at the same moment.
    steps.sort(key=lambda step: (step.at_ns, step.order))
    origin = next(step.at_ns for step in steps if step.row is not None)
    return Plan(tuple(steps), origin, streams, priorities, notes.frame())


def kernel_of(row: Row, work: Work) -> Kernel:
    """Make the kernel of a row; raises InvalidInput if its shape cannot be launched anywhere."""
    return Kernel(
        grid=(row["grid_x"], row["grid_y"], row["grid_z"]),
        block=(row["block_x"], row["block_y"], row["block_z"]),
        registers=row["registers"] or 0,
        shared_memory=row["shared_memory"] or 0,
        name=row["name"],
        work=work,
    )


def _rows(
    work: pl.DataFrame,
    kernels: pl.DataFrame,
    stamps: Stamps,
    notes: Problems,
) -> list[Row]:
    shape = ["grid", "grid_x", "grid_y", "grid_z", "block", "block_x", "block_y", "block_z"]
    shape += ["registers", "shared_memory", "priority", "residency"]
    shapes = kernels.select("id", pl.lit("kernel").alias("what"), *shape)
    ends = pl.col("end_ns").cum_max().shift(1).over("stream")
    overlaps = (pl.col("start_ns") < ends - _OVERLAP_NS).fill_null(value=False)
    late = stamps.latency_ns + stamps.margin_ns / 2 - stamps.submit_ns
    # A call whose work starts before it returns told the device at some time inside.
    told = (
        pl.when(pl.col("launch_end_ns") > pl.col("start_ns"))
        .then(pl.max_horizontal("launch_start_ns", pl.col("start_ns") - stamps.latency_ns))
        .otherwise("launch_end_ns")
    )
    unlinked = pl.col("start_ns") + (stamps.margin_ns / 2 - stamps.submit_ns)
    at = pl.when(pl.col("launch_end_ns").is_null()).then(unlinked).otherwise(told + late)
    frame = (
        work.join(shapes, on=["what", "id"], how="left", maintain_order="left")
        .with_columns(at_ns=at, overlaps=overlaps & (pl.col("what") == "kernel"))
        .with_columns(
            overlapped=pl.col("overlaps").shift(-1).over("stream").fill_null(value=False),
            simulated=(pl.col("residency") > 0).fill_null(value=False),
        )
        # A call and its kernels stand together, in the order in which they ran.
        .with_columns(at_ns=pl.col("at_ns").min().over(_call_key()))
    )
    rows = frame.to_dicts()
    for row in rows:
        _check(row, notes)
    return rows


def _call_key() -> pl.Expr:
    alone = pl.concat_str(pl.lit("#"), pl.int_range(pl.len()).cast(pl.String))
    return pl.coalesce(pl.col("correlation").cast(pl.String), alone)


def _check(row: Row, notes: Problems) -> None:
    """Find out whether the row can be simulated CTA by CTA, and note why not."""
    name = str(row["name"])[:80]
    if row["launch_end_ns"] is None:
        notes.add("launch calls that are not in the trace: issued when the work started", name)
    if row["what"] != "kernel":
        return
    if not row["simulated"]:
        notes.add("kernels without a usable launch shape: replayed as time without SMs", name)
        return
    try:
        kernel_of(row, Measured(0.0))
    except InvalidInput as error:
        row["simulated"] = False
        notes.add("kernels whose shape no launch accepts: replayed as time without SMs", str(error))
    if row["overlaps"]:
        notes.add("kernels that overlap the one before: replayed as dependent launches", name)


def _waits(
    syncs: pl.DataFrame,
    host: pl.DataFrame,
    streams: dict[int | None, int],
    shift: float,
    notes: Problems,
) -> list[Step]:
    """Record and wait steps from the trace's stream waits."""
    recorded = dict(host.select("correlation", "end_ns").drop_nulls().iter_rows())
    steps: list[Step] = []
    seen: set[int] = set()
    for row in syncs.iter_rows(named=True):
        if row["stream"] is None or "stream wait" not in row["kind"].lower():
            continue  # the host waits: what it issues afterwards has its own time
        mark, source = row["wait_record"], row["wait_stream"]
        if mark not in recorded or source not in streams or row["stream"] not in streams:
            notes.add("stream waits whose event is not in the trace; left out", f"event {mark}")
            continue
        event = f"event {mark}"
        if mark not in seen:
            seen.add(mark)
            steps.append(Step(recorded[mark] + shift, -2, record=(event, streams[source])))
        steps.append(Step(row["end_ns"] + shift, -1, wait=(event, streams[row["stream"]])))
    return steps


def _one_call(before: Step, step: Step) -> bool:
    if before.row is None or step.row is None:
        return False
    call = step.row["correlation"]
    return call is not None and call == before.row["correlation"]
