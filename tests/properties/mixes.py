"""Random programs: all kinds of work beside each other, on devices that are short of something."""

from hypothesis import strategies as st

import wavesim
from properties.strategies import NAMES, accesses, durations, spans
from wavesim import Array, Kernel, Launch, Program
from wavesim.warps import Arithmetic, Await, Barrier, Branch, Load, Loop, Poll, Shared, Store

POLICIES = (
    "greedy_oldest_cta",
    "greedy_then_oldest",
    "oldest_first",
    "loose_round_robin",
    "two_level",
)

SHORT = {
    "limits.ctas": [1, 3, 16],
    "limits.threads": [1_024, 1_280],
    "limits.registers": [32_768, 49_152],
    "limits.barriers": [16, 20],
}
"""Limits that bind kernels which they usually do not."""


@st.composite
def devices(draw) -> wavesim.Device:
    """A device of a few SMs, some with less of something, under any policy."""
    device = wavesim.device(draw(st.sampled_from([*NAMES, "b200"])))
    device = device.scaled(sms=draw(st.integers(1, 12)))
    changes = {
        "issue.policy": draw(st.sampled_from(POLICIES)),
        "dispatch.deal": draw(st.sampled_from([device.dispatch.deal, "gpc_bursts", "round_robin"])),
        "dispatch.send_cycles": draw(st.sampled_from([device.dispatch.send_cycles, 0.0, 900.0])),
        "dispatch.refill_cycles": draw(st.sampled_from([device.dispatch.refill_cycles, 60.0])),
    }
    for field, values in SHORT.items():
        if draw(st.integers(0, 3)) == 0 and device.numbers().get(field):
            changes[field] = draw(st.sampled_from(values))
    if registers := changes.get("limits.registers"):
        changes["limits.registers_per_cta"] = min(registers, device.limits.registers_per_cta)
    if threads := changes.get("limits.threads"):
        changes["limits.warps"] = threads // device.limits.warp_size
    return device.edited(changes)


@st.composite
def warps(draw, grid: int) -> wavesim.Warps:
    """One or two warp programs, for so many CTAs."""
    segments = st.sampled_from(
        [
            Arithmetic(8, latency_cycles=4),
            Arithmetic(16, chains=4),
            Shared("load"),
            Branch(),
            Barrier(),
            Poll(300),
            Load(footprint_bytes=2**20),
            Load(access=wavesim.Access.stream(2**20)),
            Store(access=wavesim.Access.stream(2**20, write=True)),
            Await(),
        ]
    )
    bodies = st.lists(segments, min_size=1, max_size=3)
    first = [Arithmetic(2), Loop(draw(st.integers(1, 12)), [Arithmetic(1), *draw(bodies)])]
    several = grid > 1 and draw(st.booleans())
    return wavesim.Warps([first, [Arithmetic(40)]] if several else first)


@st.composite
def work(draw, grid: int, shared_memory: int, *, cooperative: bool):
    """Any kind of work for so many CTAs that have so much shared memory each."""
    times = draw(durations(grid))
    tasks = draw(st.integers(0, 200))
    kinds = {
        "duration": lambda: times,
        "access": lambda: draw(accesses(grid)),
        "static": lambda: wavesim.Persistent(tasks, draw(durations(tasks))),
        "atomic": lambda: wavesim.Persistent(tasks, draw(durations(tasks)), "atomic"),
        "chain": lambda: wavesim.Chain(times, draw(durations(grid)), draw(st.integers(1, 4))),
        "warps": lambda: draw(warps(grid)),
        "streaming": lambda: wavesim.Streaming(
            grid * 3_000, Array(4), Array(4, 1), operations=draw(st.sampled_from([0, 50]))
        ),
    }
    tiles = wavesim.Tiles(64 * grid, 64, 192, tile=(64, 64, 64))
    if tiles.shared_memory <= shared_memory:
        kinds["tiles"] = lambda: tiles
    if cooperative:
        kinds["barrier"] = lambda: wavesim.GridSync(draw(st.integers(0, 4)), times)
    return kinds[draw(st.sampled_from(["duration", *kinds]))]()


def shared_memories(most: int) -> st.SearchStrategy[int]:
    """None, a share of all that a CTA can have, or any number of bytes."""
    return st.sampled_from([0, 0, most // 12, most // 4, most // 3, most]) | st.integers(0, most)


@st.composite
def kernels(draw, device: wavesim.Device) -> Kernel:
    """A kernel that the device launches; many ask for much of one thing."""
    limits = device.limits
    shape = {
        "block": draw(st.sampled_from([1, 32, 96, 128, 256, 500, 1_024])),
        "registers": draw(st.sampled_from([16, 32, 40, 64, 128, 255])),
        "shared_memory": draw(shared_memories(limits.shared_optin_bytes)),
        "barriers": draw(st.sampled_from([1, 1, 2, limits.barriers_per_cta or 1])),
        "cluster": draw(st.sampled_from([1, 1, 1, 2, 3, 4, 8])),
        "cluster_launch": draw(st.booleans()) and limits.max_cluster > 1,
    }
    smaller = (
        {},
        {"cluster": 1},
        {"registers": 32, "barriers": 1},
        {"block": 128},
        {"shared_memory": 0, "cluster_launch": False},
    )
    for changes in smaller:
        shape |= changes
        fit = wavesim.occupancy(device, **shape)
        if fit.launchable and (shape["cluster"] == 1 or fit.max_active_clusters):
            break
    cluster = shape["cluster"]
    cooperative = cluster == 1 and not shape["cluster_launch"] and draw(st.integers(0, 4)) == 0
    most = fit.ctas_per_sm * device.sms if cooperative else 250
    grid = cluster * draw(st.integers(1, max(1, most // cluster)))
    does = draw(work(grid, shape["shared_memory"], cooperative=cooperative))
    if isinstance(does, wavesim.Duration):
        shape["last_warp_cycles"] = draw(st.sampled_from([0.0, 0.0, 50.0, 700.0, 20_000.0]))
    return Kernel(grid, cooperative=cooperative, work=does, **shape)


@st.composite
def mixes(draw) -> tuple[wavesim.Device, Program]:
    """A device, and several kernels in several streams of it."""
    device = draw(devices())
    pool = draw(st.lists(kernels(device), min_size=2, max_size=4))
    several = draw(st.integers(1, 4))
    launches = st.builds(
        Launch,
        st.sampled_from(pool),
        st.integers(0, several - 1),
        st.none() | spans,
        dependent=st.booleans(),
        trigger=st.booleans(),
    )
    priorities = st.integers(device.launch.greatest_priority, 0)
    streams = draw(st.dictionaries(st.integers(0, several - 1), priorities))
    return device, Program(
        draw(st.lists(launches, min_size=2, max_size=8)),
        streams={number: wavesim.Stream(priority=p) for number, p in streams.items()},
    )
