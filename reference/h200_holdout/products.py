"""Tiled products of other shapes, on a machine with the device.

python products.py time OUT.csv
ncu --clock-control none --metrics ... -k regex:gemm python products.py count
"""

import csv
import itertools
import sys
from pathlib import Path

import torch
import triton

sys.path.insert(0, str(Path(__file__).parents[1] / "h200"))
from kernels import gemm

SHAPES = ((3072, 3072, 4096), (6144, 4096, 2048), (8192, 4096, 4096), (2048, 2560, 8192))
TILES = ((64, 64, 4), (128, 128, 4), (128, 256, 8), (64, 128, 4))
BK, STAGES = 64, 3

rows = []
for i, ((m, n, k), (bm, bn, warps), group, persistent) in enumerate(
    itertools.product(SHAPES, TILES, (4, 16), (0, 1))
):
    if (i // 2) % 2 and bm == 64:
        continue
    torch.manual_seed(0)
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(k, n, device="cuda", dtype=torch.bfloat16)
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    tiles = -(-m // bm) * -(-n // bn)
    grid = min(132, tiles) if persistent else tiles
    rec = torch.zeros(tiles * 3, device="cuda", dtype=torch.int64)
    options = {"PERSIST": bool(persistent), "num_warps": warps, "num_stages": STAGES}

    def launch():
        return gemm[(grid,)](a, b, c, rec, m, n, k, BM=bm, BN=bn, BK=BK, GROUP=group, **options)

    compiled = launch()
    torch.cuda.synchronize()
    if sys.argv[1] == "count":
        continue
    ms = triton.testing.do_bench(launch, warmup=10, rep=40)
    log = rec.view(-1, 3).cpu()
    span = int(log[:, 2].max() - log[:, 1].min())
    shape = (m, n, k, bm, bn, BK, warps, STAGES, group, persistent, grid)
    rows.append((*shape, compiled.n_regs, compiled.metadata.shared, round(ms * 1e3, 3), span))

if rows:
    names = "M N K bm bn bk warps stages group_m persistent grid regs smem median_us span_ns"
    with open(sys.argv[2], "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names.split())
        writer.writerows(rows)
