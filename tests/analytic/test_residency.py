"""Who is resident at once: clusters, cooperative launches, kernels side by side."""

import polars as pl
import pytest

import wavesim
from analytic.machines import of_sms, one_an_sm, without_overhead
from wavesim import Chain, Duration, GridSync, Kernel, Launch, Program
from wavesim.errors import CannotLaunch, Deadlock

LONG = Duration.constant(ns=1e6)


@pytest.mark.parametrize("name", ["h100-sxm", "h200"])
@pytest.mark.parametrize(("size", "clusters"), [(2, 66), (4, 30), (8, 15), (16, 7)])
def test_an_h100_runs_15_clusters_of_8_where_18_sms_a_gpc_would_give_14(name, size, clusters):
    # CUTLASS issue 1921: 4096^3 in tiles of 128 x 128. A rule of seven GPCs of 18 SMs gives 112
    # CTAs; the die runs 120.
    device = wavesim.device(name)
    grid = (4_096 // 128) ** 2
    kernel = Kernel(
        grid, shared_memory=200_000, cluster=size, non_portable_cluster=size > 8, work=LONG
    )
    run = wavesim.simulate(device, kernel, dispatcher="ideal")
    first = run.ctas.filter(pl.col("start_ns") == pl.col("start_ns").min())
    assert first.height == clusters * size
    assert first["sm"].n_unique() == clusters * size
    shape = {"shared_memory": 200_000, "cluster": size, "non_portable_cluster": size > 8}
    assert wavesim.occupancy(device, block=256, **shape).max_active_clusters == clusters
    if size == 8:
        assert first.height == 120 > 18 // 8 * 8 * 7


def test_a_cluster_of_16_needs_the_non_portable_size(h200):
    # CuPy issue 8778.
    kernel = Kernel(160, cluster=16, work=LONG)
    with pytest.raises(CannotLaunch, match="cluster of 16 CTAs, 8 over the portable limit of 8"):
        wavesim.simulate(h200, kernel)
    assert wavesim.simulate(h200, kernel.edited(non_portable_cluster=True)).ctas.height == 160


def p100() -> wavesim.Device:
    """A P100 by its numbers: 56 SMs of 2,048 threads."""
    numbers = {
        "name": "p100",
        "title": "NVIDIA P100",
        "limits.threads": 2_048,
        "limits.warps": 64,
        "limits.shared_bytes": 65_536,
        "limits.shared_optin_bytes": 49_152,
        "limits.carve_outs_bytes": (65_536,),
        "clock.sm_mhz": 1_480.0,
    }
    return wavesim.device("v100-sxm2").scaled(sms=56).edited(numbers)


def test_a_grid_barrier_of_128_ctas_hangs_a_p100_that_holds_112():
    # CUB issue 369.
    def launched(grid: int) -> wavesim.Run:
        work = GridSync(2, Duration.constant(ns=1_000))
        return wavesim.simulate(p100(), Kernel(grid, 1_024, name="scan", work=work))

    assert launched(112).ctas.height == 112
    with pytest.raises(Deadlock, match=r"`scan`.* all 128 CTAs at once and p100 holds 112"):
        launched(128)


def planned(device: wavesim.Device) -> Kernel:
    """112 CTAs that wait for the flags of the last 20, as a plan for 132 SMs has them."""
    needs = [112 + cta % 20 for cta in range(112)] + [-1] * 20
    work = Chain(Duration.constant(ns=500), Duration.constant(ns=500), needs)
    return one_an_sm(device, 132, work, name="moe")


def test_a_plan_for_132_co_resident_ctas_hangs_on_78_sms_and_says_who_waits():
    # FlashMoE issue 3.
    assert wavesim.simulate("h200", planned(wavesim.device("h200"))).ctas.height == 132
    small = of_sms(78, "h200")
    with pytest.raises(Deadlock) as stuck:
        wavesim.simulate(small, planned(small))
    assert "CTA 0 of `moe` waits for CTA 112" in str(stuck.value)
    assert "54 of 132 CTAs wait for a slot" in str(stuck.value)


@pytest.mark.parametrize("dispatcher", ["hardware", "ideal"])
def test_112_compute_ctas_and_20_for_communication_are_resident_at_once(h200, dispatcher):
    # DeepEP issue 44: 132 SMs, one CTA an SM.
    kernels = [one_an_sm(h200, grid, LONG) for grid in (112, 20)]
    program = Program([Launch(kernel, stream) for stream, kernel in enumerate(kernels)])
    run = wavesim.simulate(h200, program, dispatcher=dispatcher)
    assert run.ctas["sm"].n_unique() == 132
    assert run.ctas["start_ns"].max() < run.ctas["end_ns"].min()


def test_an_mi300x_runs_workgroup_i_on_xcd_i_modulo_8():
    # composable_kernel PR 3161.
    kernel = Kernel(5_000, 256, work=Duration.lognormal(mean_ns=8_000, cv=0.5))
    for dispatcher in ("hardware", "ideal"):
        run = wavesim.simulate("mi300x", kernel, dispatcher=dispatcher)
        dealt = run.ctas.join(run.sms.select("sm", "gpc"), on="sm")
        assert (dealt["gpc"] == dealt["cta"] % 8).all()


def test_a_persistent_kernel_that_fills_the_device_keeps_others_out_until_it_ends():
    device = without_overhead("h200")
    full = one_an_sm(device, 132, wavesim.Persistent(1_320, Duration.constant(ns=1_000)))
    program = Program([Launch(full), Launch(one_an_sm(device, 1, LONG), stream=1)])
    run = wavesim.simulate(device, program, dispatcher="ideal")
    assert run.kernels["start_ns"].to_list() == [0, 10_000]
