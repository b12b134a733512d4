"""What a simulation leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from wavesim.devices import Device
from wavesim.errors import InvalidInput
from wavesim.frames import Source, Stored, checked_bins
from wavesim.text import counted, time_text
from wavesim.workload import Program

if TYPE_CHECKING:
    from wavesim.compare import Comparison
    from wavesim.diagnose import Diagnosis
    from wavesim.plots import Plots

__all__ = ["Run"]

Detail = Literal["ctas", "kernels", "memory"]
Dispatcher = Literal["hardware", "ideal"]
Issue = Literal["rates", "exact"]


class Run:
    """One simulation: when each kernel and each CTA ran, and where the slots' time went.

    Made by :func:`wavesim.simulate` and :func:`wavesim.load`. Immutable; frames are made when they
    are first asked for. Two runs are equal when all their CTAs ran at the same times in the same
    places, told by ``digest``.

    - ``device``, ``program``, ``seed``, ``detail``, ``dispatcher``, ``first_sms``,
      ``issue``: what was simulated.
    - ``makespan_ps``, ``makespan_ns``: from the first host issue to the end of the last item.
    - ``slots``: the most CTAs that the device holds at once in this run, were it full.
    - ``digest``: 16 hex digits, equal for equal input on any machine.
    - ``version``: of wavesim that simulated it.
    - ``notes``: what was assumed on the way, such as measured spans that no CTA duration gives.
    """

    device: Device
    program: Program
    seed: int
    detail: Detail
    dispatcher: Dispatcher
    first_sms: tuple[int, ...]
    issue: Issue
    makespan_ps: int
    slots: int
    digest: str
    version: str
    notes: tuple[str, ...]

    def __init__(
        self,
        source: Source,
        *,
        device: Device,
        program: Program,
        seed: int,
        detail: Detail,
        dispatcher: Dispatcher,
        makespan_ps: int,
        slots: int,
        digest: str,
        version: str,
        first_sms: Sequence[int] = (),
        issue: Issue = "rates",
        notes: Sequence[str] = (),
    ) -> None:
        vars(self).update(
            _source=source,
            device=device,
            program=program,
            seed=seed,
            detail=detail,
            dispatcher=dispatcher,
            first_sms=tuple(first_sms),
            issue=issue,
            makespan_ps=makespan_ps,
            slots=slots,
            digest=digest,
            version=version,
            notes=tuple(notes),
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a run is immutable: {name} can't be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a run is immutable: {name} can't be deleted")

    @property
    def makespan_ns(self) -> float:
        """From the first host issue to the end of the last item."""
        return self.makespan_ps / 1e3

    @cached_property
    def kernels(self) -> pl.DataFrame:
        """A row a launch, in issue order; columns in ``wavesim.frames.KERNELS``."""
        return self._source.kernels()

    @cached_property
    def ctas(self) -> pl.DataFrame:
        """A row a CTA, in the order in which they ended; columns in ``wavesim.frames.CTAS``.

        Raises:
            InvalidInput: if the run recorded kernels only.
        """
        frame = self._source.ctas()
        if frame is None:
            why = 'CTAs were not recorded; simulate with detail="ctas" to have them'
            raise InvalidInput(f"detail: {why} (got 'kernels')", "detail", "kernels")
        return frame

    @cached_property
    def sms(self) -> pl.DataFrame:
        """A row an SM; columns in ``wavesim.frames.SMS``."""
        return self._source.sms()

    @cached_property
    def l2(self) -> pl.DataFrame:
        """A row a launch whose work is memory; columns in ``wavesim.frames.L2``."""
        return self._source.l2()

    @cached_property
    def l2_slices(self) -> pl.DataFrame:
        """A row a launch whose work is memory and slice of L2; adds up to :attr:`l2`.

        Columns in ``wavesim.frames.L2_SLICES``.

        Raises:
            InvalidInput: unless the run recorded ``detail="memory"``.
        """
        self._needs_memory()
        return self._source.l2_slices()

    @cached_property
    def l2_windows(self) -> pl.DataFrame:
        """A row a launch whose work is memory and window of time; adds up to :attr:`l2`.

        Columns in ``wavesim.frames.L2_WINDOWS``.

        Raises:
            InvalidInput: unless the run recorded ``detail="memory"``.
        """
        self._needs_memory()
        return self._source.l2_windows()

    def _needs_memory(self) -> None:
        if self.detail != "memory":
            what = "slices of L2 and windows of time were not recorded"
            why = f'{what}; simulate with detail="memory" to have them'
            raise InvalidInput(f"detail: {why} (got {self.detail!r})", "detail", self.detail)

    @cached_property
    def warps(self) -> pl.DataFrame:
        """A row a launch with warp programs and state of its warps: how long they were in it.

        Columns in ``wavesim.frames.WARPS``.
        """
        return self._source.warps()

    @cached_property
    def warps_windows(self) -> pl.DataFrame:
        """A row a launch with warp programs, window of time and state; adds up to :attr:`warps`.

        Columns in ``wavesim.frames.WARPS_WINDOWS``.

        Raises:
            InvalidInput: unless the run recorded ``detail="memory"``.
        """
        self._needs_memory()
        return self._source.warps_windows()

    @cached_property
    def ledger(self) -> pl.DataFrame:
        """A row an account: busy, launch, fill, starved, blocked, tail, dependency.

        ``time_ps`` is slot time and adds up to ``slots * makespan_ps`` exactly; ``share`` is its
        share of that. Columns in ``wavesim.frames.LEDGER``.
        """
        return self._source.ledger()

    @cached_property
    def busy(self) -> pl.DataFrame:
        """The ledger's ``busy``, a row a kind: issue, memory, sync, unknown.

        ``time_ps`` adds up to it exactly. Columns in ``wavesim.busy.BUSY``.
        """
        from wavesim.busy import busy  # noqa: PLC0415 (made when asked for)

        return busy(self)

    @cached_property
    def ideal(self) -> Run:
        """The same program, seed and device where placing CTAs costs nothing; kernels only.

        What dispatch costs is ``run.makespan_ns - run.ideal.makespan_ns``. A run under the ideal
        dispatcher is its own.
        """
        from wavesim.simulate import simulate  # noqa: PLC0415 (it imports this module)

        if self.dispatcher == "ideal":
            return self
        return simulate(
            self.device,
            self.program,
            seed=self.seed,
            detail="kernels",
            dispatcher="ideal",
            issue=self.issue,
        )

    def timeline(self, bins: int = 200) -> pl.DataFrame:
        """Where slot time went, over time.

        Args:
            bins: the number of equal parts of the run, 1 to 1,000,000.

        Returns:
            A row a bin: ``bin`` u32, ``start_ns``, ``end_ns``, a share for each account (they add
            up to 1), ``running_ctas`` (the mean number). Parts finer than a two-thousandth of the
            run, or than a nanosecond, are interpolated.
        """
        return self._source.timeline(checked_bins(bins))

    def diagnose(self) -> Diagnosis:
        """What the time was lost to, and what simulated changes give back."""
        from wavesim.diagnose import diagnose  # noqa: PLC0415 (simulates; loaded when asked for)

        return diagnose(self)

    def compare(self, table: pl.DataFrame, kernels: Sequence[int] | None = None) -> Comparison:
        """Compare with a log of the same blocks: when each ran, and on which SM.

        Args:
            table: a row a block: ``cta`` (linear over the launches, in issue order), ``smid``,
                ``start_ns`` and ``end_ns`` from any origin. Other columns are left alone.
            kernels: the launches that were logged, by their numbers in the run; by default all.

        Raises:
            InvalidInput: a column is missing or has other values, the blocks are not those of the
                run, or the run recorded kernels only.
        """
        from wavesim.compare import compare  # noqa: PLC0415 (loaded when asked for)

        return compare(self, table, kernels)

    @property
    def plot(self) -> Plots:
        """Charts: ``run.plot.timeline()``, ``slots()``, ``sms()``, ``ledger()``, ``l2()`` ..."""
        from wavesim.plots import Plots  # noqa: PLC0415 (Altair takes long to load)

        return Plots(self)

    def to_perfetto(self, path: str | PathLike[str]) -> None:
        """Write a trace for ui.perfetto.dev, one track a slot: ``.json``, or ``.gz``, gzipped.

        Raises:
            InvalidInput: ``path`` is no path.
            WavesimError: the file cannot be written.
        """
        from wavesim.io.perfetto import write_run  # noqa: PLC0415 (loaded when asked for)

        write_run(self, path)

    def report(self, path: str | PathLike[str]) -> None:
        """Write a report: one ``.html`` file that needs nothing else.

        Raises:
            InvalidInput: ``path`` is no path.
            WavesimError: the file cannot be written.
        """
        from wavesim.report import write_report  # noqa: PLC0415 (Altair takes long to load)

        write_report(self, path)

    def save(self, folder: str | PathLike[str]) -> None:
        """Save all of it in a folder: Parquet with a manifest; :func:`wavesim.load` reads it.

        Raises:
            InvalidInput: ``folder`` is no path.
            WavesimError: the folder cannot be written.
        """
        from wavesim.io.store import save  # noqa: PLC0415 (loaded when asked for)

        save(self, folder)

    def stored(self) -> Stored:
        """All frames at once, to be kept elsewhere; ``Run(stored, ...)`` is a run again."""
        return Stored.of(self._source)

    @property
    def _source(self) -> Source:
        source: Source = vars(self)["_source"]
        return source

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        return (self.digest, self.makespan_ps, self.slots) == (
            other.digest,
            other.makespan_ps,
            other.slots,
        )

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {name: vars(self)[name] for name in Run.__annotations__}
        return _restored, (self.stored(), fields)

    def __repr__(self) -> str:
        """Say what ran, how long, and where the time went."""
        kernels = self.kernels
        ctas = int(kernels["grid"].sum())
        busiest = self.ledger.filter(pl.col("share") >= 0.005).sort("share", descending=True)
        accounts = ", ".join(
            f"{account} {share:.1%}" for account, share in busiest.select("account", "share").rows()
        )
        return (
            f"Run on {self.device.name}: {time_text(self.makespan_ns)},"
            f" {counted(kernels.height, 'kernel')}, {counted(ctas, 'CTA')}\n"
            f"  {self.slots:,} slots: {accounts}\n"
            f"  seed {self.seed}, digest {self.digest}"
        )


def _restored(stored: Stored, fields: dict[str, Any]) -> Run:
    return Run(stored, **fields)
