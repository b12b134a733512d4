"""The diagnosis: each figure is another simulation, and each change is what it says."""

import re
import sys
from typing import Any

import polars as pl
import pytest

import wavesim
from wavesim import (
    Access,
    Duration,
    Graph,
    Kernel,
    Launch,
    Persistent,
    Program,
    Tiles,
)
from wavesim import diagnose as diagnosing
from wavesim.changes import CHANGES
from wavesim.changes.of_program import (
    one_counter,
    persistent,
    whole_carve_out,
)
from wavesim.diagnose import diagnose
from wavesim.frames import ACCOUNTS, MEANINGS
from wavesim.streaming import Array, Streaming


def kernel(grid: int = 264, ns: float = 5_000.0, **fields: Any) -> Kernel:
    return Kernel(grid=grid, work=Duration.constant(ns=ns), **fields)


def finding(run: wavesim.Run, account: str) -> wavesim.Finding:
    (found,) = [found for found in diagnose(run) if found.account == account]
    return found


# 200 kB of shared memory a CTA: one CTA an SM.
ALONE = 200_000


def test_a_last_wave_of_one_cta_gives_back_most_of_a_wave() -> None:
    run = wavesim.simulate("h200", kernel(133, ns=100_000, shared_memory=ALONE))
    found = finding(run, "tail")
    assert found.gain_ns is not None
    gain_ns = 200_000 - 2 * 100_000 * 133 / 264
    assert found.gain_ns == pytest.approx(gain_ns, rel=0.01)
    assert "whole waves" in found.change
    assert found.text.count("%") >= 2


def test_a_grid_that_does_not_fill_the_machine_is_told_as_such_and_not_as_a_tail() -> None:
    run = wavesim.simulate("h200", kernel(64, ns=20_000))
    found = finding(run, "tail")
    assert found.title.startswith("tail: grids with fewer CTAs than the machine has slots")
    assert "64 CTAs, 0.0606 waves; none of them on at least 68 of 132 SMs" in found.text
    filled = wavesim.simulate("h200", kernel(132 * 8, ns=20_000 * 64 / (132 * 8)))
    assert "as there are slots" in found.change
    assert found.gain_ns == pytest.approx(run.makespan_ns - filled.makespan_ns, rel=0.01)
    assert "SMs have room for more" in finding(run_of(kernel(133)), "tail").text


def test_a_last_wave_is_told_as_a_tail() -> None:
    found = finding(run_of(kernel(3 * 132, ns=20_000, shared_memory=100_000)), "tail")
    assert found.title == f"tail: {MEANINGS['tail']}"
    assert "1.5 waves" in found.text


def test_small_grids_that_wait_for_each_other_are_told_as_such() -> None:
    title = finding(run_of(*[kernel(4, ns=50_000)] * 3), "dependency").title
    assert title == f"dependency: {diagnosing.UNFILLED['dependency']}"


def test_a_long_cta_of_a_grid_that_fills_the_machine_is_a_tail_although_it_fits_at_once() -> None:
    times = [1_000.0] * (132 * 2 - 1) + [50_000.0]
    work = Duration.per_cta(times)
    found = finding(run_of(Kernel(132 * 2, shared_memory=100_000, work=work)), "tail")
    assert found.title == f"tail: {MEANINGS['tail']}"


def test_what_a_change_gives_back_is_another_simulation() -> None:
    run = wavesim.simulate("h200", kernel(200_000, ns=300), detail="kernels")
    found = finding(run, "starved")
    ideal = wavesim.simulate("h200", run.program, detail="kernels", dispatcher="ideal")
    change = persistent(run)
    assert change is not None
    other = wavesim.simulate("h200", change.program, detail="kernels")
    best = min(ideal.makespan_ns, other.makespan_ns)
    assert found.gain_ns == run.makespan_ns - best
    assert found.share > 0.1


def test_what_could_give_back_two_accounts_is_told_once_with_the_larger() -> None:
    run = wavesim.simulate("h200", kernel(5_000, ns=2_000), detail="kernels")
    shares = dict(run.ledger.select("account", "share").iter_rows())
    assert shares["starved"] > shares["fill"] > diagnosing.WORTH_SIMULATING
    starved, fill = finding(run, "starved"), finding(run, "fill")
    assert "With a dispatcher that costs nothing it takes" in starved.text
    assert fill.text.endswith(
        "What a dispatcher that costs nothing would give back is told of starved."
    )
    assert (fill.gain_ns, fill.change) == (None, "")


