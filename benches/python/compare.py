"""wavesim from Python beside what one would write there: CTAs a second, and as ratios.

Each is the best of several turns, taken in rotation, so that what else the machine does falls on
all of them. Then what an import costs, what a small run costs, and how large the wheel is::

    python benches/python/compare.py [CTAS]
"""

import argparse
import heapq
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import simpy

import wavesim

ROOT = Path(__file__).parents[2]
TURNS = 3
SLOTS = 1_056
LOW_NS, HIGH_NS = 5_000.0, 15_000.0


def by_heapq(ctas: int) -> float:
    """List scheduling: whoever is free first takes the next CTA."""
    uniform = random.Random(1).uniform
    free = [uniform(LOW_NS, HIGH_NS) for _ in range(min(SLOTS, ctas))]
    heapq.heapify(free)
    for _ in range(ctas - len(free)):
        heapq.heapreplace(free, free[0] + uniform(LOW_NS, HIGH_NS))
    return max(free)


def by_simpy(ctas: int) -> float:
    """Run the same model as a process a slot, which takes one CTA after the other."""
    uniform = random.Random(1).uniform
    environment = simpy.Environment()
    left = iter(range(ctas))

    def slot():
        for _ in left:
            yield environment.timeout(uniform(LOW_NS, HIGH_NS))

    for _ in range(SLOTS):
        environment.process(slot())
    environment.run()
    return environment.now


def by_wavesim(ctas: int, detail: str) -> float:
    """Simulate, and make the frame that the detail gives."""
    work = wavesim.Duration.uniform(low_ns=LOW_NS, high_ns=HIGH_NS)
    run = wavesim.simulate("h200", wavesim.Kernel(ctas, work=work), detail=detail)
    frame = run.ctas if detail == "ctas" else run.kernels
    assert frame.height == (ctas if detail == "ctas" else 1)
    return run.makespan_ns


def seconds(of: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    of()
    return time.perf_counter() - start


def throughput(ctas: int) -> None:
    """CTAs a second of each, and how many times as fast as the heap in Python."""
    # What is slow gets fewer CTAs: a rate is all that is asked of it.
    few = min(ctas, 100_000)
    contenders: dict[str, tuple[int, Callable[[], object]]] = {
        "Python heapq, makespan only": (few, lambda: by_heapq(few)),
        "SimPy, makespan only": (few, lambda: by_simpy(few)),
        "wavesim, kernel detail": (ctas, lambda: by_wavesim(ctas, "kernels")),
        "wavesim, CTA detail and frame": (ctas, lambda: by_wavesim(ctas, "ctas")),
    }
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(TURNS):
        for name, (_, run) in contenders.items():
            best[name] = min(best[name], seconds(run))
    rates = {name: contenders[name][0] / best[name] / 1e6 for name in contenders}
    base = rates["Python heapq, makespan only"]
    print(f"{ctas:,} CTAs on 132 SMs, in millions a second (and as a ratio to heapq)")
    for name, rate in rates.items():
        print(f"  {name:30} {rate:8.3f}  {rate / base:7.2f}")


def small_runs() -> None:
    """What a run costs that has next to nothing to simulate."""
    kernel = wavesim.Kernel(1_000, work=wavesim.Duration.constant(ns=5_000))
    device = wavesim.device("h200")
    program = wavesim.Program([wavesim.Launch(kernel)] * 1_000)
    for name, of in {
        "a kernel of 1,000 CTAs": lambda: wavesim.simulate(device, kernel),
        "the same, and its frame": lambda: wavesim.simulate(device, kernel).ctas,
        "1,000 launches of it": lambda: wavesim.simulate(device, program, detail="kernels"),
    }.items():
        print(f"  {name:30} {min(seconds(of) for _ in range(10)) * 1e3:8.3f} ms")


def imports() -> None:
    """Time imports in fresh interpreters, without what the interpreter takes itself."""
    codes = {
        "nothing": "pass",
        "numpy, polars, pydantic": "import numpy, polars, pydantic",
        "wavesim": "import wavesim",
    }
    best = dict.fromkeys(codes, float("inf"))
    for _ in range(9):
        for name, code in codes.items():
            command = [sys.executable, "-c", code]
            took = seconds(lambda command=command: subprocess.run(command, check=True))
            best[name] = min(best[name], took)
    bare = best.pop("nothing")
    for name, took in best.items():
        print(f"  {'import ' + name:30} {(took - bare) * 1e3:8.0f} ms")


def wheel() -> None:
    """Say how large the wheel is, if it has been built."""
    for path in sorted((ROOT / "dist").glob("*.whl")):
        print(f"  {path.name:30} {path.stat().st_size / 1e6:8.2f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description="wavesim beside what one would write in Python")
    parser.add_argument("ctas", nargs="?", type=int, default=1_000_000)
    throughput(parser.parse_args().ctas)
    small_runs()
    imports()
    wheel()


if __name__ == "__main__":
    main()
