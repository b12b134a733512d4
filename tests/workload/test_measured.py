"""Measured kernels: the CTA duration is found for which the kernel spans what was measured."""

import polars as pl
import pytest

import wavesim
from wavesim import Duration, Kernel, Launch, Measured, Program
from wavesim.errors import CannotLaunch, InvalidInput

SHAPES = [
    {"grid": 1},
    {"grid": 132},
    {"grid": 1_057, "block": 256},
    {"grid": 20_000, "block": 32, "shared_memory": 9_000},
    {"grid": 504, "block": 1_024, "registers": 64},
    {"grid": 512, "cluster": 4},
]


def span_ns(run: wavesim.Run) -> float:
    return run.kernels["duration_ns"][0]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("measured_ns", [50_000.0, 1_234_567.0])
def test_the_replayed_kernel_spans_what_was_measured(shape, measured_ns, h200):
    run = wavesim.simulate(h200, Kernel(**shape, work=Measured(measured_ns)))
    # One picosecond more or less in every CTA of each wave is the finest step there is.
    step_ns = -(-run.kernels["waves"][0] // 1) / 1e3
    assert span_ns(run) == pytest.approx(measured_ns, abs=step_ns)
    assert run.notes == ()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_duration_that_made_a_span_is_found_again(shape, h200):
    known = wavesim.simulate(h200, Kernel(**shape, work=Duration.constant(ns=7_777)))
    found = wavesim.simulate(h200, Kernel(**shape, work=Measured(span_ns(known))))
    lengths = [(run.ctas["end_ns"] - run.ctas["start_ns"]).mean() for run in (known, found)]
    assert lengths[1] == pytest.approx(lengths[0], abs=0.01)


def test_a_span_shorter_than_empty_ctas_take_is_replayed_empty_and_noted(h200):
    kernel = Kernel(100_000, name="tiny", work=Measured(100.0))
    run = wavesim.simulate(h200, kernel)
    empty = wavesim.simulate(h200, Kernel(100_000, work=Duration.constant(ns=0)))
    assert span_ns(run) == span_ns(empty)
    assert len(run.notes) == 1
    assert "tiny" in run.notes[0]


def test_another_device_scales_by_the_clocks_or_as_told(h200):
    half = h200.edited({"clock.sm_mhz": h200.clock.sm_mhz / 2})
    kernel = Kernel(10, work=Measured(100_000.0, on=h200))
    here = wavesim.simulate(h200, kernel)
    slow = wavesim.simulate(half, kernel)
    told = wavesim.simulate(half, kernel.edited(work=Measured(100_000.0, on=h200, scale=3.0)))
    lengths = [(run.ctas["end_ns"] - run.ctas["start_ns"])[0] for run in (here, slow, told)]
    assert lengths[1] / lengths[0] == pytest.approx(2.0, rel=0.01)
    assert lengths[2] / lengths[0] == pytest.approx(3.0, rel=0.01)


def test_the_device_of_the_measurement_may_be_a_name_and_must_be_known(h200):
    kernel = Kernel(10, work=Measured(100_000.0, on="a100"))
    assert wavesim.simulate(h200, kernel).kernels.height == 1
    with pytest.raises(InvalidInput, match="a1000"):
        wavesim.simulate(h200, kernel.edited(work=Measured(100_000.0, on="a1000")))


def test_a_kernel_that_its_own_device_refuses_is_refused(h200):
    kernel = Kernel(10, shared_memory=200_000, work=Measured(100_000.0, on="v100"))
    with pytest.raises(CannotLaunch, match="v100"):
        wavesim.simulate(h200, kernel)


def test_each_launch_of_a_trace_has_its_own_time(h200):
    spans = [20_000.0, 30_000.0, 20_000.0]
    program = Program([Launch(Kernel(100, work=Measured(ns))) for ns in spans])
    found = wavesim.simulate(h200, program).kernels["duration_ns"]
    assert (found - pl.Series(spans)).abs().max() < 0.01
