"""The commands: each reads its arguments, calls the library, and prints what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl
from cyclopts import App, Parameter, Token

import wavesim
import wavesim.validate as validation
from wavesim.cli.output import (
    console,
    counting,
    print_facts,
    print_frame,
    print_json,
    working,
    wrote,
)
from wavesim.io.atomic import check_file
from wavesim.io.formats import PAGES, TRACES
from wavesim.scalars import whole_from
from wavesim.summary import KERNEL_HEADINGS, by_shape, rest_of
from wavesim.text import counted, time_text

if TYPE_CHECKING:
    from wavesim.diagnose import Diagnosis

app = App(
    name="wavesim",
    help="How a GPU schedules its work: which CTA runs where, when, and what the time is lost to.",
    version=wavesim.__version__,
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,
)


def _whole(_: object, tokens: Sequence[Token]) -> int:
    """Read a whole number: by itself, cyclopts rounds."""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"must be a whole number (got {text})") from None


WHOLE = Parameter(converter=_whole)

Json = Annotated[
    bool,
    Parameter(name="--json", negative=(), show_default=False, help="Print JSON and nothing else."),
]
ReportPath = Annotated[
    Path | None, Parameter(name="--report", help="Write the report here: one .html file.")
]
PerfettoPath = Annotated[
    Path | None,
    Parameter(name="--perfetto", help="Write a trace for Perfetto here: .json, or .gz, gzipped."),
]
TOP = 20


@app.command
def analyze(
    trace: Annotated[Path, Parameter(help="The profiler's trace.")],
    /,
    *,
    device: Annotated[
        str | None, Parameter(help="What the GPU is, if the trace does not say (wavesim devices).")
    ] = None,
    gpu: Annotated[
        int | None, WHOLE, Parameter(help="Which GPU of the trace; by default the busiest.")
    ] = None,
    top: Annotated[int, WHOLE, Parameter(help="So many kernels are listed.")] = TOP,
    keep_partial: Annotated[
        bool,
        Parameter(negative=(), show_default=False, help="Read what is there of a cut-off file."),
    ] = False,
    report: ReportPath = None,
    perfetto: PerfettoPath = None,
    as_json: Json = False,
) -> None:
    """Say where the GPU's time went in a profiler's trace, and what would change it."""
    whole_from("--top", top, 1, 2**32 - 1)
    _check_files(report, perfetto)
    with working(f"reading {trace.name}"):
        analysis = wavesim.analyze(wavesim.read(trace, keep_partial=keep_partial), device, gpu=gpu)
    with working(f"replaying {counted(analysis.kernels.height, 'kernel')}"):
        summary = analysis.summary(top)
    if report is not None:
        with working(f"writing {report}"):
            analysis.report(report)
        wrote(report)
    if perfetto is not None:
        with working(f"writing {perfetto}"):
            analysis.to_perfetto(perfetto)
        wrote(perfetto, "open it at ui.perfetto.dev")
    if as_json:
        print_json(
            {
                "version": wavesim.__version__,
                "device": analysis.device.name,
                "gpu": analysis.gpu,
                "span_ns": analysis.span_ns,
                "kernels": analysis.by_name,
                "ledger": analysis.ledger,
                "replay": analysis.accuracy,
                "what_if": analysis.what_if,
                "problems": analysis.problems,
            }
        )
        return
    console().print(str(summary), markup=False, soft_wrap=True)


@app.command
def run(
    scenario: Annotated[Path, Parameter(help="The TOML file; see docs/guides/scenario.md.")],
    /,
    *,
    seed: Annotated[
        int | None, WHOLE, Parameter(help="Seed of all random streams, instead of the file's.")
    ] = None,
    detail: Annotated[
        Literal["ctas", "kernels", "memory"] | None,
        Parameter(help="What is recorded, instead of the file's."),
    ] = None,
    report: ReportPath = None,
    perfetto: PerfettoPath = None,
    save: Annotated[
        Path | None, Parameter(help="Save the run's frames in this folder, as Parquet.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Simulate the device and the program that a TOML file describes."""
    _check_files(report, perfetto)
    described = wavesim.read_scenario(scenario)
    with working(f"simulating {scenario.name}"):
        result = described.simulate(seed=seed, detail=detail)
    with working("trying changes"):
        diagnosis = result.diagnose()
    if report is not None:
        with working(f"writing {report}"):
            result.report(report)
        wrote(report)
    if perfetto is not None:
        with working(f"writing {perfetto}"):
            result.to_perfetto(perfetto)
        wrote(perfetto, "open it at ui.perfetto.dev")
    if save is not None:
        with working(f"saving in {save}"):
            result.save(save)
        wrote(save)
    if as_json:
        print_json(
            {
                "version": result.version,
                "device": result.device.name,
                "seed": result.seed,
                "digest": result.digest,
                "makespan_ns": result.makespan_ns,
                "slots": result.slots,
                "ledger": result.ledger,
                "kernels": result.kernels,
                "diagnosis": diagnosis.frame(),
                "notes": result.notes,
            }
        )
        return
    _print_run(result, diagnosis)


def _print_run(result: wavesim.Run, diagnosis: Diagnosis) -> None:
    print_facts(
        {
            "device": f"{result.device.title}, {result.device.sms} SMs",
            "makespan": time_text(result.makespan_ns),
            "slots": f"{result.slots:,}",
            "digest": result.digest,
            **{f"note {at}": note for at, note in enumerate(result.notes, 1)},
        }
    )
    console().print()
    ledger = result.ledger.filter(pl.col("time_ps") > 0).sort("share", descending=True)
    print_frame(ledger, {"account": "account", "share": "of all slot time"})
    console().print()
    kernels = by_shape(result.kernels)
    print_frame(kernels.head(TOP), KERNEL_HEADINGS)
    if rest := rest_of(kernels, TOP):
        console().print(rest)
    console().print()
    console().print(str(diagnosis), markup=False, soft_wrap=True)


