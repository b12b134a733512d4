"""Memory work as a caller writes it: what is asked, what comes back, and what is refused."""

import numpy as np
import polars as pl
import pytest

import wavesim
from wavesim import Access, Duration, Kernel, Launch, Program
from wavesim.access import Listed, Panels
from wavesim.errors import InvalidInput
from wavesim.frames import L2, L2_SLICES, L2_WINDOWS


def tiles(order, m=3, n=4):
    pattern = Panels(a_bytes=512, b_bytes=512, steps=1, tiles_m=m, tiles_n=n, order=order)
    return pattern.tiles().astype(int).tolist()


def test_orders_are_rows_columns_groups_of_rows_or_a_list():
    assert tiles("row") == list(range(12))
    assert tiles("column") == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]
    # Two rows column by column, then the last row alone.
    assert tiles(2) == [0, 4, 1, 5, 2, 6, 3, 7, 8, 9, 10, 11]
    assert tiles(1) == tiles("row")
    assert tiles(3) == tiles("column")
    backwards = list(range(12))[::-1]
    assert tiles(backwards) == backwards


def test_every_order_has_every_tile_once():
    for order in ("row", "column", 1, 2, 5, 9):
        assert sorted(tiles(order, 7, 6)) == list(range(42))


def test_the_frame_of_l2_has_a_row_for_each_launch_with_memory_work():
    kernel = Kernel(64, 256, work=Access.stream(16_384), name="read")
    plain = Kernel(64, 256, work=Duration.constant(ns=100))
    run = wavesim.simulate("h200", Program([kernel, plain, kernel]))
    assert dict(run.l2.schema) == dict(L2)
    assert run.l2["kernel"].to_list() == [0, 2]
    assert run.l2["name"].to_list() == ["read", "read"]
    # 64 CTAs read 16 KiB each; the second launch finds all of it.
    assert run.l2["requested_sectors"].to_list() == [32_768, 32_768]
    assert run.l2["dram_read_bytes"].to_list() == [2**20, 0]
    assert run.l2["hit_share"][0] == 0.0


def test_a_run_without_memory_work_has_an_empty_frame_of_l2():
    run = wavesim.simulate("h200", Kernel(10, work=Duration.constant(ns=100)))
    assert run.l2.height == 0
    assert dict(run.l2.schema) == dict(L2)


def test_the_frame_of_l2_and_the_work_survive_saving(tmp_path):
    work = Access.panels(
        4096, 8192, steps=4, tiles_m=6, tiles_n=5, order=list(range(30))[::-1], overhead_cycles=43.0
    )
    program = Program(
        [Launch(Kernel(30, work=work)), Launch(Kernel(8, work=Access.broadcast(2**16)))]
    )
    run = wavesim.simulate("h200", program)
    run.save(tmp_path / "run")
    again = wavesim.load(tmp_path / "run")
    assert again.l2.equals(run.l2)
    assert again.program == program
    assert wavesim.simulate("h200", again.program).digest == run.digest


MOVED = [name for name in L2 if name not in ("kernel", "name", "hit_share")]


