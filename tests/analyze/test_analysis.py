"""What an analysis says of kernels, gaps and the whole trace."""

import polars as pl
import pytest

import wavesim
from wavesim.errors import InvalidInput, UnsupportedFile

TRACES = ["decode_eager", "decode_graph", "four_streams", "train_compiled", "train_eager"]


def test_residency_and_waves_follow_from_the_launch_shape(trace):
    shape = {"grid": 528, "block": 256, "registers_per_thread": 128}
    row = trace.call(0.0, 1.0, 1).kernel(5.0, 10.0, 1, **shape).analyze().kernels.row(0, named=True)
    assert (row["residency"], row["occupancy"], row["limiter"]) == (2, 0.25, "REGS")
    assert row["waves"] == 528 / (132 * 2)
    assert row["wave_efficiency"] == 1.0


def test_a_grid_just_over_a_wave_loses_half_in_its_tail(trace):
    shape = {"grid": 133, "block": 1024, "registers_per_thread": 64}
    row = trace.call(0.0, 1.0, 1).kernel(5.0, 10.0, 1, **shape).analyze().kernels.row(0, named=True)
    assert row["residency"] == 1
    assert row["tail_share"] == pytest.approx(1 - 133 / 264)


def test_large_shared_memory_gets_its_true_occupancy_not_the_profilers_zero(trace):
    shape = {"grid": 132, "block": 384, "registers_per_thread": 168, "shared_memory": 200_000}
    trace.call(0.0, 1.0, 1).kernel(5.0, 10.0, 1, **shape, **{"est. achieved occupancy %": 0})
    row = trace.analyze().kernels.row(0, named=True)
    assert row["profiler_occupancy"] == 0.0
    assert row["occupancy"] == pytest.approx(12 / 64)


def test_a_shape_that_the_device_refuses_says_why(trace):
    trace.call(0.0, 1.0, 1).kernel(5.0, 10.0, 1, shared_memory=100_000)
    row = trace.analyze("v100-sxm2").kernels.row(0, named=True)
    assert row["residency"] == 0
    assert "shared memory" in row["refusal"]
    assert row["waves"] is None


@pytest.mark.parametrize("name", TRACES)
def test_the_ledger_adds_up_to_the_span_of_the_trace(reference, name):
    analysis = reference(name)
    assert analysis.ledger["time_ns"].sum() == pytest.approx(analysis.trace.span_ns, rel=1e-12)
    assert (analysis.ledger["time_ns"] >= 0.0).all()


def test_eager_decoding_is_host_bound_and_by_graph_it_is_not(reference):
    share = {
        name: dict(reference(name).ledger.select("account", "share").iter_rows())
        for name in ("decode_eager", "decode_graph")
    }
    assert share["decode_eager"]["host"] > 0.8
    assert share["decode_graph"]["host"] < 0.01
    assert share["decode_graph"]["queue"] > 0.04


def test_kernels_of_one_name_are_added_up(reference):
    analysis = reference("train_eager")
    frame = analysis.by_name
    assert frame["calls"].sum() == analysis.kernels.height
    assert frame["total_ns"].sum() == pytest.approx(analysis.kernels["duration_ns"].sum())
    assert frame["share"].sum() == pytest.approx(1.0)
    assert frame["total_ns"].is_sorted(descending=True)
    assert frame["name"].n_unique() == frame.height


def test_the_busiest_gpu_is_analyzed_unless_another_is_asked_for(trace):
    trace.kernel(0.0, 5.0, 1, gpu=0).kernel(0.0, 50.0, 2, gpu=3)
    assert trace.analyze("h200").gpu == 3
    assert trace.analyze("h200", gpu=0).kernels["name"].to_list() == ["k1"]
    with pytest.raises(InvalidInput, match=r"gpu: the trace has work on GPUs \[0, 3\] \(got 7\)"):
        trace.analyze("h200", gpu=7)


@pytest.mark.parametrize("device", [None, {"id": 0, "name": ""}, {"id": 5, "name": "NVIDIA H200"}])
def test_a_trace_that_does_not_say_its_device_asks_for_one(trace, device):
    trace.device = device
    trace.kernel(0.0, 5.0, 1)
    with pytest.raises(InvalidInput, match="name one, such as device='h200'") as caught:
        trace.analyze()
    assert caught.value.field == "device"
    assert trace.analyze("h200").device.sms == 132


def test_a_device_may_be_given_as_an_object(trace):
    half = wavesim.device("h200").scaled(sms=66)
    row = trace.kernel(0.0, 5.0, 1, grid=66 * 16).analyze(half).kernels.row(0, named=True)
    assert row["waves"] == pytest.approx(1.0)


def test_analyze_reads_a_path_and_says_what_is_wrong_with_it(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("{}")
    with pytest.raises(UnsupportedFile, match="no traceEvents"):
        wavesim.analyze(path)


def test_a_trace_of_copies_alone_is_analyzed(trace):
    analysis = trace.call(0.0, 1.0, 1).copy(5.0, 5.0, 1).copy(20.0, 5.0, 2).analyze()
    assert analysis.kernels.height == 0
    found = dict(analysis.ledger.select("account", "time_ns").iter_rows())
    assert (found["copy"], found["unlinked"]) == (10_000.0, 10_000.0)
    assert analysis.replay.makespan_ns > 0
    assert analysis.accuracy.height == 0
    assert "2 copies" in str(analysis.summary())


def test_the_summary_is_text_that_names_kernels_accounts_and_changes(reference):
    summary = reference("decode_graph").summary(3)
    text = str(summary)
    assert summary.top.height == 3
    for part in (
        "NVIDIA H200",
        "vectorized_layer_norm_kernel",
        "small_grid",
        "makespan",
        "one graph",
    ):
        assert part in text
    assert max(map(len, text.splitlines())) < 200
    for rows in (0, 2**80, 1.5):
        with pytest.raises(InvalidInput, match=r"^rows: must be from 1 to"):
            reference("decode_graph").summary(rows)


def test_no_path_enters_the_summary_or_the_frames(reference, trace):
    analysis = trace.kernel(0.0, 5.0, 1).analyze()
    text = str(analysis.summary()) + repr(analysis) + repr(analysis.trace)
    text += "".join(frame.write_json() for frame in (analysis.kernels, analysis.problems))
    assert str(trace.folder) not in text


def test_a_span_beyond_the_engines_clock_is_an_error_that_says_so(trace):
    analysis = trace.kernel(0.0, 5.0, 1).kernel(4e12, 5.0, 2).analyze()
    with pytest.raises(InvalidInput, match="span 46 days, so some of its times are wrong"):
        _ = analysis.replay


def test_a_launch_call_of_long_before_is_an_error_that_says_so(trace):
    analysis = trace.call(0.0, 5.0, 1).kernel(1.7e15, 5.0, 1).analyze()
    with pytest.raises(InvalidInput, match="span 19,676 days, so some of its times are wrong"):
        _ = analysis.replay


@pytest.mark.parametrize("name", TRACES)
def test_frames_have_the_documented_columns(reference, name):
    analysis = reference(name)
    assert analysis.kernels.columns[:6] == [
        "id", "name", "stream", "start_ns", "end_ns", "duration_ns",
    ]  # fmt: skip
    assert analysis.kernels["gap_cause"].drop_nulls().is_in(["host", "device", "unknown"]).all()
    gaps = analysis.kernels.drop_nulls("gap_host_ns")
    parts = gaps.select(pl.col("gap_host_ns") + pl.col("gap_latency_ns")).to_series()
    assert parts.to_list() == pytest.approx(gaps["launch_gap_ns"].fill_null(0.0).to_list())
