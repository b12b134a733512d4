"""L2 moves sectors of 32 bytes: what is asked for in smaller pieces counts as those it touches."""

import polars as pl
import pytest

import wavesim
from wavesim import Access, Kernel, Program

SECTOR = 32


def moved(*kernels: Kernel) -> dict[str, int]:
    run = wavesim.simulate("h200", Program(list(kernels)))
    return run.l2.row(-1, named=True)


@pytest.mark.parametrize(
    ("sectors", "kernel"),
    [
        # Four sectors of one line, each missed by itself.
        (4, Kernel(1, 32, work=Access.listed([0, 32, 64, 96], piece_bytes=32))),
        # A piece that lies over the end of a sector touches two.
        (2, Kernel(1, 32, work=Access.listed([16], piece_bytes=32))),
        # A sector at a time, over 128 KiB and over 1 MiB.
        (4_096, Kernel(1, 256, work=Access.strided(32, 4_096, 32))),
        (2**15, Kernel(1, 32, work=Access.chase(2**20, 2**15, 32))),
        # Four bytes of each line: a sector each.
        (132 * 4_096, Kernel(132, 256, work=Access.strided(4, 4_096, 128))),
        # Halves of lines.
        (132 * 1_024 * 2, Kernel(132, 256, work=Access.strided(64, 1_024, 64))),
        # A byte a CTA: 132 bytes lie in five sectors.
        (5, Kernel(132, 32, work=Access.stream(1))),
    ],
)
def test_cold_reads_take_each_sector_that_they_touch_from_dram_once(sectors, kernel):
    assert moved(kernel)["dram_read_bytes"] == sectors * SECTOR


def test_lines_of_which_sectors_were_read_hit_in_these_only():
    first = Kernel(1, 32, work=Access.listed([0, 128], piece_bytes=32))
    second = Kernel(1, 32, work=Access.listed([0, 32, 128, 224], piece_bytes=32))
    row = moved(first, second)
    assert row["dram_read_bytes"] == 2 * SECTOR
    assert row["hits"] == 2


def test_a_stored_sector_says_nothing_of_the_others_of_its_line():
    store = Kernel(1, 32, work=Access.listed([0], piece_bytes=32, write=True))
    assert moved(store, Kernel(1, 32, work=Access.listed([0], piece_bytes=32)))["hits"] > 0
    other = Kernel(1, 32, work=Access.listed([64], piece_bytes=32))
    assert moved(store, other)["dram_read_bytes"] == SECTOR


def test_stores_that_go_through_move_whole_sectors():
    device = wavesim.device("h200").edited({"l2.write_policy": "write_through"})
    run = wavesim.simulate(device, Kernel(132, 32, work=Access.random(2**30, 10, 1, write=True)))
    assert run.l2["dram_written_bytes"][0] == run.l2["written_sectors"][0] * SECTOR


@pytest.mark.parametrize("name", ["l4", "a100-sxm4-80", "h200"])
def test_stores_are_no_faster_than_dram_and_an_sms_port(name):
    device = wavesim.device(name)

    def gb_s(ctas: int, threads: int) -> float:
        run = wavesim.simulate(device, Kernel(ctas, threads, work=Access.stream(2**21, write=True)))
        rate = pl.col("dram_written_bytes") / run.kernels["duration_ns"][0]
        written = run.l2.select(rate, pl.col("written_sectors") * SECTOR)
        assert written["dram_written_bytes"][0] <= device.dram.bandwidth_gb_s
        return float(written["written_sectors"][0]) / float(run.kernels["duration_ns"][0])

    gb_s(device.sms * 8, 256)
    port = device.l2.port_bytes_per_cycle * device.clock.sm_mhz / 1e3
    assert gb_s(1, 32) <= port
