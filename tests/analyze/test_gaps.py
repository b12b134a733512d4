"""Idle time in front of a kernel is put down to the host or to the device."""

import polars as pl
import pytest

from wavesim.analyze.gaps import on_one_clock, with_gaps
from wavesim.io.trace import KERNELS, MEMORY


def kernels(*rows):
    """Rows of (start, end, call start, call end) in ns, one stream."""
    known = [
        {
            "id": number,
            "name": f"k{number}",
            "stream": 7,
            "start_ns": start,
            "end_ns": end,
            "duration_ns": end - start,
            "launch_start_ns": call[0] if call else None,
            "launch_end_ns": call[1] if call else None,
        }
        for number, (start, end, *call) in enumerate(rows)
    ]
    return pl.DataFrame([dict.fromkeys(KERNELS) | row for row in known], schema=KERNELS)


def gaps(*rows):
    work = on_one_clock(kernels(*rows), pl.DataFrame(schema=MEMORY))
    return with_gaps(work)


def test_the_first_item_has_no_gap():
    row = gaps((10.0, 20.0, 0.0, 5.0)).row(0, named=True)
    assert row["launch_gap_ns"] is None
    assert row["gap_cause"] is None


def test_a_call_after_the_device_was_free_is_the_hosts_gap():
    row = gaps((0.0, 100.0, -9.0, -5.0), (500.0, 600.0, 300.0, 450.0)).row(1, named=True)
    assert (row["launch_gap_ns"], row["gap_cause"]) == (400.0, "host")
    assert (row["gap_host_ns"], row["gap_latency_ns"]) == (350.0, 50.0)
    assert row["queued_ns"] == 50.0


def test_a_launch_that_was_queued_is_the_devices_gap():
    row = gaps((0.0, 100.0, -9.0, -5.0), (120.0, 200.0, -4.0, -1.0)).row(1, named=True)
    assert (row["launch_gap_ns"], row["gap_cause"]) == (20.0, "device")
    assert (row["gap_host_ns"], row["gap_latency_ns"]) == (0.0, 20.0)
    assert row["queued_ns"] == 121.0


def test_a_call_that_spans_the_end_is_late_by_what_lies_behind_it():
    row = gaps((0.0, 100.0, -9.0, -5.0), (200.0, 300.0, 50.0, 180.0)).row(1, named=True)
    assert (row["gap_cause"], row["gap_host_ns"], row["gap_latency_ns"]) == ("host", 80.0, 20.0)


def test_a_kernel_that_starts_inside_its_call_was_not_queued():
    row = gaps((0.0, 100.0, -9.0, -5.0), (200.0, 300.0, 50.0, 260.0)).row(1, named=True)
    assert (row["queued_ns"], row["gap_host_ns"], row["gap_latency_ns"]) == (0.0, 100.0, 0.0)


def test_a_gap_without_a_launch_call_is_of_unknown_cause():
    row = gaps((0.0, 100.0, -9.0, -5.0), (200.0, 300.0)).row(1, named=True)
    assert (row["gap_cause"], row["gap_host_ns"], row["queued_ns"]) == ("unknown", None, None)


def test_work_that_still_runs_leaves_no_gap():
    rows = gaps((0.0, 500.0, -9.0, -5.0), (10.0, 20.0, -9.0, -5.0), (400.0, 600.0, 300.0, 390.0))
    assert rows["launch_gap_ns"].to_list() == [None, 0.0, 0.0]
    assert rows["gap_cause"].to_list() == [None, None, None]


@pytest.mark.parametrize("host_end", [-5.0, 50.0, 150.0, 250.0, 900.0])
def test_the_two_parts_of_a_gap_add_up(host_end):
    row = gaps((0.0, 100.0, -9.0, -5.0), (300.0, 400.0, -8.0, host_end)).row(1, named=True)
    assert row["gap_host_ns"] + row["gap_latency_ns"] == row["launch_gap_ns"] == 200.0
