"""The profiler reader: every event is used or counted, and no time is rounded."""

import json
import tracemalloc
from pathlib import Path

import polars as pl
import pytest

from wavesim.errors import UnsupportedFile
from wavesim.io import read

REFERENCE = Path(__file__).parents[2] / "reference/h200/kineto"


def test_a_kernel_carries_its_shape_and_its_launch_call(kineto):
    path = kineto.call(ts=0.0, dur=4.0).kernel(ts=10.0, dur=5.5, grid=[4, 9, 2]).write()
    row = read(path).kernels.row(0, named=True)
    assert row["name"] == "gemm"
    assert (row["grid"], row["grid_x"], row["grid_y"], row["grid_z"]) == (72, 4, 9, 2)
    assert (row["block"], row["registers"], row["shared_memory"]) == (128, 32, 24)
    assert (row["start_ns"], row["end_ns"], row["duration_ns"]) == (10_000.0, 15_500.0, 5_500.0)
    assert (row["launch_name"], row["launch_start_ns"]) == ("cudaLaunchKernel", 0.0)
    assert row["launch_end_ns"] == 4_000.0


def test_times_since_1970_keep_their_nanoseconds(kineto):
    # A float holds 1.7e15 us only in steps of a quarter: .001 and .124 would become one number.
    for text in ("1712867402348256.001", "1712867402348256.124"):
        kineto.add("kernel", "k", 0, 1, pid=0, tid=7, args={"stream": 7, "grid": [1], "block": [1]})
        kineto.events[-1]["ts"] = f"@{text}@"
    raw = kineto.text().replace('"@', "").replace('@"', "")
    starts = read(kineto.write(text=raw)).kernels["start_ns"].to_list()
    assert starts == [0.0, 123.0]


@pytest.mark.parametrize(
    ("kernel", "call", "flow"),
    [
        ("kernel", "cuda_runtime", "ac2g"),
        ("Kernel", "Runtime", "async"),
        ("Kernel", "Runtime", "async_gpu"),
        ("kernel", "cuda_driver", "ac2g"),
    ],
)
def test_categories_of_every_year_are_read(kineto, kernel, call, flow):
    kineto.call(cat=call).kernel(cat=kernel)
    kineto.events.append({"ph": "s", "id": 1, "pid": 99, "tid": 99, "ts": 1, "cat": flow})
    trace = read(kineto.write())
    assert trace.kernels.height == 1
    assert trace.kernels["launch_start_ns"].null_count() == 0
    assert trace.host.height == 1


def test_a_stream_named_in_words_is_its_number(kineto):
    path = kineto.kernel(stream=..., tid="stream 7").write()
    assert read(path).kernels["stream"].to_list() == [7]


def test_devices_under_their_name_of_2021_are_found(kineto):
    device = {"id": 0, "name": "Tesla V100", "major": 7, "minor": 0, "multiProcessorCount": 80}
    kineto.header = {"computeProperties": [device]}
    assert read(kineto.kernel().write()).devices == (device,)


def test_rows_out_of_order_are_sorted_and_numbered(kineto):
    for name, ts in (("c", 30.0), ("a", 10.0), ("b", 20.0)):
        kineto.kernel(name, ts)
    frame = read(kineto.write()).kernels
    assert frame["name"].to_list() == ["a", "b", "c"]
    assert frame["id"].to_list() == [0, 1, 2]


def test_kernels_of_one_graph_share_its_launch_call(kineto):
    kineto.call("cudaGraphLaunch", ts=0.0, correlation=5)
    for number in range(40):
        kineto.kernel(ts=10.0 + 6 * number, correlation=5, **{"graph node id": number})
    frame = read(kineto.write()).kernels
    assert frame.height == 40
    assert frame["launch_name"].unique().to_list() == ["cudaGraphLaunch"]
    assert frame["graph_node"].to_list() == list(range(40))


def test_a_runtime_call_and_the_driver_call_inside_it_make_one_launch(kineto):
    kineto.call("cuLaunchKernel", ts=1.0, dur=2.0, cat="cuda_driver")
    kineto.call("cudaLaunchKernel", ts=0.0, dur=4.0).kernel()
    frame = read(kineto.write()).kernels
    assert frame["launch_name"].to_list() == ["cudaLaunchKernel"]


def test_a_kernel_whose_launch_is_missing_stays_and_is_reported(kineto, problems):
    trace = read(kineto.call(correlation=2).kernel(correlation=1).write())
    assert trace.kernels["launch_start_ns"].to_list() == [None]
    assert problems(trace)["kernels whose launch is not in the trace"] == 1