def test_slices_and_windows_add_up_to_the_launches_and_survive_saving(tmp_path):
    read = Kernel(300, 256, work=Access.reuse(16_384, 2_000, passes=2, shift=7), name="read")
    write = Kernel(200, 256, work=Access.stream(16_384, write=True))
    run = wavesim.simulate("h200", Program([read, write, read]), detail="memory")
    assert dict(run.l2_slices.schema) == dict(L2_SLICES)
    assert dict(run.l2_windows.schema) == dict(L2_WINDOWS)
    for frame in (run.l2_slices, run.l2_windows):
        sums = frame.group_by("kernel", maintain_order=True).agg(pl.col(MOVED).sum())
        assert sums.equals(run.l2.select("kernel", *MOVED))
    # The H200 has 94 slices in use, 47 in each half.
    assert run.l2_slices.filter(kernel=0)["slice"].to_list() == list(range(94))
    assert run.l2_slices["part"].to_list() == ([0] * 47 + [1] * 47) * 3
    windows = run.l2_windows
    assert (windows["start_ns"] < run.makespan_ns).all()
    assert (windows["end_ns"] - windows["start_ns"]).n_unique() == 1
    # Contiguous bytes are spread evenly: no slice is asked for a tenth more than another.
    asked = run.l2_slices.filter(kernel=0)["sm_sectors"]
    assert asked.max() < 1.1 * asked.min()

    run.save(tmp_path / "run")
    again = wavesim.load(tmp_path / "run")
    assert again.l2_slices.equals(run.l2_slices)
    assert again.l2_windows.equals(run.l2_windows)
    assert again.ctas.equals(run.ctas)


def test_slices_and_windows_are_asked_for_before_the_run():
    kernel = Kernel(64, 256, work=Access.stream(16_384))
    run = wavesim.simulate("h200", kernel)
    for frame in ("l2_slices", "l2_windows"):
        with pytest.raises(InvalidInput, match='detail="memory" to have them') as caught:
            getattr(run, frame)
        assert caught.value.field == "detail"
    # What is recorded changes nothing that happens; without memory work there is nothing.
    assert wavesim.simulate("h200", kernel, detail="memory").digest == run.digest
    plain = Kernel(10, work=Duration.constant(ns=100))
    assert wavesim.simulate("h200", plain, detail="memory").l2_windows.height == 0


def test_coalescing_of_neighbours_and_merging_of_misses_are_told_apart():
    moved = wavesim.simulate("h200", Kernel(132, 256, work=Access.broadcast(2**20))).l2
    row = moved.row(0, named=True)
    assert row["requested_sectors"] == row["coalesced_sectors"] + row["sm_sectors"]
    assert row["coalesced_sectors"] > row["sm_sectors"]
    assert 0 < row["merged_sectors"] <= row["hits"]
    # One CTA alone has nobody to share a request or a miss with.
    alone = wavesim.simulate("h200", Kernel(1, 256, work=Access.broadcast(2**20))).l2
    assert alone.select("coalesced_sectors", "merged_sectors").row(0) == (0, 0)


def test_a_list_of_offsets_is_read_in_place_and_moves_what_the_same_stream_moves():
    offsets = np.arange(64 * 128, dtype=np.float64) * 128
    work = Access.listed(offsets)
    assert isinstance(work.pattern, Listed)
    assert np.shares_memory(work.pattern.offsets.array, offsets)
    listed = wavesim.simulate("h200", Kernel(64, 256, work=work)).l2
    stream = wavesim.simulate("h200", Kernel(64, 256, work=Access.stream(128 * 128))).l2
    assert listed.select(MOVED).equals(stream.select(MOVED))
    polars = Access.listed(pl.Series(offsets, dtype=pl.Int64))
    assert polars == work


def test_strides_read_sectors_and_random_lines_follow_the_seed():
    # 4 bytes of each row of 1 KiB: a sector each.
    column = Access.strided(4, pieces=1_000, stride_bytes=1_024, cta_stride_bytes=4)
    moved = wavesim.simulate("h200", Kernel(1, 128, work=column)).l2.row(0, named=True)
    assert (moved["requested_sectors"], moved["dram_read_bytes"]) == (1_000, 32_000)
    scattered = Kernel(132, 256, work=Access.random(2**26, pieces=500))
    first, again, other = (wavesim.simulate("h200", scattered, seed=seed) for seed in (1, 1, 2))
    assert first.digest == again.digest != other.digest
    assert first.l2["requested_sectors"].item() == 132 * 500 * 4


