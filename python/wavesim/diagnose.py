"""What a run lost its time to, and what a change would give back.

The diagnosis reads the ledger. Each finding quotes an account, its time and its share, and, from
one per cent on, what a change to the program or the machine gives back. That figure is never a rule
of thumb: the whole program is simulated again with the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import polars as pl

from wavesim.changes import CHANGES, Change
from wavesim.changes.change import WORTH_SIMULATING, has
from wavesim.changes.of_program import carve_outs
from wavesim.errors import Deadlock, InvalidInput
from wavesim.frames import MEANINGS
from wavesim.simulate import simulate
from wavesim.text import any_of, counted, shortened, time_text
from wavesim.workload import Access, Chain, GridSync, Persistent, Streaming, Tiles, Warps

if TYPE_CHECKING:
    from wavesim.run import Run

__all__ = ["Diagnosis", "Finding", "diagnose"]

WORTH_TELLING = 0.05
"""Of the makespan; a change that gives back less does not name the limit."""
NO_DIFFERENCE = 0.0005
"""Of the makespan; a change that gives back less does not help."""

UNFILLED = {
    "tail": "grids with fewer CTAs than the machine has slots run while the other slots are idle",
    "dependency": "grids with fewer CTAs than the machine has slots run while the next kernel "
    "waits for them",
}
"""What the account means instead where it is mostly slots for which their kernel has no CTA."""


@dataclass(frozen=True)
class Finding:
    """One account of the ledger and what a change to it gives back.

    ``time_ns``: the account's slot time over the number of slots, so that all accounts add up to
    the makespan. ``share``: of all slot time. ``change``: what helps most of all that was tried,
    empty if nothing does, or if all that does is told of a larger account. ``gain_ns``: by how much
    the makespan gets shorter with that change, None without one.
    """

    account: str
    title: str
    text: str
    time_ns: float
    share: float
    gain_ns: float | None
    change: str


@dataclass(frozen=True)
class Diagnosis(Sequence[Finding]):
    """The findings of a run, the largest account first."""

    findings: tuple[Finding, ...]
    makespan_ns: float

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Finding, ...]: ...
    def __getitem__(self, index: int | slice) -> Finding | tuple[Finding, ...]:
        return self.findings[index]

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    @property
    def large(self) -> tuple[Finding, ...]:
        """The findings of at least a per cent, for which changes were simulated."""
        return tuple(found for found in self.findings if _is_large(found.account, found.share))

    @property
    def small_text(self) -> str:
        """The other findings in a sentence."""
        if not self.findings:
            return "Nothing was lost: all slots were busy all the time."
        small = [found for found in self.findings if found not in self.large]
        told = ", ".join(f"{found.account} {found.share:.2%}" for found in small)
        return f"Under {WORTH_SIMULATING:.0%}: {told}." if told else ""

    def __str__(self) -> str:
        """A paragraph a large finding, and a sentence for the rest."""
        paragraphs = [f"{found.title}\n  {found.text}" for found in self.large]
        return "\n".join([*paragraphs, self.small_text]).strip()

    def frame(self) -> pl.DataFrame:
        """The findings as a frame, in the columns of ``Finding``."""
        schema: dict[str, type[pl.DataType]] = {
            "account": pl.String,
            "title": pl.String,
            "text": pl.String,
            "time_ns": pl.Float64,
            "share": pl.Float64,
            "gain_ns": pl.Float64,
            "change": pl.String,
        }
        return pl.DataFrame([vars(finding) for finding in self.findings], schema=schema)


def _is_large(account: str, share: float) -> bool:
    # However few slots a grid fills, what its CTAs are busy with matters.
    return share >= WORTH_SIMULATING or account == "busy"


def diagnose(run: Run) -> Diagnosis:
    """Find what ``run`` lost its time to, by simulating what would give it back.

    Costs at most one simulation, without CTAs recorded, for each change in ``wavesim.changes``, and
    one more, ``run.ideal``, for all that share out work another way. Bandwidths are not tried where
    all that was moved takes under a per cent of the time. Only what helps is told with its gain. A
    change that could give back two accounts is told with the larger: its gain is there once. The
    run itself is not touched.
    """
    tried: dict[Callable[[Run], Change | None], _Outcome | None] = {}
    findings = []
    ledger = run.ledger.sort("time_ps", descending=True, maintain_order=True)
    for account, time_ps, share in ledger.select("account", "time_ps", "share").iter_rows():
        if time_ps == 0 or (account == "busy" and not _is_detailed(run)):
            continue
        outcomes = []
        for make in CHANGES.get(account, ()) if _is_large(account, share) else ():
            if make not in tried:
                tried[make] = _outcome(run, make, account)
            if (outcome := tried[make]) is not None:
                outcomes.append(outcome)
        findings.append(_finding(run, account, float(time_ps) / 1e3 / run.slots, share, outcomes))
    return Diagnosis(tuple(findings), run.makespan_ns)


@dataclass(frozen=True)
class _Outcome:
    """What a change gives back, and the account of which that is told."""

    change: Change
    account: str
    gain_ns: float
    helps: bool


def _outcome(run: Run, make: Callable[[Run], Change | None], account: str) -> _Outcome | None:
    """Simulate a change; None where it does not apply or the device refuses it."""
    try:
        change = make(run)
        if change is None:
            return None
        gain_ns = run.makespan_ns - _changed(run, change).makespan_ns
    except (InvalidInput, Deadlock):
        return None
    return _Outcome(change, account, gain_ns, gain_ns >= NO_DIFFERENCE * run.makespan_ns)


def _changed(run: Run, change: Change) -> Run:
    if change.dispatcher == "ideal" and change.program is run.program and change.device is None:
        return run.ideal  # which changes that share out work have asked for, or will
    return simulate(
        change.device or run.device,
        change.program,
        seed=run.seed,
        detail="kernels",
        dispatcher=change.dispatcher,
        first_sms=run.first_sms if change.dispatcher == "hardware" else (),
        issue=run.issue,
    )


def _finding(
    run: Run, account: str, time_ns: float, share: float, outcomes: list[_Outcome]
) -> Finding:
    here = [outcome for outcome in outcomes if outcome.account == account]
    helpful = [outcome for outcome in here if outcome.helps]
    useless = [outcome.change.words for outcome in here if not outcome.helps]
    sentences = [
        f"{time_text(time_ns)} of {time_text(run.makespan_ns)}, {share:.1%} of all slot time.",
        *_where(run, account),
        *(_told(run, outcome) for outcome in helpful),
        *([f"With {any_of(useless)} it takes no less."] if useless else ()),
        *(
            f"What {outcome.change.words} would give back is told of {outcome.account}."
            for outcome in outcomes
            if outcome.helps and outcome.account != account
        ),
    ]
    best = max(helpful, key=lambda outcome: outcome.gain_ns, default=None)
    return Finding(
        account=account,
        title=_title(run, account, best),
        text=" ".join(sentences),
        time_ns=time_ns,
        share=share,
        gain_ns=None if best is None else best.gain_ns,
        change="" if best is None else best.change.words,
    )


def _title(run: Run, account: str, best: _Outcome | None) -> str:
    meaning = MEANINGS.get(account, "")
    if account in UNFILLED and _is_mostly_unfilled(run):
        meaning = UNFILLED[account]
    if account == "busy":
        meaning += f", limited by {_limit(run, best)}"
    return f"{account}: {meaning}".removesuffix(": ")


def _limit(run: Run, best: _Outcome | None) -> str:
    """What holds busy CTAs: what helps most to make faster; if nothing does, issue itself."""
    if best is not None and best.gain_ns >= WORTH_TELLING * run.makespan_ns:
        return best.change.limit
    times = dict(run.busy.select("kind", "time_ps").iter_rows())
    most = max(times, key=lambda kind: times[kind])
    works = [launch.kernel.work for launch in run.program.launches()]
    if any(isinstance(work, Warps) for work in works):
        return _LIMITS[most]
    if most == "sync":
        return "waiting for other CTAs"
    if most != "issue":
        return _LIMITS[most]
    return "tensor cores" if any(isinstance(work, Tiles) for work in works) else "arithmetic"


_LIMITS = {
    "issue": "issue slots",
    "memory": "shared memory, or what none of these changes makes faster",
    "sync": "barriers",
    "unknown": "the times that it was told",
}
"""What limits busy CTAs by what they did most, where no change gives much back."""


def _is_detailed(run: Run) -> bool:
    """Whether some work says more than how long it takes."""
    kinds = Access | Chain | GridSync | Persistent | Streaming | Tiles | Warps
    return has(run.program, kinds)


def _told(run: Run, outcome: _Outcome) -> str:
    change, gain_ns = outcome.change, outcome.gain_ns
    said = (
        f"With {change.words} it takes {time_text(run.makespan_ns - gain_ns)}: "
        f"{time_text(gain_ns)} ({gain_ns / run.makespan_ns:.1%}) less"
    )
    return f"{said}, if {change.assuming}." if change.assuming else f"{said}."


def _where(run: Run, account: str) -> list[str]:
    """Where in the program an account's time lies, if the kernels' frame says."""
    kernels = run.kernels
    if account == "busy":
        return _figures(run)
    if account in ("tail", "dependency"):
        worst = (
            _tails(run)
            .group_by("name", "grid", maintain_order=True)
            .agg(pl.col("tail_ns").sum(), pl.col("waves").mean())
            .sort("tail_ns", descending=True, maintain_order=True)
            .row(0, named=True)
        )
        if worst["tail_ns"] > 0:
            return [_longest_tail(run, **worst)]
    if account == "launch":
        gaps = kernels["launch_gap_ns"].drop_nulls()
        gaps = gaps.filter(gaps > 0)
        if len(gaps):
            middle = time_text(float(gaps.quantile(0.5) or 0.0))
            return [
                f"Nothing ran in {counted(len(gaps), 'gap')} between kernels; "
                f"the median gap is {middle}."
            ]
    if account == "blocked":
        least = kernels.sort("residency", maintain_order=True).row(0, named=True)
        held = f"{shortened(least['name'])}: {least['residency']} an SM, held by {least['limiter']}"
        return [f"The fewest CTAs fit of {held}.", *_refused_by_carve_out(run)]
    return []


def _refused_by_carve_out(run: Run) -> list[str]:
    """The first launch that waited beside one whose SMs have less shared memory than it wants."""
    sizes = carve_outs(run)
    launches = run.kernels.select("name", "ready_ns", "placed_ns", "start_ns", "end_ns").rows()
    running: list[tuple[str, float, float, int]] = []
    for size, (name, ready, placed, start, end) in sorted(
        zip(sizes, launches, strict=True), key=lambda launch: launch[1][1]
    ):
        running = [before for before in running if before[2] > ready]
        for holder, since, _, held in running:
            if held < size and since < placed:
                return [
                    f"{shortened(holder)} sets the shared memory of its SMs to {held // 1024} KB; "
                    f"{shortened(name)} wants {size // 1024} KB, and starts on none of these SMs "
                    "until all CTAs there have ended."
                ]
        running.append((name, start, end, size))
    return []


def _tails(run: Run) -> pl.DataFrame:
    """Slot time behind each launch's last placed CTA, and what of it its grid never needed."""
    slot_ns = pl.col("duration_ns") * pl.col("residency") * run.device.sms
    tail_ns = pl.col("tail_share") * slot_ns
    empty_ns = (1.0 - pl.col("waves")).clip(0.0) * slot_ns
    return run.kernels.select(
        "name",
        "grid",
        "waves",
        tail_ns.alias("tail_ns"),
        pl.min_horizontal(tail_ns, empty_ns).alias("unfilled_ns"),
    )


