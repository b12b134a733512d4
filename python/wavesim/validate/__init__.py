"""How well the model agrees with measurements: each row is simulated from what was asked of it.

:func:`validate` reads a folder of tables (their shape: ``reference/h200/README.md``), turns
each row into a workload, simulates that and compares. It tunes nothing, and no prediction sees a
measured time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike, cpu_count
from typing import Any

import polars as pl

from wavesim.devices import Device
from wavesim.devices import device as catalogue_device
from wavesim.errors import InvalidInput, WavesimError
from wavesim.io.atomic import check_file
from wavesim.io.formats import FRAMES, write_frame
from wavesim.scalars import path_from
from wavesim.text import any_of
from wavesim.validate.families import FAMILIES, NOT_MODELLED
from wavesim.validate.metric import MEASURES, Summary, error_of
from wavesim.validate.placement import share_placed
from wavesim.validate.tables import NotSimulated, Row, Tables

__all__ = ["PLACEMENT", "ROWS", "Validation", "validate"]

PLACEMENT = "placement"
"""The measure beside the columns: the share of the first wave's CTAs on the SMs where they were
logged, for runs that fill the machine and whose blocks were logged."""

ROWS: dict[str, pl.DataType] = {
    "run": pl.Int64(),
    "family": pl.String(),
    "measure": pl.String(),
    "parameters": pl.String(),
    "measured": pl.Float64(),
    "measured_again": pl.Float64(),
    "simulated": pl.Float64(),
    "error": pl.Float64(),
}
"""The columns of :attr:`Validation.rows`. ``parameters`` is the row's inputs as a JSON object; the
values are in the unit that the measure's name says; ``error`` is a fraction, null where nothing was
measured to compare with."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Validation:
    """What came out: the errors by family, each row behind them, and the rows left out."""

    families: pl.DataFrame
    """A row a family and measure: ``family``, ``measure``, ``rows`` u32, ``mape``, ``p90``,
    ``worst`` (fractions, null without rows), ``skipped`` u32 (rows not simulated)."""
    rows: pl.DataFrame
    """A row a prediction; columns in :data:`ROWS`."""
    skipped: pl.DataFrame
    """Rows that were not simulated: ``family``, ``run`` i64 (null for tables without one), ``rows``
    u32, ``why``."""

    def records(self) -> list[dict[str, Any]]:
        """Give :attr:`families` as objects, each with the rows that were left out, and why."""
        skipped: dict[str, list[dict[str, Any]]] = {}
        by_why = self.skipped.group_by("family", "why", maintain_order=True).agg(
            pl.col("rows").sum(), pl.col("run").drop_nulls().alias("runs")
        )
        for family, why, rows, runs in by_why.iter_rows():
            skipped.setdefault(family, []).append({"rows": rows, "why": why, "runs": runs})
        return [
            {**record, "skipped": skipped.get(record["family"], [])}
            for record in self.families.iter_rows(named=True)
        ]


def validate(
    folder: str | PathLike[str],
    families: Sequence[str] | None = None,
    table: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    *,
    device: Device | str = "h200",
) -> Validation:
    """Simulate each row of a folder of measurements, and compare.

    Args:
        folder: has ``runs.parquet``, with any subset of its rows, and what belongs to it.
        families: the experiments and tables to look at; by default all of the folder.
        table: where to write :attr:`Validation.rows`: a ``.parquet``, ``.csv`` or ``.json`` file.
        progress: is called with the number of rows done and of all rows.
        device: what the measurements were made on.

    Raises:
        UnsupportedFile: the folder has no such tables.
        InvalidInput: a family that the folder does not have, or what is no path.
        WavesimError: ``table`` cannot be written.
    """
    if table is not None:
        check_file(table, FRAMES, "table")
    target = catalogue_device(device) if isinstance(device, str) else device
    tables = Tables(path_from("folder", folder))
    chosen = _chosen(tables, families)
    modelled = [name for name in chosen if name in FAMILIES]
    rows = tables.rows(
        [name for name in chosen if name not in tables.others],
        [name for name in modelled if FAMILIES[name].with_blocks],
        [name for name in modelled if FAMILIES[name].placed],
    )
    rows += [row for name in modelled if name in tables.others for row in tables.rows_of(name)]
    outcomes = _predict_all(rows, target, progress)
    compared: list[tuple[Any, ...]] = []
    left_out: list[tuple[Any, ...]] = []
    for row, outcome in zip(rows, outcomes, strict=True):
        if isinstance(outcome, str):
            left_out.append((row.family, row.run, 1, outcome))
        else:
            compared += [_compared(row, measure, value) for measure, value in outcome.items()]
    for name in chosen:
        if name in tables.others and name not in FAMILIES:
            left_out.append((name, None, tables.height(name), _why_not(name)))
    result = Validation(
        families=_by_family(chosen, compared, left_out),
        rows=pl.DataFrame(compared, schema=ROWS, orient="row"),
        skipped=pl.DataFrame(
            left_out,
            schema={"family": pl.String, "run": pl.Int64, "rows": pl.UInt32, "why": pl.String},
            orient="row",
        ),
    )
    if table is not None:
        write_frame(result.rows, table)
    return result


