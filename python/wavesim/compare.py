"""A run against a log of the same blocks: when each ran, and on which SM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from wavesim.errors import InvalidInput
from wavesim.scalars import listed, whole
from wavesim.text import time_text

if TYPE_CHECKING:
    import altair as alt

    from wavesim.run import Run

__all__ = ["COMPARED", "SUMMARY", "Comparison", "compare", "first_wave"]

COMPARED: dict[str, pl.DataType] = {
    "kernel": pl.UInt32(),  # the launch's number in the run
    "cta": pl.UInt32(),  # linear over the launches that are compared
    "first_wave": pl.Boolean(),  # the first one in its slot; see first_wave()
    "sm": pl.UInt16(),
    "sm_logged": pl.UInt16(),
    "same_sm": pl.Boolean(),
    "start_ns": pl.Float64(),
    "start_logged_ns": pl.Float64(),
    "start_error_ns": pl.Float64(),  # simulated less logged
    "end_ns": pl.Float64(),
    "end_logged_ns": pl.Float64(),
    "end_error_ns": pl.Float64(),
}
"""``comparison.ctas``: a row a CTA, by number. Times count from each side's first start."""

SUMMARY: dict[str, pl.DataType] = {
    "ctas": pl.UInt32(),
    "first_wave": pl.UInt32(),  # CTAs in it
    "span_ns": pl.Float64(),  # first start to last end
    "span_logged_ns": pl.Float64(),
    "span_error": pl.Float64(),  # simulated less logged, over logged
    "same_sm": pl.Float64(),  # share of all CTAs
    "same_sm_first_wave": pl.Float64(),  # share of the first wave's
    "start_ns_median": pl.Float64(),  # size of the difference, CTA by CTA
    "start_ns_p95": pl.Float64(),
    "start_rank_ns_median": pl.Float64(),  # the k-th start against the k-th
    "start_rank_ns_p95": pl.Float64(),
}
"""``comparison.summary``: one row."""

