"""A better memory is never slower, and none is faster than its bandwidths."""

from functools import cache

import pytest

import wavesim
from wavesim import Access, Kernel, Run, Tiles

H200 = wavesim.device("h200")
SECTOR = 32

BETTER = {
    "twice the L2": {"l2.bytes": 2 * H200.l2.bytes},
    "four times the L2": {"l2.bytes": 4 * H200.l2.bytes},
    "twice the L2 in ways": {"l2.bytes": 2 * H200.l2.bytes, "l2.ways": 2 * H200.l2.ways},
    "near L2": {"l2.near_latency_cycles": 230.0, "l2.far_latency_cycles": 370.0},
    "near DRAM": {"dram.latency_cycles": 500.0},
    "wide L2": {"l2.bandwidth_gb_s": 13_500.0},
    "wide fabric": {"l2.fabric_bandwidth_gb_s": 5_000.0},
    "wide DRAM": {"dram.bandwidth_gb_s": 7_200.0, "dram.reached_gb_s": 6_750.0},
}


def product(n: int, tile: int, stages: int, grid: int) -> Kernel:
    """C of 4,224 rows and `n` columns in square tiles, on so many CTAs."""
    work = Tiles(4_224, n, 2_048, (tile, tile, 64), stages=stages, order=8)
    return Kernel(grid, 128, shared_memory=work.shared_memory, registers=128, work=work)


KERNELS = {
    # Four whole waves of two CTAs an SM, so that no last wave decides.
    "product": product(4_096, 128, 3, 1_056),
    "product of two stages": product(4_096, 128, 2, 1_056),
    "product of small tiles": product(2_048, 64, 4, 2_112),
    "persistent product": product(4_096, 128, 4, 132),
    "panels": Kernel(
        1_056,
        256,
        work=Access.panels(16_384, 16_384, steps=16, tiles_m=33, tiles_n=32, order="row"),
    ),
    "stream": Kernel(1_056, 256, work=Access.stream(131_072)),
    "reuse": Kernel(1_056, 256, work=Access.reuse(16_384, 2_112, passes=3)),
    "reuse of more than L2": Kernel(1_056, 256, work=Access.reuse(16_384, 5_280, passes=2)),
}


@cache
def ran(kernel: str, better: str, *, sharing: bool) -> tuple[Run, wavesim.Device]:
    """The kernel on an H200 that is better in one way, with or without sharing of requests."""
    shared = {} if sharing else {"l2.coalesced_requests": 1}
    device = H200.edited({**BETTER.get(better, {}), **shared})
    return wavesim.simulate(device, KERNELS[kernel]), device


def span(run: Run) -> float:
    """How long the kernel ran, in nanoseconds."""
    return float(run.kernels["duration_ns"][0])


def sectors(run: Run) -> float:
    """What SMs asked L2 for."""
    return float(run.l2["sm_sectors"][0])


@pytest.mark.parametrize("better", BETTER)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_better_memory_is_never_slower(kernel, better):
    # SMs ask L2 for the same on both, as no requests are shared. What is left is the order in
    # which CTAs come and go: up to 2.4 %.
    run, _ = ran(kernel, better, sharing=False)
    plain, _ = ran(kernel, "as it is", sharing=False)
    assert sectors(run) == sectors(plain)
    assert span(run) <= 1.03 * span(plain)


@pytest.mark.parametrize("better", BETTER)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_better_memory_is_slower_at_most_by_the_requests_that_are_no_longer_shared(
    kernel, better
):
    # What comes sooner can be shared for a shorter time, so that L2 is asked for more.
    run, _ = ran(kernel, better, sharing=True)
    plain, _ = ran(kernel, "as it is", sharing=True)
    assert span(run) <= 1.04 * span(plain) * max(1.0, sectors(run) / sectors(plain))


@pytest.mark.parametrize("sharing", [False, True])
@pytest.mark.parametrize("better", ["as it is", *BETTER])
@pytest.mark.parametrize("kernel", KERNELS)
def test_no_run_moves_more_than_the_bandwidths_of_l2_fabric_and_dram(kernel, better, sharing):
    run, device = ran(kernel, better, sharing=sharing)
    moved = run.l2.row(0, named=True)
    from_dram = moved["dram_read_bytes"] + moved["dram_written_bytes"]
    assert moved["sm_sectors"] * SECTOR <= device.l2.bandwidth_gb_s * span(run)
    assert moved["fabric_sectors"] * SECTOR <= device.l2.fabric_bandwidth_gb_s * span(run)
    assert from_dram <= device.dram.bandwidth_gb_s * span(run)


def test_a_product_that_l2_limits_reads_nearly_all_that_l2_can_give():
    run, device = ran("product of small tiles", "as it is", sharing=False)
    assert sectors(run) * SECTOR >= 0.9 * device.l2.bandwidth_gb_s * span(run)
