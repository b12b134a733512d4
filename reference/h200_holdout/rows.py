"""Choose the rows to measure: the experiments of reference/h200 with parameters that it does not have.

    python rows.py rows.csv

Which waves go with which shapes and times is drawn, from a fixed seed.
"""

from __future__ import annotations

import csv
import itertools
import random
import sys
from collections.abc import Iterator

SMS = 132
COLUMNS = (
    "run experiment grid block smem cluster cycles launches dist mean tasks rounds held_sms second_grid "
    "second_block second_smem second_cycles second_first high_priority streams kernels trigger log"
).split()
Row = dict[str, object]
CHOICE = random.Random(2026)


def residency(block: int, smem: int = 0) -> int:
    """Blocks an SM of the kernels here, whose registers limit nothing."""
    shared = -(-smem // 128) * 128 + 1024
    return min(32, 64 // -(-block // 32), 233472 // shared)


def waves(block: int, smem: int, share: float, extra: int = 0) -> int:
    """A grid of so many waves, and some blocks."""
    return max(int(SMS * residency(block, smem) * share) + extra, 1)


def spin() -> Iterator[Row]:
    shapes = [(block, 0) for block in (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)]
    shapes += [(64, 20000), (256, 20000), (96, 70000), (192, 70000), (128, 110000), (512, 110000)]
    shares = [0.5, 0.73, 0.985, 1.004, 1.37, 1.9, 2.003, 2.55, 3.6, 5.1, 7.3, 9.0]
    for block, smem in shapes:
        order = CHOICE.sample(shares, len(shares))
        for i, cycles in enumerate((300, 800, 1500, 3000, 6000, 15000)):
            for share in order[2 * i : 2 * i + 2]:
                grid = waves(block, smem, share, CHOICE.choice((0, 1, 3, 7)))
                yield {"experiment": "spin", "grid": grid, "block": block, "smem": smem, "cycles": cycles}


def spin_regs() -> Iterator[Row]:
    for grid, cycles in [(100, 3000), (133, 8000), (265, 3000), (401, 8000), (793, 3000), (793, 30000), (1583, 8000), (2400, 1000)]:
        yield {"experiment": "spin_regs", "grid": grid, "block": 256, "cycles": cycles}


def spin_dist() -> Iterator[Row]:
    laws = ["alternate", "bimodal", "exp", "last_slow", "lognormal", "normal10", "ramp_down", "ramp_up", "uniform"]
    shapes = [(64, 0, 5000, 2000), (192, 0, 2750, 12000), (512, 20000, 1333, 4000)]
    for law, (block, smem, grid, mean) in itertools.product(laws, shapes):
        yield {"experiment": "spin_dist", "grid": grid, "block": block, "smem": smem, "dist": law, "mean": mean, "log": 1}


def spoiler() -> Iterator[Row]:
    for held, cycles in itertools.product((20, 50, 80, 110, 120, 128), (0, 500, 2500)):
        yield {"experiment": "spoiler", "grid": CHOICE.choice((7777, 20001, 40000)), "block": 64, "smem": 13000, "held_sms": held, "cycles": cycles}
    for held, block, smem in [(50, 128, 0), (110, 128, 0), (80, 256, 30000), (120, 32, 0), (20, 512, 0), (128, 256, 30000)]:
        yield {"experiment": "spoiler", "grid": 9999, "block": block, "smem": smem, "held_sms": held, "cycles": 700}


def cluster() -> Iterator[Row]:
    for size, block, smem in itertools.product((1, 2, 4, 8, 16), (64, 256), (0, 50000, 150000)):
        most = residency(block, smem) * SMS // size
        for share in CHOICE.sample((0.4, 0.8, 1.15, 1.9, 2.4, 3.3), 2):
            cycles = CHOICE.choice((2500, 6000, 12000))
            yield {"experiment": "cluster", "grid": max(int(most * share), 1) * size, "block": block, "smem": smem, "cluster": size, "cycles": cycles}
    for size, block in itertools.product((1, 2, 8), (32, 512, 1024)):
        most = residency(block) * SMS // size
        yield {"experiment": "cluster", "grid": int(most * 1.3) * size, "block": block, "cluster": size, "cycles": 4000}


def several() -> Iterator[Row]:
    for grid, block, smem, cycles, second_grid, second_cycles in [
        (200, 128, 30000, 40000, 100, 20000),
        (700, 128, 30000, 40000, 333, 20000),
        (1111, 512, 0, 30000, 77, 50000),
        (400, 64, 70000, 50000, 500, 15000),
        (3000, 256, 0, 20000, 1000, 10000),
    ]:
        for priority in (0, 1):
            yield {
                "experiment": "two_kernels", "grid": grid, "block": block, "smem": smem, "cycles": cycles,
                "second_grid": second_grid, "second_cycles": second_cycles, "high_priority": priority, "log": 1,
            }  # fmt: skip
    for count, grid in itertools.product((3, 6, 12), (8, 40, 100)):
        yield {"experiment": "streams", "grid": grid, "block": 128, "smem": 100000, "cycles": 50000, "streams": count}
    for count, grid, cycles, smem in [(5, 300, 20000, 100000), (12, 200, 80000, 50000), (24, 24, 50000, 100000), (48, 50, 30000, 0)]:
        yield {"experiment": "streams", "grid": grid, "block": 256, "smem": smem, "cycles": cycles, "streams": count}
    for one, two in [
        ((132, 512, 60000, 30000), (300, 64, 0, 15000)),
        ((300, 256, 70000, 30000), (800, 128, 10000, 10000)),
        ((80, 1024, 0, 50000), (600, 256, 30000, 20000)),
        ((500, 64, 100000, 20000), (200, 256, 50000, 40000)),
        ((1500, 192, 0, 25000), (400, 96, 60000, 25000)),
        ((264, 128, 110000, 40000), (264, 128, 50000, 20000)),
    ]:
        for first in (0, 1):
            row: Row = {"experiment": "mixed_residency", "second_first": first, "log": 1}
            row.update(zip(("grid", "block", "smem", "cycles"), one, strict=True))
            row.update(zip(("second_grid", "second_block", "second_smem", "second_cycles"), two, strict=True))
            yield row


def launches() -> Iterator[Row]:
    grids = (1, 16, 66, 264, 528, 792, 2112)
    for i, grid in enumerate(grids):
        for cycles in ((500, 4000), (1000, 20000))[i % 2]:
            yield {"experiment": "launch_stream", "grid": grid, "block": 128, "cycles": cycles, "kernels": 400}
    for i, grid in enumerate(grids):
        for cycles in ((0, 500, 4000), (500, 2000, 4000))[i % 2]:
            yield {"experiment": "launch_graph", "grid": grid, "block": 128, "cycles": cycles, "kernels": 400}
    for grid, block, cycles in [(100, 256, 1000), (264, 512, 1000), (500, 64, 3000), (1500, 32, 1000)]:
        yield {"experiment": "launch_graph", "grid": grid, "block": block, "cycles": cycles, "kernels": 400}
    for i, grid in enumerate(grids):
        for cycles, trigger in itertools.product(((0, 2000), (500, 4000))[i % 2], (0, 1)):
            yield {"experiment": "launch_graph_pdl", "grid": grid, "block": 128, "cycles": cycles, "kernels": 200, "trigger": trigger}
    for grid, block, cycles in [(100, 256, 1000), (500, 64, 3000)]:
        for trigger in (0, 1):
            yield {"experiment": "launch_graph_pdl", "grid": grid, "block": block, "cycles": cycles, "kernels": 200, "trigger": trigger}


def grids() -> Iterator[Row]:
    for block, grid in itertools.product((96, 384, 768), (3, 101, 777, 3001, 6007, 12345, 25001, 77777, 200003)):
        yield {"experiment": "empty", "grid": grid, "block": block, "launches": 20 if grid < 100000 else 3}
    for i, (grid, block) in enumerate(itertools.product((300, 3000, 50000), (64, 96, 192, 512))):
        for cycles in ((200, 4000), (1000, 2000))[i % 2]:
            yield {"experiment": "spin_grid", "grid": grid, "block": block, "cycles": cycles}


def persistent() -> Iterator[Row]:
    for experiment in ("persistent_static", "persistent_atomic"):
        for block in (32, 64, 128, 256, 512):
            fitting = [grid for grid in (132, 200, 396, 528, 792, 1056, 2112) if grid <= SMS * residency(block)]
            for tasks, cycles in itertools.product((3000, 50000), (200, 1000, 4000)):
                for grid in CHOICE.sample(fitting, 2 if tasks == 3000 and block > 32 else 1):
                    yield {"experiment": experiment, "grid": grid, "block": block, "cycles": cycles, "tasks": tasks}
        for law, grid, block, tasks, mean in [
            ("ramp_up", 200, 64, 3000, 4000),
            ("ramp_down", 396, 128, 6000, 3000),
            ("uniform", 264, 256, 5000, 5000),
            ("exp", 132, 64, 3000, 8000),
            ("bimodal", 528, 128, 5000, 4000),
            ("lognormal", 200, 128, 4000, 6000),
        ]:
            yield {"experiment": experiment + "_dist", "grid": grid, "block": block, "dist": law, "mean": mean, "tasks": tasks}


def gridsync() -> Iterator[Row]:
    for block in (32, 64, 256, 512, 1024):
        fitting = [grid for grid in (4, 33, 100, 200, 400, 792, 1500, 3000) if grid <= SMS * residency(block)]
        for i, grid in enumerate(fitting):
            for cycles in ((0, 500), (500, 5000), (0, 5000))[i % 3]:
                yield {"experiment": "gridsync", "grid": grid, "block": block, "cycles": cycles, "rounds": 10}
    for grid, block, cycles in [(66, 512, 1000), (396, 128, 300), (800, 64, 3000), (2640, 64, 700)]:
        yield {"experiment": "gridsync", "grid": grid, "block": block, "cycles": cycles, "rounds": 30}


def rows() -> list[Row]:
    """Give every row, numbered; a few of the smaller ones are to log their blocks."""
    parts = (grids, spin, spin_regs, spin_dist, spoiler, cluster, several, launches, persistent, gridsync)
    found = [row for part in parts for row in part()]
    seen: dict[str, int] = {}
    for run, row in enumerate(found, start=1):
        row["run"] = run
        row.setdefault("smem", 0)
        row.setdefault("cluster", 1)
        name = str(row["experiment"])
        seen[name] = seen.get(name, 0) + 1
        every = {"spin": 16, "cluster": 8, "spin_regs": 4, "gridsync": 15, "spoiler": 6}.get(name)
        if every and seen[name] % every == 0:
            row["log"] = 1
    return found


def main() -> None:
    with open(sys.argv[1], "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows())


if __name__ == "__main__":
    main()
