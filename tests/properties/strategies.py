"""Random devices, kernels and programs: small, and odd in every way that is allowed."""

from hypothesis import strategies as st

import wavesim
from wavesim import Access, Duration, Kernel, Launch, Program

NAMES = ("h200", "a100", "l40s", "v100-sxm2", "mi300x")

REPLACEMENTS = ("lru", "not_recently_used", "random", "protected")

spans = st.integers(0, 20_000).map(lambda ps: ps / 10)
"""Nanoseconds, some of them fractions."""


@st.composite
def devices(draw) -> wavesim.Device:
    """A device of a few SMs, in GPCs of uneven sizes, with other clocks and other timings."""
    device = wavesim.device(draw(st.sampled_from(NAMES))).scaled(sms=draw(st.integers(1, 40)))
    changes = {"clock.sm_mhz": draw(st.sampled_from([500.0, 1_000.0, 1_980.0]))}
    changes["l2.replacement"] = draw(st.sampled_from(REPLACEMENTS))
    changes["l2.write_policy"] = draw(st.sampled_from(["write_back", "write_through"]))
    for field in ("dispatch.refill_cycles", "dispatch.send_cycles", "launch.stream_gap_ns"):
        if draw(st.booleans()):
            changes[field] = draw(st.sampled_from([0.0, 1.0, 333.3]))
    return device.edited(changes)


@st.composite
def durations(draw, count: int) -> Duration:
    """Any kind of duration, for so many CTAs."""
    low, high = sorted([draw(spans), draw(spans)])
    return draw(
        st.sampled_from(
            [
                Duration.constant(ns=low),
                Duration.constant(cycles=high),
                Duration.uniform(low_ns=low, high_ns=high),
                Duration.normal(mean_ns=low, std_ns=high),
                Duration.lognormal(mean_ns=high, cv=0.5),
                Duration.exponential(mean_cycles=low),
                Duration.bimodal(low_ns=low, high_ns=high, high_share=0.25),
                Duration.per_cta([low + (high - low) * (i * 0.618 % 1) for i in range(count)]),
                Duration.function(lambda ids: low + ids % 7),
            ]
        )
    )


@st.composite
def accesses(draw, count: int) -> Access:
    """Any kind of memory work, for so many CTAs."""
    size = draw(st.sampled_from([1, 32, 100, 128, 4_096, 10_000]))
    pieces, skew = draw(st.integers(1, 20)), draw(st.integers(0, 700))
    fields = {
        "write": draw(st.booleans()),
        "buffer": draw(st.integers(0, 1)),
        "overhead_cycles": draw(st.sampled_from([0.0, 20.5])),
    }
    offsets = [i * skew % 100_000 for i in range(count * pieces)]
    return draw(
        st.sampled_from(
            [
                Access.stream(size, **fields),
                Access.reuse(size, pieces, passes=2, shift=skew % 7, **fields),
                Access.panels(size, 512, steps=2, tiles_m=1, tiles_n=count, **fields),
                Access.attention(512, size, steps=3, q_tiles=count, heads=1, **fields),
                Access.strided(size, pieces, stride_bytes=skew, cta_stride_bytes=4, **fields),
                Access.random(size * 100, pieces, piece_bytes=size, **fields),
                Access.listed(offsets, piece_bytes=size, **fields),
                Access.broadcast(size, skew_bytes=skew, **fields),
                Access.chase(32 * pieces, pieces, stride_bytes=32, **fields),
            ]
        )
    )


@st.composite
def kernels(draw, device: wavesim.Device, *, plain: bool = False) -> Kernel:
    """A kernel that the device launches. `plain`: without clusters and tasks, equal CTAs aside."""
    limits = device.limits
    cluster = 1
    if not plain and limits.max_cluster > 1:
        cluster = draw(st.sampled_from([1, 1, 1, 2, 4]))
    grid = cluster * draw(st.integers(1, 400 // cluster))
    shape = {
        "block": draw(st.sampled_from([1, 32, 64, 256, 1_000, 1_024])),
        "registers": draw(st.sampled_from([16, 32, 64])),
        "shared_memory": draw(st.integers(0, limits.shared_optin_bytes)),
        "cluster": cluster,
    }
    if not wavesim.occupancy(device, **shape).launchable:
        shape["cluster"] = 1
        grid = draw(st.integers(1, 400))
    work = draw(durations(grid))
    if not plain and draw(st.integers(0, 3)) == 0:
        work = draw(accesses(grid))
    elif not plain and draw(st.integers(0, 4)) == 0:
        tasks = draw(st.integers(0, 300))
        schedule = draw(st.sampled_from(["static", "atomic"]))
        work = wavesim.Persistent(tasks, draw(durations(tasks)), schedule)
    return Kernel(grid=grid, name=f"k{grid}", work=work, **shape)


@st.composite
def programs(draw, device: wavesim.Device) -> Program:
    """Launches, copies, events and graphs on up to three streams."""
    pool = draw(st.lists(kernels(device), min_size=1, max_size=3))

    def items(in_graph: bool):
        recorded: list[str] = []
        made = []
        for _ in range(draw(st.integers(1, 5))):
            stream = draw(st.integers(0, 2))
            at_ns = None if in_graph else draw(st.none() | st.integers(0, 30_000))
            kind = draw(st.sampled_from(["launch"] * 4 + ["copy", "record", "wait", "graph"]))
            if kind == "copy":
                made.append(wavesim.Copy(draw(spans), stream, at_ns))
            elif kind == "record":
                recorded.append(draw(st.sampled_from("ab")))
                made.append(wavesim.Record(recorded[-1], stream))
            elif kind == "wait" and recorded:
                made.append(wavesim.Wait(draw(st.sampled_from(recorded)), stream))
            elif kind == "graph" and not in_graph:
                made.append(wavesim.Graph(items(True), stream, at_ns))
            else:
                flags = {"dependent": draw(st.booleans()), "trigger": draw(st.booleans())}
                made.append(Launch(draw(st.sampled_from(pool)), stream, at_ns, **flags))
        return made

    streams = draw(st.dictionaries(st.integers(0, 2), st.integers(-6, 0), max_size=2))
    return Program(
        [*items(False), Launch(pool[0])],
        streams={number: wavesim.Stream(priority=p) for number, p in streams.items()},
    )


@st.composite
def cases(draw) -> tuple[wavesim.Device, Program, int, str]:
    """A device, a program for it, a seed and a dispatcher."""
    device = draw(devices())
    program = draw(programs(device))
    return device, program, draw(st.integers(0, 2**64 - 1)), draw(st.sampled_from(DISPATCHERS))


DISPATCHERS = ("hardware", "ideal")
