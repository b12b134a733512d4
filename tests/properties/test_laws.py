"""What holds for every run, whatever the device, the program and the seed."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import wavesim
from properties.strategies import cases

SLACK_NS = 0.0005
"""Half a picosecond: times come as floating-point nanoseconds."""


def simulated(case) -> wavesim.Run:
    device, program, seed, dispatcher = case
    return wavesim.simulate(device, program, seed=seed, dispatcher=dispatcher)


@given(cases())
def test_every_cta_of_every_grid_runs_exactly_once(case):
    run = simulated(case)
    launches = list(run.program.launches())
    assert run.kernels["grid"].to_list() == [launch.kernel.ctas for launch in launches]
    for number, launch in enumerate(launches):
        ran = run.ctas.filter(pl.col("kernel") == number)["cta"].sort()
        assert ran.to_list() == list(range(launch.kernel.ctas))


@given(cases())
def test_nothing_runs_before_it_is_issued_and_ready_nor_after_the_end(case):
    run = simulated(case)
    kernels = run.kernels
    assert (kernels["issue_ns"] >= 0).all()
    assert (kernels["issue_ns"] <= kernels["ready_ns"]).all()
    assert (kernels["start_ns"] <= kernels["placed_ns"] + SLACK_NS).all() or run.ctas.is_empty()
    ctas = run.ctas.join(kernels.select("kernel", "ready_ns", "start_ns", "end_ns"), on="kernel")
    assert (ctas["start_ns"] >= ctas["ready_ns"]).all()
    assert (ctas["end_ns"] >= ctas["start_ns"]).all()
    assert (ctas["start_ns"] >= ctas["start_ns_right"]).all()
    assert (ctas["end_ns"] <= ctas["end_ns_right"]).all()
    assert (ctas["end_ns"] <= run.makespan_ns + SLACK_NS).all()
    for launch, (issue,) in zip(
        run.program.items, kernels.select("issue_ns").iter_rows(), strict=False
    ):
        if not isinstance(launch, wavesim.Launch):
            break
        assert launch.at_ns is None or issue >= launch.at_ns - SLACK_NS


@given(cases())
def test_no_two_ctas_share_a_slot_and_no_cta_is_outside_of_one(case):
    run = simulated(case)
    sms = run.device.sms
    assert run.slots % sms == 0
    assert (run.ctas["sm"] < sms).all()
    assert (run.ctas["slot"] < run.slots // sms).all()
    # A CTA without duration ends where it starts, so ties are told by the end.
    ordered = run.ctas.sort("sm", "slot", "start_ns", "end_ns")
    overlap = ordered.with_columns(
        before=pl.col("end_ns").shift(1).over("sm", "slot"),
    ).filter(pl.col("before") > pl.col("start_ns") + SLACK_NS)
    assert overlap.is_empty()


@given(cases())
def test_shares_lie_between_nothing_and_all(case):
    run = simulated(case)
    for column in ("utilization", "occupancy", "tail_share"):
        assert run.kernels[column].is_between(0, 1 + 1e-12).all(), column
    assert run.sms["utilization"].is_between(0, 1 + 1e-12).all()
    assert (run.kernels["launch_gap_ns"].drop_nulls() >= 0).all()
    assert (run.kernels["dispatch_ns"] >= 0).all()
    busy_ns = run.kernels["utilization"] * run.kernels["duration_ns"] * run.kernels["residency"]
    waited_ns = run.kernels["sync_ns"]
    assert ((waited_ns >= 0) & (waited_ns <= busy_ns * run.device.sms * (1 + 1e-9))).all()


@given(cases())
def test_an_sm_is_active_while_any_of_its_ctas_runs(case):
    run = simulated(case)
    before = pl.col("end_ns").cum_max().shift(1, fill_value=0.0).over("sm")
    alone = pl.col("end_ns") - pl.max_horizontal("start_ns", before)
    ran = run.ctas.sort("start_ns").select("sm", alone_ns=alone.clip(lower_bound=0.0))
    sums = ran.group_by("sm").agg(pl.col("alone_ns").sum(), pl.len())
    sms = run.sms.join(sums, on="sm", how="left").fill_null(0)
    off = (sms["active_ns"] - sms["alone_ns"]).abs()
    assert (off <= SLACK_NS * (1 + sms["len"])).all()


@given(cases())
def test_the_ledger_adds_up_to_slots_times_makespan_exactly(case):
    run = simulated(case)
    assert run.ledger["account"].to_list() == list(wavesim.frames.ACCOUNTS)
    assert (run.ledger["time_ps"] >= 0).all()
    assert sum(run.ledger["time_ps"].to_list()) == run.slots * run.makespan_ps
    assert run.makespan_ps == 0 or abs(run.ledger["share"].sum() - 1) < 1e-12


@given(cases())
def test_busy_time_is_the_time_of_the_ctas_in_every_frame(case):
    run = simulated(case)
    ran = (run.ctas["end_ns"] - run.ctas["start_ns"]).sum()
    close = 1e-9 * ran + SLACK_NS * run.ctas.height
    assert abs(run.sms["busy_ns"].sum() - ran) <= close
    assert run.sms["ctas"].sum() == run.ctas.height
    assert abs(run.ledger["time_ps"][0] / 1e3 - ran) <= close
    durations = run.kernels["duration_ns"] * run.kernels["residency"] * run.device.sms
    assert abs((run.kernels["utilization"] * durations).sum() - ran) <= close + 1e-9 * ran


@given(cases(), st.integers(1, 300))
def test_the_timeline_is_the_ledger_over_time(case, bins):
    run = simulated(case)
    timeline = run.timeline(bins)
    assert timeline.height == bins
    if run.makespan_ps == 0:
        return
    shares = timeline.select(wavesim.frames.ACCOUNTS)
    assert (shares.sum_horizontal() - 1).abs().max() < 1e-9
    means = shares.mean().row(0)
    for account, (mean, share) in enumerate(zip(means, run.ledger["share"], strict=True)):
        assert abs(mean - share) < 1e-6, wavesim.frames.ACCOUNTS[account]


@given(cases())
def test_what_is_recorded_changes_nothing_that_happens(case):
    device, program, seed, dispatcher = case
    run = simulated(case)
    fewer = wavesim.simulate(device, program, seed=seed, dispatcher=dispatcher, detail="kernels")
    assert fewer == run
    assert fewer.kernels.equals(run.kernels)
    assert fewer.sms.equals(run.sms)
    assert fewer.ledger.equals(run.ledger)
