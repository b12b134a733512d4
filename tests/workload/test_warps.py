"""Warp programs as a caller writes them: what is asked, what comes back, and what is refused."""

import numpy as np
import pytest

import wavesim
from wavesim import Duration, Kernel, Program, Warps
from wavesim.errors import InvalidInput
from wavesim.frames import WARPS
from wavesim.warps import (
    Arithmetic,
    Await,
    Barrier,
    Branch,
    Load,
    Loop,
    Poll,
    Shared,
    Store,
    Tensor,
)

ALL_SEGMENTS = [
    Arithmetic(8, 2, pipe="alu"),
    Tensor(4, 2),
    Shared("constant", wait=False),
    Load(2, latency_cycles=300, wait=False),
    Store(),
    Await(),
    Barrier(),
    Branch(),
    Poll(100),
    Loop(3, [Arithmetic(1)], unrolled=True),
]


def mean_ns(run):
    return (run.ctas["end_ns"] - run.ctas["start_ns"]).mean()


def test_a_program_of_every_segment_runs_in_both_modes():
    kernel = Kernel(20, 64, work=Warps([Loop(50, ALL_SEGMENTS)]))
    rates = wavesim.simulate("h200", kernel)
    exact = wavesim.simulate("h200", kernel, issue="exact")
    assert (rates.issue, exact.issue) == ("rates", "exact")
    assert mean_ns(rates) == pytest.approx(mean_ns(exact), rel=0.05)


def test_the_frame_of_warps_has_a_row_a_state_of_each_launch_with_programs():
    program = Warps([Loop(100, [Load(latency_cycles=400), Arithmetic(10), Barrier()])])
    kernel = Kernel(132, 128, work=program, name="loads")
    plain = Kernel(10, work=Duration.constant(ns=100))
    run = wavesim.simulate("h200", Program([plain, kernel]))
    assert dict(run.warps.schema) == dict(WARPS)
    assert run.warps["kernel"].unique().to_list() == [1]
    assert run.warps["name"].unique().to_list() == ["loads"]
    assert run.warps["share"].sum() == pytest.approx(1.0)
    shares = dict(run.warps.select("state", "share").iter_rows())
    # 400 of some 470 cycles a turn wait for the load.
    assert 0.8 < shares["long_scoreboard"] < 0.9
    kinds = dict(run.warps.select("state", "kind").iter_rows())
    assert (kinds["barrier"], kinds["long_scoreboard"], kinds["wait"]) == (
        "sync",
        "memory",
        "issue",
    )


def test_a_run_without_programs_has_an_empty_frame_of_warps():
    run = wavesim.simulate("h200", Kernel(10, work=Duration.constant(ns=100)))
    assert run.warps.height == 0
    assert dict(run.warps.schema) == dict(WARPS)


def test_the_frame_and_the_work_survive_saving(tmp_path):
    work = Warps([[Arithmetic(100)], [Arithmetic(200), Barrier()]], order=np.array([0, 1, 1, 0]))
    run = wavesim.simulate("h200", Kernel(4, work=work), issue="exact")
    run.save(tmp_path / "run")
    again = wavesim.load(tmp_path / "run")
    assert again.warps.equals(run.warps)
    assert again.program == run.program
    assert again.issue == "exact"


def test_ctas_take_programs_in_turn_or_as_the_order_says():
    short, long = [Arithmetic(100)], [Arithmetic(1_000)]

    def lengths(**fields):
        run = wavesim.simulate("h200", Kernel(4, 32, work=Warps([short, long], **fields)))
        ctas = run.ctas.sort("cta")
        return ((ctas["end_ns"] - ctas["start_ns"]) > 500).to_list()

    assert lengths() == [False, True, False, True]
    assert lengths(order=[1, 1, 0, 1]) == [True, True, False, True]