def test_launch_gaps_are_closed_by_a_graph() -> None:
    run = wavesim.simulate("h200", Program([kernel(ns=1_000) for _ in range(30)]))
    found = finding(run, "launch")
    graph = wavesim.simulate("h200", Program([Graph([kernel(ns=1_000) for _ in range(30)])]))
    assert found.gain_ns is not None
    assert found.gain_ns >= run.makespan_ns - graph.makespan_ns > 0
    assert "Nothing ran in 29 gaps" in found.text


def test_one_kernel_has_no_launch_gap_to_close() -> None:
    found = finding(wavesim.simulate("h200", kernel()), "launch")
    assert (found.gain_ns, found.change) == (None, "")


def test_kernels_that_wait_for_each_other_gain_by_streams() -> None:
    small = kernel(4, ns=50_000)
    run = wavesim.simulate("h200", Program([small, small, small]))
    found = finding(run, "dependency")
    assert found.gain_ns is not None
    assert found.gain_ns > 0.5 * run.makespan_ns
    assert "no kernel needs another's results" in found.text


def test_the_times_of_all_accounts_are_the_makespan() -> None:
    run = wavesim.simulate("h200", Program([kernel(), kernel(500), kernel(3)]))
    busy = run.ledger.row(by_predicate=is_account("busy"), named=True)["share"]
    total = sum(found.time_ns for found in diagnose(run)) + busy * run.makespan_ns
    assert total == pytest.approx(run.makespan_ns)


def is_account(name: str) -> pl.Expr:
    return pl.col("account") == name


def test_findings_are_ordered_by_time_and_can_be_had_as_a_frame() -> None:
    diagnosis = diagnose(wavesim.simulate("h200", Program([kernel(), kernel(500), kernel(3)])))
    times = [found.time_ns for found in diagnosis]
    assert times == sorted(times, reverse=True)
    frame = diagnosis.frame()
    assert frame["account"].to_list() == [found.account for found in diagnosis]
    assert frame["gain_ns"].to_list() == [found.gain_ns for found in diagnosis]
    assert diagnosis[0] in diagnosis.large
    assert len(diagnosis[:2]) == 2


def test_nothing_is_simulated_for_accounts_under_a_per_cent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = wavesim.simulate("h200", kernel(132 * 8 * 4, ns=10_000_000), detail="kernels")
    assert run.ledger.filter(is_account("busy"))["share"].item() > 0.99

    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(diagnosing, "simulate", never)
    diagnosis = diagnose(run)
    assert diagnosis.large == ()
    assert diagnosis.small_text.startswith("Under 1%: ")
    assert str(diagnosis) == diagnosis.small_text


def test_what_helps_nothing_is_told_as_such_and_not_as_a_change_to_make() -> None:
    # What a task's round trip to the counter costs is more than its fair share gives back.
    work = Persistent(3_169, Duration.uniform(400, 600))
    run = wavesim.simulate("h200", Kernel(132, work=work))
    change = one_counter(run)
    assert change is not None
    assert wavesim.simulate("h200", change.program).makespan_ns > run.makespan_ns
    found = finding(run, "tail")
    assert (found.gain_ns, found.change) == (None, "")
    assert found.text.endswith("With tasks taken from one atomic counter it takes no less.")


def test_every_gain_that_is_told_is_one() -> None:
    small = kernel(4, ns=50_000)
    runs = [run_of(kernel(133), kernel(7_000, ns=300), GRAPH), run_of(small, small)]
    runs += [run_of(Kernel(1_024, 128, shared_memory=ALONE, work=Tiles(4_096, 4_096, 1_024)))]
    for run in runs:
        for found in diagnose(run):
            assert (found.gain_ns is None) == (found.change == "")
            assert found.gain_ns is None or found.gain_ns > 0
            assert "%) more" not in found.text


GRAPH = Graph([kernel(4, ns=900), kernel(400, ns=900)])


def test_what_several_changes_need_of_the_ideal_dispatcher_is_simulated_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = wavesim.simulate("h200", kernel(2_500, ns=2_000), detail="kernels")
    asked: list[str] = []

    def counted(*values: Any, **options: Any) -> wavesim.Run:
        asked.append(options["dispatcher"])
        return wavesim.simulate(*values, **options)

    for module in ("wavesim.simulate", "wavesim.diagnose"):
        monkeypatch.setattr(sys.modules[module], "simulate", counted)
    told = str(diagnose(run))
    assert "With a dispatcher that costs nothing it takes" in told
    assert "in whole waves of equal CTAs it takes" in told
    assert asked.count("ideal") == 1


def test_a_change_that_the_device_refuses_is_left_out() -> None:
    run = wavesim.simulate("h200", kernel())
    refused = diagnosing.Change("x", Program([kernel(shared_memory=400_000)]), "hardware")
    assert diagnosing._outcome(run, lambda _: refused, "tail") is None


