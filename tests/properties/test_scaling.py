"""What happens to the times when machine or work are changed in a way whose effect is known."""

import random

from hypothesis import given
from hypothesis import strategies as st

import wavesim
from properties.strategies import DISPATCHERS, devices, kernels, spans
from wavesim import Duration, Kernel, Launch, Program


def without_overhead(device: wavesim.Device) -> wavesim.Device:
    """The device with a free dispatcher and free launches, so that nothing but work takes time."""
    times = [
        path
        for path in device.numbers()
        if path.split(".")[0] in ("dispatch", "launch", "sync")
        and path.endswith(("_cycles", "_ns"))
    ]
    return device.edited({path: 0.0 for path in times})


@given(
    devices().flatmap(lambda d: st.tuples(st.just(d), kernels(d, plain=True))), st.integers(0, 9)
)
def test_an_ideal_dispatcher_keeps_the_bounds_of_list_scheduling(case, seed):
    # Graham 1966: with m slots, total work W and longest CTA L, a list schedule that leaves no slot
    # idle while work waits takes at least max(L, W / m) and at most W / m + L.
    device, kernel = case
    run = wavesim.simulate(device, kernel, seed=seed, dispatcher="ideal")
    lengths = run.ctas["end_ns"] - run.ctas["start_ns"]
    slots, work, longest = run.slots, lengths.sum(), lengths.max()
    span = run.kernels["duration_ns"][0]
    assert span >= max(longest, work / slots) * (1 - 1e-9) - 0.01
    overhead = span - (work / slots + longest)
    assert overhead <= 1e-9 * span + 0.01


@given(
    devices().flatmap(lambda d: st.tuples(st.just(d), kernels(d, plain=True))), st.integers(0, 9)
)
def test_no_dispatcher_beats_the_work_over_the_slots(case, seed):
    device, kernel = case
    run = wavesim.simulate(device, kernel, seed=seed, dispatcher="hardware")
    lengths = run.ctas["end_ns"] - run.ctas["start_ns"]
    span = run.kernels["duration_ns"][0]
    assert span >= max(lengths.max(), lengths.sum() / run.slots) * (1 - 1e-9) - 0.01


@given(
    st.integers(1, 30),
    st.integers(1, 30),
    st.integers(1, 500),
    st.sampled_from([32, 256, 1024]),
    spans,
)
def test_more_sms_never_hurt_a_kernel_of_equal_ctas(sms, more, grid, block, ns):
    kernel = Kernel(grid, block, work=Duration.constant(ns=ns))
    h200 = wavesim.device("h200")
    few = wavesim.simulate(h200.scaled(sms=sms), kernel, dispatcher="ideal")
    many = wavesim.simulate(h200.scaled(sms=sms + more), kernel, dispatcher="ideal")
    assert many.makespan_ps <= few.makespan_ps


@given(
    devices().flatmap(lambda d: st.tuples(st.just(d), kernels(d))),
    st.sampled_from(DISPATCHERS),
    st.randoms(use_true_random=False),
)
def test_other_names_for_the_sms_of_a_gpc_change_no_time(case, dispatcher, chance: random.Random):
    device, kernel = case
    gpcs = []
    for gpc in device.topology.gpcs:
        names = [sm for group in gpc.groups for sm in group.sms]
        chance.shuffle(names)
        groups = []
        for group in gpc.groups:
            groups.append(group.model_dump() | {"sms": tuple(names[: len(group.sms)])})
            names = names[len(group.sms) :]
        gpcs.append(gpc.model_dump() | {"groups": tuple(groups)})
    renamed = device.edited({"topology.gpcs": tuple(gpcs)})
    one = wavesim.simulate(device, kernel, dispatcher=dispatcher)
    other = wavesim.simulate(renamed, kernel, dispatcher=dispatcher)
    assert one.makespan_ps == other.makespan_ps
    times = ["cta", "start_ns", "end_ns"]
    assert one.ctas.select(times).sort("cta").equals(other.ctas.select(times).sort("cta"))


@given(
    st.integers(1, 20),
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 5_000), min_size=1, max_size=200),
            st.integers(0, 2),
            st.integers(0, 9_000),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_doubling_every_time_doubles_the_makespan(sms, launches):
    device = without_overhead(wavesim.device("h200").scaled(sms=sms))

    def makespan_ps(factor: int) -> int:
        items = [
            Launch(
                Kernel(len(times), work=Duration.per_cta([factor * ns for ns in times])),
                stream,
                at_ns=factor * at_ns,
            )
            for times, stream, at_ns in launches
        ]
        return wavesim.simulate(device, Program(items), dispatcher="ideal").makespan_ps

    assert makespan_ps(2) == 2 * makespan_ps(1)


@given(st.integers(1, 20), st.integers(1, 700), st.integers(1, 5_000))
def test_equal_ctas_without_overhead_take_whole_waves(sms, grid, ns):
    device = without_overhead(wavesim.device("h200").scaled(sms=sms))
    kernel = Kernel(grid, work=Duration.constant(ns=ns))
    run = wavesim.simulate(device, kernel, dispatcher="ideal")
    waves = -(-grid // run.slots)
    assert run.makespan_ns == waves * ns
    assert run.kernels["waves"][0] == grid / run.slots