_NEEDED = ("cta", "smid", "start_ns", "end_ns")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What is alike and what is not; made by ``run.compare``.

    Which CTA gets a slot that comes back is chance on the hardware, so behind the first wave CTAs
    of the same number may be far apart while slots are taken at the same times. So starts are
    compared by CTA and by rank, and SMs over the first wave and over all.
    """

    ctas: pl.DataFrame
    """A row a CTA; columns in :data:`COMPARED`."""
    summary: pl.DataFrame
    """One row; columns in :data:`SUMMARY`."""

    @property
    def plot(self) -> alt.VConcatChart:
        """Running CTAs over time on both sides, and the differences by rank."""
        from wavesim.plots.logged import compare as chart  # noqa: PLC0415 (Altair loads long)

        logged = self.ctas.select(start_ns="start_logged_ns", end_ns="end_logged_ns")
        return chart(self.ctas.select("start_ns", "end_ns"), logged)

    def __repr__(self) -> str:
        """Say how far apart they are."""
        row = self.summary.row(0, named=True)
        return (
            f"Comparison of {row['ctas']:,} CTAs: {time_text(row['span_ns'])} simulated,"
            f" {time_text(row['span_logged_ns'])} logged ({row['span_error']:+.2%})\n"
            f"  on the logged SM: {row['same_sm_first_wave']:.1%} of the {row['first_wave']:,} of"
            f" the first wave, {row['same_sm']:.1%} of all\n"
            f"  starts by rank: median {time_text(row['start_rank_ns_median'])} off,"
            f" 95 % within {time_text(row['start_rank_ns_p95'])};"
            f" by CTA: {time_text(row['start_ns_median'])},"
            f" {time_text(row['start_ns_p95'])}"
        )


def compare(run: Run, table: pl.DataFrame, kernels: Sequence[int] | None = None) -> Comparison:
    """Compare a run with a log.

    Args:
        run: the run, with its CTAs recorded.
        table: a row a block: ``cta``, ``smid``, ``start_ns``, ``end_ns``.
        kernels: the launches that were logged, by their numbers in the run; by default all.

    Raises:
        InvalidInput: the table is not a log of these CTAs, or the run recorded kernels only.
    """
    simulated = _numbered(run, kernels)
    logged = _checked(table, simulated.height, run.device.sms)
    both = simulated.join(logged, on="cta", maintain_order="left").select(
        "kernel",
        "cta",
        "first_wave",
        "sm",
        "sm_logged",
        (pl.col("sm") == pl.col("sm_logged")).alias("same_sm"),
        *(
            column
            for when in ("start", "end")
            for column in (
                pl.col(f"{when}_ns"),
                pl.col(f"{when}_logged_ns"),
                (pl.col(f"{when}_ns") - pl.col(f"{when}_logged_ns")).alias(f"{when}_error_ns"),
            )
        ),
    )
    return Comparison(both, _summary(both))


def first_wave(run: Run) -> pl.DataFrame:
    """Give each CTA's place, and whether it belongs to a first wave.

    Those CTAs do that were given their slots going round, before any slot came back: the first one
    of a slot since the device had nothing to do, up to the first CTA of the kernel that is not.

    Returns:
        A row a CTA, by launch and number: ``kernel``, ``cta``, ``sm``, ``start_ns``, ``end_ns``,
        ``first_wave``.

    Raises:
        InvalidInput: the run recorded kernels only.
    """
    ctas = run.ctas
    idle = pl.col("ready_ns") >= pl.col("complete_ns").cum_max().shift(1)
    periods = run.kernels.sort("ready_ns", "kernel").select(
        "kernel", idle.fill_null(True).cum_sum().alias("period")
    )
    nth = pl.int_range(pl.len()).over("period", "sm", "slot")
    in_order = ctas.join(periods, on="kernel").sort("start_ns").with_columns(first=nth == 0)
    later = pl.col("cta").filter(~pl.col("first")).min().over("kernel")
    before = pl.col("cta") < later.fill_null(pl.UInt32.max())
    return (
        in_order.with_columns(first_wave=pl.col("first") & before)
        .select("kernel", "cta", "sm", "start_ns", "end_ns", "first_wave")
        .sort("kernel", "cta")
    )


def _numbered(run: Run, kernels: Sequence[int] | None) -> pl.DataFrame:
    """CTAs numbered over the launches that are compared; times from the first start."""
    ctas = first_wave(run)
    if kernels is not None:
        launches = run.kernels.height
        chosen = listed("kernels", kernels, "launches")
        for i, kernel in enumerate(chosen):
            if whole(kernel) not in range(launches):
                why = f"the run's launches are 0 to {launches - 1} (got {kernel!r})"
                raise InvalidInput(f"kernels[{i}]: {why}", f"kernels[{i}]", kernel)
        ctas = ctas.filter(pl.col("kernel").is_in(chosen))
        if ctas.is_empty():
            raise InvalidInput("kernels: must name at least one launch", "kernels", kernels)
    first = pl.col("start_ns").min()
    return ctas.with_columns(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("cta"),
        start_ns=pl.col("start_ns") - first,
        end_ns=pl.col("end_ns") - first,
    )


def _checked(table: pl.DataFrame, ctas: int, sms: int) -> pl.DataFrame:
    """``cta``, ``sm_logged`` and the times from the first start, of a log of so many CTAs."""
    if not isinstance(table, pl.DataFrame):
        kind = type(table).__name__
        raise InvalidInput(f"table: must be a Polars DataFrame (got {kind})", "table", kind)
    for name in _NEEDED:
        if name not in table.columns:
            why = f"table: has no column {name}; it has {', '.join(table.columns)}"
            raise InvalidInput(why, "table", name)
        values = table[name]
        if not values.dtype.is_numeric() or values.null_count() or not values.is_finite().all():
            why = f"table.{name}: must be numbers, none missing (got {values.dtype})"
            raise InvalidInput(why, f"table.{name}", str(values.dtype))
    if "run" in table.columns and (runs := table["run"].n_unique()) > 1:
        raise InvalidInput(f"table: has blocks of {runs} runs; filter one of them", "table", runs)
    if table.height != ctas:
        why = f"table: has {table.height:,} blocks, the run {ctas:,} CTAs"
        raise InvalidInput(why, "table", table.height)
    expected = pl.DataFrame({"cta": pl.int_range(ctas, eager=True)})
    missing = expected.join(table.select(pl.col("cta").cast(pl.Int64)), on="cta", how="anti")
    if missing.height:
        absent = missing["cta"].sort()[0]
        why = f"table.cta: has no block {absent}, or another one twice"
        raise InvalidInput(why, "table.cta", absent)
    outside = table.filter(~pl.col("smid").is_between(0, sms - 1))
    if outside.height:
        sm = outside["smid"][0]
        why = f"table.smid: the device's SMs are 0 to {sms - 1} (got {sm})"
        raise InvalidInput(why, "table.smid", sm)
    first = pl.col("start_ns").min()
    return table.select(
        pl.col("cta").cast(pl.UInt32),
        pl.col("smid").cast(pl.UInt16).alias("sm_logged"),
        (pl.col("start_ns") - first).cast(pl.Float64).alias("start_logged_ns"),
        (pl.col("end_ns") - first).cast(pl.Float64).alias("end_logged_ns"),
    )


def _summary(ctas: pl.DataFrame) -> pl.DataFrame:
    start, logged = pl.col("start_ns"), pl.col("start_logged_ns")
    by_cta = pl.col("start_error_ns").abs()
    by_rank = (start.sort() - logged.sort()).abs()
    span, span_logged = pl.col("end_ns").max(), pl.col("end_logged_ns").max()
    wave = pl.col("first_wave")
    return ctas.select(
        pl.len().alias("ctas"),
        wave.sum().alias("first_wave"),
        span.alias("span_ns"),
        span_logged.alias("span_logged_ns"),
        ((span - span_logged) / span_logged).alias("span_error"),
        pl.col("same_sm").mean().alias("same_sm"),
        pl.col("same_sm").filter(wave).mean().alias("same_sm_first_wave"),
        by_cta.median().alias("start_ns_median"),
        by_cta.quantile(0.95, "linear").alias("start_ns_p95"),
        by_rank.median().alias("start_rank_ns_median"),
        by_rank.quantile(0.95, "linear").alias("start_rank_ns_p95"),
    ).cast(SUMMARY)  # type: ignore[arg-type]
