"""What a full machine does when its CTAs end: counts and times that follow from its rules."""

import numpy as np
import polars as pl
import pytest

import wavesim
from analytic.machines import without_overhead
from wavesim import Duration, Kernel, Persistent, simulate
from wavesim.errors import InvalidInput

SMS, RESIDENT = 132, 8
WAVE = SMS * RESIDENT


def refills_by_sm(**fields):
    """Give the starts of the second of two waves, a row an SM, in cycles from the first end."""
    device = fields.pop("device", None) or wavesim.device("h200")
    work = Duration.constant(cycles=2500)
    run = simulate(device, Kernel(2 * WAVE, 256, work=work, **fields), detail="ctas")
    cycle_ns = 1e3 / device.clock.sm_mhz
    resident = RESIDENT if fields.get("shared_memory", 0) == 0 else RESIDENT - 1
    second = run.ctas.sort("start_ns")[SMS * resident :]
    first_end = run.ctas["end_ns"].min()
    by_sm = second.partition_by("sm")
    return [(sm["start_ns"].sort().to_numpy() - first_end) / cycle_ns for sm in by_sm]


def refills(**fields):
    """Give these starts in order, whatever their SM."""
    return np.sort(np.concatenate(refills_by_sm(**fields)))


def heard(device, ends):
    """Give when the dispatcher's server has heard of so many ends, at the earliest."""
    return ends * device.dispatch.refill_cycles


def test_warps_that_have_ended_make_room_for_all_but_one_cta_of_each_sm():
    # Seven warps of eight have left all CTAs when the first ones end: 8 x 7 free and one more for
    # each end that was heard are room for seven CTAs, and for the eighth with the last end only.
    device = wavesim.device("h200")
    by_sm = np.array(refills_by_sm(last_warp_cycles=400))
    early, last = by_sm[:, RESIDENT - 2], by_sm[:, RESIDENT - 1]
    assert np.all(early < heard(device, (RESIDENT - 1) * SMS))
    # Parts of a GPC with fewer SMs are heard to the end before others.
    assert np.median(last) > heard(device, 0.8 * WAVE)
    starts = np.sort(by_sm, axis=None)
    assert np.sum(starts < heard(device, WAVE) / 2) < np.sum(refills() < heard(device, WAVE))


def test_without_a_last_warp_each_refill_waits_for_an_end():
    device = wavesim.device("h200")
    starts = refills()
    assert np.all(starts > heard(device, np.arange(1, WAVE + 1)))


def test_the_last_refill_waits_for_the_last_end_all_the_same():
    assert refills(last_warp_cycles=400)[-1] == pytest.approx(refills()[-1], rel=0.01)


def test_shared_memory_is_kept_until_the_last_warp_ends():
    held = {"shared_memory": 31_000}
    alone = refills(last_warp_cycles=400, **held)
    assert alone == pytest.approx(refills(**held), abs=100)


def test_a_cta_of_one_warp_has_no_others_that_could_end_before_it():
    work = Duration.constant(cycles=2500)
    kernels = [Kernel(8448, 32, work=work, last_warp_cycles=late) for late in (0, 400)]
    assert len({simulate("h200", kernel).digest for kernel in kernels}) == 1


def test_the_ledger_adds_up_where_last_warps_overlap_their_successors():
    work = Duration.uniform(low_cycles=2400, high_cycles=2600)
    kernel = Kernel(3 * WAVE, 256, work=work, last_warp_cycles=800)
    run = simulate("h200", kernel, detail="ctas")
    most = 0
    for _, ctas in run.ctas.group_by("sm"):
        times = np.concatenate([ctas["start_ns"].to_numpy(), ctas["end_ns"].to_numpy()])
        steps = np.repeat([1, -1], ctas.height)[np.lexsort((np.repeat([1, 0], ctas.height), times))]
        most = max(most, int(np.cumsum(steps).max()))
    assert RESIDENT < most <= 2 * RESIDENT
    assert run.ledger["time_ps"].sum() % run.makespan_ps == 0
    assert run.ctas["cta"].n_unique() == 3 * WAVE


@pytest.mark.parametrize("late", [-1.0, float("nan"), float("inf")])
def test_a_last_warp_runs_for_a_time(late):
    with pytest.raises(InvalidInput, match="last_warp_cycles"):
        Kernel(8, 256, work=Duration.constant(cycles=10), last_warp_cycles=late)


def test_only_work_of_known_length_has_a_last_warp():
    work = Persistent(tasks=100, duration=Duration.constant(cycles=10))
    with pytest.raises(InvalidInput, match=r"last_warp_cycles.*50"):
        Kernel(8, 256, work=work, last_warp_cycles=50)


def clusters(size, **timings):
    """Give the starts of clusters that took the place of others, in cycles from their end."""
    device = without_overhead("h200", **{f"dispatch__{name}": n for name, n in timings.items()})
    work = Duration.constant(cycles=100_000)
    kernel = Kernel(264, shared_memory=200_000, cluster=size, cluster_launch=True, work=work)
    ctas = simulate(device, kernel, detail="ctas").ctas
    starts = ctas.group_by(ctas["cta"] // size).agg(pl.col("start_ns").min())["start_ns"].sort()
    late = starts.to_numpy()[SMS // size :] - ctas["end_ns"].min()
    return late * device.clock.sm_mhz / 1e3


def test_a_cluster_of_several_is_sent_its_latency_after_it_fits():
    assert clusters(2, cluster_latency_cycles=300) == pytest.approx(300, abs=0.01)
    assert clusters(1, cluster_latency_cycles=300) == pytest.approx(0, abs=0.01)


def test_clusters_that_fit_at_once_are_sent_a_visit_apart():
    apart = np.diff(clusters(2, visit_cycles=3, refill_cycles=0))
    assert apart[apart < 100] == pytest.approx(3, abs=0.01)
    assert np.sum(apart < 100) >= SMS // 2 - 8


def test_ctas_that_follow_each_other_are_spread_over_gpcs_though_these_end_one_after_the_other():
    # One CTA an SM, all equally long: they end as they were placed, all of a GPC at once. The
    # dispatcher hears of three of them in a visit, and goes on to the next GPC.
    device = wavesim.device("h200")
    work = Duration.constant(cycles=9_000)
    kernel = Kernel(2 * SMS, 1024, shared_memory=200_000, work=work)
    ctas = simulate(device, kernel, detail="ctas").ctas.sort("cta")
    gpc_of = {
        sm: number
        for number, gpc in enumerate(device.topology.gpcs)
        for group in gpc.groups
        for sm in group.sms
    }
    gpcs = ctas["sm"].replace_strict(gpc_of).to_numpy()

    def of_eight(first):
        return np.mean([len(set(gpcs[at : at + 8])) for at in range(first, first + SMS - 8, 8)])

    assert of_eight(0) < 1.6
    assert of_eight(SMS) > 2.2
