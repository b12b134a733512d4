"""The changes that a diagnosis tries: each is what it says, and is left out where it can't help."""

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
from wavesim.changes.change import WORTH_SIMULATING
from wavesim.changes.of_device import (
    cheaper_sync,
    faster_dram,
    faster_l2,
    faster_tensor_cores,
    ideal_dispatcher,
    more_lanes,
    nearer_memory,
)
from wavesim.changes.of_program import (
    dependent_launches,
    even_rounds,
    no_clusters,
    no_order,
    one_graph,
    one_more_resident,
    persistent,
    whole_waves,
)
from wavesim.durations import Constant
from wavesim.streaming import Array, Streaming
from wavesim.warps import Arithmetic, Load, Loop


def kernel(grid: int = 264, ns: float = 5_000.0, **fields: Any) -> Kernel:
    return Kernel(grid=grid, work=Duration.constant(ns=ns), **fields)


# 200 kB of shared memory a CTA: one CTA an SM.
ALONE = 200_000


def run_of(*items: Any) -> wavesim.Run:
    return wavesim.simulate("h200", Program(items), detail="kernels")


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
        assert abs(gain_ns) < WORTH_SIMULATING * run.makespan_ns


def test_the_device_is_not_changed_for_launches_that_hardly_last() -> None:
    product = Kernel(1, 128, shared_memory=100_000, work=Tiles(128, 128, 64))
    long = Kernel(132, work=Duration.constant(ns=1_000_000))
    alone, beside = run_of(product), run_of(long, product)
    for change in (faster_tensor_cores, nearer_memory):
        assert change(alone) is not None
        assert change(beside) is None
        faster = change(run_of(product, product))
        assert faster is not None
        gain_ns = beside.makespan_ns - run_on(faster.device, beside.program).makespan_ns
        assert gain_ns < WORTH_SIMULATING * beside.makespan_ns


def run_on(device: wavesim.Device | None, program: Program) -> wavesim.Run:
    assert device is not None
    return wavesim.simulate(device, program, detail="kernels")


def test_more_lanes_are_only_tried_where_there_is_something_to_do_on_them() -> None:
    def copied(operations: float) -> wavesim.Run:
        work = Streaming(2**20, [Array(4, 0)], [Array(4, 1)], operations=operations)
        return run_of(Kernel(512, work=work))

    assert more_lanes(copied(1)) is not None
    run = copied(0)
    assert more_lanes(run) is None
    lanes = {"limits.fp32_lanes": 2 * run.device.limits.fp32_lanes}
    assert run_on(run.device.edited(lanes), run.program).makespan_ns == run.makespan_ns


def test_what_ctas_wait_at_is_named_in_one_list() -> None:
    one = Duration.constant(ns=1_000)
    works = (Chain(one, one), GridSync(1, one), Persistent(9, one, "atomic"))
    change = cheaper_sync(run_of(*(Kernel(9, work=work) for work in works)))
    assert change is not None
    assert change.words == "grid barriers, counters and flags that cost half as much"
    assert cheaper_sync(run_of(kernel(9))) is None


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


def test_whole_waves_are_not_promised_to_work_that_shares_the_machine() -> None:
    for work in (Access.stream(2**16), Tiles(2_048, 2_048, 512), Warps([Loop(9, [Arithmetic(9)])])):
        one = Kernel(133, 256, shared_memory=ALONE, work=work)
        assert whole_waves(wavesim.simulate("h200", one)) is None