def test_ctas_wait_for_their_own_time_or_for_the_same():
    def lengths(cycles, **fields):
        work = Warps([Poll(cycles, since="start", **fields)])
        run = wavesim.simulate("h200", Kernel(4, 32, work=work))
        ctas = run.ctas.sort("cta")
        return (ctas["end_ns"] - ctas["start_ns"]) * 1.98

    asked = np.array([4_000, 1_000, 3_000, 2_000])
    assert lengths(asked).to_list() == pytest.approx(asked.tolist(), abs=80)
    assert lengths(2_500).to_list() == pytest.approx([2_500] * 4, abs=80)
    # A turn of 1,010 cycles: time is up in the third, and is noticed half a turn later.
    slow = lengths(2_500, body=[Arithmetic(250)])
    assert slow.to_list() == pytest.approx([4_015] * 4, abs=80)


def test_waits_survive_saving(tmp_path):
    work = Warps([Loop(2, [Poll([5.0, 7.0, 2.5])]), Poll(10, since="start")])
    run = wavesim.simulate("h200", Kernel(3, work=work))
    run.save(tmp_path / "run")
    again = wavesim.load(tmp_path / "run")
    assert again.program == run.program
    assert again.program.items[0].kernel.work == work
    assert wavesim.simulate("h200", again.program).digest == run.digest


def test_startup_and_finish_are_added():
    def length(**fields):
        return mean_ns(
            wavesim.simulate("h200", Kernel(1, 32, work=Warps([Arithmetic(9)], **fields)))
        )

    added = length(startup_cycles=198, finish_cycles=396) - length()
    assert added == pytest.approx(300, abs=1)


def test_more_data_than_l2_holds_makes_loads_slower():
    def length(footprint):
        work = Warps([Loop(50, [Load(footprint_bytes=footprint)])])
        return mean_ns(wavesim.simulate("h200", Kernel(1, 32, work=work)))

    near, far, dram = (length(size * 2**20) for size in (8, 45, 500))
    assert near < far < dram


def test_the_policy_of_the_device_decides_who_ends_first():
    # Two CTAs of 16 warps whose chains fill the schedulers: the older goes first, or both share.
    kernel = Kernel(2, 512, work=Warps([Loop(200, [Arithmetic(64)])]))
    sm = wavesim.device("h200").scaled(sms=1)

    def ratio(policy):
        run = wavesim.simulate(sm.edited({"issue.policy": policy}), kernel, issue="exact")
        lengths = (run.ctas["end_ns"] - run.ctas["start_ns"]).sort()
        return lengths[1] / lengths[0]

    assert ratio("greedy_oldest_cta") > 1.8
    assert ratio("loose_round_robin") < 1.1


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Arithmetic(0), "instructions"),
        (lambda: Arithmetic(1, chains=0), "chains"),
        (lambda: Arithmetic(1, latency_cycles=2_000_000), "latency_cycles"),
        (lambda: Arithmetic(1, pipe="vector"), "pipe"),
        (Load, "footprint_bytes"),
        (lambda: Load(footprint_bytes=1, latency_cycles=1), "footprint_bytes"),
        (lambda: Load(latency_cycles=float("nan")), "latency_cycles"),
        (lambda: Shared("load", ways=33), "ways"),
        (lambda: Loop(0, [Arithmetic(1)]), "count"),
        (lambda: Warps([Arithmetic(1)], startup_cycles=-1), "startup_cycles"),
        (lambda: Warps([Arithmetic(1)], order=[-2.0]), "order[0]"),
        (lambda: Kernel(4, work=Warps([Arithmetic(1)], order=[0, 0])), "work.order"),
        (lambda: Warps([]), "programs[0]"),
        (lambda: Warps([[Arithmetic(1)], []]), "programs[1]"),
        (lambda: Loop(5, []), "body"),
        (lambda: Poll(-1), "cycles"),
        (lambda: Poll(float("nan")), "cycles"),
        (lambda: Poll("soon"), "cycles"),
        (lambda: Poll(True), "cycles"),
        (lambda: Poll([5, -1]), "cycles[1]"),
        (lambda: Poll(5, since="launch"), "since"),
        (lambda: Poll(5, body=[]), "body"),
        (lambda: Poll(5, body=[Arithmetic(1), Barrier()]), "body[1]"),
        (lambda: Loop(2, [Poll([1, -1])]), "cycles[1]"),
        (lambda: Kernel(3, work=Warps([Poll([1, 2])])), "work.programs[0][0].cycles"),
        (
            lambda: Kernel(3, work=Warps([Loop(2, [Barrier(), Poll([1, 2])])])),
            "work.programs[0][0].body[1].cycles",
        ),
        (lambda: Warps([{"kind": "loop", "count": 5, "body": []}]), "programs[0][0].body"),
        (lambda: Program([Kernel(1, work=Warps([[Arithmetic(1)]] * 2))]), "work.programs"),
    ],
)
def test_what_cannot_be_is_refused_with_its_field(make, field):
    with pytest.raises(InvalidInput) as caught:
        make()
    assert (caught.value.field or "").endswith(field)
    assert str(caught.value).startswith(f"{caught.value.field}: ")


