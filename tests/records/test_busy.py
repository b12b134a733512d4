"""Busy time, split by what CTAs did."""

import polars as pl
import pytest

import wavesim
from wavesim import (
    Access,
    Chain,
    Duration,
    GridSync,
    Kernel,
    Launch,
    Persistent,
    Program,
    Tiles,
    Warps,
)
from wavesim.warps import Arithmetic, Barrier, Load, Loop, Shared

WORKS = {
    "unknown": Duration.constant(ns=3_000),
    "memory": Access.stream(65_536),
    "issue": Warps([Loop(50, [Arithmetic(64, chains=4)])]),
    "sync": Warps([Loop(50, [Shared("store"), Barrier(), Shared("load")])]),
}


def busy_ps(run: wavesim.Run) -> int:
    return int(run.ledger.row(by_predicate=pl.col("account") == "busy", named=True)["time_ps"])


@pytest.mark.parametrize("kind", WORKS)
def test_work_of_one_sort_is_busy_with_that_most_of_all(kind):
    run = wavesim.simulate("h200", Kernel(1_056, 512, work=WORKS[kind]))
    times = dict(run.busy.select("kind", "time_ps").iter_rows())
    assert max(times, key=lambda name: times[name]) == kind
    assert sum(times.values()) == busy_ps(run)


def test_parts_add_up_to_the_picosecond_over_kernels_of_all_sorts():
    run = wavesim.simulate(
        "h200", Program([Kernel(777, 256, work=work) for work in WORKS.values()])
    )
    assert sum(run.busy["time_ps"]) == busy_ps(run)
    assert (run.busy["time_ps"] > 0).all()
    assert run.busy["share"].sum() == pytest.approx(busy_ps(run) / run.slots / run.makespan_ps)


def test_a_run_that_is_never_busy_has_no_parts():
    run = wavesim.simulate("h200", Program([wavesim.Copy(duration_ns=100)]))
    assert run.busy["time_ps"].to_list() == [0, 0, 0, 0]


def test_a_product_is_at_issue_for_as_long_as_its_tensor_cores_work():
    # One CTA an SM, 100 steps of 1,024 cycles each: 2 x 128 x 128 x 64 operations at 4,096 a cycle
    # take 512; twice the element, twice the time.
    work = Tiles(128 * 132, 128, 6_400, element_bytes=4)
    run = wavesim.simulate("h200", Kernel(132, 256, shared_memory=200_000, work=work))
    issue = dict(run.busy.select("kind", "time_ps").iter_rows())["issue"]
    per_step = 2 * 128 * 128 * 64 * 2 / run.device.limits.tensor_flops_per_cycle
    cycles = 132 * 100 * per_step
    assert issue == pytest.approx(cycles / run.device.clock.sm_mhz * 1e6, rel=1e-6)


@pytest.mark.parametrize(
    ("limit", "kernel"),
    [
        ("DRAM bandwidth", Kernel(8_000, 256, work=Access.stream(65_536))),
        ("L2 bandwidth", Kernel(1_056, 256, work=Access.reuse(16_384, 1_056, passes=16))),
        ("memory latency", Kernel(2_112, 32, work=Access.chase(2**24, 200))),
        ("issue slots", Kernel(1_056, 256, work=Warps([Loop(50, [Arithmetic(64, 4)])]))),
        ("arithmetic latency", Kernel(1_056, 32, work=Warps([Loop(50, [Arithmetic(64)])]))),
        ("barriers", Kernel(1_056, 512, work=WORKS["sync"])),
        ("the cost of grid barriers", Kernel(264, work=GridSync(10, Duration.constant(ns=1_000)))),
        (
            "uneven work between grid barriers",
            Kernel(264, work=GridSync(10, Duration.uniform(1_000, 50_000))),
        ),
        (
            "the cost of grid barriers",
            Kernel(264, work=GridSync(10, Duration.per_cta(ns=[1_000] * 264))),
        ),
        (
            "the cost of counters",
            Kernel(264, work=Persistent(50_000, Duration.constant(ns=99), "atomic")),
        ),
        (
            "the times that it was told",
            Kernel(264, work=Persistent(5_000, Duration.constant(ns=9_999), "atomic")),
        ),
        (
            "the cost of flags",
            Kernel(264, work=Chain(Duration.constant(ns=100), Duration.constant(ns=50))),
        ),
        (
            "waiting for other CTAs",
            Kernel(264, work=Chain(Duration.constant(ns=100), Duration.constant(ns=9_000))),
        ),
    ],
)
def test_the_diagnosis_tells_what_limits_busy_ctas(limit, kernel):
    (busy,) = [f for f in wavesim.simulate("h200", kernel).diagnose() if f.account == "busy"]
    assert busy.title == f"busy: CTAs run, limited by {limit}"


