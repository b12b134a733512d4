"""Refills of a full machine, against logs of kernels whose warps leave together or one after all
others: ``reference/h200_holdout/settle/refills``.
"""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from wavesim import Duration, Kernel, simulate

FOLDER = Path(__file__).parents[2] / "reference/h200_holdout/settle"
LAST_WARP = {"plain": 200, "together": 0, "early": 600}
"""How long the last warp is alone, by how the others leave."""


def refilled(blocks, run, ticks_per_cycle=1.0):
    """Give the starts of the second wave, in cycles from the first end on the same SM."""
    first_end = pl.col("end").min().over("sm")
    later = blocks.with_columns(after=(pl.col("start") - first_end) / ticks_per_cycle)
    return later.filter(pl.col("cta") >= run["blocks_per_sm"] * 132)["after"].to_numpy()


def logged(run):
    """Give the refills of a run, by the clock of each SM."""
    blocks = pl.read_parquet(FOLDER / "refills_blocks.parquet").filter(run=run["run"])
    return refilled(blocks.rename({"smid": "sm", "start_clock": "start", "end_clock": "end"}), run)


def simulated(run):
    """Simulate them."""
    cycles = run["cycles"] + 100 + (400 if run["mode"] == "early" else 0)
    kernel = Kernel(
        run["grid"],
        run["block"],
        shared_memory=run["smem"],
        work=Duration.uniform(low_cycles=cycles, high_cycles=cycles + 45),
        last_warp_cycles=LAST_WARP[run["mode"]],
    )
    ctas = simulate("h200", kernel, detail="ctas").ctas
    return refilled(ctas.rename({"start_ns": "start", "end_ns": "end"}), run, 1 / 1.98)


@pytest.mark.parametrize("experiment", ["leave", "leave_smem"])
@pytest.mark.parametrize("block", [128, 256])
@pytest.mark.parametrize("mode", LAST_WARP)
def test_what_is_refilled_ahead_is_as_much_as_other_warps_have_left(experiment, block, mode):
    runs = pl.read_parquet(FOLDER / "refills.parquet")
    for run in runs.filter(experiment=experiment, block=block, mode=mode).iter_rows(named=True):
        heard = run["blocks_per_sm"] * 132 * 1.2
        for share in (0.5, 0.7, 0.9):
            # The way there and back, and until the server has heard of this share of the ends.
            by = 400 + share * heard
            assert np.mean(logged(run) < by) == pytest.approx(np.mean(simulated(run) < by), abs=0.1)