@pytest.mark.parametrize(
    ("cycles", "said"),
    [
        ("soon", "cycles: must be a number or a list of numbers (got 'soon')"),
        (True, "cycles: must be a number or a list of numbers (got True)"),
        ({"low": 1}, "cycles: must be a number or a list of numbers (got {'low': 1})"),
        ([5, "soon"], "cycles[1]: must be a number (got 'soon')"),
        ([5, -1], "cycles[1]: a duration is a number from 0 to 4.32e+15 (got -1)"),
        ([5, None], "cycles[1]: a duration is a number from 0 to 4.32e+15 (got null)"),
    ],
)
def test_what_is_no_time_of_a_spin_wait_is_told_with_its_entry_and_value(cycles, said):
    with pytest.raises(InvalidInput) as caught:
        Poll(cycles)
    assert str(caught.value) == said
    with pytest.raises(InvalidInput) as caught:
        Warps.model_validate(
            {
                "programs": [
                    [{"kind": "loop", "count": 2, "body": [{"kind": "poll", "cycles": cycles}]}]
                ]
            }
        )
    assert str(caught.value) == f"programs[0][0].body[0].{said}"


def test_faults_of_an_order_speak_of_programs():
    for number in (-2.0, 1e300):
        with pytest.raises(InvalidInput, match=r"^order\[1\]: a CTA's program is one of the list"):
            Warps([Arithmetic(1)], order=[0, number])


def test_faults_that_the_engine_finds_name_the_path_that_was_written():
    work = Warps([Arithmetic(1), Loop(3, [Await()])])
    with pytest.raises(InvalidInput, match=r"programs\[0\]\[1\]\.body: a loop issues at least one"):
        wavesim.simulate("h200", Kernel(1, work=work))
    work = Warps([[Arithmetic(1)], [Arithmetic(1)]], order=[2])
    with pytest.raises(InvalidInput, match=r"order\[0\]: a program is one of 0 to 1 \(got 2\)"):
        wavesim.simulate("h200", Kernel(1, work=work))


def test_loops_in_loops_without_end_are_refused():
    nested = Arithmetic(1)
    for _ in range(9):
        nested = Loop(2, [nested])
    with pytest.raises(InvalidInput, match="nested at most 8 deep"):
        Warps([nested])


def test_an_unknown_mode_is_refused():
    with pytest.raises(InvalidInput, match="issue: must be rates or exact"):
        wavesim.simulate("h200", Kernel(1, work=Warps([Arithmetic(1)])), issue="fast")


@pytest.mark.parametrize("mode", ["rates", "exact"])
@pytest.mark.parametrize("unrolled", [False, True])
def test_loops_are_nested_as_deep_as_may_be(mode, unrolled):
    body = [Arithmetic(1)]
    for _ in range(8):
        body = [Loop(1 + unrolled, body, unrolled=unrolled)]
    run = wavesim.simulate("h200", Kernel(grid=8, block=256, work=Warps(body)), issue=mode)
    issued = dict(run.warps.select("state", "warp_cycles").iter_rows())["selected"]
    assert issued >= 8 * 8 * (256 if unrolled else 1)


@pytest.mark.parametrize(
    ("fields", "got"),
    [
        ({}, "none of them"),
        ({"latency_cycles": 3.0, "footprint_bytes": 5}, "footprint_bytes and latency_cycles"),
    ],
)
def test_a_load_says_what_was_given_where_one_source_is_needed(fields, got):
    with pytest.raises(InvalidInput) as caught:
        Load(**fields)
    assert got in str(caught.value)
