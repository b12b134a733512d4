"""Tiled kernels as a caller writes them: what is asked, what comes back, and what is refused."""

import pytest

import wavesim
from wavesim import Kernel, Launch, Program, Tiles
from wavesim.errors import InvalidInput


def gemm(grid=None, order="row", **fields):
    work = Tiles(2048, 2048, 512, order=order, **fields)
    rows, columns = work.grid
    return Kernel(grid or rows * columns, 128, shared_memory=98_304, registers=230, work=work)


def moved(kernel, seed=0):
    run = wavesim.simulate("h200", kernel, detail="kernels", seed=seed)
    return run.l2.row(0, named=True)


def test_a_product_knows_its_tiles_its_shared_memory_and_its_operations():
    work = Tiles(1000, 500, 64, (128, 64, 32), stages=4)
    assert work.grid == (8, 8)
    assert work.shared_memory == 4 * (128 + 64) * 32 * 2
    assert work.flops == 2 * 1000 * 500 * 64


def test_what_is_moved_is_what_the_tiles_need():
    counts = moved(gemm())
    # 256 tiles of 8 steps, each of 16 KiB of A and 16 KiB of B; a tile of C is 32 KiB.
    assert counts["requested_sectors"] == 256 * 8 * 1024
    assert counts["written_sectors"] == 256 * 1024
    assert counts["dram_read_bytes"] == 2 * 2048 * 512 * 2


def test_a_persistent_grid_moves_the_same():
    plain, persistent = (
        wavesim.simulate("h200", gemm(grid), detail="kernels") for grid in (None, 132)
    )
    same = ("requested_sectors", "written_sectors", "dram_read_bytes")
    assert plain.l2.select(same).equals(persistent.l2.select(same))


def test_arithmetic_is_the_floor_of_a_large_product():
    work = Tiles(8192, 8192, 1024)
    kernel = Kernel(4096, 128, shared_memory=98_304, registers=230, work=work)
    device = wavesim.device("h200")
    took = wavesim.simulate(device, kernel, detail="kernels").kernels["duration_ns"].item()
    rate = device.sms * device.limits.tensor_flops_per_cycle * device.clock.sm_mhz / 1e3
    assert 1.0 < took / (work.flops / rate) < 1.6


def test_raster_order_changes_what_is_found_in_l2():
    def read(order):
        kernel = Kernel(
            4096,
            128,
            shared_memory=98_304,
            registers=230,
            work=Tiles(8192, 8192, 2048, order=order),
        )
        return moved(kernel)["dram_read_bytes"]

    # Two operands of 32 MiB: what is left of 562, 305 and 164 MB on the device.
    assert 2 * 2**25 <= read(32) < read(8) < read("row")


def test_equal_input_gives_equal_digests_and_counts():
    first, again = (wavesim.simulate("h200", gemm(order=4), seed=3) for _ in range(2))
    assert first.digest == again.digest
    assert first.l2.equals(again.l2)


def test_a_saved_run_gives_back_its_tiles(tmp_path):
    order = list(range(256))[::-1]
    program = Program([Launch(gemm(order=order, cold_cycles=7.0)), Launch(gemm(132, order=8))])
    run = wavesim.simulate("h200", program)
    run.save(tmp_path / "run")
    again = wavesim.load(tmp_path / "run")
    assert again.program == program
    assert again.l2.equals(run.l2)
    assert wavesim.simulate("h200", again.program).digest == run.digest


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"m": 0}, "m"),
        ({"k": 0}, "k"),
        ({"k": 2**33}, "k"),
        ({"tile": (128, 0, 64)}, "tile[1]"),
        ({"stages": 1}, "stages"),
        ({"element_bytes": 0}, "element_bytes"),
        ({"order": "diagonal"}, "order"),
        ({"order": 0}, "order"),
        ({"order": float("inf")}, "order"),
        ({"order": float("nan")}, "order"),
        ({"order": 1.5}, "order"),
        ({"order": [0.0, float("nan")]}, "order"),
        ({"overhead_cycles": -1.0}, "overhead_cycles"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_made(fields, field):
    with pytest.raises(InvalidInput) as caught:
        Tiles(**{"m": 128, "n": 128, "k": 64} | fields)
    assert (caught.value.field or "").startswith(field)


def test_a_list_that_has_no_tiles_is_told_in_words_of_tiles():
    with pytest.raises(
        InvalidInput, match=r"\[1\]: a tile is a whole number from 0 on \(got nan\)"
    ):
        Tiles(128, 128, 64, order=[0.0, float("nan")])


@pytest.mark.parametrize(
    ("grid", "shared_memory", "fields", "message"),
    [
        (5, 98_304, {}, r"grid: the product's 2 x 2 tiles are for 4 CTAs at most \(got 5\)"),
        (4, 98_303, {}, "work.stages: 98,304 bytes of operands do not fit into the CTA's 98,303"),
        (4, 98_304, {"order": [0, 1, 2]}, "work.order: one place a tile is needed, 4 in all"),
        (4, 98_304, {"order": [0, 1, 2, 2]}, r"order\[3\]: this tile has come before"),
        (4, 98_304, {"order": [0, 1, 2, 4]}, r"order\[3\]: a tile is one of 0 to 3"),
    ],
)
def test_work_that_does_not_fit_its_kernel_is_refused_with_its_path(
    grid, shared_memory, fields, message
):
    with pytest.raises(InvalidInput, match=message):
        wavesim.simulate(
            "h200",
            Kernel(grid, 128, shared_memory=shared_memory, work=Tiles(256, 256, 64, **fields)),
        )
