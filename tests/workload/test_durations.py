"""Durations: units, bounds, values by CTA, and that arrays are read where they lie."""

import math

import numpy as np
import polars as pl
import pytest

import wavesim
from wavesim import Duration, Kernel
from wavesim.errors import InvalidInput


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, 4.4e15])
@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda t: Duration.constant(ns=t), "ns"),
        (lambda t: Duration.constant(cycles=t), "cycles"),
        (lambda t: Duration.uniform(0, t), "high_ns"),
        (lambda t: Duration.normal(t, 0), "mean_ns"),
        (lambda t: Duration.normal(5, t), "std_ns"),
        (lambda t: Duration.lognormal(t, 0.5), "mean_ns"),
        (lambda t: Duration.exponential(mean_cycles=t), "mean_cycles"),
        (lambda t: Duration.bimodal(t, 9), "low_ns"),
    ],
)
def test_a_time_that_cannot_be_is_refused_by_every_kind(make, field, bad):
    with pytest.raises(InvalidInput) as refused:
        make(bad)
    assert refused.value.field == field
    assert str(bad)[:3] in str(refused.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Duration.constant, r"ns: give either ns or cycles \(got neither\)"),
        (lambda: Duration.constant(1, cycles=2), r"got ns and cycles"),
        (lambda: Duration.uniform(5), r"high_ns: give either high_ns or high_cycles"),
        (lambda: Duration.uniform(5, high_cycles=9), r"must have one unit"),
        (lambda: Duration.uniform(5, 2), r"low_ns: is over the highest, 2 \(got 5\)"),
        (lambda: Duration.lognormal(5, -0.1), r"cv: "),
        (lambda: Duration.bimodal(5, 9, 1.5), r"high_share: "),
    ],
)
def test_times_that_do_not_fit_together_are_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        np.array([1, 2, 3], dtype=np.int32),
        np.array([1.0, 0, 2.0, 0, 3.0, 0])[::2],
        pl.Series([1, 2, 3]),
        np.array([1, 2, 3], dtype=">f8"),
    ],
    ids=["list", "tuple", "int32", "strided", "polars", "big-endian"],
)
def test_values_by_cta_are_taken_from_whatever_holds_numbers(values, h200):
    run = wavesim.simulate(h200, Kernel(3, work=Duration.per_cta(values)), dispatcher="ideal")
    plain = Kernel(3, work=Duration.per_cta([1.0, 2.0, 3.0]))
    plain = wavesim.simulate(h200, plain, dispatcher="ideal")
    assert run == plain
    assert run.ctas.equals(plain.ctas)


def test_a_contiguous_array_is_read_where_it_lies():
    values = np.full(1_000, 5.0)
    duration = Duration.per_cta(values)
    assert np.shares_memory(duration.values.array, values)
    assert np.shares_memory(Kernel(1_000, work=duration).work.values.array, values)
    with pytest.raises(ValueError, match="read-only"):
        duration.values.array[0] = 7.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, -2.0], r"ns\[1\]: a duration is a number from 0 .*\(got -2\)"),
        ([math.nan], r"ns\[0\]: .*\(got nan\)"),
        ([1.0, None], r"ns\[1\]: .*\(got null\)"),
        (pl.Series([1, None]), r"ns\[1\]: .*\(got null\)"),
        (pl.Series([None, 1.0]), r"ns\[0\]: .*\(got null\)"),
        ("soon", r"ns: must be a list of numbers \(got 'soon'\)"),
        ([1.0, "soon"], r"ns\[1\]: must be a number \(got 'soon'\)"),
        ([None, True], r"ns\[1\]: must be a number \(got True\)"),
        ([1.0, [2.0]], r"ns\[1\]: must be a number \(got \[2.0\]\)"),
        (5.0, r"ns: must be a list of numbers \(got 5.0\)"),
        ([[1.0], [2.0]], r"ns: must be a list of numbers \(got 2 dimensions\)"),
    ],
)
def test_values_that_are_no_durations_are_refused_with_their_place(values, message):
    with pytest.raises(InvalidInput, match=message):
        Duration.per_cta(values)


@pytest.mark.parametrize("count", [0, 9, 11])
def test_there_must_be_one_value_a_cta(count):
    with pytest.raises(
        InvalidInput, match=rf"one value a CTA is needed, 10 in all \(got {count}\)"
    ):
        Kernel(10, work=Duration.per_cta([1.0] * count))


def test_a_function_is_called_once_with_all_ids():
    calls = []

    def times(ids):
        calls.append(ids)
        return 100 + ids % 2

    kernel = Kernel(5, work=Duration.function(times))
    assert len(calls) == 1
    assert kernel.work == Duration.per_cta([100, 101, 100, 101, 100])


@pytest.mark.parametrize("wrong", [lambda ids: 5, lambda ids: ids[:-1], lambda ids: -ids])
def test_a_function_must_give_a_duration_for_each_id(wrong):
    with pytest.raises(InvalidInput, match=r"^work\.ns"):
        Kernel(5, work=Duration.function(wrong))


def test_cycles_follow_the_clock_and_nanoseconds_do_not(h200):
    slow = h200.edited({"clock.sm_mhz": h200.clock.sm_mhz / 2})

    def length(device, work):
        run = wavesim.simulate(device, Kernel(1, work=work), dispatcher="ideal")
        return (run.ctas["end_ns"] - run.ctas["start_ns"])[0]

    cycles = length(slow, Duration.constant(cycles=1_980)) - length(
        slow, Duration.constant(cycles=0)
    )
    assert cycles == pytest.approx(2_000, abs=0.002)
    ns = length(slow, Duration.constant(ns=1_000)) - length(slow, Duration.constant(ns=0))
    assert ns == pytest.approx(1_000, abs=0.002)


@pytest.mark.parametrize(
    ("work", "mean", "std"),
    [
        (Duration.uniform(1_000, 3_000), 2_000, 2_000 / 12**0.5),
        (Duration.normal(5_000, 500), 5_000, 500),
        (Duration.lognormal(5_000, 0.3), 5_000, 1_500),
        (Duration.exponential(4_000), 4_000, 4_000),
        (Duration.bimodal(1_000, 9_000, 0.25), 3_000, 8_000 * (0.25 * 0.75) ** 0.5),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_random_durations_have_the_mean_and_spread_that_were_asked_for(work, mean, std, h200):
    def lengths(work):
        run = wavesim.simulate(h200, Kernel(40_000, work=work), seed=3, dispatcher="ideal")
        return run.ctas["end_ns"] - run.ctas["start_ns"]

    overhead = lengths(Duration.constant(ns=0)).mean()
    drawn = lengths(work)
    # Five standard errors of a mean of 40,000, and as much again for the spread.
    assert drawn.mean() - overhead == pytest.approx(mean, abs=5 * std / 200)
    assert drawn.std() == pytest.approx(std, rel=0.05)
