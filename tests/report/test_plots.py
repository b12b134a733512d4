"""Charts: what they show is what the frames say, and what they leave out they say."""

from typing import Any

import altair as alt
import polars as pl
import pytest

import wavesim
from wavesim import plots
from wavesim.errors import InvalidInput
from wavesim.text import time_text


def ctas_frame(sms: int, slots: int, rounds: int, ns: float = 10.0) -> pl.DataFrame:
    rows = [
        (0, (turn * sms + sm) * slots + slot, sm, slot, turn * ns, (turn + 1) * ns)
        for turn in range(rounds)
        for sm in range(sms)
        for slot in range(slots)
    ]
    names = ["kernel", "cta", "sm", "slot", "start_ns", "end_ns"]
    return pl.DataFrame(rows, schema=names, orient="row")


def rows_of(chart: alt.TopLevelMixin) -> list[list[dict[str, object]]]:
    return list(chart.to_dict()["datasets"].values())


def subtitle(chart: alt.TopLevelMixin) -> str:
    return str(chart.to_dict()["title"].get("subtitle", ""))


def test_a_small_run_shows_every_cta() -> None:
    chart = plots.slots(ctas_frame(sms=4, slots=2, rounds=3))
    (rows,) = rows_of(chart)
    assert sorted(row["cta"] for row in rows) == list(range(24))  # type: ignore[type-var]
    assert subtitle(chart) == ""


def test_a_large_run_shows_whole_sms_so_that_a_gap_is_an_idle_slot() -> None:
    ctas = ctas_frame(sms=40, slots=2, rounds=10)
    chart = plots.slots(ctas, limit=100)
    (rows,) = rows_of(chart)
    shown = {row["sm"] for row in rows}
    assert len(shown) == 5
    assert len(rows) == ctas.filter(pl.col("sm").is_in(list(shown))).height == 100
    assert subtitle(chart) == "5 of 40 SMs, evenly spaced: 100 of 800 CTAs"


def test_one_sm_with_too_many_ctas_is_cut_in_time_and_says_so() -> None:
    chart = plots.slots(ctas_frame(sms=2, slots=1, rounds=500), limit=100)
    (rows,) = rows_of(chart)
    assert len(rows) == 100
    assert max(row["end"] for row in rows) == 1000.0  # type: ignore[type-var]
    assert subtitle(chart).endswith("up to the time at which that many have started")


@pytest.mark.parametrize("limit", [0, plots.MAX_ROWS + 1, 1.5, "many", None])
def test_a_limit_that_no_chart_can_keep_is_refused(limit: Any) -> None:
    for chart, frame in ((plots.slots, ctas_frame(1, 1, 1)), (plots.kernels, kernels_frame(1))):
        with pytest.raises(InvalidInput, match=rf"^limit: must be .*\(got {limit!r}\)"):
            chart(frame, limit=limit)  # type: ignore[operator]


def kernels_frame(count: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "name": [f"k{i % 13}" for i in range(count)],
            "stream": [i % 2 for i in range(count)],
            "start_ns": [100.0 * i for i in range(count)],
            "end_ns": [100.0 * i + 60.0 for i in range(count)],
        }
    )


def test_few_kernels_have_a_bar_each() -> None:
    (rows,) = rows_of(plots.kernels(kernels_frame(50)))
    assert [row["kernels"] for row in rows] == [1] * 50


def test_many_kernels_share_bars_and_none_disappears() -> None:
    chart = plots.kernels(kernels_frame(5_000), limit=200)
    (rows,) = rows_of(chart)
    assert len(rows) <= 202
    assert sum(row["kernels"] for row in rows) == 5_000  # type: ignore[misc]
    assert max(row["end"] for row in rows) == pytest.approx(499.96)  # type: ignore[type-var]
    assert "share one" in subtitle(chart)


def test_names_of_thousands_of_characters_are_cut() -> None:
    frame = kernels_frame(2).with_columns(pl.lit("void f<" + "int, " * 400 + ">").alias("name"))
    (rows,) = rows_of(plots.kernels(frame))
    assert all(len(str(row["name"])) == 60 for row in rows)


def timeline_frame(bins: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "bin": range(bins),
            "start_ns": [1000.0 * i for i in range(bins)],
            "end_ns": [1000.0 * (i + 1) for i in range(bins)],
            "busy": [0.75] * bins,
            "tail": [0.25] * bins,
            "blocked": [0.0] * bins,
            "running_ctas": [3.0] * bins,
        }
    )


