"""The clock of each SM while products keep the tensor cores busy: python gpc_clocks.py OUT.csv

``gemm`` is that of ``../h200/kernels.py`` with the SM's clock beside the global timer. A row an SM: the
first and the last reading of both in the last launch of a second of them; with zeros as operands,
which take less power, of a launch by itself.
"""

import csv
import sys
import time

import torch
import triton
import triton.language as tl


@triton.jit
def clock(at):
    return tl.inline_asm_elementwise(
        "mov.u64 $0, %clock64;", "=l,r", [at], dtype=tl.int64, is_pure=False, pack=1
    )


@triton.jit
def gemm(A, B, C, rec, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PERSIST: tl.constexpr):
    start = tl.program_id(0)
    tm = tl.cdiv(M, BM)
    tn = tl.cdiv(N, BN)
    tiles = tm * tn
    step = tl.num_programs(0) if PERSIST else tiles
    for t in range(start, tiles, step):
        g0 = tl.extra.cuda.globaltimer()
        c0 = clock(t)
        width = GROUP * tn
        first = t // width * GROUP
        gs = min(tm - first, GROUP)
        pm = first + (t % width) % gs
        pn = (t % width) // gs
        rm = (pm * BM + tl.arange(0, BM)) % M
        rn = (pn * BN + tl.arange(0, BN)) % N
        rk = tl.arange(0, BK)
        a = A + rm[:, None] * K + rk[None, :]
        b = B + rk[:, None] * N + rn[None, :]
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for _ in range(0, tl.cdiv(K, BK)):
            acc = tl.dot(tl.load(a), tl.load(b), acc)
            a += BK
            b += BK * N
        om = pm * BM + tl.arange(0, BM)
        on = pn * BN + tl.arange(0, BN)
        tl.store(C + om[:, None] * N + on[None, :], acc.to(tl.bfloat16), mask=(om[:, None] < M) & (on[None, :] < N))
        g1 = tl.extra.cuda.globaltimer()
        c1 = clock(t + 1)
        tl.store(rec + t * 5, tl.extra.cuda.smid().to(tl.int64))
        tl.store(rec + t * 5 + 1, g0.to(tl.int64))
        tl.store(rec + t * 5 + 2, g1.to(tl.int64))
        tl.store(rec + t * 5 + 3, c0)
        tl.store(rec + t * 5 + 4, c1)


WIDE, SQUARE, SMALL = (128, 256, 8), (128, 128, 4), (64, 64, 4)
PRODUCTS = [  # M, N, K; tile and warps; persistent; zeros
    ((4096, 4096, 4096), WIDE, 0, 0), ((4096, 4096, 4096), WIDE, 1, 0), ((8192, 8192, 8192), WIDE, 1, 0), ((8192, 8192, 8192), WIDE, 1, 1),
    ((1536, 1536, 8192), WIDE, 0, 0), ((1536, 1536, 8192), WIDE, 0, 1), ((8192, 8192, 2048), SMALL, 1, 0), ((8192, 8192, 8192), SQUARE, 1, 0),
]  # fmt: skip

rows = []
for (m, n, k), (bm, bn, warps), persistent, zeros in PRODUCTS:
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(k, n, device="cuda", dtype=torch.bfloat16)
    if zeros:
        a.zero_()
        b.zero_()
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    tiles = -(-m // bm) * -(-n // bn)
    grid = min(132, tiles) if persistent else tiles
    rec = torch.zeros(tiles * 5, device="cuda", dtype=torch.int64)
    for repeat in range(3):
        began = time.time()
        while time.time() - began < (0.3 if zeros else 1.0):
            gemm[(grid,)](a, b, c, rec, m, n, k, BM=bm, BN=bn, BK=64, GROUP=8, PERSIST=bool(persistent), num_warps=warps, num_stages=3)
        torch.cuda.synchronize()
        if zeros:  # a launch on a device that has cooled down
            time.sleep(1)
            gemm[(grid,)](a, b, c, rec, m, n, k, BM=bm, BN=bn, BK=64, GROUP=8, PERSIST=bool(persistent), num_warps=warps, num_stages=3)
            torch.cuda.synchronize()
        sms = {}
        for smid, g0, g1, c0, c1 in rec.view(-1, 5).cpu().tolist():
            first, last = sms.get(smid, ((g0, c0), (g1, c1)))
            sms[smid] = (min(first, (g0, c0)), max(last, (g1, c1)))
        begin = min(first[0] for first, _ in sms.values())
        for smid, ((g0, c0), (g1, c1)) in sorted(sms.items()):
            rows.append((m, n, k, bm, bn, persistent, zeros, repeat, smid, g0 - begin, g1 - begin, c1 - c0))

with open(sys.argv[1], "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow("M N K bm bn persistent zeros repeat smid first_ns last_ns cycles".split())
    writer.writerows(rows)
