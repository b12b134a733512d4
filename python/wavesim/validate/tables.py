"""The tables of a folder of measurements, with what was measured kept apart from what was asked.

``runs.parquet`` has a row a run: its ``experiment``, its launch shape, the experiment's own
columns, and what was measured, each twice. A prediction is given :class:`Inputs`, in which the
measured columns are not: it cannot look at what it predicts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from wavesim.errors import InvalidInput, UnsupportedFile

__all__ = ["MEASURED", "Inputs", "NotSimulated", "Row", "Tables"]

MEASURED = frozenset(
    {
        "span_ns",
        "event_us",
        "host_us",
        "median_us",
        "device_us",
        "kernel_us",
        "mean_cycles",
        "cycles_per_load",
        "max_active_clusters",
        "sms_used",
        "dram_bytes",
        "hit_share",
        "sm_sectors",
    }
)
"""The columns that a prediction is not given, nor their second measurements (``..._again``)."""

_NEEDED = ("run", "experiment", "grid", "block")
_OTHER_TABLES = (
    "cublas_gemm",
    "elementwise",
    "flash_attention",
    "streamk_gemm",
    "triton_gemm",
    "triton_tiles",
)
_BLOCKS = "blocks.parquet"
_ASKED = "asked.parquet"
_COUNTERS = "counters.parquet"
_COUNTED = ("panel", "reuse", "broadcast")
"""Experiments whose runs are found again among the profiler's counters."""
_ONLY_COUNTED = ("triton_gemm",)
"""Experiments whose rows are the profiler's: their launch columns and what it counted."""
_HITS, _READS = "lts__t_sectors_op_read_lookup_hit.sum", "lts__t_sectors_op_read.sum"


class NotSimulated(Exception):
    """A row that is not simulated; the text says why."""


@dataclass(frozen=True)
class Inputs:
    """What is known of a run before it runs: its columns, without the measured ones and nulls."""

    values: Mapping[str, Any]
    block_cycles: np.ndarray[Any, np.dtype[np.float64]] | None = field(default=None, repr=False)
    """What each block took, in cycles by block; only where that is an input of the experiment."""
    asked_cycles: np.ndarray[Any, np.dtype[np.float64]] | None = field(default=None, repr=False)
    """The times that were drawn for its tasks, in cycles by task; None where nothing lists them."""

    def number(self, name: str, default: float | None = None) -> float:
        """Give a number that is 0 or more; without a default, its absence keeps the row out."""
        value = self.values.get(name, default)
        if value is None:
            raise NotSimulated(f"{name} is not given")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NotSimulated(f"{name} must be a number (got {value!r})")
        if not math.isfinite(value) or value < 0:
            raise NotSimulated(f"{name} must be 0 or more (got {value:g})")
        return float(value)

    def count(self, name: str, default: int | None = None) -> int:
        """Give a whole number that is 0 or more."""
        value = self.number(name, default)
        if value != int(value):
            raise NotSimulated(f"{name} must be a whole number (got {value:g})")
        return int(value)

    def text(self, name: str) -> str:
        """Give a word."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise NotSimulated(f"{name} is not given")
        return value


@dataclass(frozen=True)
class Row:
    """One row of a table: what was asked, and what was measured."""

    run: int
    family: str
    inputs: Inputs
    measured: Mapping[str, tuple[float | None, float | None]] = field(repr=False)
    """Both measurements of each measured column; None where one was not taken."""
    logged_sms: np.ndarray[Any, np.dtype[np.int64]] | None = field(default=None, repr=False)
    """The SM of each block, by its number over the run's kernels; None where it was not logged."""


