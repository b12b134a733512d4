"""What the report of a trace's analysis says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from wavesim import plots
from wavesim.analyze.names import short_name
from wavesim.analyze.what_if import AS_REPLAYED
from wavesim.report.of_run import TOP_KERNELS, diagnosis_section, simulated_by
from wavesim.report.page import Page, Section, table_of
from wavesim.text import counted, time_text

if TYPE_CHECKING:
    from wavesim.analyze import Analysis

_KERNELS = {
    "short_name": "kernel",
    "calls": "calls",
    "total_ns": "total",
    "share": "share",
    "mean_ns": "mean",
    "grid": "grid",
    "block": "block",
    "residency": "CTAs/SM",
    "limiter": "limited by",
    "occupancy": "occupancy",
    "waves": "waves",
    "tail_share": "tail",
    "gap_host_ns": "host gaps",
}
_WHAT_IF = {
    "change": "change",
    "bound": "CTA times scaled by",
    "makespan_ns": "makespan",
    "saved_ns": "saved",
    "speedup": "speedup",
    "note": "note",
}


def analysis_page(analysis: Analysis) -> Page:
    """The report of an analysis as data.

    Of the trace it holds kernels' and copies' names, shapes and times, and nothing else: traces
    carry host names, paths and tokens in their metadata.
    """
    return Page(
        title=f"Trace of {counted(analysis.kernels.height, 'kernel')} on {analysis.device.title}",
        facts=_facts(analysis),
        headlines=_headlines(analysis),
        sections=(
            _ledger_section(analysis),
            _timeline_section(analysis),
            _kernels_section(analysis),
            *_replay_sections(analysis),
            _what_if_section(analysis),
            *_problems_sections(analysis),
        ),
    )


def _facts(analysis: Analysis) -> tuple[tuple[str, str], ...]:
    kernels, copies = analysis.kernels.height, analysis.work.height - analysis.kernels.height
    streams = analysis.work["stream"].n_unique()
    gpu = "" if analysis.gpu is None else f", GPU {analysis.gpu} of the trace"
    work = f"{counted(kernels, 'kernel')}, {copies:,} copies and sets"
    run = analysis.replay
    return (
        ("device", f"{analysis.device.title}, {analysis.device.sms} SMs{gpu}"),
        ("workload", f"{work} on {counted(streams, 'stream')}"),
        ("simulated by", simulated_by(run)),
    )


def _headlines(analysis: Analysis) -> tuple[tuple[str, str], ...]:
    ledger = analysis.ledger
    busy = float(ledger.filter(pl.col("account") == "busy")["share"].sum())
    lost = ledger.filter(pl.col("account") != "busy").sort("share", descending=True)
    found = [
        ("from first start to last end", time_text(analysis.span_ns)),
        ("of it busy", f"{busy:.1%}"),
        (f"{_words(lost['account'][0])}: the largest loss", f"{lost['share'][0]:.1%}"),
    ]
    # Other devices have a bound; what has none is another way to launch on the same one.
    others = analysis.what_if.filter(pl.col("change") != AS_REPLAYED).drop_nulls("speedup")
    best = others.filter(pl.col("bound").is_null())
    if best.height:
        top = best.sort("speedup", descending=True).row(0, named=True)
        found.append((f"faster with {top['change']}", f"{top['speedup']:.3g}x"))
    return tuple(found)


def _words(account: str) -> str:
    return account.replace("_", " ")


def _ledger_section(analysis: Analysis) -> Section:
    ledger = analysis.ledger.filter(pl.col("time_ns") > 0)
    table = table_of(
        ledger.with_columns(pl.col("account").str.replace_all("_", " ")),
        {"account": "account", "meaning": "meaning", "time_ns": "time", "share": "share"},
        "Every nanosecond from the first start to the last end is in exactly one account.",
    )
    return Section("Where the time went", table=table, charts=(plots.ledger(ledger),))


def _timeline_section(analysis: Analysis) -> Section:
    """Measured and simulated work, each from its first start on."""
    columns = ["name", "stream", "start_ns", "end_ns"]
    simulated = analysis.compare.select(
        "name",
        "stream",
        pl.col("simulated_start_ns").alias("start_ns"),
        (pl.col("simulated_start_ns") + pl.col("simulated_duration_ns")).alias("end_ns"),
    )
    charts = [plots.kernels(_from_first(analysis.work.select(columns)), title="Measured")]
    if simulated.height:
        charts.append(plots.kernels(_from_first(simulated), title="Simulated: kernels only"))
    return Section("Timeline", charts=tuple(charts))


def _from_first(work: pl.DataFrame) -> pl.DataFrame:
    names = {name: short_name(name) for name in work["name"].unique()}
    return work.with_columns(
        pl.col("name").replace_strict(names, return_dtype=pl.String),
        pl.col("start_ns", "end_ns") - pl.col("start_ns").min(),
    )


def _kernels_section(analysis: Analysis) -> Section:
    tail_share = pl.col("tail_ns") / pl.max_horizontal("total_ns", pl.lit(1e-9))
    frame = analysis.by_name.with_columns(tail_share.alias("tail_share"))
    note = (
        "Residency, occupancy and waves are computed from the launch shape: the profiler's own "
        "estimate of occupancy is wrong for kernels of much shared memory. Tail is idle slot time "
        "by waves."
    )
    if frame.height > TOP_KERNELS:
        left = float(frame["share"][TOP_KERNELS:].sum())
        more = counted(frame.height - TOP_KERNELS, "further name")
        note += f" {more}, {left:.1%} of the time, not shown."
    return Section("Kernels", table=table_of(frame.head(TOP_KERNELS), _KERNELS, note))


def _replay_sections(analysis: Analysis) -> list[Section]:
    title = "Replay beside the measured trace"
    if not analysis.compare.height:
        why = "The trace tells no launch shape, so kernels can be replayed as times, not in slots."
        return [Section(title, why)]
    headings = {
        "measure": "measure",
        "measured_ns": "measured",
        "simulated_ns": "simulated",
        "error": "error",
    }
    replayed = Section(
        title,
        "The same launches at the times of the host's calls; each kernel's CTA time is solved from "
        "its measured duration. What follows is only as good as this replay.",
        table=table_of(analysis.accuracy, headings),
        charts=(plots.timeline(analysis.replay.timeline()),),
    )
    return [replayed, diagnosis_section(analysis.replay.diagnose(), "Of the replay.")]


def _what_if_section(analysis: Analysis) -> Section:
    frame = analysis.what_if
    headings = dict(_WHAT_IF)
    if not any(frame["note"].to_list()):
        del headings["note"]
    note = (
        "Saved and speedup are against the replay, so that like is held against like. A trace does "
        "not say what held a kernel, so other devices stand with CTA times scaled both by clock "
        "and by DRAM bandwidth. The host's calls keep their times."
    )
    return Section("What if", table=table_of(frame, headings, note))


def _problems_sections(analysis: Analysis) -> list[Section]:
    """What could not be used; without examples, which may quote the trace's metadata."""
    problems = analysis.problems
    if not problems.height:
        return []
    table = table_of(problems, {"what": "what", "count": "count"})
    return [Section("What the trace does not tell", table=table)]
