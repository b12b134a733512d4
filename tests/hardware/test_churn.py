"""CTAs that come and go on one SM, or on both of a TPC, with nobody else about."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import wavesim
from wavesim import Kernel
from wavesim.validate import bodies

MEASURED = Path(__file__).parents[2] / "reference/h200_holdout/settle/churn.parquet"


def cycles_per_cta(starts: pl.DataFrame) -> float:
    """From start to start on an SM, over the middle half of its CTAs; ``starts`` in cycles."""

    def middle(start: np.ndarray) -> float:
        first, last = len(start) // 4, 3 * len(start) // 4
        return float(start[last] - start[first]) / (last - first)

    return float(
        np.mean([middle(np.sort(sm["start"].to_numpy())) for _, sm in starts.group_by("sm")])
    )


def errors(device: wavesim.Device) -> dict[tuple[int, ...], float]:
    """The simulated time a CTA beside the measured one, by SMs, threads, shared memory and wait."""
    found = {}
    shapes = ("sms", "block", "smem", "cycles")
    for shape, blocks in pl.read_parquet(MEASURED).group_by(*shapes):
        sms, block, smem, cycles = map(int, shape)
        kernel = Kernel(
            grid=blocks.height,
            block=block,
            registers=18,
            shared_memory=smem,
            work=bodies.spin(cycles),
        )
        run = wavesim.simulate(device.scaled(sms=sms), kernel, detail="ctas")
        to_cycles = device.clock.sm_mhz / 1e3
        simulated = cycles_per_cta(run.ctas.select("sm", start=pl.col("start_ns") * to_cycles))
        measured = cycles_per_cta(blocks.select("start", sm="smid"))
        found[sms, block, smem, cycles] = simulated / measured - 1
    return found


def test_a_tpc_lets_ctas_out_and_in_as_fast_as_on_the_device():
    found = errors(wavesim.device("h200"))
    assert len(found) == 42
    assert np.mean(np.abs(list(found.values()))) < 0.1
    pairs = [error for (sms, *_), error in found.items() if sms == 2]
    assert np.mean(np.abs(pairs)) < 0.095


@pytest.mark.parametrize(
    "without",
    ["dispatch.out_cycles", "dispatch.out_each_cycles"],
)
def test_without_a_time_of_its_unit_it_is_not(without):
    device = wavesim.device("h200").edited({without: 0.0})
    assert np.mean(np.abs(list(errors(device).values()))) > 0.15