class Tables:
    """The tables of one folder.

    Args:
        folder: the folder.

    Raises:
        UnsupportedFile: no such folder, none of the tables in it, or one that is no such table.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            kind = "is a file" if folder.exists() else "is not there"
            raise UnsupportedFile(f"{folder}: must be a folder of measurements, and {kind}", folder)
        self.folder = folder
        found = [name for name in ("runs", *_OTHER_TABLES) if self._path(name).is_file()]
        self._only_counted = self._read_only_counted()
        if not found and self._only_counted is None:
            names = ", ".join(f"{name}.parquet" for name in ("runs", *_OTHER_TABLES))
            raise UnsupportedFile(f"{folder}: has none of the tables {names}", folder)
        counted = () if self._only_counted is None else self._only_counted["experiment"].unique()
        self.others = tuple(name for name in found if name not in ("runs", *counted))
        """Tables beside the runs of microbenchmarks and of what was only counted; each is a family
        of its own."""
        self._runs = self._read_runs() if "runs" in found else None

    def families(self) -> list[str]:
        """Name the experiments and tables, in the order of the files."""
        experiments = [
            name
            for frame in (self._runs, self._only_counted)
            if frame is not None
            for name in frame["experiment"].unique(maintain_order=True)
        ]
        return [*experiments, *self.others]

    def rows(
        self, families: Iterable[str], with_blocks: Iterable[str], placed: Iterable[str] = ()
    ) -> list[Row]:
        """Give the runs of some experiments.

        Args:
            families: which.
            with_blocks: those of them to whose inputs belongs what each block took.
            placed: those of which it is wanted where each block was.
        """
        counted: list[Row] = []
        if self._only_counted is not None:
            of_families = self._only_counted.filter(pl.col("experiment").is_in(list(families)))
            counted = [_row(values, {}, {}, {}) for values in of_families.iter_rows(named=True)]
        if self._runs is None:
            return counted
        chosen = self._runs.filter(pl.col("experiment").is_in(list(families)))
        cycles = self._by_block(_BLOCKS, "cycles", pl.Float64(), chosen, with_blocks, needed=True)
        asked = self._by_block(_ASKED, "cycles", pl.Float64(), chosen, families, needed=True)
        if (self.folder / _ASKED).is_file() and "dist" in chosen.columns:
            # Where times are listed, none are drawn: a run of which some are missing has none.
            drawn = chosen.filter(pl.col("dist").is_not_null())["run"].to_list()
            asked = {run: np.empty(0) for run in drawn} | asked
        sms = self._by_block(_BLOCKS, "smid", pl.Int64(), chosen, placed, needed=False)
        return [_row(row, cycles, sms, asked) for row in chosen.iter_rows(named=True)] + counted

    def rows_of(self, table: str) -> list[Row]:
        """Give the rows of a table that is not ``runs``, numbered from 0."""
        try:
            frame = self._scan(self._path(table)).collect()
        except pl.exceptions.PolarsError as error:
            raise _unreadable(self._path(table), error) from error
        return [
            _row({**values, "experiment": table, "run": number}, {}, {}, {})
            for number, values in enumerate(frame.iter_rows(named=True))
        ]

    def height(self, table: str) -> int:
        """Count the rows of a table that is not ``runs``."""
        return int(self._scan(self._path(table)).select(pl.len()).collect().item())

    def _path(self, table: str) -> Path:
        return self.folder / f"{table}.parquet"

    def _read_runs(self) -> pl.DataFrame:
        path = self._path("runs")
        try:
            frame = self._scan(path).collect()
        except pl.exceptions.PolarsError as error:
            raise _unreadable(path, error) from error
        for name in _NEEDED:
            if name not in frame.columns:
                why = f"has no column {name}; a row needs {', '.join(_NEEDED)}"
                raise UnsupportedFile(f"{path}: {why}", path)
        if not frame.schema["run"].is_integer():
            raise UnsupportedFile(f"{path}: run must be a column of whole numbers", path)
        if frame.schema["experiment"] != pl.String:
            raise UnsupportedFile(f"{path}: experiment must be a column of names", path)
        if frame["experiment"].null_count() or frame["run"].null_count():
            raise UnsupportedFile(f"{path}: run and experiment must be given in each row", path)
        return self._with_counters(frame)

    def _with_counters(self, runs: pl.DataFrame) -> pl.DataFrame:
        """Add what the profiler counted of a launch of the same shape.

        One that was only counted becomes a row of its own.
        """
        path = self.folder / _COUNTERS
        if not path.is_file():
            return runs
        try:
            counters = self._scan(path).filter(pl.col("experiment").is_in(_COUNTED)).collect()
            values = _counter_values()
            own = {*MEASURED, "run", "regs", "cluster", "blocks_per_sm"}
            own |= {f"{name}_again" for name in own}
            keys = [name for name in counters.columns if name in runs.columns and name not in own]
            counted = counters.select(*keys, **values).unique(
                keys, keep="first", maintain_order=True
            )
            counted = counted.cast({name: runs.schema[name] for name in keys})
        except pl.exceptions.PolarsError as error:
            raise _unreadable(path, error) from error
        joined = runs.join(counted, on=keys, how="left", nulls_equal=True, maintain_order="left")
        alone = counted.join(runs, on=keys, how="anti", nulls_equal=True)
        first = int(runs["run"].max() or 0) + 1  # type: ignore[arg-type]
        alone = alone.with_columns(run=(pl.int_range(pl.len()) + first).cast(runs.schema["run"]))
        return pl.concat([joined, alone], how="diagonal")

    def _read_only_counted(self) -> pl.DataFrame | None:
        """Read the rows of experiments that only the profiler saw, numbered from 0."""
        path = self.folder / _COUNTERS
        if not path.is_file():
            return None
        try:
            rows = self._scan(path).filter(pl.col("experiment").is_in(_ONLY_COUNTED)).collect()
            if rows.is_empty():
                return None
            asked = [name for name in rows.columns if "__" not in name]
            launch = [pl.col(name) for name in asked if name not in ("run", "block")]
            blocks = [name for name in ("block", "launch__block_size") if name in rows.columns]
            block = pl.coalesce(blocks).alias("block")
            number = pl.int_range(pl.len()).alias("run")
            return rows.select(number, *launch, block, **_counter_values())
        except pl.exceptions.PolarsError as error:
            raise _unreadable(path, error) from error

    def _by_block(
        self,
        table: str,
        column: str,
        of: pl.DataType,
        chosen: pl.DataFrame,
        families: Iterable[str],
        *,
        needed: bool,
    ) -> dict[int, np.ndarray[Any, np.dtype[Any]]]:
        """Give a table's column of each block, by run; only of runs with all of their blocks."""
        path = self.folder / table
        runs = chosen.filter(pl.col("experiment").is_in(list(families)))["run"].to_list()
        if not runs or not path.is_file():
            return {}
        scan = self._scan(path)
        names = scan.collect_schema().names()
        if not needed and not {"run", "cta", column} <= set(names):
            return {}
        try:
            wanted = scan.filter(pl.col("run").is_in(runs)).select(
                "run", "cta", pl.col(column).cast(of)
            )
            frame = wanted.collect()
        except pl.exceptions.PolarsError as error:
            raise _unreadable(path, error) from error
        by_run = frame.sort("run", "cta").partition_by("run", as_dict=True)
        found = {}
        for (run,), blocks in by_run.items():
            complete = blocks["cta"].to_list() == list(range(blocks.height))
            if complete and (needed or not blocks[column].null_count()):
                found[int(run)] = blocks[column].to_numpy()
        return found

    @staticmethod
    def _scan(path: Path) -> pl.LazyFrame:
        try:
            scan = pl.scan_parquet(path, glob=False)
            scan.collect_schema()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise _unreadable(path, error) from error
        return scan