def _is_mostly_unfilled(run: Run) -> bool:
    tails = _tails(run)
    return float(tails["unfilled_ns"].sum()) > 0.5 * float(tails["tail_ns"].sum())


def _longest_tail(run: Run, name: str, tail_ns: float, waves: float, grid: int) -> str:
    name = shortened(name)
    if waves >= 1 or tail_ns == 0:
        return f"The longest tails are those of {name}, with {waves:.3g} waves."
    said = f"{name} does not fill the machine: {counted(grid, 'CTA')}, {waves:.3g} waves"
    without = run.device.sms - grid
    if without > 0:
        return f"{said}; none of them on at least {without} of {run.device.sms} SMs."
    return f"{said}; SMs have room for more."


def _figures(run: Run) -> list[str]:
    """How near busy CTAs come to what the device can do."""
    split = ", ".join(
        f"{kind} {share:.1%}"
        for kind, share in run.busy.select("kind", "share").iter_rows()
        if share > 0
    )
    sentences = [f"Of all slot time: {split}."]
    if (ns := _union_ns(run, run.l2["kernel"])) > 0:
        total = {name: float(run.l2[name].sum()) for name in run.l2.columns[2:]}
        dram = (total["dram_read_bytes"] + total["dram_written_bytes"]) / ns
        read = total["sm_sectors"] * run.device.l2.sector_bytes / ns
        interface = run.device.dram.bandwidth_gb_s
        reached = run.device.dram.reached_gb_s / interface
        sentences.append(
            f"Memory work moves {dram:,.0f} GB/s to and from DRAM ({dram / interface:.0%} of its "
            f"interface; long reads reach about {reached:.0%}) and reads {read:,.0f} GB/s from L2."
        )
        if total["lookups"]:
            sentences.append(f"L2 hits: {total['hits'] / total['lookups']:.1%}.")
    issued = run.warps.filter(state="selected")
    if (ns := _union_ns(run, issued["kernel"])) > 0:
        cycles = ns * run.device.clock.sm_mhz / 1e3 * run.device.sms
        slots = float(issued["warp_cycles"].sum()) / (cycles * run.device.limits.sub_partitions)
        sentences.append(f"Warp programs fill {slots:.1%} of all issue slots.")
    return sentences


def _union_ns(run: Run, launches: pl.Series) -> float:
    """For how long one of these launches or more ran."""
    ran = run.kernels.filter(pl.col("kernel").is_in(launches.to_list())).sort("start_ns")
    total, until = 0.0, 0.0
    for start, end in ran.select("start_ns", "end_ns").iter_rows():
        total += max(end - max(start, until), 0.0)
        until = max(until, end)
    return total
