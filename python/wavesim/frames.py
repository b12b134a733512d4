"""The frames of a run: their columns, and where they come from.

Times are nanoseconds from the start of the run, which is the first host issue; slot time is the
time of one slot (one CTA's place on an SM). Frames come from the engine without a copy, or from a
folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from wavesim._wavesim import RunRecords
from wavesim.scalars import whole_from

__all__ = [
    "ACCOUNTS",
    "CTAS",
    "KERNELS",
    "L2",
    "L2_SLICES",
    "L2_WINDOWS",
    "LEDGER",
    "MEANINGS",
    "SECTOR_BYTES",
    "SMS",
    "WARPS",
    "WARPS_WINDOWS",
    "Recorded",
    "Source",
    "Stored",
]

MEANINGS: Mapping[str, str] = {
    "busy": "CTAs run",
    "launch": "nothing runs and nothing is ready to: the host or the front end is the reason",
    "fill": "slots wait for the first CTAs of a kernel",
    "starved": "CTAs wait for the dispatcher although slots are free",
    "blocked": "CTAs wait although slots are free, because they do not fit",
    "tail": "the last CTAs of a kernel run while the other slots are idle",
    "dependency": "the last CTAs run while the next kernel waits for them",
}
"""Account of slot time -> what it means."""

ACCOUNTS = tuple(MEANINGS)
"""Where slot time can go, in the order of the frames."""

KERNELS: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "kernel": pl.UInt32,  # the launch's number, in issue order
    "name": pl.String,
    "stream": pl.UInt32,
    "grid": pl.UInt64,  # CTAs
    "block": pl.UInt32,  # threads a CTA
    "registers": pl.UInt32,  # a thread
    "shared_memory": pl.UInt32,  # bytes a CTA
    "cluster": pl.UInt32,  # CTAs a cluster
    "residency": pl.UInt32,  # CTAs that an SM holds
    "occupancy": pl.Float64,  # resident warps over the SM's limit
    "limiter": pl.String,  # what holds residency, joined by +
    "waves": pl.Float64,  # grid over SMs x residency
    "issue_ns": pl.Float64,  # the host issued it
    "ready_ns": pl.Float64,  # the dispatcher could begin
    "start_ns": pl.Float64,  # first instruction of the first CTA
    "end_ns": pl.Float64,  # last instruction of the last CTA
    "complete_ns": pl.Float64,  # the dispatcher knew that all of it had ended
    "duration_ns": pl.Float64,
    "launch_gap_ns": pl.Float64,  # nothing ran before it for so long; null for the first
    "placed_ns": pl.Float64,  # the last CTA got its place
    "tail_ns": pl.Float64,  # from then to the end
    "tail_share": pl.Float64,  # of its slots' time: idle in the tail
    "utilization": pl.Float64,  # of its slots' time: a CTA ran
    "dispatch_ns": pl.Float64,  # slot time in which a CTA waited and only the dispatcher was why
    "sync_ns": pl.Float64,  # slot time in which CTAs waited at counters, grid barriers and flags
}
"""``run.kernels``: a row a launch, in issue order."""

CTAS: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "kernel": pl.UInt32,  # the launch's number
    "cta": pl.UInt32,
    "sm": pl.UInt16,
    "slot": pl.UInt16,
    "start_ns": pl.Float64,
    "end_ns": pl.Float64,
}
"""``run.ctas``: a row a CTA, in the order in which they ended."""

SMS: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "sm": pl.UInt16,
    "gpc": pl.UInt16,
    "ctas": pl.UInt64,  # that ran there
    "busy_ns": pl.Float64,  # slot time in which a CTA ran
    "active_ns": pl.Float64,  # at least one CTA was resident
    "utilization": pl.Float64,  # busy over slots x makespan
    "last_end_ns": pl.Float64,
}
"""``run.sms``: a row an SM."""

SECTOR_BYTES = 32
"""What counters count."""

_MOVED: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "requested_sectors": pl.UInt64,  # read by the SMs
    "coalesced_sectors": pl.UInt64,  # of these, joined to a request of another SM of the GPC
    "sm_sectors": pl.UInt64,  # the others: read of L2
    "fabric_sectors": pl.UInt64,  # read of one part of L2 by another
    "lookups": pl.UInt64,  # sm_sectors + fabric_sectors
    "hits": pl.UInt64,  # lookups that found their line, or found it on its way
    "merged_sectors": pl.UInt64,  # of these, lookups that found it on its way
    "hit_share": pl.Float64,  # hits over lookups; null without lookups
    "written_sectors": pl.UInt64,  # by the SMs
    "dram_read_bytes": pl.UInt64,
    "dram_written_bytes": pl.UInt64,  # while the launch ran
}

L2: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "kernel": pl.UInt32,  # the launch's number
    "name": pl.String,
    **_MOVED,
}
"""``run.l2``: a row a launch whose work is memory; a sector is 32 bytes."""

L2_SLICES: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "kernel": pl.UInt32,  # the launch's number
    "part": pl.UInt16,  # the part of L2 that the slice belongs to
    "slice": pl.UInt32,  # numbered over all parts
    **_MOVED,
}
"""``run.l2_slices``: a row a launch whose work is memory and slice; adds up to ``run.l2``."""

L2_WINDOWS: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "kernel": pl.UInt32,  # the launch's number
    "start_ns": pl.Float64,
    "end_ns": pl.Float64,
    **_MOVED,  # of what was asked for from start_ns to end_ns
}
"""``run.l2_windows``: a row a launch whose work is memory and window of time in which it moved
anything. All windows are equally long, up to 1,024 a run; adds up to ``run.l2``."""

WARPS: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "kernel": pl.UInt32,  # the launch's number
    "name": pl.String,
    "state": pl.String,  # under the profilers' names
    "kind": pl.String,  # what holds the warp: issue, memory, or sync (other warps)
    "warp_cycles": pl.Float64,  # SM cycles, added up over its warps
    "share": pl.Float64,  # of all of the launch
}
"""``run.warps``: a row a launch with warp programs and state: ``selected``, ``not_selected``,
``wait``, ``branch_resolving``, ``long_scoreboard``, ``short_scoreboard``, ``barrier``,
``math_pipe_throttle``, ``mio_throttle``, ``no_instruction``. A warp that has ended is in none, as
in a profiler, although its CTA may run on."""

WARPS_WINDOWS: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "kernel": pl.UInt32,  # the launch's number
    "start_ns": pl.Float64,
    "end_ns": pl.Float64,
    "state": pl.String,  # under the profilers' names
    "kind": pl.String,  # what holds the warp: issue, memory, or sync (other warps)
    "warp_cycles": pl.Float64,  # SM cycles from start_ns to end_ns, added up over its warps
}
"""``run.warps_windows``: a row a launch with warp programs, window of time from its first to its
last, and state. All windows are equally long, up to 1,024 a run; adds up to ``run.warps``."""

LEDGER: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "account": pl.String,
    "time_ps": pl.Int64,  # slot time; Int128 where 64 bits are not enough (over 106 days of it)
    "share": pl.Float64,
}
"""``run.ledger``: a row an account; ``time_ps`` adds up to slots x makespan exactly."""

_STORED_BINS = 2_000
"""Divisible by what people ask for, so that a loaded run gives the timeline of the original."""


class Source(Protocol):
    """What a run reads its frames from."""

    def kernels(self) -> pl.DataFrame:
        """``KERNELS``."""

    def ctas(self) -> pl.DataFrame | None:
        """``CTAS``; None if they were not recorded."""

    def sms(self) -> pl.DataFrame:
        """``SMS``."""

    def l2(self) -> pl.DataFrame:
        """``L2``."""

    def l2_slices(self) -> pl.DataFrame:
        """``L2_SLICES``; empty if they were not recorded."""

    def l2_windows(self) -> pl.DataFrame:
        """``L2_WINDOWS``; empty if they were not recorded."""

    def warps(self) -> pl.DataFrame:
        """``WARPS``."""

    def warps_windows(self) -> pl.DataFrame:
        """``WARPS_WINDOWS``; empty if they were not recorded."""

    def ledger(self) -> pl.DataFrame:
        """``LEDGER``."""

    def timeline(self, bins: int) -> pl.DataFrame:
        """Shares of the accounts in so many equal parts of the run."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Frames from the engine."""

    records: RunRecords

    def kernels(self) -> pl.DataFrame:
        """A row a launch."""
        return pl.DataFrame(self.records.kernels())

    def ctas(self) -> pl.DataFrame | None:
        """A row a CTA."""
        frame = self.records.ctas()
        return None if frame is None else pl.DataFrame(frame)

    def sms(self) -> pl.DataFrame:
        """A row an SM."""
        return pl.DataFrame(self.records.sms())

    def l2(self) -> pl.DataFrame:
        """A row a launch with memory work."""
        return pl.DataFrame(self.records.l2())

    def l2_slices(self) -> pl.DataFrame:
        """A row a launch with memory work and slice."""
        frame = self.records.l2_slices()
        return pl.DataFrame(schema=L2_SLICES) if frame is None else pl.DataFrame(frame)

    def l2_windows(self) -> pl.DataFrame:
        """A row a launch with memory work and window of time."""
        frame = self.records.l2_windows()
        return pl.DataFrame(schema=L2_WINDOWS) if frame is None else pl.DataFrame(frame)

    def warps(self) -> pl.DataFrame:
        """A row a launch with warp programs, and state."""
        return pl.DataFrame(self.records.warps())

    def warps_windows(self) -> pl.DataFrame:
        """A row a launch with warp programs, window of time, and state."""
        frame = self.records.warps_windows()
        return pl.DataFrame(schema=WARPS_WINDOWS) if frame is None else pl.DataFrame(frame)

    def ledger(self) -> pl.DataFrame:
        """A row an account."""
        frame = pl.DataFrame(self.records.ledger()).with_columns(pl.col("time_ps").cast(pl.Int128))
        fits = frame["time_ps"].sum() < 2**63
        return frame.cast({"time_ps": pl.Int64}) if fits else frame

    def timeline(self, bins: int) -> pl.DataFrame:
        """A row a bin."""
        return pl.DataFrame(self.records.timeline(bins))