def test_causal_attention_reads_fewer_keys_and_shared_heads_fewer_bytes_of_dram():
    def moved(**fields):
        work = Access.attention(32_768, 65_536, steps=16, q_tiles=16, heads=8, **fields)
        return wavesim.simulate("h200", Kernel(128, 256, work=work)).l2.row(0, named=True)

    whole, causal, shared = moved(), moved(causal=True), moved(kv_heads=2)
    queries, keys = 128 * 1_024, 8 * 16 * 2_048
    assert whole["requested_sectors"] == queries + 16 * keys
    # (1 + 2 + ... + 16) of 16 x 16 steps.
    assert causal["requested_sectors"] == queries + 8.5 * keys
    assert shared["requested_sectors"] == whole["requested_sectors"]
    assert whole["dram_read_bytes"] - shared["dram_read_bytes"] == 32 * keys * 3 / 4


def test_every_pattern_survives_saving(tmp_path):
    works = [
        Access.attention(4_096, 8_192, steps=2, q_tiles=4, heads=3, causal=True),
        Access.strided(4, pieces=10, stride_bytes=64, cta_stride_bytes=4),
        Access.random(2**20, pieces=10),
        Access.listed(np.arange(24.0) * 32, piece_bytes=32),
    ]
    program = Program([Kernel(12, 64, work=work) for work in works])
    run = wavesim.simulate("h200", program, seed=2)
    run.save(tmp_path / "run")
    again = wavesim.load(tmp_path / "run")
    assert again.program == program
    assert wavesim.simulate("h200", again.program, seed=2).digest == run.digest


def test_policies_of_the_cache_are_edited_by_name():
    kernel = Kernel(1_056, 256, work=Access.reuse(16_384, 64 * 64, passes=4))
    h200 = wavesim.device("h200")

    def read(**changes):
        device = h200.edited({f"l2.{field}": value for field, value in changes.items()})
        return wavesim.simulate(device, kernel).l2["dram_read_bytes"].item()

    # 64 MiB are more than fits: passes over them find next to nothing under LRU.
    assert read(replacement="random") < 0.9 * read(replacement="lru")
    with pytest.raises(InvalidInput, match=r"l2\.replacement") as caught:
        h200.edited({"l2.replacement": "fifo"})
    assert caught.value.value == "fifo"


def test_raster_order_changes_what_dram_reads_and_hits_follow():
    def read(order):
        work = Access.panels(16_384, 16_384, steps=64, tiles_m=64, tiles_n=64, order=order)
        kernel = Kernel(4_096, 256, shared_memory=100_000, work=work)
        return wavesim.simulate("h200", kernel, detail="kernels").l2.row(0, named=True)

    row, group = read("row"), read(16)
    random = read(np.random.default_rng(1).permutation(4_096))
    assert group["dram_read_bytes"] < row["dram_read_bytes"] < random["dram_read_bytes"]
    assert group["hit_share"] > row["hit_share"] > random["hit_share"]


def test_equal_input_gives_equal_digests_and_counts():
    kernel = Kernel(300, 256, work=Access.reuse(16_384, 2_000, passes=2, shift=7))
    first, again = (wavesim.simulate("h200", kernel, seed=3) for _ in range(2))
    assert first.digest == again.digest
    assert first.l2.equals(again.l2)


