"""What warps did over time: windows that add up to the launch, and what they show."""

import polars as pl
import pytest

import wavesim
from wavesim import Duration, Kernel, Launch, Program, Warps
from wavesim.errors import InvalidInput
from wavesim.frames import WARPS_WINDOWS
from wavesim.warps import Arithmetic, Barrier, Load, Loop, Shared

WORK = Warps(
    [Loop(60, [Load(footprint_bytes=2**24), Shared("store"), Barrier(), Arithmetic(40)])],
    startup_cycles=135,
    finish_cycles=20,
)


def recorded(program, **fields):
    return wavesim.simulate("h200", program, detail="memory", **fields)


@pytest.mark.parametrize("issue", ["rates", "exact"])
def test_windows_add_up_to_the_launches_exactly(issue):
    first = Kernel(300, 256, work=WORK)
    second = Kernel(40, 64, work=Warps([Loop(200, [Arithmetic(64, chains=4)])]))
    run = recorded(Program([Launch(first), Launch(second), Launch(first)]), issue=issue)
    windows = run.warps_windows
    assert dict(windows.schema) == dict(WARPS_WINDOWS)
    sums = windows.group_by("kernel", "state").agg(pl.col("warp_cycles").sum())
    whole = run.warps.select("kernel", "state", "warp_cycles")
    assert sums.sort("kernel", "state").equals(whole.sort("kernel", "state"))


def test_windows_lie_in_their_launch_and_are_equally_long():
    run = recorded(Program([Launch(Kernel(300, 256, work=WORK))] * 2))
    widths = (run.warps_windows["end_ns"] - run.warps_windows["start_ns"]).unique()
    assert len(widths) == 1
    times = run.warps_windows.join(
        run.kernels.select("kernel", first="start_ns", last="end_ns"), on="kernel"
    )
    assert (times["end_ns"] > times["first"]).all()
    assert (times["start_ns"] < times["last"]).all()
    # The second launch comes behind the first one.
    assert times.filter(kernel=0)["start_ns"].max() < times.filter(kernel=1)["start_ns"].min()


def test_every_window_has_every_state_from_the_first_to_the_last_of_its_launch():
    quiet = Loop(3, [Arithmetic(4, latency_cycles=2_000)])
    run = recorded(
        Program([Launch(Kernel(300, 256, work=WORK)), Kernel(1, 32, work=Warps([quiet]))])
    )
    windows = run.warps_windows
    assert windows["start_ns"].is_sorted()
    for (_, _), states in windows.group_by("kernel", "start_ns", maintain_order=True):
        assert states["state"].to_list() == run.warps.filter(kernel=0)["state"].to_list()
    for (_,), own in windows.group_by("kernel"):
        starts = own["start_ns"].unique().sort()
        assert (starts.diff().drop_nulls() == own["end_ns"][0] - own["start_ns"][0]).all()
        ends = own.filter(pl.col("start_ns").is_in([starts[0], starts[-1]]))
        assert ends.group_by("start_ns").agg(pl.col("warp_cycles").sum())["warp_cycles"].min() > 0


def test_warps_that_have_ended_are_in_no_state():
    # 250 dependent instructions of 4 cycles; behind them the CTA takes another 5,000.
    run = recorded(Kernel(1, 256, work=Warps([Arithmetic(250)], finish_cycles=5_000)))
    taken_ns = run.ctas["end_ns"][0] - run.ctas["start_ns"][0]
    assert taken_ns * run.device.clock.sm_mhz / 1e3 > 6_000
    assert run.warps["warp_cycles"].sum() == pytest.approx(8 * 250 * 4, rel=0.01)


def test_a_program_that_loads_first_and_then_computes_shows_it_in_this_order():
    loads, then = Loop(60, [Load(footprint_bytes=2**24)]), Loop(400, [Arithmetic(64)])
    run = recorded(Kernel(132, 128, work=Warps([loads, then])))
    middle = (run.warps_windows["warp_cycles"] * run.warps_windows["start_ns"]).alias("middle")
    by_state = (
        run.warps_windows.with_columns(middle)
        .group_by("state")
        .agg(pl.col("middle").sum() / pl.col("warp_cycles").sum())
    )
    at = dict(by_state.iter_rows())
    assert at["long_scoreboard"] < at["wait"] / 2


def test_windows_are_asked_for_before_the_run_and_kept_with_it(tmp_path):
    kernel = Kernel(132, 128, work=WORK)
    with pytest.raises(InvalidInput, match='simulate with detail="memory"'):
        _ = wavesim.simulate("h200", kernel).warps_windows
    run = recorded(kernel)
    run.save(tmp_path / "run")
    assert wavesim.load(tmp_path / "run").warps_windows.equals(run.warps_windows)
    assert run.digest == wavesim.simulate("h200", kernel).digest
    assert run.warps.equals(wavesim.simulate("h200", kernel).warps)
    assert recorded(Kernel(1, work=Duration.constant(ns=1))).warps_windows.is_empty()
