"""``run.compare``: a run beside the log of the same blocks."""

from pathlib import Path

import polars as pl
import pytest

import wavesim
from wavesim.errors import InvalidInput

BLOCKS = Path(__file__).parents[2] / "reference/h200/blocks.parquet"
SPIN = 189
"""A run of 4,227 blocks of 128 threads that wait for 10,000 cycles each."""


def spin_run(first_sms=()):
    work = wavesim.Duration.uniform(low_cycles=10_100, high_cycles=10_145)
    return wavesim.simulate("h200", wavesim.Kernel(4_227, 128, work=work), first_sms=first_sms)


@pytest.fixture(scope="module")
def logged():
    return pl.read_parquet(BLOCKS).filter(pl.col("run") == SPIN)


def log_of(run):
    """The run's own CTAs, in the form of a log that began at another time."""
    ctas = run.ctas
    return ctas.select(
        "cta",
        pl.col("sm").alias("smid"),
        pl.col("start_ns") + 1e6,
        pl.col("end_ns") + 1e6,
    )


def test_a_run_agrees_with_its_own_log():
    run = spin_run()
    comparison = run.compare(log_of(run).sample(fraction=1, shuffle=True, seed=1))
    summary = comparison.summary.row(0, named=True)
    assert summary["ctas"] == 4_227
    assert summary["same_sm"] == summary["same_sm_first_wave"] == 1
    assert abs(summary["span_error"]) < 1e-9
    assert comparison.ctas["start_error_ns"].abs().max() < 1e-3


def test_a_wrong_sm_and_a_late_start_are_seen():
    run = spin_run()
    log = log_of(run).with_columns(
        smid=pl.when(pl.col("cta") == 7).then((pl.col("smid") + 1) % 132).otherwise("smid"),
        start_ns=pl.col("start_ns") + pl.when(pl.col("cta") == 9).then(50.0).otherwise(0.0),
    )
    ctas = run.compare(log).ctas
    assert ctas.filter(~pl.col("same_sm"))["cta"].to_list() == [7]
    assert ctas.filter(pl.col("start_error_ns").abs() > 1e-3)["cta"].to_list() == [9]


def test_a_measured_log_is_placed_as_the_device_did(logged):
    first = logged.filter(pl.col("cta") == 0)["smid"][0]
    regular = logged.filter(pl.col("cta") == 8)["smid"][0]
    comparison = spin_run((first, regular)).compare(logged)
    summary = comparison.summary.row(0, named=True)
    assert summary["same_sm_first_wave"] == 1
    assert abs(summary["span_error"]) < 0.01
    assert "on the logged SM" in repr(comparison)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda log: log.lazy(), r"must be a Polars DataFrame \(got LazyFrame\)"),
        (lambda log: log.drop("smid"), "has no column smid"),
        (lambda log: log.head(10), "has 10 blocks, the run 4,227 CTAs"),
        (lambda log: log.with_columns(cta=pl.lit(0)), "has no block 1, or another one twice"),
        (lambda log: log.with_columns(start_ns=pl.lit("x")), "must be numbers"),
        (lambda log: log.with_columns(end_ns=pl.lit(float("nan"))), "must be numbers"),
        (lambda log: log.with_columns(smid=pl.lit(132)), r"SMs are 0 to 131 \(got 132\)"),
        (lambda log: log.with_columns(run=pl.col("cta") % 3), "has blocks of 3 runs"),
    ],
)
def test_another_table_is_refused(spoil, said):
    run = spin_run()
    with pytest.raises(InvalidInput, match=said):
        run.compare(spoil(log_of(run)))


def test_a_run_without_ctas_says_how_to_get_them():
    run = wavesim.simulate(
        "h200", wavesim.Kernel(10, work=wavesim.Duration.constant(ns=1)), detail="kernels"
    )
    with pytest.raises(InvalidInput, match="ctas"):
        run.compare(pl.DataFrame({"cta": [0], "smid": [0], "start_ns": [0], "end_ns": [1]}))


def test_launches_that_were_logged_can_be_picked():
    kernel = wavesim.Kernel(300, 128, work=wavesim.Duration.uniform(low_ns=900, high_ns=1_100))
    run = wavesim.simulate("h200", wavesim.Program([kernel] * 3))
    log = log_of(run).filter(run.ctas["kernel"] == 1)
    comparison = run.compare(log, kernels=[1])
    assert comparison.ctas["kernel"].unique().to_list() == [1]
    assert comparison.summary["same_sm"][0] == 1
    assert comparison.ctas["start_error_ns"].abs().max() < 1e-3
    with pytest.raises(InvalidInput, match=r"kernels\[0\]: the run's launches are 0 to 2"):
        run.compare(log, kernels=[3])
    with pytest.raises(InvalidInput, match=r"kernels: must be a list of launches \(got 1\)"):
        run.compare(log, kernels=1)


def test_the_first_wave_is_what_was_placed_before_any_slot_came_back():
    run = spin_run()
    assert run.compare(log_of(run)).ctas.filter("first_wave")["cta"].to_list() == list(range(2_112))


def test_each_launch_on_an_idle_machine_has_a_first_wave():
    kernel = wavesim.Kernel(200, 128, work=wavesim.Duration.constant(ns=2_000))
    alone = wavesim.simulate("h200", wavesim.Program([kernel] * 2))
    assert alone.compare(numbered(alone)).ctas["first_wave"].all()


def numbered(run):
    """The log of a run of several launches of the same grid."""
    grid = run.kernels["grid"][0]
    log = log_of(run)
    return log.with_columns(cta=pl.col("cta") + run.ctas["kernel"] * grid)


def test_a_comparison_is_frozen():
    comparison = spin_run().compare(log_of(spin_run()))
    with pytest.raises(AttributeError):
        comparison.ctas = pl.DataFrame()


def test_the_plot_shows_both_sides():
    run = spin_run()
    assert "logged" in run.compare(log_of(run)).plot.to_json()
