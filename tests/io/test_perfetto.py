"""Chrome JSON: valid, exact to the nanosecond, and every track's slices nest."""

import gzip
import itertools
import json
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from wavesim.errors import WavesimError
from wavesim.io import perfetto
from wavesim.io.perfetto import write_analysis, write_run

NAME = 'void f<"a", float&>(T const*)\\\n'


def kernels_frame(times: list[tuple[int, float, float]]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "kernel": range(len(times)),
            "name": [NAME] * len(times),
            "stream": [stream for stream, _, _ in times],
            "grid": [4] * len(times),
            "waves": [float("inf")] + [1.5] * (len(times) - 1),
            "launch_gap_ns": [None] + [0.5] * (len(times) - 1),
            "start_ns": [start for _, start, _ in times],
            "end_ns": [end for _, _, end in times],
        }
    )


def fake_run(detail: str = "ctas") -> Any:
    """Two SMs of swapped GPC order, two slots, CTAs that touch at times between nanoseconds."""
    rows = [
        (
            0,
            turn * 4 + sm * 2 + slot,
            sm,
            slot,
            10.0 + turn * 1000.4996,
            10.0 + (turn + 1) * 1000.4996,
        )
        for sm, slot, turn in itertools.product(range(2), range(2), range(50))
    ]
    names = ["kernel", "cta", "sm", "slot", "start_ns", "end_ns"]
    return SimpleNamespace(
        detail=detail,
        kernels=kernels_frame([(7, 10.0, 50_034.98)]),
        ctas=pl.DataFrame(rows, schema=names, orient="row"),
        sms=pl.DataFrame({"sm": [0, 1], "gpc": [1, 0]}),
    )


def events_of(path: Path) -> list[dict[str, Any]]:
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["displayTimeUnit"] == "ns"
    return list(document["traceEvents"])


def slices(events: list[dict[str, Any]]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Track -> (start, end) in whole nanoseconds."""
    tracks = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            start, length = round(event["ts"] * 1000), round(event["dur"] * 1000)
            tracks[event["pid"], event["tid"]].append((start, start + length))
    return tracks


def assert_slices_never_overlap(events: list[dict[str, Any]]) -> None:
    for track in slices(events).values():
        for (_, end), (start, _) in itertools.pairwise(sorted(track)):
            assert end <= start


def names(events: list[dict[str, Any]], what: str) -> dict[tuple[int, int], str]:
    return {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == what}


def test_each_slot_is_a_track_whose_slices_touch_but_never_overlap(tmp_path: Path) -> None:
    write_run(fake_run(), tmp_path / "t.json")
    events = events_of(tmp_path / "t.json")
    tracks = {track: times for track, times in slices(events).items() if track[0] >= 10}
    assert sorted(tracks) == [(10, 0), (10, 1), (11, 0), (11, 1)]
    for times in tracks.values():
        assert len(times) == 50
        assert all(a[1] == b[0] for a, b in itertools.pairwise(times))


def test_sms_are_processes_in_the_order_of_their_gpc(tmp_path: Path) -> None:
    write_run(fake_run(), tmp_path / "t.json")
    events = events_of(tmp_path / "t.json")
    processes = names(events, "process_name")
    order = {
        event["pid"]: event["args"]["sort_index"]
        for event in events
        if event["name"] == "process_sort_index"
    }
    assert [processes[pid, 0] for pid in sorted(order, key=order.__getitem__)] == [
        "kernels",
        "GPC 0, SM 1",
        "GPC 1, SM 0",
    ]


def test_names_with_quotes_brackets_and_newlines_stay_what_they_are(tmp_path: Path) -> None:
    write_run(fake_run(), tmp_path / "t.json")
    assert {e["name"] for e in events_of(tmp_path / "t.json") if e["ph"] == "X"} == {NAME}


def test_times_are_microseconds_with_three_decimals(tmp_path: Path) -> None:
    write_run(fake_run(), tmp_path / "t.json")
    text = (tmp_path / "t.json").read_text()
    assert '"ts":0.010,"dur":50.025,' in text
    assert '"ts":1.010,"dur":1.001,"args":{"kernel":0,"cta":4}' in text


def test_what_json_has_no_number_for_is_left_out(tmp_path: Path) -> None:
    write_run(fake_run(), tmp_path / "t.json")
    (kernel,) = [e for e in events_of(tmp_path / "t.json") if e["ph"] == "X" and e["pid"] == 2]
    assert kernel["args"] == {"kernel": 0, "grid": 4}


def test_kernels_of_one_stream_that_overlap_get_lanes_of_their_own(tmp_path: Path) -> None:
    run = fake_run("kernels")
    run.kernels = kernels_frame([(3, 0.0, 100.0), (3, 50.0, 160.0), (3, 100.0, 120.0), (4, 0, 9)])
    write_run(run, tmp_path / "t.json")
    events = events_of(tmp_path / "t.json")
    assert_slices_never_overlap(events)
    assert names(events, "thread_name") == {
        (2, 0): "stream 3",
        (2, 1): "stream 3, overlapping 1",
        (2, 2): "stream 4",
    }
    assert slices(events)[2, 0] == [(0, 100), (100, 120)]


def test_a_run_of_kernels_has_the_stream_tracks_only(tmp_path: Path) -> None:
    run = fake_run("kernels")
    del run.ctas
    write_run(run, tmp_path / "t.json")
    assert set(slices(events_of(tmp_path / "t.json"))) == {(2, 0)}


def test_gz_is_the_same_document_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    write_run(fake_run(), tmp_path / "t.json")
    write_run(fake_run(), tmp_path / "a.json.gz")
    write_run(fake_run(), tmp_path / "b.json.gz")
    assert (
        gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == (tmp_path / "t.json").read_bytes()
    )
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def test_more_ctas_than_a_piece_holds_are_all_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perfetto, "_CHUNK", 7)
    run = fake_run()
    write_run(run, tmp_path / "t.json")
    written = [
        e["args"]["cta"]
        for e in events_of(tmp_path / "t.json")
        if e["pid"] >= 10 and e["ph"] == "X"
    ]
    assert written == run.ctas["cta"].to_list()


def test_an_analysis_has_measured_and_simulated_kernels_on_one_clock(tmp_path: Path) -> None:
    kernels = pl.DataFrame(
        {"name": ["k", "k"], "stream": [7, None], "start_ns": [0.0, 5.0], "end_ns": [4.0, 9.0]}
    )
    copies = kernels.head(1).with_columns(
        pl.lit("memcpy").alias("what"), pl.lit(9.0).alias("end_ns")
    )
    analysis: Any = SimpleNamespace(
        kernels=kernels,
        work=copies,
        compare=pl.DataFrame(
            {
                "name": ["k"],
                "stream": [7],
                "simulated_start_ns": [-3.0],
                "simulated_duration_ns": [4.0],
            }
        ),
    )
    write_analysis(analysis, tmp_path / "t.json")
    events = events_of(tmp_path / "t.json")
    processes = names(events, "process_name")
    assert (processes[1, 0], processes[2, 0]) == ("measured", "simulated")
    assert slices(events) == {
        (1, 0): [(3, 7)],
        (1, 1): [(3, 12)],
        (1, 2): [(8, 12)],
        (2, 0): [(0, 4)],
    }
    assert names(events, "thread_name")[1, 2] == "no stream"
    assert_slices_never_overlap(events)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "t.json"
    with pytest.raises(WavesimError, match=str(target)):
        write_run(fake_run(), target)
