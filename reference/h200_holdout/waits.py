"""Makes the tables of what ``waits.cu`` wrote: ``python waits.py OUT``."""

import sys
from pathlib import Path

import numpy as np
import polars as pl

out, settle = Path(sys.argv[1]), Path(__file__).parent / "settle"
rows = pl.read_csv(out / "rows.csv").with_columns(pl.col("row").cast(pl.Int64))
CYCLES_A_NS = 1.98
"""Of the SM clock."""


def logged(name: str, fields: str) -> pl.DataFrame:
    numbers = np.fromfile(out / f"{name}.bin", dtype=np.uint32).reshape(-1, 11).astype(np.int64)
    return pl.DataFrame({field: numbers[:, i] for i, field in enumerate(["row", *fields.split()])})


def in_ns(log: pl.DataFrame, ends: pl.DataFrame, clocks: list[str]) -> pl.DataFrame:
    """Turn clocks of SMs into ns, by the global time and the clock at the end of each block."""
    offset = pl.col("ns") - pl.col("clock") / CYCLES_A_NS
    offsets = ends.group_by("row", "sm").agg(offset.mean().alias("offset"))
    times = [pl.col(clock) / CYCLES_A_NS + pl.col("offset") for clock in clocks]
    return log.join(offsets, on=["row", "sm"]).with_columns(times)


def spread(names: list[str]) -> list[pl.Expr]:
    kinds = {"first": pl.Expr.min, "median": pl.Expr.median, "last": pl.Expr.max}
    return [
        (of(pl.col(name)) - pl.col("from")).first().round(0).alias(f"{name}_{kind}")
        for name in names
        for kind, of in kinds.items()
    ]


asked = ["row", "kind", "grid", "block", "cycles", "trigger"]

chains = logged("chains", "kernel cta sm begin_ns began go c0 told ended ns")
steps = ["began", "go", "told", "ended"]
ends = chains.select("row", "sm", "ns", pl.col("ended").alias("clock"))
chains = in_ns(chains, ends, steps)
before = chains.group_by("row", "kernel").agg(pl.col("ended").max().alias("from"))
chains = chains.join(before.with_columns(pl.col("kernel") + 1), on=["row", "kernel"])
chains = chains.group_by("row", "kernel").agg(spread(steps)).sort("row", "kernel")
rows.select(asked).join(chains, on="row").write_parquet(settle / "waits_chains.parquet")

barriers = logged("barriers", "cta sm round first_begun first_left last_begun last_left x y z")
blocks = barriers.filter(pl.col("round") == 1000)
ends = blocks.select(
    "row", "sm", pl.col("last_left").alias("ns"), pl.col("last_begun").alias("clock")
)
steps = ["first_begun", "first_left", "last_begun", "last_left"]
barriers = in_ns(barriers.filter(pl.col("round") < 1000), ends, steps).with_columns(
    pl.max_horizontal("first_begun", "last_begun").alias("begun"),
    pl.max_horizontal("first_left", "last_left").alias("left"),
    pl.col("first_begun").min().over("row").alias("from"),
)
barriers = barriers.group_by("row", "round").agg(spread(["begun", "left"])).sort("row", "round")
rows.select(asked).drop("trigger").join(barriers, on="row").write_parquet(
    settle / "waits_barriers.parquet"
)

rows.write_parquet(settle / "waits.parquet")
