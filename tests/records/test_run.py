"""A run and its frames: columns, units, and what stays true of them."""

import copy

import polars as pl
import pytest

import wavesim
from wavesim import Duration, Graph, Kernel, Launch, Program, frames
from wavesim.errors import InvalidInput

KERNEL = Kernel(1_000, block=128, name="k", work=Duration.constant(ns=5_000))


@pytest.fixture(scope="module")
def run(h200) -> wavesim.Run:
    program = Program([KERNEL, Launch(KERNEL.edited(grid=40)), Graph([KERNEL.edited(name="g")])])
    return wavesim.simulate(h200, program, seed=5)


def test_every_frame_has_its_documented_columns(run):
    assert run.kernels.schema == pl.Schema(frames.KERNELS)
    assert run.ctas.schema == pl.Schema(frames.CTAS)
    assert run.sms.schema == pl.Schema(frames.SMS)
    assert run.ledger.schema == pl.Schema(frames.LEDGER)
    shares = dict.fromkeys((*frames.ACCOUNTS, "running_ctas"), pl.Float64)
    edges = {"bin": pl.UInt32, "start_ns": pl.Float64, "end_ns": pl.Float64}
    assert run.timeline(3).schema == pl.Schema(edges | shares)


def test_the_kernels_frame_says_what_was_launched(run):
    rows = run.kernels.select(
        "kernel", "name", "grid", "block", "registers", "shared_memory", "cluster"
    )
    assert rows.rows() == [
        (0, "k", 1_000, 128, 32, 0, 1),
        (1, "k", 40, 128, 32, 0, 1),
        (2, "g", 1_000, 128, 32, 0, 1),
    ]


def test_residency_waves_and_limiter_are_those_of_the_calculator(run, h200):
    fit = wavesim.occupancy(h200, block=128, registers=32)
    first = run.kernels.row(0, named=True)
    assert first["residency"] == fit.ctas_per_sm == 16
    assert first["occupancy"] == fit.occupancy
    assert first["limiter"] == fit.limiter
    assert first["waves"] == 1_000 / (132 * 16)
    assert run.slots == 132 * 16


def test_durations_gaps_and_tails_are_differences_of_the_times(run):
    kernels = run.kernels
    assert (kernels["duration_ns"] - (kernels["end_ns"] - kernels["start_ns"])).abs().max() < 1e-3
    assert (kernels["tail_ns"] - (kernels["end_ns"] - kernels["placed_ns"])).abs().max() < 1e-3
    gaps = (kernels["start_ns"] - kernels["end_ns"].shift(1))[1:]
    assert kernels["launch_gap_ns"][0] is None
    assert (kernels["launch_gap_ns"][1:] - gaps).abs().max() < 1e-3
    assert (gaps > 0).all()


def test_the_first_and_last_ctas_are_the_kernels_start_and_end(run):
    found = run.ctas.group_by("kernel").agg(pl.min("start_ns"), pl.max("end_ns")).sort("kernel")
    assert found.equals(run.kernels.select("kernel", "start_ns", "end_ns"))


def test_kernels_that_overlap_have_no_gap(h200):
    long = KERNEL.edited(grid=1, work=Duration.constant(ns=50_000))
    program = Program([Launch(long, 0), Launch(KERNEL.edited(grid=1), 1)])
    assert wavesim.simulate(h200, program).kernels["launch_gap_ns"].to_list() == [None, 0.0]


def test_the_sms_frame_has_a_row_an_sm_in_order(run, h200):
    assert run.sms["sm"].to_list() == list(range(132))
    gpc_of = {sm: i for i, gpc in enumerate(h200.topology.gpcs) for sm in gpc.sms}
    assert run.sms["gpc"].to_list() == [gpc_of[sm] for sm in range(132)]
    found = run.ctas.group_by("sm").agg(pl.len().cast(pl.UInt64), pl.max("end_ns")).sort("sm")
    assert found["len"].to_list() == run.sms["ctas"].to_list()
    assert found["end_ns"].to_list() == run.sms["last_end_ns"].to_list()