def _chosen(tables: Tables, families: Sequence[str] | None) -> list[str]:
    there = tables.families()
    if families is None:
        return there
    for name in families:
        if name not in there:
            near = get_close_matches(name, there, n=3, cutoff=0.5)
            hint = f"; did you mean {any_of(near)}?" if near else f": must be {any_of(there)}"
            why = f"families: {tables.folder} has no family {name!r}{hint}"
            raise InvalidInput(why, "families", name)
    return [name for name in there if name in families]


def _predict_all(
    rows: list[Row], device: Device, progress: Progress | None
) -> list[dict[str, float] | str]:
    """Predict each row, or say why not; threads share the work, as simulations release the GIL."""
    outcomes: list[dict[str, float] | str] = []
    with ThreadPoolExecutor(max_workers=cpu_count() or 1) as pool:
        try:
            for outcome in pool.map(lambda row: _predict(row, device), rows):
                outcomes.append(outcome)
                if progress is not None:
                    progress(len(outcomes), len(rows))
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return outcomes


def _predict(row: Row, device: Device) -> dict[str, float] | str:
    family = FAMILIES.get(row.family)
    if family is None:
        return _why_not(row.family)
    try:
        predicted = family.predict(row.inputs, device)
        placement = None
        if family.placed is not None and row.logged_sms is not None:
            workload = family.placed(row.inputs, device)
            placement = share_placed(workload, device, row.logged_sms)
    except NotSimulated as why:
        return str(why)
    except WavesimError as error:
        # The device measured it; that the model refuses it is a difference like any other.
        return f"the model refuses it: {error}"
    outcome = {measure: predicted[measure] for measure in family.measures}
    if placement is not None:
        outcome[PLACEMENT] = placement
    return outcome


def _why_not(family: str) -> str:
    return NOT_MODELLED.get(family, "no workload is known for an experiment of this name")


def _compared(row: Row, measure: str, simulated: float) -> tuple[Any, ...]:
    first, again = (1.0, None) if measure == PLACEMENT else row.measured[measure]
    if first is None:
        first, again = again, None
    error = None if first is None else error_of(MEASURES[measure], simulated, first, again)
    parameters = json.dumps(dict(row.inputs.values))
    return (row.run, row.family, measure, parameters, first, again, simulated, error)


def _by_family(
    chosen: list[str], compared: list[tuple[Any, ...]], left_out: list[tuple[Any, ...]]
) -> pl.DataFrame:
    errors: dict[tuple[str, str], list[float]] = {}
    for _, family, measure, *_, error in compared:
        if error is not None:
            errors.setdefault((family, measure), []).append(error)
    skipped: Counter[str] = Counter()
    for family, _, rows, _ in left_out:
        skipped[family] += rows
    lines = []
    for name in chosen:
        measures = FAMILIES[name].measures if name in FAMILIES else (None,)
        placed = (PLACEMENT,) if (name, PLACEMENT) in errors else ()
        for measure in (*measures, *placed):
            summary = Summary.of(errors.get((name, measure or ""), []))
            lines.append(
                {
                    "family": name,
                    "measure": measure,
                    "rows": summary.rows,
                    "mape": summary.mape,
                    "p90": summary.p90,
                    "worst": summary.worst,
                    "skipped": skipped[name],
                }
            )
    return pl.DataFrame(
        lines,
        schema={
            "family": pl.String,
            "measure": pl.String,
            "rows": pl.UInt32,
            "mape": pl.Float64,
            "p90": pl.Float64,
            "worst": pl.Float64,
            "skipped": pl.UInt32,
        },
    ).with_columns(pl.col("mape", "p90", "worst").fill_nan(None))
