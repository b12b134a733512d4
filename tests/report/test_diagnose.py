"""The diagnosis: each figure is another simulation, and each change is what it says."""

import re
import sys
from typing import Any

import polars as pl
import pytest

import wavesim
from wavesim import (
    Access,
    Chain,
    Copy,
    Duration,
    Graph,
    GridSync,
    Kernel,
    Launch,
    Persistent,
    Program,
    Record,
    Tiles,
    Wait,
    Warps,
)
from wavesim import diagnose as diagnosing
from wavesim.changes import CHANGES
from wavesim.changes.of_device import cheaper_sync, faster_dram, faster_l2, ideal_dispatcher
from wavesim.changes.of_program import (
    dependent_launches,
    even_rounds,
    no_clusters,
    no_order,
    one_counter,
    one_graph,
    one_more_resident,
    persistent,
    whole_carve_out,
    whole_waves,
)
from wavesim.diagnose import diagnose
from wavesim.durations import Constant
from wavesim.frames import ACCOUNTS
from wavesim.streaming import Array, Streaming
from wavesim.warps import Arithmetic, Load, Loop


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
    assert found.title == f"tail: {diagnosing.MEANINGS['tail']}"
    assert "1.5 waves" in found.text


def test_small_grids_that_wait_for_each_other_are_told_as_such() -> None:
    title = finding(run_of(*[kernel(4, ns=50_000)] * 3), "dependency").title
    assert title == f"dependency: {diagnosing.UNFILLED['dependency']}"


def test_a_long_cta_of_a_grid_that_fills_the_machine_is_a_tail_although_it_fits_at_once() -> None:
    times = [1_000.0] * (132 * 2 - 1) + [50_000.0]
    work = Duration.per_cta(times)
    found = finding(run_of(Kernel(132 * 2, shared_memory=100_000, work=work)), "tail")
    assert found.title == f"tail: {diagnosing.MEANINGS['tail']}"


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


def test_even_rounds_hold_the_same_work_in_as_many_rounds() -> None:
    work = GridSync(7, Duration.uniform(1_000, 9_000))
    run = wavesim.simulate("h200", Kernel(264, work=work))
    change = even_rounds(run)
    assert change is not None
    (launch,) = change.program.launches()
    assert isinstance(launch.kernel.work, GridSync)
    even = wavesim.simulate("h200", change.program)
    busy = [r.busy.filter(kind="unknown")["time_ps"].item() for r in (run, even)]
    assert busy[1] == pytest.approx(busy[0], rel=1e-3)
    assert even_rounds(even) is None


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


def test_an_ideal_dispatcher_cannot_be_made_ideal() -> None:
    assert ideal_dispatcher(wavesim.simulate("h200", kernel(), dispatcher="ideal")) is None


def test_one_graph_holds_all_items_and_no_times_of_the_host() -> None:
    k = kernel()
    change = one_graph(
        run_of(
            Launch(k, at_ns=9e5), Record("e"), Wait("e", 1), Copy(5.0, 1), Graph([Launch(k, 4)], 1)
        )
    )
    assert change is not None
    assert change.program.items == (
        Graph([Launch(k), Record("e"), Wait("e", 1), Copy(5.0, 1), Launch(k, 1)]),
    )


def test_a_graph_with_branches_is_not_taken_apart() -> None:
    branches = Graph([Launch(kernel(), 0), Launch(kernel(), 1)])
    assert one_graph(run_of(kernel(), branches)) is None


def test_dependent_launches_are_those_behind_a_kernel_of_their_stream() -> None:
    k = kernel()
    change = dependent_launches(run_of(k, Record("e"), k, k, Launch(k, 1), Graph([k, k])))
    assert change is not None
    graph = change.program.items[-1]
    launches = [item for item in change.program.items if isinstance(item, Launch)]
    assert [item.dependent for item in launches] == [False, False, True, False]
    assert isinstance(graph, Graph)
    assert [node.dependent for node in graph.items if isinstance(node, Launch)] == [False, True]
    assert dependent_launches(run_of(k)) is None


@pytest.mark.parametrize(
    ("block", "work", "mean_ns", "rel"),
    [
        (128, Duration.uniform(1_000, 9_000), 5_000, 0.05),
        # CTAs that take as long to be set up as they work.
        (1_024, Duration.constant(ns=60), 60, 1e-6),
    ],
)
def test_whole_waves_hold_the_same_work(
    block: int, work: Duration, mean_ns: float, rel: float
) -> None:
    change = whole_waves(run_of(Kernel(grid=300, block=block, shared_memory=ALONE, work=work)))
    assert change is not None
    (launch,) = change.program.launches()
    assert launch.kernel.ctas == 3 * 132
    assert isinstance(launch.kernel.work, Constant)
    assert launch.kernel.work.ns == pytest.approx(mean_ns * 300 / (3 * 132), rel=rel)


def test_stores_that_wait_for_their_port_are_no_reason_to_leave_out_a_faster_l2() -> None:
    # One SM's port takes 17 µs of it; L2 as a whole would take half a microsecond.
    store = Kernel(1, 1_024, work=Access.stream(2**21, write=True))
    rest = Kernel(132, work=Duration.constant(ns=43_000))
    run = wavesim.simulate("h200", Program([Launch(store), Launch(rest)]))
    change = faster_l2(run)
    assert change is not None
    faster = wavesim.simulate(change.device or run.device, change.program)
    assert faster.makespan_ns < 0.9 * run.makespan_ns


