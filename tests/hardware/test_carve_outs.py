"""Which kernels share an SM, by what its shared memory is set to:
``reference/h200_holdout/settle/carveout``.
"""

from pathlib import Path

import polars as pl
import pytest

import wavesim
from wavesim import Duration, Kernel, Launch, Program

FILE = Path(__file__).parents[2] / "reference/h200_holdout/settle/carveout.parquet"
LARGEST = 228 * 1024


def logged(preferred: int) -> pl.DataFrame:
    """Give the SMs on which B ran beside A, for each pair; they are the same on all cards."""
    rows = pl.read_parquet(FILE).filter(a_percent=preferred, b_percent=preferred)
    pairs = rows.group_by(
        "a_block", "a_grid", "a_smem", "b_block", "b_smem", maintain_order=True
    ).agg(pl.col("beside_sms").min(), pl.col("beside_sms").max().alias("most"))
    assert (pairs["beside_sms"] == pairs["most"]).all()
    return pairs.drop("most")


def beside(device: wavesim.Device, pair: dict[str, int]) -> int:
    """Simulate on how many SMs B runs beside A."""
    long, short = Duration.constant(ns=80_000), Duration.constant(ns=10_000)
    a = Kernel(pair["a_grid"], pair["a_block"], shared_memory=pair["a_smem"], work=long)
    b = Kernel(264, pair["b_block"], shared_memory=pair["b_smem"], work=short)
    run = wavesim.simulate(device, Program([Launch(a), Launch(b, stream=1)]))
    end = run.kernels["end_ns"][0]
    early = run.ctas.filter(pl.col("kernel") == 1, pl.col("end_ns") < end)
    return early["sm"].n_unique()


def test_a_kernel_runs_beside_another_where_the_log_says_so():
    device = wavesim.device("h200")
    pairs = logged(preferred=-1)
    assert pairs.height == 74
    assert {0, 132} == set(pairs["beside_sms"])
    for pair in pairs.iter_rows(named=True):
        assert beside(device, pair) == pair["beside_sms"], pair


def test_kernels_that_prefer_all_of_shared_memory_run_beside_each_other_where_the_log_says_so():
    device = wavesim.device("h200").edited({"limits.carve_outs_bytes": (LARGEST,)})
    pairs = logged(preferred=100)
    assert pairs.height == 42
    for pair in pairs.iter_rows(named=True):
        assert beside(device, pair) == pair["beside_sms"], pair


@pytest.mark.parametrize("block", [64, 128])
def test_two_kernels_without_shared_memory_refuse_each_other_by_what_the_system_keeps(block):
    pair = {"a_grid": 132, "a_block": 512, "a_smem": 0, "b_block": block, "b_smem": 0}
    # 4 CTAs of A keep 4 KB, which are given 16; of B 16 CTAs keep as much, and 32 CTAs more.
    assert beside(wavesim.device("h200"), pair) == (132 if block == 128 else 0)