def test_the_timeline_stacks_to_one_at_each_time() -> None:
    stacked, running = sorted(rows_of(plots.timeline(timeline_frame(8))), key=len, reverse=True)
    by_time: dict[object, float] = {}
    for row in stacked:
        by_time[row["start"]] = by_time.get(row["start"], 0.0) + float(row["share"])  # type: ignore[arg-type]
    assert by_time == {float(i): 1.0 for i in range(9)}
    assert [row["running_ctas"] for row in running] == [3.0] * 9


def test_accounts_without_time_take_no_place_in_the_legend() -> None:
    stacked = max(rows_of(plots.timeline(timeline_frame(4))), key=len)
    assert {row["account"] for row in stacked} == {"busy", "tail"}


def test_more_bins_than_pixels_are_refused() -> None:
    with pytest.raises(InvalidInput, match="501"):
        plots.timeline(timeline_frame(501))


def test_an_account_has_one_colour_in_every_chart() -> None:
    ledger = plots.ledger(
        pl.DataFrame({"account": ["tail", "busy"], "time_ps": [1, 3], "share": [0.25, 0.75]})
    ).to_dict()
    scale = ledger["encoding"]["color"]["scale"]
    timeline = plots.timeline(timeline_frame(4)).to_dict()["vconcat"][0]
    assert scale["domain"] == ["busy", "tail"]
    assert scale == timeline["encoding"]["color"]["scale"]


def test_sms_are_in_the_row_of_their_gpc() -> None:
    frame = pl.DataFrame(
        {
            "sm": [0, 1, 2, 3, 4],
            "gpc": [0, 1, 0, 1, 0],
            "ctas": [1] * 5,
            "busy_ns": [1.0] * 5,
            "active_ns": [1.0] * 5,
            "utilization": [0.5] * 5,
            "last_end_ns": [9.0] * 5,
        }
    )
    (rows,) = rows_of(plots.sms(frame))
    places = {row["sm"]: (row["gpc"], row["place"]) for row in rows}
    assert places == {0: (0, 0), 2: (0, 1), 4: (0, 2), 1: (1, 0), 3: (1, 1)}


def test_a_log_that_equals_the_simulation_differs_nowhere() -> None:
    ctas = ctas_frame(sms=3, slots=2, rounds=4)
    shifted = ctas.with_columns(pl.col("start_ns") + 5000, pl.col("end_ns") + 5000)
    differences = next(
        rows for rows in rows_of(plots.compare(ctas, shifted)) if "difference" in rows[0]
    )
    assert {row["difference"] for row in differences} == {0.0}


def test_differences_are_by_rank_not_by_block() -> None:
    ctas = ctas_frame(sms=3, slots=2, rounds=4)
    other_slots = ctas.with_columns(pl.col("cta").reverse(), pl.col("sm").reverse())
    later = other_slots.with_columns(pl.col("end_ns") + 3.0)
    rows = next(rows for rows in rows_of(plots.compare(ctas, later)) if "difference" in rows[0])
    assert {row["difference"] for row in rows if row["what"] == "starts"} == {0.0}
    assert {row["difference"] for row in rows if row["what"] == "ends"} == {-3.0}


def test_a_log_of_other_blocks_is_refused() -> None:
    ctas = ctas_frame(2, 1, 2)
    with pytest.raises(InvalidInput, match="3 blocks, the simulation 4"):
        plots.compare(ctas, ctas.head(3))
    with pytest.raises(InvalidInput, match="no column end_ns"):
        plots.compare(ctas, ctas.drop("end_ns"))
    with pytest.raises(InvalidInput, match="no row"):
        plots.compare(ctas, ctas.clear())


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0.0, "0 ns"),
        (999.4, "999.4 ns"),
        (1_000.0, "1 µs"),
        (12_345.6, "12.35 µs"),
        (2.5e9, "2.5 s"),
    ],
)
def test_times_are_written_in_the_unit_a_person_would_use(ns: float, text: str) -> None:
    assert time_text(ns) == text


