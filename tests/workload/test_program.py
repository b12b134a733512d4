"""Programs: items, what may stand where, and the paths of their faults."""

import pytest

import wavesim
from wavesim import Copy, Duration, Graph, Kernel, Launch, Program, Record, Stream, Wait
from wavesim.errors import CannotLaunch, InvalidInput
from wavesim.warps import Arithmetic, Loop, Warps

KERNEL = Kernel(10, work=Duration.constant(ns=1_000))
TOO_LARGE = KERNEL.edited(shared_memory=300_000, name="huge")


def test_a_kernel_among_the_items_is_launched():
    assert Program([KERNEL]) == Program([Launch(KERNEL)])
    assert Program([Graph([KERNEL])]) == Program([Graph([Launch(KERNEL)])])


def test_launches_come_in_the_order_of_the_kernels_frame(h200):
    named = [KERNEL.edited(name=name) for name in "abc"]
    program = Program([named[0], Graph([Launch(named[1], 2), Copy(50.0)]), Launch(named[2], 1)])
    assert [launch.kernel.name for launch in program.launches()] == ["a", "b", "c"]
    assert wavesim.simulate(h200, program).kernels["name"].to_list() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Program([]), "items"),
        (lambda: Program([KERNEL, 5]), "items[1]"),
        (lambda: Program([Wait("e"), Record("e")]), "items[0].event"),
        (lambda: Program([Record("e"), Graph([Wait("e")])]), "items[1].items[0].event"),
        (lambda: Program([Graph([])]), "items[0].items"),
        (lambda: Launch(KERNEL, at_ns=-1.0), "at_ns"),
        (lambda: Launch(KERNEL, stream=-1), "stream"),
        (lambda: Copy(float("nan")), "duration_ns"),
        (lambda: Stream(priority=2**40), "priority"),
        (lambda: Program([KERNEL], streams={1: {"prio": 3}}), "streams[1].prio"),
    ],
)
def test_a_fault_in_a_program_is_told_with_its_path(make, field):
    with pytest.raises(InvalidInput) as refused:
        make()
    assert refused.value.field == field
    assert str(refused.value).startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Program(KERNEL), "items: must be a list (got Kernel("),
        (lambda: Graph(Launch(KERNEL)), "items: must be a list (got Launch("),
        (lambda: Loop(3, Arithmetic(1)), "body: must be a list (got Arithmetic("),
        (lambda: Warps(Arithmetic(1)), "programs: must be a list (got Arithmetic("),
        (lambda: Launch(5), "kernel: must be a spec (Kernel) or its fields (got 5)"),
        (lambda: Program([KERNEL], streams=[1]), "streams: must be a mapping (got [1])"),
        (lambda: Program([KERNEL], streams={"a": Stream()}), "must be a whole number (got 'a')"),
        (lambda: Graph([Graph([KERNEL])]), "wait or copy (got Graph("),
    ],
)
def test_what_stands_where_something_else_belongs_is_told_in_plain_words(make, text):
    with pytest.raises(InvalidInput) as caught:
        make()
    assert text in str(caught.value)


def test_a_graph_holds_no_graph():
    with pytest.raises(InvalidInput, match=r"items\[0\]"):
        Program([Graph([Graph([KERNEL])])])


def test_the_engines_faults_name_the_item_that_the_caller_wrote(h200):
    with pytest.raises(CannotLaunch) as refused:
        wavesim.simulate(h200, Program([KERNEL, Graph([KERNEL, TOO_LARGE])]))
    assert refused.value.field == "items[1].items[1].kernel.shared_memory"


def test_the_same_kernel_is_sent_to_the_engine_once():
    program = Program([Launch(KERNEL.edited(), stream=i % 3) for i in range(100)])
    assert program.wire.paths == ("items[0].kernel",)


def test_a_program_of_plain_data_is_the_same_program():
    program = Program(
        [
            Launch(KERNEL, 1, at_ns=5.0, trigger=True),
            Record("e", 1),
            Wait("e"),
            Copy(100.0, 2),
            Graph([Launch(KERNEL, dependent=True)], 1),
        ],
        streams={1: Stream(priority=-2)},
    )
    assert Program.model_validate(program.model_dump(mode="json")) == program
    assert repr(program) == "Program(5 items, 2 launches, 3 streams)"


@pytest.mark.parametrize("node", [Launch(KERNEL, at_ns=5.0), Copy(5.0, at_ns=5.0)])
def test_nodes_of_a_graph_have_no_time_of_their_own(node):
    with pytest.raises(InvalidInput, match=r"at_ns: nodes of a graph start when those before"):
        wavesim.simulate("h200", Program([Graph([node])]))


def test_a_truth_value_is_no_number_of_a_stream():
    with pytest.raises(InvalidInput, match=r"streams.*must be a whole number \(got True\)"):
        Program([KERNEL], streams={True: Stream(priority=-1)})