def test_time_slices_of_the_timeline_share_their_edges(run):
    timeline = run.timeline(bins=7)
    assert timeline["start_ns"][0] == 0
    assert timeline["end_ns"][-1] == pytest.approx(run.makespan_ns, rel=1e-12)
    assert (timeline["end_ns"][:-1] - timeline["start_ns"][1:]).abs().max() < 1e-6
    assert (timeline["running_ctas"] - timeline["busy"] * run.slots).abs().max() < 1e-6


@pytest.mark.parametrize("bins", [0, -1, 1.5, True, 10_000_000])
def test_a_timeline_of_impossible_bins_is_refused(run, bins):
    with pytest.raises(InvalidInput, match=r"^bins: "):
        run.timeline(bins)


@pytest.mark.parametrize("bins", [1, 8, 200, 1_000, 2_000])
def test_a_stored_timeline_is_the_original_one(run, bins):
    stored = run.stored().timeline(bins)
    original = run.timeline(bins)
    assert stored.schema == original.schema
    assert (stored - original).select(pl.all().abs().max()).max_horizontal()[0] < 1e-6


@pytest.mark.parametrize("bins", [3, 7, 333])
def test_a_stored_timeline_in_other_bins_still_adds_up(run, bins):
    stored = run.stored().timeline(bins)
    assert stored.height == bins
    assert (stored.select(frames.ACCOUNTS).sum_horizontal() - 1).abs().max() < 1e-9
    assert abs(stored["busy"].mean() - run.ledger["share"][0]) < 1e-9


def test_ctas_that_were_not_recorded_say_how_to_get_them(h200):
    run = wavesim.simulate(h200, KERNEL, detail="kernels")
    with pytest.raises(InvalidInput, match='simulate with detail="ctas"') as refused:
        _ = run.ctas
    assert refused.value.field == "detail"


def test_a_run_is_immutable_and_its_frames_are_made_once(run):
    with pytest.raises(AttributeError, match="immutable"):
        run.seed = 3
    with pytest.raises(AttributeError, match="immutable"):
        del run.seed
    assert run.kernels is run.kernels
    assert run.ctas is run.ctas


def test_a_run_without_dispatch_is_simulated_once_and_is_its_own(h200):
    work = Duration.lognormal(900, 0.5)
    run = wavesim.simulate(h200, Kernel(4_000, work=work), seed=3, first_sms=(5,))
    free = wavesim.simulate(h200, run.program, seed=3, dispatcher="ideal")
    assert run.ideal == free
    assert run.ideal.detail == "kernels"
    assert run.ideal.makespan_ns < run.makespan_ns
    assert run.ideal is run.ideal
    assert free.ideal is free


def test_runs_are_equal_when_all_their_ctas_are(run, h200):
    again = wavesim.simulate(h200, run.program, seed=5)
    assert again == run
    assert hash(again) == hash(run)
    assert again != wavesim.simulate(h200, KERNEL)
    assert run != "run"
    assert copy.copy(run) == run


def test_a_run_shows_its_headline_numbers(run):
    first, second, third = repr(run).splitlines()
    assert first.startswith("Run on h200: ")
    assert "3 kernels, 2,040 CTAs" in first
    assert "2,112 slots: " in second
    assert run.digest in third
    assert len(run.digest) == 16


def test_a_ledger_that_needs_more_than_64_bits_is_exact_all_the_same(h200):
    day_ns = 86_400e9
    run = wavesim.simulate(h200, Kernel(132, work=Duration.constant(ns=day_ns)))
    assert run.ledger["time_ps"].dtype == pl.Int128
    assert sum(run.ledger["time_ps"].to_list()) == run.slots * run.makespan_ps > 2**63


def test_frames_are_handed_over_without_a_copy(h200):
    records = wavesim.simulate(h200, KERNEL)._source.records
    frame = records.ctas()

    def address(column: str) -> int:
        return pl.DataFrame(frame)[column].to_numpy(allow_copy=False).ctypes.data

    for column in frames.CTAS:
        assert address(column) == address(column)