@pytest.mark.parametrize(
    ("account", "kernel"),
    [
        ("fill", Kernel(40_000, 32, work=Duration.constant(ns=100))),
        ("tail", Kernel(4_225, 32, work=Duration.constant(ns=50_000))),
        ("launch", Program([Kernel(1, 32, work=Duration.constant(ns=100))] * 10)),
    ],
)
def test_limits_outside_the_sms_are_told_apart_from_it(account, kernel):
    diagnosis = wavesim.simulate("h200", kernel).diagnose()
    assert max(diagnosis, key=lambda finding: finding.time_ns).account == account
    assert all(finding.account != "busy" for finding in diagnosis)


def test_the_figures_of_a_memory_limit_are_those_of_the_frames():
    run = wavesim.simulate("h200", Kernel(8_000, 256, work=Access.stream(65_536)))
    (busy,) = [f for f in run.diagnose() if f.account == "busy"]
    ns, moved = run.kernels["duration_ns"][0], run.l2["dram_read_bytes"][0]
    assert f"{moved / ns:,.0f} GB/s to and from DRAM" in busy.text
    # With DRAM twice as fast the fabric would be next, which carries half of what is read.
    least_ns = moved / 2 / wavesim.device("h200").l2.fabric_bandwidth_gb_s
    assert 0.7 * (run.makespan_ns - least_ns) < busy.gain_ns < run.makespan_ns - least_ns


def test_loads_of_warp_programs_wait_for_memory():
    work = Warps([Loop(40, [Load(footprint_bytes=2**30), Arithmetic(4)])])
    run = wavesim.simulate("h200", Kernel(132, 128, work=work))
    times = dict(run.busy.select("kind", "time_ps").iter_rows())
    assert times["memory"] > 0.8 * busy_ps(run)


@pytest.mark.parametrize(
    "work",
    [
        GridSync(10, Duration.constant(ns=1_000)),
        Persistent(2_640, Duration.constant(ns=1_000), "atomic"),
        Chain(Duration.constant(ns=4_000), Duration.constant(ns=6_000), needs=100),
    ],
    ids=["grid barriers", "a counter", "flags"],
)
def test_what_ctas_wait_for_each_other_is_sync_and_the_rest_is_their_work(work):
    times = [
        dict(wavesim.simulate("h200", Kernel(264, 256, work=one)).busy.rows_by_key("kind"))
        for one in (work, Duration.constant(ns=10_000))
    ]
    (synced, plain) = ({kind: row[0][0] for kind, row in of.items()} for of in times)
    assert synced["sync"] > 0.1 * synced["unknown"]
    assert (plain["sync"], synced["issue"], synced["memory"]) == (0, 0, 0)
    assert synced["unknown"] == pytest.approx(plain["unknown"], rel=1e-9)


def test_a_dependent_launch_that_waits_for_the_kernel_ahead_is_at_sync():
    ahead = Kernel(100, 256, work=Duration.constant(ns=9_000))
    behind = Launch(Kernel(100, 256, work=Duration.constant(ns=1_000)), dependent=True)
    run = wavesim.simulate("h200", Program([Launch(ahead, trigger=True), behind]))
    waited = run.kernels["sync_ns"].to_list()
    assert waited[0] == 0
    second = run.ctas.filter(kernel=1)
    held = float((second["end_ns"] - second["start_ns"]).sum()) - 100 * 1_000
    assert waited[1] == pytest.approx(held, rel=0.05)