def test_the_run_is_diagnosed_the_same_way_twice() -> None:
    work = Duration.lognormal(4_000, 0.4)
    run = wavesim.simulate("h200", Kernel(grid=1_000, work=work), seed=11)
    assert diagnose(run) == diagnose(run)


def test_every_account_that_can_be_lost_to_has_changes() -> None:
    assert CHANGES.keys() == set(ACCOUNTS)


def run_of(*items: Any) -> wavesim.Run:
    return wavesim.simulate("h200", Program(items), detail="kernels")


def test_uneven_tasks_of_a_static_schedule_are_taken_from_one_counter() -> None:
    uneven = Kernel(132, work=Persistent(2_000, Duration.lognormal(mean_ns=5_000, cv=1)))
    run = run_of(uneven)
    change = one_counter(run)
    assert change is not None
    (launch,) = change.program.launches()
    assert launch.kernel == uneven.edited(work=uneven.work.edited(schedule="atomic"))
    tail = finding(run, "tail")
    assert tail.change == "tasks taken from one atomic counter"
    assert (tail.gain_ns or 0) > 0.2 * run.makespan_ns
    even = Persistent(2_000, Duration.constant(ns=5_000))
    assert one_counter(run_of(uneven.edited(work=even))) is None


def refused_by_carve_out() -> wavesim.Run:
    """Neither kernel uses shared memory, of which the system keeps 1 KB a CTA."""
    a, b = kernel(132, ns=80_000, block=512, name="a"), kernel(264, block=64, name="b")
    return run_of(Launch(a), Launch(b, stream=1))


def test_a_kernel_that_waits_for_a_carve_out_is_told_whose_and_what_a_larger_one_gives() -> None:
    run = refused_by_carve_out()
    found = finding(run, "blocked")
    assert "a sets the shared memory of its SMs to 16 KB; b wants 32 KB" in found.text
    assert "carve-out of 100%" in found.change
    alone = run_of(kernel(132, ns=80_000, block=512))
    assert found.gain_ns == pytest.approx(run.makespan_ns - alone.makespan_ns, rel=0.05)


def test_kernels_of_one_carve_out_are_not_told_of_it() -> None:
    a, b = kernel(132, ns=80_000, shared_memory=ALONE), kernel(132, shared_memory=ALONE)
    run = run_of(Launch(a), Launch(b, stream=1))
    assert whole_carve_out(run) is None
    assert diagnosing._refused_by_carve_out(run) == []


def test_no_change_takes_from_a_product_the_shared_memory_that_it_needs() -> None:
    product = Tiles(4_096, 4_096, 2_048, order=8)
    large = Kernel(1_024, 128, shared_memory=product.shared_memory, registers=200, work=product)
    program = Program([Launch(kernel(2_000, block=256)), Launch(large, stream=1)])
    diagnosis = diagnose(wavesim.simulate("h200", program))
    assert {found.account for found in diagnosis} >= {"busy", "blocked"}


def test_changes_apply_to_kernels_that_name_their_last_warp() -> None:
    run = wavesim.simulate("h200", kernel(20_000, ns=500.0, last_warp_cycles=200))
    assert finding(run, "starved").gain_ns is not None


def test_a_lone_pointer_chase_is_told_to_wait_for_memory() -> None:
    run = wavesim.simulate("h200", Kernel(1, 32, work=Access.chase(2**23, 2_000)))
    assert finding(run, "busy").title.endswith("limited by memory latency")
    assert finding(run, "busy").gain_ns == pytest.approx(run.makespan_ns / 2, rel=0.02)
    assert "memory latency" in str(diagnose(run))


@pytest.mark.parametrize("outputs", [(), (Array(4, 1),)], ids=["loads", "loads and stores"])
def test_no_more_of_the_dram_bandwidth_is_told_than_there_is(outputs: tuple[Array, ...]) -> None:
    copied = Streaming(2**25, [Array(4, 0)], outputs, thread_elements=8)
    run = wavesim.simulate("h200", Kernel(2**15, 128, work=copied))
    (share,) = re.findall(r"DRAM \((\d+)% of its interface", finding(run, "busy").text)
    assert 90 <= int(share) <= 100


def test_kernels_side_by_side_share_the_time_in_which_they_move_their_bytes() -> None:
    half = Kernel(528, 256, work=Access.stream(2**19))
    run = wavesim.simulate("h200", Program([Launch(half), Launch(half, stream=1)]))
    moved = float(run.l2["dram_read_bytes"].sum())
    start, end = run.kernels["start_ns"].min(), run.kernels["end_ns"].max()
    assert f"{moved / (end - start):,.0f} GB/s" in finding(run, "busy").text  # type: ignore[operator]
