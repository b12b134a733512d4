"""What the report of a run says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from wavesim.frames import MEANINGS
from wavesim.plots import MAX_ROWS, account_colour
from wavesim.report.of_work import work_sections
from wavesim.report.page import Page, Point, Section, table_of
from wavesim.summary import KERNEL_HEADINGS, by_shape, rest_of
from wavesim.text import counted, time_text

if TYPE_CHECKING:
    from wavesim.diagnose import Diagnosis
    from wavesim.run import Run

TOP_KERNELS = 20
"""So many rows has the kernels table."""

SLOT_CHART_CTAS = 2 * MAX_ROWS
"""Runs of up to so many CTAs get the chart of slots; with more, too few SMs of it can be shown."""


def run_page(run: Run) -> Page:
    """The report of a run as data."""
    kernels = run.kernels
    names = kernels["name"].unique(maintain_order=True).to_list()
    title = names[0] if len(names) == 1 else counted(kernels.height, "kernel")
    return Page(
        title=f"{title} on {run.device.title}",
        facts=_facts(run),
        headlines=headlines(run),
        sections=tuple(run_sections(run)),
    )


def run_sections(run: Run) -> list[Section]:
    """Ledger, diagnosis, timeline, memory and warps if there are any, kernels, SMs."""
    sections = [ledger_section(run), diagnosis_section(run.diagnose())]
    charts: list[alt.TopLevelMixin] = [run.plot.timeline(), run.plot.kernels()]
    if run.detail != "kernels" and run.ctas.height <= SLOT_CHART_CTAS:
        charts.append(run.plot.slots())
    sections.append(Section("Timeline", charts=tuple(charts)))
    sections += work_sections(run)
    sections.append(kernels_section(run.kernels))
    sections.append(Section("SMs", charts=(run.plot.sms(),)))
    return sections


def _facts(run: Run) -> tuple[tuple[str, str], ...]:
    kernels = run.kernels
    streams = kernels["stream"].n_unique()
    gpcs = run.sms["gpc"].n_unique()
    return (
        ("device", f"{run.device.title}, {run.sms.height} SMs in {gpcs} GPCs"),
        (
            "workload",
            f"{counted(kernels.height, 'kernel')} on {counted(streams, 'stream')}, "
            f"{counted(int(kernels['grid'].sum()), 'CTA')}",
        ),
        ("simulated by", simulated_by(run)),
        *(("note", note) for note in run.notes),
    )


def simulated_by(run: Run) -> str:
    """Version, seed and digest; the dispatcher where it is not the hardware's."""
    ideal = "" if run.dispatcher == "hardware" else f", {run.dispatcher} dispatcher"
    return f"wavesim {run.version}, seed {run.seed}{ideal}, digest {run.digest}"


def headlines(run: Run) -> tuple[tuple[str, str], ...]:
    """Makespan, busy share, the largest loss, waves and launch gaps."""
    ledger = run.ledger
    busy = float(ledger.filter(pl.col("account") == "busy")["share"].sum())
    lost = ledger.filter(pl.col("account") != "busy").sort("share", descending=True)
    found = [("makespan", time_text(run.makespan_ns)), ("of all slot time busy", f"{busy:.1%}")]
    if lost.height and lost["share"][0] > 0:
        found.append((f"{lost['account'][0]}: the largest loss", f"{lost['share'][0]:.1%}"))
    kernels = run.kernels
    if kernels.height == 1:
        found.append(("waves", f"{kernels['waves'][0]:.3g}"))
    else:
        found.append(("in launch gaps", time_text(float(kernels["launch_gap_ns"].sum()))))
    return tuple(found)


def ledger_section(run: Run) -> Section:
    """The ledger as a bar and as a table."""
    whole_ns = pl.col("time_ps") / 1e3 / run.slots
    frame = run.ledger.select(
        "account",
        pl.col("account").replace_strict(MEANINGS, default="").alias("meaning"),
        whole_ns.alias("machine_ns"),
        "share",
    )
    table = table_of(
        frame,
        {"account": "account", "meaning": "meaning", "machine_ns": "time", "share": "share"},
        f"Every picosecond of each of the {run.slots:,} slots is in exactly one account. Time is "
        "slot time over the number of slots: the accounts add up to the makespan.",
    )
    return Section("Where the time went", table=table, charts=(run.plot.ledger(),))


def diagnosis_section(diagnosis: Diagnosis, of_what: str = "") -> Section:
    """A paragraph a finding; ``of_what`` says what was diagnosed."""
    points = tuple(
        Point(finding.title, finding.text, f"{finding.share:.1%}", account_colour(finding.account))
        for finding in diagnosis.large
    )
    text = (
        "What each change gives back is another simulation of the whole program, not an estimate. "
        if points
        else ""
    ) + diagnosis.small_text
    return Section("Diagnosis", f"{of_what} {text}".strip(), points)


def kernels_section(kernels: pl.DataFrame) -> Section:
    """Kernels of the same name and shape in one row, the longest in total first."""
    grouped = by_shape(kernels)
    note = "Share is of the sum of all kernels' durations; kernels that overlap count each. "
    note += rest_of(grouped, TOP_KERNELS)
    return Section("Kernels", table=table_of(grouped.head(TOP_KERNELS), KERNEL_HEADINGS, note))
