"""Waves: published cases whose answer is arithmetic (the ideal dispatcher, one CTA an SM)."""

import math

import polars as pl
import pytest

import wavesim
from analytic.machines import makespan_ns, of_sms, one_an_sm, used, without_overhead
from wavesim import Duration, Kernel, Persistent

EQUAL = Duration.constant(ns=1_000)


@pytest.mark.parametrize("residency", [1, 2, 5, 16])
@pytest.mark.parametrize("sms", [1, 7, 132])
def test_equal_ctas_take_their_number_over_the_slots_rounded_up(sms, residency):
    device = of_sms(sms, "h200")
    shared = device.limits.shared_bytes // residency - device.limits.shared_reserved_bytes
    shared -= shared % 1_024
    slots = sms * residency
    for grid in (1, slots - 1 or 1, slots, slots + 1, 3 * slots, 3 * slots + 1):
        kernel = Kernel(grid, 64, shared_memory=shared, work=EQUAL)
        run = wavesim.simulate(device, kernel, dispatcher="ideal")
        assert run.kernels["residency"][0] == residency
        assert run.makespan_ns == math.ceil(grid / slots) * 1_000
        assert run.kernels["waves"][0] == grid / slots


def test_109_ctas_on_108_sms_take_two_waves_and_use_half_the_slots():
    # Stream-K paper, arXiv 2301.03598; ml-engineering PR 22.
    a100 = without_overhead("a100")
    assert a100.sms == 108
    assert makespan_ns(a100, 108, 1_000) == 1_000
    assert makespan_ns(a100, 109, 1_000) == 2_000
    assert used(a100, 109, EQUAL) == pytest.approx(109 / 216, abs=1e-12)
    assert round(used(a100, 109, EQUAL), 3) == 0.505


def test_one_long_task_keeps_one_sm_of_four_busy_at_the_end():
    ms = [70, 70, 70, 130, 70, 70, 70, 70]
    device = of_sms(4)
    kernel = one_an_sm(device, 8, Duration.per_cta([1e6 * task for task in ms]))
    run = wavesim.simulate(device, kernel, dispatcher="ideal")
    ends = sorted(run.ctas.group_by("sm").agg(pl.col("end_ns").max())["end_ns"] / 1e6)
    assert ends == [140, 140, 140, 200]
    after = run.timeline(20).filter(pl.col("start_ns") >= 140e6)
    assert after["busy"].to_list() == pytest.approx([0.25] * 6, abs=1e-3)
    assert after["running_ctas"].to_list() == pytest.approx([1] * 6, abs=1e-2)


def test_nine_tiles_on_four_sms_use_75_percent_half_tiles_90_and_stream_k_all():
    # Stream-K paper, arXiv 2301.03598, figures 1 and 2: the same work, cut otherwise.
    device = of_sms(4)
    iterations = 32
    assert used(device, 9, Duration.constant(ns=1_000)) == pytest.approx(0.75)
    assert used(device, 18, Duration.constant(ns=500)) == pytest.approx(0.90)
    each = Persistent(9 * iterations, Duration.constant(ns=1_000 / iterations))
    run = wavesim.simulate(device, one_an_sm(device, 4, each), dispatcher="ideal")
    assert run.kernels["utilization"][0] == pytest.approx(1.0)
    assert run.makespan_ns == 9 * 1_000 / 4


@pytest.mark.parametrize(
    ("block_n", "ctas", "waves", "share"), [(72, 128, 1, 0.970), (64, 144, 2, 0.545)]
)
def test_a_block_of_72_columns_fits_one_wave_where_64_takes_two(block_n, ctas, waves, share):
    # DeepGEMM PR 25: m 2048, n 576, blocks of 128 rows, 132 SMs.
    device = of_sms(132, "h200")
    grid = math.ceil(2_048 / 128) * math.ceil(576 / block_n)
    assert grid == ctas
    assert makespan_ns(device, grid, 1_000) == waves * 1_000
    assert round(used(device, grid, EQUAL), 3) == share