@dataclass(frozen=True, slots=True)
class Stored:
    """Frames that were kept: in a folder, or on the way to another process."""

    kernel_frame: pl.DataFrame
    cta_frame: pl.DataFrame | None
    sm_frame: pl.DataFrame
    ledger_frame: pl.DataFrame
    timeline_frame: pl.DataFrame
    """The timeline in many bins, of which others are made."""
    l2_frame: pl.DataFrame | None = None
    """None where no launch has memory work; so are the next two."""
    l2_slice_frame: pl.DataFrame | None = None
    l2_window_frame: pl.DataFrame | None = None
    warp_frame: pl.DataFrame | None = None
    """None where no launch has warp programs; so is the next."""
    warp_window_frame: pl.DataFrame | None = None

    @classmethod
    def of(cls, source: Source) -> Stored:
        """Keep the frames of a source."""
        if isinstance(source, Stored):
            return source
        return cls(
            source.kernels(),
            source.ctas(),
            source.sms(),
            source.ledger(),
            source.timeline(_STORED_BINS),
            _unless_empty(source.l2()),
            _unless_empty(source.l2_slices()),
            _unless_empty(source.l2_windows()),
            _unless_empty(source.warps()),
            _unless_empty(source.warps_windows()),
        )

    def kernels(self) -> pl.DataFrame:
        """A row a launch."""
        return self.kernel_frame

    def ctas(self) -> pl.DataFrame | None:
        """A row a CTA."""
        return self.cta_frame

    def sms(self) -> pl.DataFrame:
        """A row an SM."""
        return self.sm_frame

    def l2(self) -> pl.DataFrame:
        """A row a launch with memory work."""
        return pl.DataFrame(schema=L2) if self.l2_frame is None else self.l2_frame

    def l2_slices(self) -> pl.DataFrame:
        """A row a launch with memory work and slice."""
        kept = self.l2_slice_frame
        return pl.DataFrame(schema=L2_SLICES) if kept is None else kept

    def l2_windows(self) -> pl.DataFrame:
        """A row a launch with memory work and window of time."""
        kept = self.l2_window_frame
        return pl.DataFrame(schema=L2_WINDOWS) if kept is None else kept

    def warps(self) -> pl.DataFrame:
        """A row a launch with warp programs, and state."""
        return pl.DataFrame(schema=WARPS) if self.warp_frame is None else self.warp_frame

    def warps_windows(self) -> pl.DataFrame:
        """A row a launch with warp programs, window of time, and state."""
        kept = self.warp_window_frame
        return pl.DataFrame(schema=WARPS_WINDOWS) if kept is None else kept

    def ledger(self) -> pl.DataFrame:
        """A row an account."""
        return self.ledger_frame

    def timeline(self, bins: int) -> pl.DataFrame:
        """Divide the kept bins over others in proportion; exact where ``bins`` divides 2,000."""
        kept = self.timeline_frame
        count, end_ns = kept.height, float(kept["end_ns"].max() or 0.0)  # type: ignore[arg-type]
        if bins == count:
            return kept
        # In units of the run over count x bins edges are whole numbers, and parts are exact.
        of_kept, of_bins = range(0, count * bins + 1, bins), range(0, count * bins, count)
        edges = pl.DataFrame({"edge": sorted({*of_kept, *of_bins})})
        values = [*ACCOUNTS, "running_ctas"]
        parts = (
            edges.with_columns(width=pl.col("edge").shift(-1) - pl.col("edge"))
            .drop_nulls()
            .with_columns(kept=pl.col("edge") // bins, bin=(pl.col("edge") // count))
            .join(kept.select(pl.col("bin").cast(pl.Int64).alias("kept"), *values), on="kept")
        )
        weighted = [(pl.col(name) * pl.col("width")).sum() / count for name in values]
        return (
            parts.group_by("bin", maintain_order=True)
            .agg(*weighted)
            .select(
                pl.col("bin").cast(pl.UInt32),
                (pl.col("bin") * (end_ns / bins)).alias("start_ns"),
                ((pl.col("bin") + 1) * (end_ns / bins)).alias("end_ns"),
                *values,
            )
        )


def _unless_empty(frame: pl.DataFrame) -> pl.DataFrame | None:
    return frame if frame.height else None


def checked_bins(bins: int) -> int:
    """Give the number of bins of a timeline; raises InvalidInput unless it is 1 to 1,000,000."""
    return whole_from("bins", bins, 1, 1_000_000)
