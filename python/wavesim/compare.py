"""A run beside the log of the same blocks: ``run.compare(table)``."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from wavesim.errors import InvalidInput

if TYPE_CHECKING:
    import altair as alt

    from wavesim.run import Run

__all__ = ["Comparison", "compare"]

COLUMNS = ("cta", "smid", "start_ns", "end_ns")
"""What a log of blocks has: a row a block."""


class Comparison:
    """Simulated CTAs against logged blocks; made by :meth:`wavesim.Run.compare`.

    Both sides' times count from their own first start, since a log has an origin of its own.
    """

    def __init__(self, run: Run, logged: pl.DataFrame, ctas: pl.DataFrame) -> None:
        self._run = run
        self._logged = logged
        self.ctas = ctas
        """A row a CTA: ``cta`` (linear over the run's kernels, in issue order), ``sm`` and
        ``sm_logged``, ``same_sm``, ``first_wave`` (it was placed before any CTA had ended),
        ``start_ns``, ``start_logged_ns``, ``start_error_ns``, and the same of its end."""

    @cached_property
    def summary(self) -> pl.DataFrame:
        """The comparison in one row.

        ``ctas``; ``span_ns``, ``span_logged_ns`` and ``span_error`` (relative); ``same_sm`` and
        ``same_sm_first_wave``, the shares of CTAs on the logged SM (null without a first wave); the
        middle and the 95th percentile of the distance between starts, CTA by CTA
        (``start_ns_median``, ``start_ns_p95``) and the k-th with the k-th
        (``start_rank_ns_median``, ``start_rank_ns_p95``).
        """
        both = self.ctas
        by_cta = both["start_error_ns"].abs()
        by_rank = (both["start_ns"].sort() - both["start_logged_ns"].sort()).abs()
        span, logged = _largest(both["end_ns"]), _largest(both["end_logged_ns"])
        return pl.DataFrame(
            {
                "ctas": [both.height],
                "span_ns": [span],
                "span_logged_ns": [logged],
                "span_error": [span / logged - 1 if logged else None],
                "same_sm": [both["same_sm"].mean()],
                "same_sm_first_wave": [both.filter("first_wave")["same_sm"].mean()],
                "start_ns_median": [by_cta.median()],
                "start_ns_p95": [by_cta.quantile(0.95)],
                "start_rank_ns_median": [by_rank.median()],
                "start_rank_ns_p95": [by_rank.quantile(0.95)],
            }
        )

    @property
    def plot(self) -> alt.VConcatChart:
        """Running CTAs over time on both sides, and the differences of starts and ends by rank."""
        from wavesim.plots.logged import compare as chart  # noqa: PLC0415 (Altair loads slowly)

        return chart(self._run.ctas, self._logged)

    def __repr__(self) -> str:
        row = self.summary.row(0, named=True)
        first = row["same_sm_first_wave"]
        wave = "" if first is None else f", {first:.1%} of the first wave on the logged SM"
        return (
            f"Comparison of {row['ctas']:,} CTAs: span {row['span_ns']:,.0f} ns simulated, "
            f"{row['span_logged_ns']:,.0f} ns logged ({row['span_error']:+.2%}){wave}"
        )


def compare(run: Run, table: pl.DataFrame) -> Comparison:
    """Match a run's CTAs with logged blocks, by number."""
    for column in COLUMNS:
        if column not in table.columns:
            why = f"table: has no column {column}; it has {', '.join(table.columns)}"
            raise InvalidInput(why, "table", column)
    logged = table.select(COLUMNS)
    for column in COLUMNS:
        values = logged[column]
        if not values.dtype.is_numeric() or values.null_count() or not values.is_finite().all():
            why = f"table.{column}: must be numbers, none missing (got {values.dtype})"
            raise InvalidInput(why, f"table.{column}", str(values.dtype))
    simulated = _numbered(run)
    if logged.height != simulated.height:
        why = f"table: has {logged.height:,} blocks, the run {simulated.height:,} CTAs"
        raise InvalidInput(why, "table", logged.height)
    missing = simulated.join(logged, on="cta", how="anti").sort("cta")
    if missing.height:
        why = f"table.cta: has no block {missing['cta'][0]}, or another one twice"
        raise InvalidInput(why, "table.cta", missing["cta"][0])
    origin = logged["start_ns"].min()
    log = logged.select(
        pl.col("cta").cast(pl.UInt64),
        pl.col("smid").cast(pl.UInt16, strict=False).alias("sm_logged"),
        (pl.col("start_ns") - origin).cast(pl.Float64).alias("start_logged_ns"),
        (pl.col("end_ns") - origin).cast(pl.Float64).alias("end_logged_ns"),
    )
    ctas = simulated.join(log, on="cta").sort("cta")
    ctas = ctas.select(
        "cta",
        "sm",
        "sm_logged",
        (pl.col("sm") == pl.col("sm_logged")).alias("same_sm"),
        (pl.col("start_logged_ns") < pl.col("end_logged_ns").min()).alias("first_wave"),
        "start_ns",
        "start_logged_ns",
        (pl.col("start_ns") - pl.col("start_logged_ns")).alias("start_error_ns"),
        "end_ns",
        "end_logged_ns",
        (pl.col("end_ns") - pl.col("end_logged_ns")).alias("end_error_ns"),
    )
    return Comparison(run, logged, ctas)


def _numbered(run: Run) -> pl.DataFrame:
    """The run's CTAs, numbered over all kernels as a log is, with times from the first start."""
    before = run.kernels.select(
        "kernel", (pl.col("grid").cum_sum() - pl.col("grid")).cast(pl.UInt64).alias("before")
    )
    numbered = run.ctas.join(before, on="kernel")
    first = pl.col("start_ns").min()
    return numbered.select(
        (pl.col("cta").cast(pl.UInt64) + pl.col("before")).alias("cta"),
        "sm",
        pl.col("start_ns") - first,
        pl.col("end_ns") - first,
    )


def _largest(values: pl.Series) -> float:
    largest = values.max()
    return float(largest) if isinstance(largest, int | float) else 0.0
