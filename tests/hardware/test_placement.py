"""Where CTAs were on the H200, given only where the launch began."""

from pathlib import Path

import polars as pl
import pytest

import wavesim
from wavesim.compare import first_wave
from wavesim.validate import validate

BLOCKS = pl.read_parquet(Path(__file__).parents[2] / "reference/h200/blocks.parquet")
LEFT_OVER = pl.col("smid") >= 124
LASTING = wavesim.Duration.constant(cycles=1e6)


def first_sms(log):
    """The first SM logged in a whole GPC, and the first one in a left-over TPC."""
    whole, left_over = log.filter(~LEFT_OVER)["smid"], log.filter(LEFT_OVER)["smid"]
    return whole[0], left_over[0]


@pytest.mark.parametrize("experiment", ["stream_dram", "panel"])
def test_kernels_that_are_not_simulated_are_placed_all_the_same(runs, experiment):
    logged = runs.filter(pl.col("run").is_in(BLOCKS["run"].unique().to_list()))
    rows = logged.filter(experiment=experiment).rows(named=True)
    assert rows
    for row in rows:
        log = BLOCKS.filter(run=row["run"]).sort("cta")
        kernel = wavesim.Kernel(row["grid"], row["block"], shared_memory=row["smem"], work=LASTING)
        ctas = first_wave(wavesim.simulate("h200", kernel, first_sms=first_sms(log)))
        wave = ctas.with_columns(log["smid"]).filter("first_wave")
        assert wave.height == min(132 * row["blocks_per_sm"], row["grid"])
        assert (wave["sm"] == wave["smid"]).all()


def test_without_the_starting_point_of_the_log_placement_is_by_the_seed(runs):
    row = runs.filter(experiment="spin", run=189).row(0, named=True)
    log = BLOCKS.filter(run=189).sort("cta")
    kernel = wavesim.Kernel(row["grid"], row["block"], work=LASTING)
    shares = set()
    for seed in range(12):
        wave = first_wave(wavesim.simulate("h200", kernel, seed=seed)).with_columns(log["smid"])
        wave = wave.filter("first_wave")
        shares.add((wave["sm"] == wave["smid"]).mean() == 1)
    assert False in shares


def test_placement_reads_nothing_of_a_log_but_where_it_began(folder_of, runs):
    row = runs.filter(experiment="spin", run=189)
    log = BLOCKS.filter(run=189).sort("cta")
    right = validate(folder_of(row, log)).rows.filter(measure="placement")
    assert right["simulated"].to_list() == [1.0]
    # One block on another SM: nothing else moves with it.
    moved = pl.when(pl.col("cta") == 500).then((pl.col("smid") + 1) % 124).otherwise("smid")
    wrong = validate(folder_of(row, log.with_columns(moved.alias("smid"))))
    error = wrong.rows.filter(measure="placement")["error"][0]
    assert error == pytest.approx(1 / (132 * 16))


def test_a_run_that_does_not_fill_the_machine_is_not_compared(folder_of, runs):
    row = runs.filter(experiment="streams", grid=66).head(1)
    result = validate(folder_of(row, BLOCKS.filter(run=row["run"][0])))
    assert result.families["measure"].to_list() == ["span_ns"]


def test_a_log_without_sms_is_no_fault(folder_of, runs):
    row = runs.filter(experiment="spin", run=189)
    result = validate(folder_of(row, BLOCKS.filter(run=189).drop("smid")))
    assert result.rows["measure"].to_list() == ["span_ns"]
