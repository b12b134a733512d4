"""Kernels beside and behind each other: tails, priorities, dependent launches, loops."""

import polars as pl
import pytest

import wavesim
from analytic.machines import one_an_sm, without_overhead
from wavesim import Duration, Graph, GridSync, Kernel, Launch, Program, Stream

CTA_NS = 10_000.0


@pytest.mark.parametrize("dispatcher", ["hardware", "ideal"])
def test_a_kernel_that_fills_every_slot_lets_another_stream_in_with_its_tail(h200, dispatcher):
    # PyTorch issues 48279 and 59692: two streams, no overlap but the tail.
    kernel = one_an_sm(h200, 198, Duration.constant(ns=CTA_NS))
    run = wavesim.simulate(
        h200, Program([Launch(kernel), Launch(kernel, 1)]), dispatcher=dispatcher
    )
    first, second = run.kernels.rows(named=True)
    assert second["ready_ns"] < first["end_ns"] - 1.5 * CTA_NS
    assert first["placed_ns"] <= second["start_ns"] < first["end_ns"]
    # It takes the 66 SMs that the first kernel's second wave leaves free.
    early = run.ctas.filter((pl.col("kernel") == 1) & (pl.col("start_ns") < first["end_ns"]))
    assert early.height == 66


def test_without_overhead_the_second_kernel_starts_the_moment_the_first_has_no_cta_left():
    device = without_overhead("h200")
    kernel = one_an_sm(device, 198, Duration.constant(ns=CTA_NS))
    program = Program([Launch(kernel), Launch(kernel, 1)])
    run = wavesim.simulate(device, program, dispatcher="ideal")
    assert run.kernels["start_ns"].to_list() == [0, CTA_NS]
    assert run.makespan_ns == 3 * CTA_NS


def prioritized(priority: int) -> wavesim.Run:
    """A long kernel, then a short one in a stream of this priority while the first runs."""
    device = wavesim.device("h200")
    long = one_an_sm(device, 528, Duration.constant(ns=CTA_NS))
    short = one_an_sm(device, 66, Duration.constant(ns=1_000))
    program = Program([Launch(long), Launch(short, 1)], {1: Stream(priority=priority)})
    return wavesim.simulate(device, program)


def test_priorities_outside_the_devices_range_are_those_at_its_ends(h200):
    # DALI issue 4085.
    greatest = h200.launch.greatest_priority
    assert prioritized(-100).digest == prioritized(greatest).digest
    assert prioritized(100).digest == prioritized(0).digest
    assert prioritized(0).digest != prioritized(-1).digest


def test_a_higher_priority_takes_the_next_slots_and_stops_no_resident_cta():
    # reef issue 4; measured on the H200: after one CTA's time, instead of behind all waves.
    equal, urgent = prioritized(0), prioritized(-1)
    for run in (equal, urgent):
        lengths = run.ctas.filter(pl.col("kernel") == 0).select(
            ns=pl.col("end_ns") - pl.col("start_ns")
        )
        assert lengths["ns"].max() - CTA_NS < 100
        assert lengths["ns"].min() >= CTA_NS
    wait = {run: run.kernels["start_ns"][1] - run.kernels["ready_ns"][1] for run in (equal, urgent)}
    assert wait[urgent] < CTA_NS + 1_000
    assert wait[equal] > 2 * CTA_NS


@pytest.mark.parametrize("dispatcher", ["hardware", "ideal"])
def test_a_dependent_launch_overlaps_only_what_triggers_it(h200, dispatcher):
    # llama.cpp PR 22522: without the trigger call, nothing overlaps.
    kernel = Kernel(132, work=Duration.constant(ns=20_000))

    def launched(trigger: bool) -> list[dict[str, float]]:
        items = [Launch(kernel, trigger=trigger), Launch(kernel, dependent=True)]
        run = wavesim.simulate(h200, Program(items), dispatcher=dispatcher)
        return run.kernels.rows(named=True)

    first, second = launched(trigger=False)
    assert second["start_ns"] >= first["end_ns"]
    first, second = launched(trigger=True)
    assert first["placed_ns"] <= second["start_ns"] < first["end_ns"]
    # Its work waits all the same.
    assert second["end_ns"] >= first["end_ns"] + 20_000


def test_loops_of_tiny_kernels_cost_least_in_a_graph_and_most_with_a_grid_barrier():
    # gunrock issue 438, GV100, full grids: 5.2 us by graph, 5.5 by stream, 18.8 by grid barrier.
    turns = 100
    v100 = wavesim.device("v100-sxm2")
    grid = v100.sms * wavesim.occupancy(v100, block=64).ctas_per_sm
    empty = Kernel(grid, 64, work=Duration.constant(ns=0))
    barrier = empty.edited(cooperative=True, work=GridSync(turns, Duration.constant(ns=0)))
    programs = {
        "graph": Program([Graph([Launch(empty)] * turns)]),
        "stream": Program([Launch(empty)] * turns),
        "barrier": barrier,
    }
    us = {
        name: wavesim.simulate(v100, program, detail="kernels").makespan_ns / turns / 1e3
        for name, program in programs.items()
    }
    assert 0.5 < us["graph"] < us["stream"] < us["barrier"] < 20
    assert us["stream"] < 6


@pytest.mark.parametrize(("name", "offered"), [("h200", True), ("a100-sxm4-80", False)])
def test_dependent_launches_are_offered_where_the_device_has_them(name, offered):
    chain = Program([Launch(Kernel(132, work=Duration.constant(ns=5_000)))] * 20)
    assert ("dependent" in str(wavesim.simulate(name, chain).diagnose())) == offered