def windows_frame(launches: int, windows: int) -> pl.DataFrame:
    rows = [
        (kernel, window * 100.0, window * 100.0 + 100, 10, 10 * (window % 2), 320, 32)
        for kernel in range(launches)
        for window in range(windows)
    ]
    names = ["kernel", "start_ns", "end_ns", "lookups", "hits"]
    names += ["dram_read_bytes", "dram_written_bytes"]
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(
        pl.lit(4).alias("written_sectors")
    )


def test_l2_over_time_shows_the_hit_share_of_each_launch_and_what_was_moved() -> None:
    chart = plots.l2(windows_frame(launches=2, windows=3), {0: "gemm"})
    shares, moved = sorted(rows_of(chart), key=lambda rows: "hit_share" not in rows[0])
    assert {row["launch"] for row in shares} == {"0 gemm", "1"}
    assert [row["hit_share"] for row in shares] == [0.0, 1.0, 0.0] * 2
    # 14 sectors of 32 bytes of each launch in 100 ns, and 352 bytes.
    assert {(row["where"], row["gb_s"]) for row in moved} == {("L2", 8.96), ("DRAM", 7.04)}


def test_l2_over_time_joins_windows_and_launches_where_there_are_too_many() -> None:
    chart = plots.l2(windows_frame(launches=30, windows=1_000))
    shares, moved = sorted(rows_of(chart), key=lambda rows: "hit_share" not in rows[0])
    assert len(shares) + len(moved) <= plots.MAX_ROWS
    assert {row["launch"] for row in shares} == {*map(str, range(9)), "other"}
    assert chart.to_dict()["vconcat"][0]["title"]["subtitle"].endswith("ns share a point")


def states_frame(launches: int) -> pl.DataFrame:
    states = [
        ("selected", "issue", 0.25),
        ("long_scoreboard", "memory", 0.75),
        ("wait", "issue", 0),
    ]
    rows = [
        (kernel, "softmax", state, kind, share * (kernel + 1), share)
        for kernel in range(launches)
        for state, kind, share in states
    ]
    names = ["kernel", "name", "state", "kind", "warp_cycles", "share"]
    return pl.DataFrame(rows, schema=names, orient="row", strict=False)


def test_states_of_warps_are_stacked_for_each_launch() -> None:
    (rows,) = rows_of(plots.warps(states_frame(launches=2)))
    shown = {(row["launch"], row["state"], row["share"]) for row in rows}
    assert shown == {
        (f"{kernel} softmax", state, share)
        for kernel in (0, 1)
        for state, share in (("selected", 0.25), ("long_scoreboard", 0.75))
    }


def test_of_many_launches_those_whose_warps_took_longest_are_shown() -> None:
    chart = plots.warps(states_frame(launches=50))
    (rows,) = rows_of(chart)
    assert {row["kernel"] for row in rows} == set(range(10, 50))
    assert "10 launches" in subtitle(chart)


def warp_windows(windows: int) -> pl.DataFrame:
    rows = [
        (0, 100.0 * at, 100.0 * at + 100.0, state, "issue", 396.0 * warps)
        for at in range(windows)
        for state, warps in (("selected", 1), ("wait", 3))
        if at != 1 or state == "wait"
    ]
    names = ["kernel", "start_ns", "end_ns", "state", "kind", "warp_cycles"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_states_of_warps_over_time_are_warps_that_are_in_them() -> None:
    # 396 cycles in 100 ns at 1.98 GHz are two warps.
    (rows,) = rows_of(plots.warps_over_time(warp_windows(3), 1.98))
    shown = [(row["start"], row["state"], row["warps"]) for row in rows]
    assert shown == [
        (at, state, warps)
        for at, selected, waiting in ((0, 2, 6), (100, 0, 6), (200, 2, 6), (300, 0, 0))
        for state, warps in (("selected", selected), ("wait", waiting))
    ]


def test_states_over_more_windows_than_a_chart_holds_share_steps() -> None:
    chart = plots.warps_over_time(warp_windows(6_000), 1.98)
    (rows,) = rows_of(chart)
    assert len(rows) <= plots.MAX_ROWS
    assert {row["warps"] for row in rows if row["state"] == "wait"} <= {0.0, 6.0}
    assert chart.to_dict()["title"]["subtitle"] == "3 windows of 100 ns share a step"


def test_a_run_recorded_over_time_has_both_charts_of_its_warps(detailed: wavesim.Run) -> None:
    bars, over_time = rows_of(detailed.plot.warps())
    assert {row["state"] for row in bars} == {row["state"] for row in over_time}
