"""Chains: CTAs that wait for flags of others of their grid."""

import numpy as np
import pytest

import wavesim
from wavesim import Chain, Duration, Kernel, Persistent
from wavesim.errors import Deadlock, InvalidInput

BEFORE, AFTER = Duration.constant(ns=1_000), Duration.constant(ns=100)


def test_a_chain_is_as_long_as_what_comes_after_the_waits(h200):
    free = wavesim.simulate(h200, Kernel(100, work=Duration.constant(ns=1_100)))
    chained = wavesim.simulate(h200, Kernel(100, work=Chain(BEFORE, AFTER)))
    # Each of 99 waits adds at least what the CTA ahead still has to do.
    assert chained.makespan_ns - free.makespan_ns > 99 * 100 * 0.95


def test_a_list_of_the_ctas_before_is_the_same_as_a_distance(h200):
    ids = np.arange(200)
    for distance in (1, 7):
        by_distance = Kernel(200, work=Chain(BEFORE, AFTER, distance))
        needs = np.where(ids >= distance, ids - distance, -1)
        for given in (needs, [needs], [needs.astype(float), np.full(200, -1)]):
            by_list = Kernel(200, work=Chain(BEFORE, AFTER, needs=given))
            assert wavesim.simulate(h200, by_list) == wavesim.simulate(h200, by_distance)


def test_waiting_for_a_cta_that_finds_no_slot_is_a_deadlock(h200):
    small = h200.scaled(sms=1)
    backwards = np.arange(1, 101) % 100
    backwards[99] = -1
    with pytest.raises(Deadlock, match="wait"):
        wavesim.simulate(small, Kernel(100, work=Chain(BEFORE, AFTER, needs=backwards)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Chain(BEFORE, AFTER, 0), r"^needs.*1 \(got 0\)"),
        (lambda: Chain(BEFORE, AFTER, needs=[-2, 0]), r"^needs\[0\]: .* none \(-1\) \(got -2\)"),
        (lambda: Kernel(3, work=Chain(BEFORE, AFTER, needs=[0, 1])), r"3 in all \(got 2\)"),
        (lambda: Kernel(3, work=Chain(Duration.per_cta([1]), AFTER)), r"3 in all \(got 1\)"),
    ],
)
def test_a_chain_that_cannot_be_is_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_a_chain_comes_back_from_json():
    kernel = Kernel(3, work=Chain(BEFORE, AFTER, needs=[[-1, 0, 1], [-1, -1, 0]]))
    assert Kernel.model_validate_json(kernel.model_dump_json()) == kernel


@pytest.mark.parametrize(
    "work", [Chain(AFTER, AFTER), Persistent(9, AFTER), Persistent(9, AFTER, "atomic")]
)
def test_a_grid_too_large_to_keep_each_of_its_ctas_is_refused_by_its_size(work):
    with pytest.raises(InvalidInput, match="at most 16777216 CTAs where they share") as caught:
        Kernel(2**24 + 1, work=work)
    assert (caught.value.field, caught.value.value) == ("grid", 2**24 + 1)
