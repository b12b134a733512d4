"""Draw rows to measure: shapes, grids and times that belong to no series, from a fixed seed.

    python rows.py rows.csv

The columns are those of `../h200_holdout/rows.csv`, and `../h200_holdout/measure.cu` measures them.
"""

from __future__ import annotations

import csv
import random
import sys

SMS = 132
COLUMNS = (
    "run experiment grid block smem cluster cycles launches dist mean tasks rounds held_sms second_grid "
    "second_block second_smem second_cycles second_first high_priority streams kernels trigger log"
).split()
SHAPES = [32, 64, 96, 128, 160, 224, 256, 320, 384, 512, 640, 768, 1024]
LAWS = ["alternate", "bimodal", "exp", "last_slow", "lognormal", "normal10", "ramp_down", "ramp_up", "uniform"]
DRAW = random.Random(77)
one = DRAW.choice


def residency(block: int, smem: int = 0) -> int:
    """Blocks an SM."""
    return min(32, 64 // -(-block // 32), 233472 // (-(-smem // 128) * 128 + 1024))


def rows() -> list[dict[str, object]]:
    """Give them in the order in which they were drawn."""
    found: list[dict[str, object]] = []

    def add(experiment: str, **fields: object) -> None:
        found.append({"run": len(found) + 1, "experiment": experiment, "smem": 0, "cluster": 1, **fields})

    for _ in range(60):
        block, smem = one(SHAPES), one([0, 0, 0, 6000, 15000, 33000, 60000, 90000])
        cycles = one([200, 400, 700, 1200, 2500, 5000, 12000, 30000])
        share = one([0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1, 1.05, 1.2, 1.5, 2, 2.2, 3, 4.5, 6])
        grid = max(1, int(SMS * residency(block, smem) * share)) + one([0, 1, 2, 5])
        add("spin", grid=grid, block=block, smem=smem, cycles=cycles)
    for _ in range(12):
        grid = one([50, 132, 180, 264, 300, 528, 600, 1000, 2000])
        add("spin_regs", grid=grid, block=256, cycles=one([500, 2000, 5000, 12000, 30000]))
    for _ in range(14):
        block = one([32, 64, 128, 256, 512, 1024])
        grid = int(SMS * residency(block) * one([1.3, 2.2, 3.7]))
        add("spin_dist", grid=grid, block=block, dist=one(LAWS), mean=one([1500, 5000, 10000]), log=1)
    for _ in range(20):
        block, smem = one([32, 64, 128, 256, 512]), one([0, 6000, 20000])
        grid, cycles = one([3000, 8000, 15000]), one([0, 300, 1000, 3000])
        add("spoiler", grid=grid, block=block, smem=smem, cycles=cycles, held_sms=one([1, 10, 44, 66, 100, 120, 130]))
    for _ in range(24):
        cluster, block, smem = one([1, 2, 4, 8, 16]), one([64, 128, 256, 512, 1024]), one([0, 30000, 80000])
        grid = cluster * DRAW.randrange(4, 900)
        add("cluster", grid=grid, block=block, smem=smem, cluster=cluster, cycles=one([1500, 4000, 10000]))
    for experiment in ("persistent_static", "persistent_atomic"):
        for _ in range(34):
            block = one([32, 64, 96, 128, 192, 256, 384, 512, 1024])
            most = SMS * residency(block)
            # Some of these are more than the device holds at once.
            grid = one([66, 132, 198, 264, 400, 528, 700, 1056, most, most, most + SMS, 2 * most, int(1.5 * most)])
            add(experiment, grid=grid, block=block, cycles=one([0, 150, 500, 1500, 6000]), tasks=one([700, 2500, 10000, 60000]))
    for _ in range(20):
        block = one([32, 64, 128, 256, 512, 1024])
        grid = min(SMS * residency(block), one([2, 20, 66, 132, 200, 264, 500, 1000, 2000, 4000]))
        add("gridsync", grid=grid, block=block, cycles=one([0, 300, 1000, 4000]), rounds=one([5, 20, 50]))
    for _ in range(8):
        add(
            "two_kernels",
            grid=one([100, 500, 1200, 2500]),
            block=one([64, 256, 512]),
            smem=one([0, 40000]),
            cycles=one([15000, 30000]),
            second_grid=one([50, 200, 900]),
            second_cycles=one([8000, 25000]),
            high_priority=one([0, 1]),
            log=1,
        )
    for experiment, count in (("launch_graph_pdl", 12), ("launch_graph", 10)):
        for _ in range(count):
            grid, block = one([1, 8, 50, 132, 200, 400, 700, 1056, 1500]), one([64, 128, 256, 512])
            fields: dict[str, object] = {"grid": grid, "block": block, "cycles": one([0, 700, 2500, 6000])}
            if experiment == "launch_graph_pdl":
                add(experiment, **fields, kernels=200, trigger=one([0, 1]))
            else:
                add(experiment, **fields, kernels=400)
    for _ in range(16):
        add("empty", grid=one([1, 10, 132, 600, 5000, 30000, 100000]), block=one([32, 64, 256, 512, 1024]), launches=one([1, 20]))
    for _ in range(16):
        add("spin_grid", grid=one([100, 1000, 5000, 30000]), block=one([32, 64, 128, 256, 512, 1024]), cycles=one([0, 500, 2000, 8000]))
    return found


if __name__ == "__main__":
    with open(sys.argv[1], "w", newline="") as table:
        writer = csv.DictWriter(table, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(rows())