def test_overlapping_kernels_of_one_stream_stay_and_are_reported(kineto, problems):
    trace = read(kineto.kernel(ts=10.0, dur=5.0).kernel(ts=13.0, dur=5.0).write())
    assert trace.kernels.height == 2
    what = "kernels that start before the one in front of them in their stream ended"
    assert problems(trace)[what] == 1


def test_kernels_of_two_streams_may_overlap(kineto, problems):
    trace = read(kineto.kernel(ts=10.0).kernel(ts=11.0, stream=8).write())
    assert not any("start before the one" in what for what in problems(trace))


def test_zero_durations_and_empty_grids_stay_and_are_reported(kineto, problems):
    trace = read(kineto.kernel(dur=0).kernel(ts=20.0, grid=[0, 1, 1]).write())
    assert trace.kernels["duration_ns"].to_list() == [0.0, 5000.0]
    assert trace.kernels["grid"].to_list() == [264, 0]
    assert problems(trace)["kernel events of zero duration; kept"] == 1
    assert problems(trace)["kernels with an empty grid or block; kept"] == 1


def test_kernels_without_a_launch_shape_stay_with_nulls(kineto, problems):
    nothing = {"grid": ..., "block": ..., "registers per thread": ..., "shared memory": ...}
    trace = read(kineto.kernel(**nothing).write())
    row = trace.kernels.row(0, named=True)
    assert [row[key] for key in ("grid", "block", "registers", "shared_memory")] == [None] * 4
    assert problems(trace)["kernels without a launch shape: no occupancy or waves"] == 1


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "1e30", "-1e30", "null", '"soon"', "1e999999"])
def test_an_event_without_a_usable_time_is_counted_not_kept(kineto, problems, bad):
    kineto.kernel("good").kernel("bad")
    kineto.events[-1]["ts"] = "@"
    trace = read(kineto.write(text=kineto.text().replace('"@"', bad)))
    assert trace.kernels["name"].to_list() == ["good"]
    assert problems(trace)["kernel events with no usable time; left out"] == 1


def test_a_negative_duration_is_counted_not_kept(kineto, problems):
    trace = read(kineto.kernel("good").kernel("bad", dur=-3).write())
    assert trace.kernels["name"].to_list() == ["good"]
    assert problems(trace)["kernel events with a negative duration; left out"] == 1


def test_a_kernel_of_fifty_seconds_is_read_like_any_other(kineto):
    trace = read(kineto.kernel(dur=50e6).write())
    assert trace.kernels["duration_ns"].to_list() == [50e9]


def test_a_span_of_years_is_reported(kineto, problems):
    trace = read(kineto.kernel(ts=10.0).kernel(ts=12).write())
    assert problems(trace)["a span of days; some times are probably wrong"] == 1


def test_a_missing_device_description_is_reported(kineto, problems):
    del kineto.header["deviceProperties"]
    trace = read(kineto.kernel().write())
    assert trace.devices == ()
    assert any("no device properties" in what for what in problems(trace))


def test_elements_that_are_no_events_are_counted(kineto, problems):
    kineto.events += [7, None, "text", []]
    trace = read(kineto.kernel().write())
    assert problems(trace)["elements of traceEvents that are no object"] == 4


def test_every_event_is_counted_under_what_it_was_used_as(kineto):
    kineto.call().kernel().add("cpu_op", "aten::mm", 0.0, 1, pid=9, tid=9)
    kineto.add("gpu_memset", "Memset (Device)", 30.0, 1, pid=0, tid=7, args={"bytes": 4})
    kineto.events += [{"ph": "M", "name": "process_name"}, {"ph": "i", "s": "g"}]
    trace = read(kineto.write())
    assert trace.events["count"].sum() == len(kineto.events)
    used = dict(trace.events.group_by("used_as").agg(pl.col("count").sum()).iter_rows())
    assert used == {"kernel": 1, "runtime": 1, "memset": 1, "not used": 3}


def test_what_a_stream_waited_for_is_read(kineto):
    args = {
        "cuda_sync_kind": "Stream Wait Event",
        "stream": 24,
        "wait_on_stream": 20,
        "wait_on_cuda_event_record_corr_id": 1385,
        "wait_on_cuda_event_id": 19,
        "correlation": 1389,
        "device": 0,
    }
    kineto.kernel().add("cuda_sync", "Stream Wait Event", 1.0, 2, pid=0, tid=24, args=args)
    unset = args | {"stream": -1, "wait_on_stream": -1, "wait_on_cuda_event_record_corr_id": -1}
    kineto.add("cuda_sync", "Event Sync", 5.0, 2, pid=0, tid=-1, args=unset)
    rows = read(kineto.write()).syncs.select("stream", "wait_stream", "wait_record").rows()
    assert rows == [(24, 20, 1385), (None, None, None)]


