"""The analysis of one GPU of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING

import polars as pl

from wavesim.analyze import replay as replaying
from wavesim.analyze import what_if as changing
from wavesim.analyze.gaps import on_one_clock, with_gaps
from wavesim.analyze.gpu import choose_gpu, device_for
from wavesim.analyze.ledger import kernel_share, ledger_of
from wavesim.analyze.names import short_name
from wavesim.analyze.plan import Plan, plan_of
from wavesim.analyze.shapes import with_residency
from wavesim.analyze.stamps import Stamps, stamps_of
from wavesim.analyze.summary import Summary, summary_of
from wavesim.devices import Device
from wavesim.devices import device as catalogue_device
from wavesim.errors import InvalidInput
from wavesim.io import Trace, read
from wavesim.scalars import listed, path_from
from wavesim.simulate import simulate
from wavesim.text import counted

if TYPE_CHECKING:
    from wavesim.run import Run
    from wavesim.workload import Program

_DAY_NS = 86_400e9
_LONGEST_NS = 25 * _DAY_NS  # half of what the engine's clock can tell


def analyze(
    trace: Trace | str | PathLike[str],
    device: Device | str | None = None,
    *,
    gpu: int | None = None,
) -> Analysis:
    """Analyze one GPU of a trace.

    ``device``: what the GPU is; by default what the trace says, else it must be given. ``gpu``:
    which of the trace's GPUs; by default the one with the most kernel time.

    Raises InvalidInput if ``trace`` is none, the device cannot be told or the GPU is not in the
    trace, and what ``wavesim.read`` raises if a path is given.
    """
    if not isinstance(trace, Trace):
        trace = read(path_from("trace", trace, "a trace, or the path of one"))
    number = choose_gpu(trace, gpu)
    model = device_for(trace, number, device)
    kernels = with_residency(_of_gpu(trace.kernels, number), model)
    work = with_gaps(on_one_clock(kernels, _of_gpu(trace.memory, number)))
    return Analysis(
        trace=trace,
        device=model,
        gpu=number,
        kernels=_kernels(kernels, work),
        work=work,
        ledger=ledger_of(work, kernels),
        stamps=stamps_of(work, kernels, model),
    )


@dataclass(frozen=True, eq=False)
class Analysis:
    """One GPU of a trace. What needs simulation is simulated when it is first asked for.

    - ``kernels``: id, name, stream, start_ns, end_ns, duration_ns, grid, block, registers,
      shared_memory, residency (CTAs an SM), occupancy (resident warps over the limit),
      profiler_occupancy (the profiler's estimate, for comparison), limiter, refusal, waves,
      wave_efficiency, tail_share, sms_share, kernel_time_ns (its part of the time in which kernels
      ran), launch_gap_ns, gap_cause ("host", "device" or "unknown"), gap_host_ns, gap_latency_ns,
      queued_ns, launch_name. See ``with_residency`` and ``with_gaps``.
    - ``work``: kernels, copies and sets in the order in which they started, with their gaps.
    - ``ledger``: account, time_ns, share, meaning; adds up to the span of the trace's GPU work.
    - ``stamps``: how the profiler's times relate to the CTAs'.
    """

    trace: Trace
    device: Device
    gpu: int | None
    kernels: pl.DataFrame
    work: pl.DataFrame
    ledger: pl.DataFrame
    stamps: Stamps

    @property
    def span_ns(self) -> float:
        """From the first start to the last end of work on this GPU."""
        return float(self.ledger["time_ns"].sum())

    @cached_property
    def by_name(self) -> pl.DataFrame:
        """Kernels of one name together, the longest total first.

        Columns: name, short_name, calls, total_ns, share (of all kernel time), mean_ns, min_ns,
        max_ns, grid, block, residency, occupancy, limiter, waves (of the longest call), tail_ns (in
        tails or in slots that stay empty, by waves), gap_ns and gap_host_ns (idle time before).
        """
        duration = pl.col("duration_ns")
        longest = ("grid", "block", "residency", "occupancy", "limiter", "waves")
        found = (
            self.kernels.group_by("name", maintain_order=True)
            .agg(
                calls=pl.len(),
                total_ns=duration.sum(),
                mean_ns=duration.mean(),
                min_ns=duration.min(),
                max_ns=duration.max(),
                **{name: pl.col(name).get(duration.arg_max()) for name in longest},
                tail_ns=pl.when(pl.col("waves").count() > 0).then(
                    (duration * pl.col("tail_share")).sum()
                ),
                gap_ns=pl.col("launch_gap_ns").sum(),
                gap_host_ns=pl.col("gap_host_ns").sum(),
            )
            .sort("total_ns", descending=True, maintain_order=True)
        )
        short = found["name"].map_elements(short_name, return_dtype=pl.String)
        share = pl.col("total_ns") / max(float(found["total_ns"].sum()), 1e-9)
        first = ["name", "short_name", "calls", "total_ns", "share"]
        named = found.with_columns(short_name=short, share=share)
        return named.select(*first, pl.exclude(first))

    @cached_property
    def plan(self) -> Plan:
        """What the host did, ready to be simulated.

        Raises InvalidInput if the trace spans more than 25 days: the engine's clock ends at 50.
        """
        times = self.work.select("start_ns", "end_ns", "launch_start_ns", "launch_end_ns")
        least, most = times.min().row(0), times.max().row(0)
        span = max(t for t in most if t is not None) - min(t for t in least if t is not None)
        if span > _LONGEST_NS:
            raise InvalidInput(
                f"trace: its work and launch calls span {span / _DAY_NS:,.0f} days, so some of its "
                "times are wrong; only up to 25 days can be simulated",
                "trace",
                span,
            )
        shapes = self.trace.kernels.join(
            self.kernels.select("id", "residency"), on="id", how="inner", maintain_order="left"
        )
        syncs = _of_gpu(self.trace.syncs, self.gpu)
        return plan_of(self.work, shapes, syncs, self.trace.host, self.stamps)

    @cached_property
    def _replay_device(self) -> Device:
        return replaying.replay_device(self.device)

    @cached_property
    def _replay_program(self) -> Program:
        return self.plan.program(replaying.measured(self.stamps), self.stamps)

    @cached_property
    def replay(self) -> Run:
        """The trace simulated: same kernels, streams, events and times of the host's calls."""
        return simulate(self._replay_device, self._replay_program, detail="kernels")

    @cached_property
    def cta_ns(self) -> dict[int, float]:
        """How long a CTA of each kernel takes, by the kernel's id, for its span to be as measured.

        All CTAs of a kernel are taken to be equal: a trace tells no more.
        """
        return replaying.cta_times(self._replay_device, self._replay_program, self.plan)

    @cached_property
    def compare(self) -> pl.DataFrame:
        """The replay's kernels beside the measured ones; see ``wavesim.analyze.replay.compare``."""
        return replaying.compare(self.kernels, self.replay, self.plan, self.stamps)

    @cached_property
    def accuracy(self) -> pl.DataFrame:
        """How well the replay met the trace: measure, measured_ns, simulated_ns, error."""
        return replaying.accuracy(self.compare)

    @cached_property
    def what_if(self) -> pl.DataFrame:
        """Launches by graph, and the usual other devices: see ``what_if_on``."""
        own = self.device.name
        names = changing.DEFAULT_DEVICES[self.device.vendor]
        return self.what_if_on([name for name in names if name != own])

    def what_if_on(self, devices: Sequence[Device | str], *, graph: bool = True) -> pl.DataFrame:
        """Simulate the trace's program on other devices and, with ``graph``, as one graph.

        The first row is the replay itself, which the others are held against.

        Columns: change, device, bound ("compute" or "bandwidth": the CTA times scaled by clocks or
        by DRAM bandwidth; null where nothing is scaled), makespan_ns, saved_ns and speedup (against
        the replay, not against the measured time, so that like is held against like), note.

        Raises:
            InvalidInput: ``devices`` is no list, or one of them is no device and not known by name.
        """
        others = [
            one if isinstance(one, Device) else catalogue_device(one)
            for one in listed("devices", devices, "devices")
        ]
        base = changing.Baseline(
            self.device, self.plan, self.stamps, self.cta_ns, self.replay.makespan_ns
        )
        rows = [changing.as_replayed(base)]
        rows += changing.in_one_graph(base) if graph else []
        rows += changing.on_devices(base, others)
        return pl.DataFrame(rows, schema=changing.SCHEMA, orient="row")

    @cached_property
    def problems(self) -> pl.DataFrame:
        """What could not be used or shown: what, count, example; of reading and of replaying."""
        return pl.concat([self.trace.problems, self.plan.notes])

    def summary(self, rows: int = 10) -> Summary:
        """The analysis as a few short tables; ``str()`` of it is text for a terminal.

        Raises:
            InvalidInput: ``rows``, the most kernels to list, is not from 1 to 2^32 - 1.
        """
        return summary_of(self, rows)

    def report(self, path: str | PathLike[str]) -> None:
        """Write one HTML file that needs nothing from the network."""
        from wavesim.report import write_report  # noqa: PLC0415  (loads the plotting library)

        write_report(self, path)

    def to_perfetto(self, path: str | PathLike[str]) -> None:
        """Write measured and simulated kernels as JSON for ui.perfetto.dev."""
        from wavesim.io.perfetto import write_analysis  # noqa: PLC0415

        write_analysis(self, path)

    def __repr__(self) -> str:
        return (
            f"Analysis({self.trace.source!r} on {self.device.name}: "
            f"{counted(self.kernels.height, 'kernel')} in {self.span_ns / 1e6:.3f} ms)"
        )


def _of_gpu(frame: pl.DataFrame, gpu: int | None) -> pl.DataFrame:
    """Rows of one GPU; where the trace names none, the rows without one."""
    return frame.filter(pl.col("device").eq_missing(pl.lit(gpu)))


def _kernels(kernels: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    gaps = (
        work.with_columns(kernel_time_ns=pl.Series(kernel_share(work)))
        .filter(pl.col("what") == "kernel")
        .select(
            "id",
            "kernel_time_ns",
            "launch_gap_ns",
            "gap_cause",
            "gap_host_ns",
            "gap_latency_ns",
            "queued_ns",
        )
    )
    shape = ["id", "name", "stream", "start_ns", "end_ns", "duration_ns", "grid", "block"]
    shape += ["registers", "shared_memory", "residency", "occupancy", "profiler_occupancy"]
    shape += ["limiter", "refusal", "waves", "wave_efficiency", "tail_share", "sms_share"]
    columns = [*shape, *gaps.columns[1:], "launch_name"]
    return kernels.join(gaps, on="id", maintain_order="left").select(columns)
