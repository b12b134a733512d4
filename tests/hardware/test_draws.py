"""Which times the measured runs drew, and that a folder may list its own."""

from itertools import islice

import numpy as np
import polars as pl
import pytest

from wavesim.validate import draws, validate

TASKS = {
    "experiment": "persistent_static_dist",
    "grid": 132,
    "block": 64,
    "tasks": 1_000.0,
    "dist": "exp",
    "mean": 3_000.0,
}


def asked_of(cycles: list[int]) -> pl.DataFrame:
    return pl.DataFrame({"run": 0, "cta": range(len(cycles)), "cycles": cycles})


def test_the_words_are_those_of_the_standard():
    # ISO C++ [rand.predef]: what mt19937_64 gives last of 10,000 words, with its default seed.
    (last,) = islice(draws._words(5489), 9_999, 10_000)
    assert last == 9_981_545_732_273_789_042


def test_the_logs_of_spin_dist_have_the_times_that_were_drawn(runs, reference):
    blocks = pl.read_parquet(reference / "blocks.parquet", columns=["run", "cta", "cycles"])
    rows = runs.filter(experiment="spin_dist")
    assert rows.height == 36
    for run, grid, block, law, mean in rows.select(
        "run", "grid", "block", "dist", "mean"
    ).iter_rows():
        took = blocks.filter(run=run).sort("cta")["cycles"].to_numpy()
        beside = took - draws.drawn(law, mean, grid, grid + 1)
        # Its record, and a turn of its loop. Blocks whose time is over before they have read it,
        # and those that find their SM's schedulers full, take longer; none takes less.
        assert beside.min() > 85
        assert np.quantile(beside, 0.25) < 200
        assert block != 256 or beside.max() < 640


@pytest.mark.parametrize("law", draws.LAWS)
def test_each_law_has_its_mean(law):
    times = draws.drawn(law, 8_000.0, 20_000, 7)
    assert (times >= 0).all()
    assert (times == np.floor(times)).all()
    # The heaviest tail's standard deviation is 0.95 of the mean: three of its mean's.
    assert times.mean() == pytest.approx(8_000, rel=0.02)


def test_seeds_draw_other_times():
    some, others = (draws.drawn("normal10", 1e4, 1_000, seed) for seed in (5, 6))
    assert abs(np.corrcoef(some, others)[0, 1]) < 0.15


def test_times_that_a_folder_lists_are_taken(folder_of):
    row = pl.DataFrame([{"run": 0, "smem": 0, **TASKS}])
    drawn = draws.drawn("exp", 3_000.0, 1_000, draws.TASK_SEED).astype(int)
    own = validate(folder_of(row)).rows["simulated"][0]
    asked_of(drawn.tolist()).write_parquet(folder_of(row) / "asked.parquet")
    assert validate(folder_of(row)).rows["simulated"][0] == own
    asked_of((2 * drawn).tolist()).write_parquet(folder_of(row) / "asked.parquet")
    assert validate(folder_of(row)).rows["simulated"][0] > 1.5 * own


def test_times_for_other_tasks_are_refused(folder_of):
    row = pl.DataFrame([{"run": 0, "smem": 0, **TASKS}])
    asked_of([100, 200]).write_parquet(folder_of(row) / "asked.parquet")
    skipped = validate(folder_of(row)).skipped["why"][0]
    assert skipped == "asked.parquet has 2 times for 1000 blocks or tasks"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda asked: asked.filter(pl.col("cta") != 10), "has 0 times for 1000 blocks or tasks"),
        (lambda asked: pl.concat([asked, asked]), "has 0 times for 1000 blocks or tasks"),
        (lambda asked: asked.head(0), "has 0 times for 1000 blocks or tasks"),
        (lambda asked: asked.with_columns(cycles=pl.col("cycles") - 5), "0 or more (got -5)"),
    ],
)
def test_times_are_not_drawn_where_some_are_listed(folder_of, change, why):
    row = pl.DataFrame([{"run": 0, "smem": 0, **TASKS}])
    change(asked_of([*range(1_000)])).write_parquet(folder_of(row) / "asked.parquet")
    assert why in validate(folder_of(row)).skipped["why"][0]


def test_blocks_without_a_log_take_the_times_that_were_drawn(folder_of, runs):
    # Three blocks of 256 threads an SM: no scheduler is full.
    rows = runs.filter(experiment="spin_dist", block=256)
    result = validate(folder_of(rows))
    assert result.rows.height == 18
    assert result.rows["error"].mean() < 0.002


def test_blocks_whose_schedulers_are_full_wait_for_the_older_ones(folder_of, runs):
    # Sixteen blocks of 128 threads an SM, of which the young ones ask for little: they end late.
    rows = runs.filter(
        pl.col("dist").is_in(["ramp_down", "exp"]), experiment="spin_dist", block=128
    )
    result = validate(folder_of(rows))
    assert result.rows.height == 4
    assert result.rows["error"].max() < 0.03
