"""Memory work as a caller writes it: what is asked, what comes back, and what is refused."""

import numpy as np
import polars as pl
import pytest

import wavesim
from wavesim import Access, Duration, Kernel, Launch, Program
from wavesim.access import Panels
from wavesim.errors import InvalidInput
from wavesim.frames import L2


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
            "work.pattern.tiles_m: 2 x 2 tiles need as many",
        ),
        (
            4,
            Access.panels(512, 512, steps=1, tiles_m=2, tiles_n=2, order=[0, 1]),
            "work.pattern.order: one tile a CTA",
        ),
        (
            4,
            Access.panels(512, 512, steps=1, tiles_m=2, tiles_n=2, order=[0, 1, 2, 4]),
            "a tile is one of 0 to 3",
        ),
        (1, Access.chase(64, 10), "work.pattern.stride_bytes: must be from 32"),
    ],
)
def test_work_that_does_not_fit_its_kernel_is_refused_with_its_path(grid, work, message):
    with pytest.raises(InvalidInput, match=message):
        wavesim.simulate("h200", Kernel(grid, work=work))


@pytest.mark.parametrize(
    "change",
    [{"l2.bytes": 0}, {"l2.ways": 7}, {"l2.ways": 0}, {"l2.near_latency_cycles": 1e12}],
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