def _counter_values() -> dict[str, pl.Expr]:
    """Give what is predicted of the profiler's counters, and its second count."""
    values: dict[str, pl.Expr] = {}
    for again in ("", "_again"):
        values[f"dram_bytes{again}"] = pl.col(f"dram__bytes_read.sum{again}")
        values[f"hit_share{again}"] = pl.col(_HITS + again) / pl.col(_READS + again)
        values[f"sm_sectors{again}"] = pl.col(f"lts__t_sectors_srcunit_tex.sum{again}")
    return values


def _row(
    values: dict[str, Any],
    cycles: Mapping[int, np.ndarray[Any, np.dtype[np.float64]]],
    sms: Mapping[int, np.ndarray[Any, np.dtype[np.int64]]],
    listed: Mapping[int, np.ndarray[Any, np.dtype[np.float64]]],
) -> Row:
    hidden = MEASURED | {f"{name}_again" for name in MEASURED}
    asked = {
        name: value
        for name, value in values.items()
        if value is not None and name not in hidden and name not in ("run", "experiment")
    }
    return Row(
        run=values["run"],
        family=values["experiment"],
        inputs=Inputs(asked, cycles.get(values["run"]), listed.get(values["run"])),
        logged_sms=sms.get(values["run"]),
        measured={
            name: (_measured(values.get(name)), _measured(values.get(f"{name}_again")))
            for name in MEASURED
        },
    )


def _measured(value: object) -> float | None:
    """Read a measurement; 0 stands for one that was not taken."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value > 0 else None


def _unreadable(path: Path, error: Exception) -> InvalidInput:
    first = str(error).strip().splitlines()[:1]
    return UnsupportedFile(
        f"{path}: is no Parquet table of the needed shape: {''.join(first)}", path
    )