def test_metadata_never_enters_a_trace(kineto):
    secret = "hunter2-secret"
    kineto.header |= {"token": secret, "traceName": f"/home/{secret}/t.json", "INFO": [secret]}
    kineto.header["deviceProperties"][0] |= {"serial": secret}
    kineto.events.append({"ph": "M", "name": "process_name", "args": {"name": secret}})
    kineto.kernel(**{"python path": secret})
    kineto.add("user_annotation", secret, 1.0, 1, pid=secret, tid=secret)
    trace = read(kineto.write())
    frames = (trace.kernels, trace.memory, trace.host, trace.syncs, trace.events, trace.problems)
    assert secret not in "".join(frame.write_json() for frame in frames)
    assert secret not in repr(trace)
    assert secret not in json.dumps(trace.devices)


def test_a_gzip_is_known_by_content_whatever_its_name(kineto):
    packed = kineto.kernel().write("a.json.gz")
    disguised = packed.rename(packed.with_name("a.json"))
    assert read(disguised).kernels.height == 1


def test_a_bare_array_of_events_is_read(kineto):
    trace = read(kineto.write(text=json.dumps(kineto.kernel().events)))
    assert trace.kernels.height == 1


def test_events_that_end_at_every_place_of_a_piece_are_whole(kineto, monkeypatch):
    kineto.header = {"deviceProperties": kineto.header["deviceProperties"], "n": 1234567}
    for number in range(30):
        kineto.kernel(f"kérnel-{number}", ts=10.0 * number)
    path = kineto.write(
        text=json.dumps(kineto.header | {"traceEvents": kineto.events}, ensure_ascii=False)
    )
    whole = read(path).kernels
    for size in (1, 2, 3, 7, 64, 1000):
        monkeypatch.setattr("wavesim.io.json_events.PIECE_BYTES", size)
        assert read(path).kernels.equals(whole)


def test_a_truncated_file_is_an_error_and_can_be_read_in_part(kineto, problems):
    kineto.kernel("first", 10.0).kernel("second", 20.0)
    path = kineto.write(text=kineto.text()[:-150])
    with pytest.raises(UnsupportedFile, match=r"cut off after 1 events.*keep_partial=True"):
        read(path)
    trace = read(path, keep_partial=True)
    assert trace.kernels["name"].to_list() == ["first"]
    assert problems(trace)["the file is cut off; later events are missing"] == 1


def test_a_truncated_gzip_is_an_error_and_can_be_read_in_part(kineto):
    for number in range(4000):
        kineto.kernel(f"k{number}", ts=10.0 * number, correlation=number)
    path = kineto.write("t.json.gz")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(UnsupportedFile, match="cut off after"):
        read(path)
    assert 3000 < read(path, keep_partial=True).kernels.height < 4000


@pytest.mark.parametrize("name", sorted(path.name for path in REFERENCE.glob("*.json.gz")))
def test_every_kernel_of_the_reference_traces_is_read_and_linked(name):
    trace = read(REFERENCE / name)
    assert trace.problems.height == 0
    assert trace.kernels.height > 100
    assert trace.kernels.null_count().select("grid", "block", "launch_start_ns").row(0) == (0, 0, 0)
    assert (trace.kernels["launch_start_ns"] < trace.kernels["start_ns"]).all()
    assert trace.grain_ns == 1.0


@pytest.mark.parametrize(
    ("stamps", "grain"),
    [([1000, 2000], 1000.0), ([1000.25, 2000.5], 250.0), ([1000.001, 2000.25], 1.0)],
)
def test_the_grain_of_the_times_is_told(kineto, stamps, grain):
    for ts in stamps:
        kineto.kernel(dur=1).events[-1]["ts"] = ts
    assert read(kineto.write()).grain_ns == grain


def test_bytes_that_are_no_utf8_are_replaced_and_reported(kineto, problems):
    raw = kineto.kernel("k@l").text().encode().replace(b"k@l", b"k\xffl")
    trace = read(kineto.write(text=raw))
    assert trace.kernels["name"].to_list() == ["k\ufffdl"]
    assert problems(trace)["bytes that are no UTF-8; replaced by U+FFFD"] == 1


def test_a_file_is_never_held_as_a_whole(kineto, monkeypatch):
    kineto.kernel()
    for number in range(20_000):
        kineto.add(
            "cpu_op", f"aten::op{number}", float(number), 1, pid=9, tid=9, args={"n": number}
        )
    path = kineto.write()
    size = path.stat().st_size
    kineto.events.clear()
    monkeypatch.setattr("wavesim.io.json_events.PIECE_BYTES", 1 << 14)
    tracemalloc.start()
    try:
        trace = read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert trace.events["count"].sum() == 20_001
    assert peak < size / 4