@app.command
def occupancy(
    *,
    device: Annotated[str, Parameter(help="A device's name (wavesim devices).")],
    block: Annotated[int, WHOLE, Parameter(help="Threads a CTA.")],
    registers: Annotated[int, WHOLE, Parameter(help="Registers a thread.")] = 32,
    shared_memory: Annotated[
        int, WHOLE, Parameter(help="Static and dynamic shared memory a CTA, in bytes.")
    ] = 0,
    barriers: Annotated[int, WHOLE, Parameter(help="Named barriers a CTA.")] = 1,
    cluster: Annotated[int, WHOLE, Parameter(help="CTAs a cluster.")] = 1,
    as_json: Json = False,
) -> None:
    """Say how many CTAs of a kernel an SM holds, and what limits it."""
    found = wavesim.occupancy(
        device,
        block=block,
        registers=registers,
        shared_memory=shared_memory,
        barriers=barriers,
        cluster=cluster,
    )
    if as_json:
        print_json(asdict(found))
        return
    facts: dict[str, str] = {"launches": "yes" if found.launchable else f"no: {found.refusal}"}
    if found.launchable:
        facts |= {
            "CTAs an SM": str(found.ctas_per_sm),
            "limited by": found.limiter,
            "occupancy": f"{found.occupancy:.1%} ({found.warps} warps)",
        }
    limits: dict[str, Any] = {
        "by registers": found.by_registers,
        "by shared memory": found.by_shared,
        "by warps": found.by_warps,
        "by CTA slots": found.by_blocks,
        "by barriers": found.by_barriers,
    }
    facts |= {name: str(value) for name, value in limits.items() if value is not None}
    if cluster > 1:
        facts["clusters at once"] = str(found.max_active_clusters)
    print_facts(facts)


@app.command
def devices(
    *,
    sources: Annotated[
        bool,
        Parameter(
            negative=(), show_default=False, help="List every number with its source and status."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """List the devices that wavesim knows, and which of their numbers are assumed."""
    frame = wavesim.devices(numbers=sources)
    if as_json:
        print_json(frame)
        return
    if sources:
        print_frame(frame, {name: name for name in frame.columns})
        return
    numbers = frame.with_columns(pl.col("gpcs").list.len(), pl.col("l2_bytes") / 2**20)
    marked = [_marked(name, field) for name, field in _SHOWN_NUMBERS.items()]
    shown = numbers.with_columns(*marked, pl.col("assumed").list.len())
    headings = {
        "device": "device",
        "title": "title",
        "compute_capability": "capability",
        "sms": "SMs",
        "gpcs": "GPCs",
        "sm_mhz": "SM MHz",
        "l2_bytes": "L2 MiB",
        "dram_gb_s": "DRAM GB/s",
        "refill_ns": "dispatch ns/CTA",
        "assumed": "numbers assumed",
    }
    print_frame(shown, headings)
    console().print(
        "\n* assumed. wavesim devices --sources lists every number and where it is from."
    )


_SHOWN_NUMBERS = {
    "gpcs": "topology.gpcs",
    "sm_mhz": "clock.sm_mhz",
    "l2_bytes": "l2.bytes",
    "dram_gb_s": "dram.bandwidth_gb_s",
    "refill_ns": "dispatch.refill_cycles",
}
"""Column of the devices' table -> the path of its number."""


def _marked(name: str, field: str) -> pl.Expr:
    """A column as text, with a star where the number is assumed."""
    star = pl.when(pl.col("assumed").list.contains(field)).then(pl.lit("*")).otherwise(pl.lit(" "))
    return pl.format(
        "{}{}",
        pl.col(name)
        .cast(pl.Float64)
        .round(3)
        .map_elements(lambda value: f"{value:,.4g}", return_dtype=pl.String),
        star,
    ).alias(name)


@app.command
def validate(
    folder: Annotated[Path, Parameter(help="Tables of the shape in reference/h200/README.md.")],
    /,
    *,
    device: Annotated[str, Parameter(help="What they were measured on.")] = "h200",
    family: Annotated[
        list[str] | None, Parameter(negative=(), help="Only this family; may be repeated.")
    ] = None,
    table: Annotated[
        Path | None,
        Parameter(help="Write every row with its prediction here: .parquet, .csv or .json."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Simulate each row of measurements from its inputs alone, and say how far off it is."""
    with counting(f"simulating {folder.name}") as progress:
        result = validation.validate(folder, family, table, progress, device=device)
    if as_json:
        print_json(result.records())
        return
    errors = result.families.rename({"mape": "mean_error", "p90": "p90_error"})
    headings = {
        "family": "family",
        "measure": "measure",
        "rows": "rows",
        "mean_error": "mean error",
        "p90_error": "nine of ten under",
        "worst_error": "worst",
        "skipped": "left out",
    }
    print_frame(errors.rename({"worst": "worst_error"}), headings)
    reasons = result.skipped.group_by("family", "why", maintain_order=True).agg(
        pl.col("rows").sum()
    )
    if reasons.height:
        console().print()
        headings = {"family": "left out of", "rows": "rows", "why": "why"}
        print_frame(reasons.select(headings.keys()), headings)


def _check_files(report: Path | None, perfetto: Path | None) -> None:
    """See that what is asked for can be written before anything is simulated."""
    for path, suffixes in ((report, PAGES), (perfetto, TRACES)):
        if path is not None:
            check_file(path, suffixes)
