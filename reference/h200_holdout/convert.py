"""Turn what measure.cu wrote into the tables that `wavesim validate` reads.

    python convert.py FIRST AGAIN [EXPERIMENT=FIRST:AGAIN ...]

FIRST and AGAIN are two folders of measurements of the rows of rows.csv. Their values become `x` and
`x_again`; the blocks, and the times that were asked of them, are those of FIRST. An experiment can
have folders of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

HERE = Path(__file__).parent
MEASURED = ("event_us", "span_ns")
FIRST_COLUMNS = ["run", "experiment", "grid", "block", "smem", "regs", "cluster", "blocks_per_sm"]
WHOLE = ["run", "grid", "block", "smem", "regs", "cluster", "blocks_per_sm"]
ONCE = {"cluster": "max_active_clusters", "spoiler": "sms_used"}
NOT_IN_TABLE = {"log", "problem", "span_least", "span_median", "span_most"}


def read(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, infer_schema_length=None)


def chosen(rows: pl.DataFrame, folder: Path, own: dict[str, Path]) -> pl.DataFrame:
    """Give what was measured without a problem, from the folder of each row's experiment."""
    parts = []
    for of_it in {folder, *own.values()}:
        wanted = [name for name in rows["experiment"].unique().to_list() if own.get(name, folder) == of_it]
        runs_of_it = rows.filter(pl.col("experiment").is_in(wanted))["run"].to_list()
        found = read(of_it / "runs.csv").filter(pl.col("problem").is_null(), pl.col("run").is_in(runs_of_it))
        parts.append(found)
    return pl.concat(parts, how="vertical_relaxed")


def runs(first: Path, again: Path, own: dict[str, tuple[Path, Path]]) -> pl.DataFrame:
    """Give a row a run that was measured twice without a problem."""
    rows = read(HERE / "rows.csv").drop("log")
    one = chosen(rows, first, {name: folders[0] for name, folders in own.items()})
    two = chosen(rows, again, {name: folders[1] for name, folders in own.items()})
    table = rows.join(one.drop("problem"), on="run")
    table = table.join(two.select("run", *MEASURED), on="run", suffix="_again").sort("run")
    for name in ONCE.values():
        of_it = [experiment for experiment, column in ONCE.items() if column == name]
        table = table.with_columns(pl.when(pl.col("experiment").is_in(of_it)).then(pl.col(name)).alias(name))
    table = table.with_columns(
        pl.when(pl.col("experiment").str.starts_with("launch_")).then(pl.col("host_us")).alias("host_us")
    )
    pairs = [name for measure in MEASURED for name in (measure, f"{measure}_again")]
    others = sorted(set(table.columns) - set(FIRST_COLUMNS) - set(pairs) - NOT_IN_TABLE)
    numbers = [name for name in [*pairs, *others] if name != "dist"]
    return table.select(*FIRST_COLUMNS, *pairs, *others).with_columns(
        pl.col(WHOLE).cast(pl.Int64), pl.col(numbers).cast(pl.Float64)
    )


def blocks(first: Path) -> pl.DataFrame:
    """Give a row a block of the logged runs."""
    frame = read(first / "blocks.csv").with_columns(
        pl.lit("a").alias("kernel"), (pl.col("end_clock") - pl.col("start_clock")).alias("cycles")
    )
    whole = [pl.col("run", "cta", "tag", "start_ns", "end_ns", "cycles").cast(pl.Int32), pl.col("smid").cast(pl.Int16)]
    names = "run kernel cta smid tag start_ns end_ns start_clock end_clock cycles".split()
    return frame.with_columns(whole).select(names)


def main() -> None:
    first, again = Path(sys.argv[1]), Path(sys.argv[2])
    own = {}
    for argument in sys.argv[3:]:
        name, _, folders = argument.partition("=")
        one, _, two = folders.partition(":")
        own[name] = (Path(one), Path(two))
    runs(first, again, own).write_parquet(HERE / "runs.parquet", compression="zstd")
    blocks(first).write_parquet(HERE / "blocks.parquet", compression="zstd", compression_level=19)
    asked = read(first / "asked.csv").cast({"run": pl.Int32, "cta": pl.Int32, "cycles": pl.Int32})
    asked.write_parquet(HERE / "asked.parquet", compression="zstd", compression_level=19)


if __name__ == "__main__":
    main()