@pytest.mark.parametrize(
    ("work", "field"),
    [
        (lambda: Access.stream(0), "pattern.bytes"),
        (lambda: Access.stream(2**50), "pattern.bytes"),
        (lambda: Access.stream(512, overhead_cycles=-1.0), "overhead_cycles"),
        (lambda: Access.stream(512, cold_cycles=float("inf")), "cold_cycles"),
        (lambda: Access.panels(512, 512, steps=1, tiles_m=2, tiles_n=2, order="diagonal"), "order"),
        (lambda: Access.panels(512, 512, steps=1, tiles_m=2, tiles_n=2, order=0), "order"),
        (lambda: Access.reuse(512, 0), "chunks"),
        (lambda: Access.strided(0, 4, 128), "piece_bytes"),
        (lambda: Access.strided(4, 4, -128), "stride_bytes"),
        (lambda: Access.random(0, 4), "bytes"),
        (lambda: Access.listed([-1.0]), "offsets"),
        (lambda: Access.listed([[0.0]]), "offsets"),
        (lambda: Access.attention(1, 1, steps=0, q_tiles=1, heads=1), "steps"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_made(work, field):
    with pytest.raises(InvalidInput) as caught:
        work()
    assert field.rpartition(".")[2] in (caught.value.field or "")


@pytest.mark.parametrize(
    ("grid", "work", "message"),
    [
        (4, Access.stream(1024, buffer_bytes=4000), "work.buffer_bytes: the pattern leaves its"),
        (
            5,
            Access.panels(512, 512, steps=1, tiles_m=2, tiles_n=2),
            r"grid: 2 x 2 tiles need 4 CTAs \(got 5\)",
        ),
        (
            4,
            Access.panels(512, 512, steps=1, tiles_m=2, tiles_n=2, order=[0, 1]),
            "work.pattern.order: one tile a CTA",
        ),
        (
            4,
            Access.panels(512, 512, steps=1, tiles_m=2, tiles_n=2, order=[0, 1, 1, 0]),
            r"order\[2\]: this tile has come before",
        ),
        (
            4,
            Access.panels(512, 512, steps=1, tiles_m=2, tiles_n=2, order=[0, 1, 2, 4]),
            "a tile is one of 0 to 3",
        ),
        (1, Access.chase(64, 10), "work.pattern.stride_bytes: must be from 32"),
        (2, Access.listed([0.0]), "work.pattern.offsets: each of 2 CTAs needs an equal share"),
        (1, Access.listed([0.5]), r"work.pattern.offsets\[0\]: an offset is a whole number"),
        (
            1,
            Access.listed([0.0, 1_000.0], buffer_bytes=1_024),
            r"work.pattern.offsets\[1\]: an offset is a whole number of bytes from 0 to 896",
        ),
        (1, Access.random(64, 1), "work.pattern.piece_bytes: must not be larger than the 64"),
        (
            3,
            Access.strided(32, 2, 64, buffer_bytes=351),
            "work.buffer_bytes: the pattern leaves its buffer: it reaches 352",
        ),
        (
            4,
            Access.attention(1, 1, steps=1, q_tiles=2, heads=2, kv_heads=4),
            "work.pattern.kv_heads: must divide the 2 heads",
        ),
    ],
)
def test_work_that_does_not_fit_its_kernel_is_refused_with_its_path(grid, work, message):
    with pytest.raises(InvalidInput, match=message):
        wavesim.simulate("h200", Kernel(grid, work=work))


@pytest.mark.parametrize(
    "change",
    [
        {"l2.bytes": 0},
        {"l2.ways": 7},
        {"l2.ways": 0},
        {"l2.near_latency_cycles": 1e12},
        {"l2.slices": 97},
        {"l2.slices": 0},
        {"l2.sector_bytes": 64},
        {"l2.fabric_bandwidth_gb_s": -1.0},
        {"l2.replacement": "protected", "l2.protected_ways": 16},
        {"l2.write_policy": "sometimes"},
    ],
)
def test_caches_that_cannot_be_are_refused_with_their_field(change):
    with pytest.raises(InvalidInput, match=next(iter(change)).partition(".")[0]):
        wavesim.device("h200").edited(change)


def test_more_passes_read_more_of_dram_only_when_the_footprint_does_not_fit():
    def read(mb, passes):
        work = Access.reuse(16_384, mb * 64, passes=passes)
        run = wavesim.simulate("h200", Kernel(1_056, work=work), detail="kernels")
        return run.l2.select(pl.col("dram_read_bytes")).item()

    assert read(16, 4) == read(16, 1) == 16 * 2**20
    assert read(128, 4) == 4 * read(128, 1)
