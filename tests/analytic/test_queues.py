"""The dispatcher and the stream as servers: D/D/1 and M/D/1, whose waiting times are known."""

import numpy as np
import polars as pl
import pytest

import wavesim
from analytic.machines import of_sms, without_overhead
from wavesim import Duration, Kernel, Launch, Program

SERVICE_NS = 1.0


def served(sms: int = 132) -> wavesim.Device:
    """A device on which only work takes time, and the dispatcher 1 ns for each freed slot."""
    return of_sms(sms, "h200", clock__sm_mhz=1_000.0, dispatch__refill_cycles=SERVICE_NS)


@pytest.mark.parametrize("ns", [200.0, 2_000.0, 2_111.0, 2_112.0, 5_000.0])
@pytest.mark.parametrize("waves", [2, 3, 10])
def test_waves_of_equal_ctas_are_a_d_d_1_queue_to_the_picosecond(ns, waves):
    # All N slots are filled at once and end at once; the server takes them one by one, s apart.
    # From then on they end s apart. So a wave's first CTA starts max(t, (N - 1) s) + s after the
    # last wave's, and its last CTA (N - 1) s later.
    device = served()
    slots = 132 * 16
    run = wavesim.simulate(device, Kernel(waves * slots, 128, work=Duration.constant(ns=ns)))
    assert run.slots == slots
    spread = (slots - 1) * SERVICE_NS
    first = ns + SERVICE_NS + (waves - 2) * (max(ns, spread) + SERVICE_NS)
    assert run.makespan_ns == pytest.approx(first + spread + ns, abs=1e-6)


@pytest.mark.parametrize("sms", [8, 33, 132])
@pytest.mark.parametrize("ns", [10.0, 60.0, 120.0, 1_000.0])
def test_utilization_is_the_cta_over_what_the_server_needs_for_all_slots(sms, ns):
    # Starved: a slot's period is N s, whatever the CTA takes; else it is t + s.
    device = served(sms)
    slots = sms * 16
    run = wavesim.simulate(device, Kernel(400 * slots, 128, work=Duration.constant(ns=ns)))
    expected = ns / max(slots * SERVICE_NS, ns + SERVICE_NS)
    assert run.kernels["utilization"][0] == pytest.approx(expected, rel=0.01)
    starved = run.ledger.filter(pl.col("account") == "starved")["share"][0]
    assert starved == pytest.approx(1 - expected, abs=0.01)


@pytest.mark.parametrize("threads", [32, 128, 256])
@pytest.mark.parametrize("sms", [66, 132, 264])
def test_a_long_grid_of_empty_ctas_runs_at_the_servers_rate_on_any_die(sms, threads):
    h200 = wavesim.device("h200").scaled(sms=sms)
    service_ns = h200.dispatch.refill_cycles * 1e3 / h200.clock.sm_mhz
    grid = 500_000
    kernel = Kernel(grid, threads, work=Duration.constant(ns=0))
    run = wavesim.simulate(h200, kernel, detail="kernels")
    # The first CTA of each slot does not come by the server.
    expected = (grid - run.slots) * service_ns
    assert run.kernels["duration_ns"][0] == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("load", [0.3, 0.5, 0.8])
def test_slots_wait_for_the_dispatcher_as_customers_of_an_m_d_1_queue(load):
    # 2,112 slots whose CTAs end at random are near enough to Poisson arrivals. Pollaczek and
    # Khinchine: a customer waits load / (2 (1 - load)) services on average, and is then served.
    device = served()
    slots = 132 * 16
    mean_ns = slots * SERVICE_NS / load
    kernel = Kernel(300_000, 128, work=Duration.exponential(mean_ns=mean_ns))
    run = wavesim.simulate(device, kernel, seed=1)
    turns = run.ctas.sort("sm", "slot", "start_ns").with_columns(
        idle=pl.col("start_ns") - pl.col("end_ns").shift(1).over("sm", "slot")
    )
    waited = turns["idle"].drop_nulls().mean() - SERVICE_NS
    assert waited == pytest.approx(SERVICE_NS * load / (2 * (1 - load)), rel=0.06)


@pytest.mark.parametrize("load", [0.4, 0.7])
def test_tiny_kernels_of_a_stream_queue_as_an_m_d_1(load):
    # Issued at random times to one stream, each takes the stream for its CTA and the gap behind it.
    gap_ns, cta_ns = 700.0, 300.0
    device = without_overhead("h200", launch__stream_gap_ns=gap_ns)
    service_ns = gap_ns + cta_ns
    between = np.random.default_rng(5).exponential(service_ns / load, 8_000)
    arrivals = np.round(np.cumsum(between), 3)
    kernel = Kernel(1, work=Duration.constant(ns=cta_ns))
    program = Program([Launch(kernel, at_ns=float(at)) for at in arrivals])
    run = wavesim.simulate(device, program, detail="kernels", dispatcher="ideal")
    waited = (run.kernels["start_ns"] - run.kernels["issue_ns"]).to_numpy()
    # Lindley: who comes waits for what the one before still has to wait and take.
    expected = [0.0]
    for gap in np.diff(arrivals):
        expected.append(max(0.0, expected[-1] + service_ns - gap))
    assert waited == pytest.approx(np.array(expected), abs=0.01)
    assert waited.mean() == pytest.approx(service_ns * load / (2 * (1 - load)), rel=0.15)


@pytest.mark.parametrize(
    ("host_ns", "cta_ns"), [(4_000.0, 500.0), (1_000.0, 500.0), (0.0, 9_000.0)]
)
def test_a_stream_is_bound_by_its_host_or_by_its_kernels_whichever_is_slower(host_ns, cta_ns):
    gap_ns = 1_300.0
    device = without_overhead("h200", launch__stream_gap_ns=gap_ns, launch__host_issue_ns=host_ns)
    kernel = Kernel(132, work=Duration.constant(ns=cta_ns))
    run = wavesim.simulate(device, Program([Launch(kernel)] * 50), dispatcher="ideal")
    periods = run.kernels["start_ns"].diff().drop_nulls()
    assert periods.to_list() == pytest.approx([max(host_ns, cta_ns + gap_ns)] * 49)