def test_whole_waves_can_lose_to_a_ragged_one():
    # TileOPs PR 2110, N 2112 on 132 SMs: 352 tiles took 177 us, 1,056 narrower ones 269.5 us.
    device = of_sms(132, "h200")
    runs = {}
    for grid, measured_us in ((352, 177.0), (1_056, 269.5)):
        tile_ns = 1e3 * measured_us / math.ceil(grid / 132)
        kernel = one_an_sm(device, grid, Duration.constant(ns=tile_ns))
        runs[grid] = wavesim.simulate(device, kernel, dispatcher="ideal")
        assert runs[grid].makespan_ns == pytest.approx(1e3 * measured_us)
    wide, narrow = (runs[grid].kernels.row(0, named=True) for grid in (352, 1_056))
    assert round(wide["waves"], 2) == 2.67
    assert round(wide["utilization"], 3) == 0.889
    assert narrow["waves"] == 8.0
    assert narrow["utilization"] == pytest.approx(1.0)
    assert runs[352].makespan_ns < runs[1_056].makespan_ns


def test_the_split_heuristic_of_flash_attention_picks_two_splits_for_48_ctas():
    # 48 CTAs on 108 SMs: the smallest split with 85 % of the best efficiency.
    a100 = without_overhead("a100")
    efficiency = {n: used(a100, 48 * n, Duration.constant(ns=1_000 / n)) for n in (1, 2, 3)}
    assert [round(share, 2) for share in efficiency.values()] == [0.44, 0.89, 0.67]
    best = max(efficiency.values())
    assert min(n for n, share in efficiency.items() if share >= 0.85 * best) == 2


def test_the_ideal_gain_of_stream_k_is_an_upper_bound_that_fix_up_keeps_from_being_reached():
    # CUTLASS PR 892: 2048^3, tiles of 128 x 128, A100: 0.2049 ms data parallel, 0.1940 ms Stream-K.
    a100 = without_overhead("a100")
    tiles, iterations = (2_048 // 128) ** 2, 2_048 // 32
    tile_ns = 0.2049e6 / 3
    plain = wavesim.simulate(
        a100, one_an_sm(a100, tiles, Duration.constant(ns=tile_ns)), dispatcher="ideal"
    )
    assert round(plain.kernels["waves"][0], 2) == 2.37
    assert round(plain.kernels["utilization"][0], 2) == 0.79
    work = Persistent(tiles * iterations, Duration.constant(ns=tile_ns / iterations))
    stream_k = wavesim.simulate(a100, one_an_sm(a100, 108, work), dispatcher="ideal")
    gain = plain.makespan_ns / stream_k.makespan_ns
    assert gain == pytest.approx(1.27, abs=0.01)
    assert 1 < 0.2049 / 0.1940 < gain


def test_one_tile_keeps_one_sm_busy_and_only_splitting_k_helps():
    # CUTLASS issue 1586: a tile of 64 x 64 with K 4096 on 108 SMs.
    a100 = without_overhead("a100")
    ns = 40_960.0
    run = wavesim.simulate(a100, one_an_sm(a100, 1, Duration.constant(ns=ns)), dispatcher="ideal")
    assert (run.sms["busy_ns"] > 0).sum() == 1
    assert run.kernels["utilization"][0] == pytest.approx(1 / 108)
    assert makespan_ns(of_sms(216), 1, ns) == ns
    assert makespan_ns(a100, 8, ns / 8) == ns / 8


def test_a_static_tile_schedule_gains_much_on_short_tiles_and_nothing_on_long_ones():
    # Triton PR 10556 (B200, mxfp8, one CTA): 831.6 against 1,191.2 TFLOP/s at K 256, 2,776.4
    # against 2,820.2 at K 16,384. Tiles of 128 x 128 make that 1.04 and 28.2 us a tile.
    b200 = wavesim.device("b200")
    gain = {}
    for k, tflops in ((256, 1_191.2), (16_384, 2_820.2)):
        tile_ns = 2 * 128 * 128 * k / (tflops * 1e12 / b200.sms) * 1e9
        both = [
            wavesim.simulate(
                b200,
                one_an_sm(
                    b200, b200.sms, Persistent(64 * b200.sms, Duration.constant(ns=tile_ns), how)
                ),
            )
            for how in ("static", "atomic")
        ]
        gain[k] = both[1].makespan_ns / both[0].makespan_ns
    assert 1.15 < gain[256] < 1.5
    assert 1.0 < gain[16_384] < 1.03