def test_whole_waves_hold_the_work_of_the_launches_that_ran() -> None:
    # Times are drawn by launch: those of the second one are not those of the kernel alone.
    uneven = Kernel(1_200, work=Duration.bimodal(low_ns=1_000, high_ns=400_000, high_share=0.002))
    first = Launch(Kernel(132, work=Duration.constant(ns=1_000)))
    run = wavesim.simulate("h200", Program([first, Launch(uneven), Launch(uneven)]), seed=2)
    ran = run.ctas.filter(pl.col("kernel") > 0)
    change = whole_waves(run)
    assert change is not None
    whole = list(change.program.launches())[1].kernel
    assert isinstance(whole.work, Constant)
    assert whole.work.ns is not None
    work_ns = whole.ctas * whole.work.ns
    ran_ns = float((ran["end_ns"] - ran["start_ns"]).sum()) / 2
    assert work_ns <= ran_ns  # which holds the set-up of 1,200 CTAs, of up to 84 ns
    assert work_ns == pytest.approx(ran_ns, abs=1_200 * 84)


def test_whole_waves_leave_persistent_and_cooperative_kernels_alone() -> None:
    tasks = Persistent(500, Duration.constant(ns=900))
    assert whole_waves(run_of(Kernel(grid=100, work=tasks))) is None
    assert whole_waves(run_of(kernel(100, cooperative=True))) is None


def test_a_persistent_kernel_has_a_cta_a_slot_and_a_task_a_cta() -> None:
    change = persistent(run_of(kernel(5_000, shared_memory=ALONE)))
    assert change is not None
    (launch,) = change.program.launches()
    assert launch.kernel.ctas == 132
    assert launch.kernel.work == Persistent(5_000, Duration.constant(ns=5_000.0))
    assert persistent(run_of(kernel(100))) is None


@pytest.mark.parametrize(
    ("grid", "work", "dram", "l2"),
    [
        (132, Access.stream(65_536), True, True),
        (132, Access.broadcast(2**18), False, True),
        (1, Access.chase(2**20, 4_000), False, False),
        # What these loads move is not counted.
        (1, Warps([Load(footprint_bytes=2**20)]), True, True),
    ],
)
def test_bandwidth_is_only_tried_where_moving_takes_time(
    grid: int, work: Any, dram: bool, l2: bool
) -> None:
    run = run_of(Kernel(grid, work=work))
    assert (faster_dram(run) is not None, faster_l2(run) is not None) == (dram, l2)
    if not dram:
        edits = {f"dram.{name}_gb_s": 1e6 for name in ("bandwidth", "reached")}
        faster = wavesim.simulate(run.device.edited(edits), run.program)
        gain_ns = run.makespan_ns - faster.makespan_ns
        assert abs(gain_ns) < diagnosing.WORTH_SIMULATING * run.makespan_ns


def test_what_ctas_wait_at_is_named_in_one_list() -> None:
    one = Duration.constant(ns=1_000)
    works = (Chain(one, one), GridSync(1, one), Persistent(9, one, "atomic"))
    change = cheaper_sync(run_of(*(Kernel(9, work=work) for work in works)))
    assert change is not None
    assert change.words == "grid barriers, counters and flags that cost half as much"
    assert cheaper_sync(run_of(kernel(9))) is None


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


@pytest.mark.parametrize(
    ("registers", "shared_memory"), [(128, 0), (32, 100_000), (200, 116_000), (255, 60_000)]
)
def test_one_more_cta_fits_and_no_more_is_cut_than_it_takes(
    registers: int, shared_memory: int
) -> None:
    before = kernel(registers=registers, shared_memory=shared_memory)
    change = one_more_resident(run_of(before))
    assert change is not None
    (launch,) = change.program.launches()
    after = launch.kernel

    def resident(registers: int, shared_memory: int) -> int:
        return wavesim.occupancy(
            "h200", block=256, registers=registers, shared_memory=shared_memory
        ).ctas_per_sm

    wanted = resident(registers, shared_memory) + 1
    assert resident(after.registers, after.shared_memory) >= wanted
    if after.registers < registers:
        assert resident(after.registers + 1, after.shared_memory) < wanted
    if after.shared_memory < shared_memory:
        assert resident(after.registers, after.shared_memory + 1) < wanted


def test_residency_held_by_threads_is_not_raised_by_registers() -> None:
    assert one_more_resident(run_of(kernel(block=1024, registers=16))) is None


def test_clusters_are_launched_as_single_ctas() -> None:
    change = no_clusters(run_of(kernel(cluster=4)))
    assert change is not None
    assert next(change.program.launches()).kernel.cluster == 1
    assert no_clusters(run_of(kernel())) is None


def test_without_order_every_kernel_has_a_stream_of_its_own_and_its_priority() -> None:
    k = kernel()
    program = Program(
        [Launch(k, 1), Record("e", 1), Wait("e", 2), Launch(k, 2), Graph([k, k], 1)],
        {1: wavesim.Stream(priority=-1)},
    )
    change = no_order(wavesim.simulate("h200", program))
    assert change is not None
    items = change.program.items
    graph = items[-1]
    assert isinstance(graph, Graph)
    assert len(items) == 3
    streams = [item.stream for item in (*items, *graph.items)]
    assert len(set(streams)) == 5
    priorities = [change.program.streams.get(item.stream) for item in items]
    assert [p and p.priority for p in priorities] == [-1, None, -1]
    assert no_order(run_of(k)) is None


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


def test_whole_waves_are_not_promised_to_work_that_shares_the_machine() -> None:
    for work in (Access.stream(2**16), Tiles(2_048, 2_048, 512), Warps([Loop(9, [Arithmetic(9)])])):
        one = Kernel(133, 256, shared_memory=ALONE, work=work)
        assert whole_waves(wavesim.simulate("h200", one)) is None


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
