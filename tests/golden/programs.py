"""The small programs whose digests are kept: between them they use every part of the model."""

from collections.abc import Callable
from typing import Literal

import wavesim
from wavesim import (
    Access,
    Chain,
    Copy,
    Duration,
    Graph,
    GridSync,
    Kernel,
    Launch,
    Persistent,
    Program,
    Record,
    Stream,
    Wait,
    Warps,
)
from wavesim.warps import Arithmetic, Barrier, Load, Loop, Poll, Shared

UNEVEN = Duration.lognormal(mean_ns=3_000, cv=0.4)


def waves() -> wavesim.Run:
    return wavesim.simulate("h200", Kernel(3_000, work=Duration.constant(ns=2_500)))


def every_distribution() -> wavesim.Run:
    works = [
        Duration.constant(cycles=1_500),
        Duration.uniform(low_ns=500, high_ns=900),
        Duration.normal(mean_ns=1_000, std_ns=700),
        UNEVEN,
        Duration.exponential(mean_ns=800),
        Duration.bimodal(low_ns=100, high_ns=5_000, high_share=0.1),
        Duration.per_cta([float(i % 37) for i in range(500)]),
    ]
    program = Program([Launch(Kernel(500, work=work)) for work in works])
    return wavesim.simulate("h200", program, seed=11)


def ideal() -> wavesim.Run:
    return wavesim.simulate("a100", Kernel(2_000, 512, work=UNEVEN), seed=3, dispatcher="ideal")


def starved() -> wavesim.Run:
    return wavesim.simulate("h200", Kernel(30_000, 64, work=Duration.constant(ns=200)))


def streams() -> wavesim.Run:
    large = Kernel(400, 512, shared_memory=60_000, work=UNEVEN)
    small = Kernel(90, 128, registers=96, work=UNEVEN)
    items = [
        Launch(large),
        Record("e"),
        Launch(small, 1),
        Wait("e", 2),
        Launch(small, 2),
        Copy(7_000, 1),
        Launch(large, 1, at_ns=60_000),
        Launch(small, 3),
    ]
    return wavesim.simulate("h200", Program(items, {3: Stream(priority=-4)}), seed=5)


def graph() -> wavesim.Run:
    small = Kernel(150, work=Duration.constant(ns=1_800))
    fork = [Launch(small), Record("fork"), Wait("fork", 1), Launch(small, 1), Record("join", 1)]
    return wavesim.simulate("h200", Program([Graph([*fork, Launch(small), Wait("join"), small])]))


def dependent() -> wavesim.Run:
    kernel = Kernel(264, work=UNEVEN)
    items = [Launch(kernel, dependent=i > 0, trigger=i % 2 == 0) for i in range(6)]
    return wavesim.simulate("h200", Program(items), seed=2)


def clusters() -> wavesim.Run:
    kernel = Kernel(960, 256, cluster=8, shared_memory=100_000, work=UNEVEN)
    pairs = Kernel(500, 128, cluster=2, work=UNEVEN)
    return wavesim.simulate("h200", Program([Launch(kernel), Launch(pairs, 1)]), seed=9)


def tasks() -> wavesim.Run:
    works = [Persistent(2_000, UNEVEN, how) for how in ("static", "atomic")]
    return wavesim.simulate("h200", Program([Kernel(132, work=work) for work in works]), seed=4)


def barriers() -> wavesim.Run:
    work = GridSync(5, Duration.uniform(low_ns=100, high_ns=900))
    return wavesim.simulate("h200", Kernel(264, cooperative=True, work=work), seed=6)


def chain() -> wavesim.Run:
    work = Chain(UNEVEN, Duration.constant(ns=300), 4)
    return wavesim.simulate("h200", Kernel(1_500, work=work), seed=8)


def memory() -> wavesim.Run:
    matrix = Access.panels(16_384, 8_192, steps=6, tiles_m=20, tiles_n=15, order=4)
    works = [
        Access.reuse(16_384, 3_000, passes=2, shift=5),
        matrix,
        Access.broadcast(2**19, skew_bytes=4_096),
        Access.stream(20_000, write=True),
        Access.attention(16_384, 32_768, steps=5, q_tiles=30, heads=10, kv_heads=2, causal=True),
        Access.chase(2**20, 500),
    ]
    return wavesim.simulate("h200", Program([Kernel(300, work=work) for work in works]), seed=12)


def gathers() -> wavesim.Run:
    device = wavesim.device("h200").edited(
        {"l2.replacement": "random", "l2.write_policy": "write_through"}
    )
    works = [
        Access.strided(4, pieces=300, stride_bytes=4_096, cta_stride_bytes=4),
        Access.random(2**27, pieces=200),
        Access.listed([float(i * 7_919 % 2**22) * 32 for i in range(6_000)], piece_bytes=32),
        Access.random(2**27, pieces=200, write=True),
    ]
    return wavesim.simulate(device, Program([Kernel(300, work=work) for work in works]), seed=13)


def protected() -> wavesim.Run:
    device = wavesim.device("a100").edited({"l2.replacement": "protected"})
    work = Access.reuse(16_384, 3_000, passes=3)
    return wavesim.simulate(device, Kernel(864, 256, work=work), detail="memory")


def _warps(issue: Literal["rates", "exact"]) -> wavesim.Run:
    turn = [Load(footprint_bytes=2**24), Shared("store"), Barrier(), Arithmetic(24, 2)]
    work = Warps([[Loop(40, turn)], [Loop(60, [Arithmetic(32)])]])
    return wavesim.simulate("h200", Kernel(500, 128, work=work), seed=3, issue=issue)


def warps_at_rates() -> wavesim.Run:
    return _warps("rates")


def warps_exactly() -> wavesim.Run:
    return _warps("exact")


def waits() -> wavesim.Run:
    asked = [3_000 * (cta % 17) / 16 for cta in range(2_500)]
    work = Warps([Poll(asked, since="start"), Barrier(), Loop(2, [Poll(300)])])
    return wavesim.simulate("h200", Kernel(2_500, 128, work=work), seed=3)


def xcds() -> wavesim.Run:
    return wavesim.simulate("mi300x", Kernel(4_000, 256, work=UNEVEN), seed=1)


def scaled() -> wavesim.Run:
    device = wavesim.device("h200").scaled(sms=50).edited({"dispatch.refill_cycles": 3.0})
    return wavesim.simulate(device, Kernel(2_000, 96, work=UNEVEN), seed=7)


PROGRAMS: dict[str, Callable[[], wavesim.Run]] = {
    made.__name__: made
    for made in (
        waves,
        every_distribution,
        ideal,
        starved,
        streams,
        graph,
        dependent,
        clusters,
        tasks,
        barriers,
        chain,
        memory,
        gathers,
        protected,
        warps_at_rates,
        warps_exactly,
        waits,
        xcds,
        scaled,
    )
}
