"""Streaming kernels as a caller writes them: what is asked, what comes back, what is refused."""

import polars as pl
import pytest

import wavesim
from wavesim import Access, Kernel, Launch, Program, Streaming, Tiles
from wavesim.errors import InvalidInput
from wavesim.streaming import Array

ELEMENTS = 2**22


def simulated(work, ctas=2_112, threads=256, **fields):
    return wavesim.simulate("h200", Kernel(ctas, threads, work=work), **fields)


def moved(work, ctas=2_112):
    return simulated(work, ctas, detail="kernels").l2.row(0, named=True)


def times_of(run):
    return dict(run.busy.select("kind", "time_ps").iter_rows())


def test_a_kernel_knows_the_bytes_that_it_loads_and_stores():
    work = Streaming(1000, inputs=[Array(4), Array(2, 1)], outputs=Array(2, 2))
    assert (work.bytes_in, work.bytes_out) == (6_000, 2_000)


@pytest.mark.parametrize("share", ["contiguous", "grid_stride"])
@pytest.mark.parametrize("ctas", [1, 132, 4_096, 5_000])
def test_what_is_moved_is_what_the_arrays_hold_however_the_grid_shares_it(share, ctas):
    inputs = [Array(4, 0), Array(4, 1)]
    counts = moved(Streaming(ELEMENTS, inputs, Array(2, 2), share=share, operations=3), ctas)
    assert counts["requested_sectors"] * 32 == ELEMENTS * 8 == counts["dram_read_bytes"]
    assert counts["written_sectors"] * 32 == ELEMENTS * 2


def test_a_fill_loads_nothing_and_a_reduction_stores_one_result_a_cta():
    assert moved(Streaming(ELEMENTS, outputs=Array(4)))["requested_sectors"] == 0
    reduction = Streaming(ELEMENTS, inputs=Array(4), operations=1, result=Array(32, 1))
    assert moved(reduction, 132)["written_sectors"] == 132


def test_a_kernel_that_only_loads_is_the_access_stream_of_the_same_bytes():
    stream = simulated(Streaming(2_112 * 4_096, inputs=Array(4), overhead_cycles=43.0))
    access = simulated(Access.stream(16_384, overhead_cycles=43.0))
    assert stream.digest == access.digest
    assert stream.l2.equals(access.l2)


def test_a_kernel_finds_in_l2_what_the_one_before_has_stored():
    product = Tiles(1_024, 1_024, 256)
    gemm = Kernel(64, 128, shared_memory=98_304, work=product)
    of_product = Array(2, 0, offset_bytes=product.output_offset_bytes)
    gelu = Kernel(132, 256, work=Streaming(1_024 * 1_024, of_product, Array(2, 1), operations=20))
    run = wavesim.simulate("h200", Program([Launch(gemm), Launch(gelu)]))
    assert run.l2["dram_read_bytes"].to_list() == [2 * 2 * 1_024 * 256, 0]
    elsewhere = gelu.edited(work=gelu.work.edited(inputs=Array(2, 5)))
    run = wavesim.simulate("h200", Program([Launch(gemm), Launch(elsewhere)]))
    assert run.l2["dram_read_bytes"][1] == 2 * 1_024 * 1_024


def test_a_copy_is_limited_by_dram_and_a_kernel_of_many_operations_by_arithmetic():
    def diagnosed(operations):
        run = simulated(Streaming(2**24, Array(4), Array(4, 1), operations=operations))
        (busy,) = [found for found in run.diagnose() if found.account == "busy"]
        return run, busy.title.removeprefix("busy: CTAs run, limited by ")

    copy, limit = diagnosed(0)
    assert limit == "DRAM bandwidth"
    assert times_of(copy)["issue"] == 0
    heavy, limit = diagnosed(500)
    assert limit == "arithmetic"
    assert times_of(heavy)["memory"] < 0.1 * times_of(heavy)["issue"]


def test_a_kernel_is_at_issue_for_as_long_as_its_lanes_work():
    # One CTA an SM: its slot is busy for as long as it waits for memory and as the lanes work.
    work = Streaming(132 * 1_024 * 100, inputs=Array(4), operations=200)
    run = simulated(work, 132)
    cycles = 132 * 1_024 * 100 * 200 / run.device.limits.fp32_lanes
    # The run's slots are those of all CTAs that an SM holds.
    assert times_of(run)["issue"] == pytest.approx(cycles / run.device.clock.sm_mhz * 1e6, rel=1e-6)
    busy = run.ledger.row(by_predicate=pl.col("account") == "busy", named=True)["time_ps"]
    assert sum(times_of(run).values()) == busy


def test_a_saved_run_gives_back_its_arrays(tmp_path):
    work = Streaming(
        ELEMENTS,
        [Array(4, 3, 128), Array(2, 1)],
        operations=2.5,
        result=Array(4, 2),
        share="grid_stride",
        thread_elements=8,
        cold_cycles=9.0,
    )
    run = simulated(work)
    run.save(tmp_path / "run")
    again = wavesim.load(tmp_path / "run")
    assert again.program == run.program
    assert wavesim.simulate("h200", again.program).digest == run.digest


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"elements": 0}, "elements"),
        ({"inputs": ()}, "inputs"),
        ({"inputs": "x"}, "inputs[0]"),
        ({"inputs": [Array(4), {"bytes": 0}]}, "inputs[1].bytes"),
        ({"outputs": {"bytes": 4, "buffer": -1}}, "outputs[0].buffer"),
        ({"operations": -1.0}, "operations"),
        ({"operations": float("nan")}, "operations"),
        ({"share": "strided"}, "share"),
        ({"thread_elements": 0}, "thread_elements"),
        ({"result": {"bytes": 4, "what": 1}}, "result.what"),
        ({"startup_cycles": -1.0}, "startup_cycles"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_made(fields, field):
    with pytest.raises(InvalidInput) as caught:
        Streaming(**{"elements": 1_024, "inputs": Array(4)} | fields)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"inputs": [Array(4)] * 65}, "inputs"),
        ({"inputs": Array(5_000)}, "inputs[0].bytes"),
        ({"outputs": Array(4, 0, 2**40)}, "outputs[0].offset_bytes"),
        ({"elements": 2**39}, "elements"),
        ({"thread_elements": 1_025}, "thread_elements"),
    ],
)
def test_what_the_engine_refuses_is_told_with_its_path(fields, path):
    work = Streaming(**{"elements": 1_024, "inputs": Array(4)} | fields)
    with pytest.raises(InvalidInput) as caught:
        Kernel(1, work=work)
    assert caught.value.field == f"work.{path}"


def test_arrays_that_no_device_holds_are_refused_before_anything_is_simulated():
    work = Streaming(10**12, Array(4))
    why = "array reaches 4000000000000 bytes, and no device holds more than 1099511627776"
    with pytest.raises(InvalidInput, match=why) as caught:
        Kernel(1, work=work)
    assert caught.value.field == "work.elements"
    assert caught.value.value == 10**12
    with pytest.raises(InvalidInput, match="elements: must be less than or equal to 1099511627776"):
        Streaming(10**13, Array(1))
