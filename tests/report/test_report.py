"""Reports: whole, self-contained, escaped, and free of what is nobody's business."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import pytest

import wavesim
from wavesim.errors import WavesimError
from wavesim.report import page as pages
from wavesim.report import write_report
from wavesim.report.of_analysis import analysis_page
from wavesim.report.of_run import run_page
from wavesim.report.page import Page, Section, render, table_of

NAME = 'void gemm<float, 4>(T const&)</script><script>alert("x")</script>'
SECRET = "token-hunter2"


class Reader(HTMLParser):
    """Text outside scripts, headings, and what a browser would fetch."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.text: list[str] = []
        self.headings: list[str] = []
        self.scripts = 0
        self.fetched: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.inside.append(tag)
        self.scripts += tag == "script"
        self.fetched += [f"{name}={value}" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "script" in self.inside or "style" in self.inside:
            return
        self.text.append(data)
        if self.inside and self.inside[-1] == "h2":
            self.headings.append(data)


@pytest.fixture(scope="module")
def run_html(run: wavesim.Run) -> str:
    return render(run_page(run))


@pytest.fixture(scope="module")
def analysis_html(analysis: wavesim.Analysis) -> str:
    return render(analysis_page(analysis))


def charts_of(html: str) -> list[dict[str, Any]]:
    found = re.search(r"^const charts = (.*);$", html, re.MULTILINE)
    assert found is not None
    return list(json.loads(found[1]))


def test_a_run_is_told_in_the_order_of_the_questions(run_html: str) -> None:
    assert Reader(run_html).headings == [
        "Where the time went",
        "Diagnosis",
        "Timeline",
        "Kernels",
        "SMs",
    ]


def test_work_that_was_simulated_is_told_with_its_memory_and_its_warps(
    detailed: wavesim.Run,
) -> None:
    html = render(run_page(detailed))
    reader = Reader(html)
    assert reader.headings[3:5] == ["Memory", "Warps"]
    text = " ".join(" ".join(reader.text).split())
    memory, warps = (s for s in run_page(detailed).sections if s.title in ("Memory", "Warps"))
    assert memory.table is not None
    assert warps.table is not None
    # The two launches of one name are a row.
    rows = {row[0]: row for row in memory.table.rows}
    assert set(rows) == {"reuse", "copy"}
    of_name = detailed.l2.filter(name="reuse")
    hit_share = of_name["hits"].sum() / of_name["lookups"].sum()
    assert rows["reuse"][1:3] == ("2", f"{hit_share:.1%}")
    assert rows["copy"][2:5] == ("0.0%", "4.194", "4.194")
    shares = {row[1]: row[4] for row in warps.table.rows}
    for state, share in detailed.warps.filter(pl.col("share") > 0).select("state", "share").rows():
        assert shares[state] == f"{share:.1%}"
    assert "L2 over time" in html
    assert "Warp states over time" in html
    assert NAME in text
    assert "<script>alert" not in html


def test_memory_and_warps_that_were_not_recorded_over_time_are_told_without_it() -> None:
    kernel = wavesim.Kernel(264, 256, work=wavesim.Access.stream(4_096))
    page = run_page(wavesim.simulate("h200", kernel))
    (memory,) = [section for section in page.sections if section.title == "Memory"]
    assert memory.charts == ()
    assert all(section.title != "Warps" for section in page.sections)


def test_a_trace_is_told_in_the_order_of_the_questions(analysis_html: str) -> None:
    assert Reader(analysis_html).headings[:6] == [
        "Where the time went",
        "Timeline",
        "Kernels",
        "Replay beside the measured trace",
        "Diagnosis",
        "What if",
    ]


@pytest.mark.parametrize("which", ["run_html", "analysis_html"])
def test_nothing_is_fetched(which: str, request: pytest.FixtureRequest) -> None:
    html = request.getfixturevalue(which)
    assert Reader(html).fetched == []
    assert "default-src 'none'" in html
    assert "connect-src" not in html
    assert "unsafe-eval" not in html


def test_names_of_kernels_are_shown_as_they_are_and_run_no_script(run_html: str) -> None:
    reader = Reader(run_html)
    assert reader.scripts == 2
    assert NAME in "".join(reader.text)
    assert "<script>alert" not in run_html


def test_a_report_of_a_trace_holds_nothing_of_its_metadata(
    analysis_html: str, analysis: wavesim.Analysis
) -> None:
    assert SECRET in str(analysis.trace.source)
    assert SECRET not in analysis_html


def test_numbers_of_the_report_are_those_of_the_run(run: wavesim.Run, run_html: str) -> None:
    text = " ".join(" ".join(Reader(run_html).text).split())
    for account, share in run.ledger.select("account", "share").iter_rows():
        assert re.search(rf"{account} .* {share:.1%}", text), account
    assert run.digest in text


def test_the_table_of_kernels_says_what_it_leaves_out() -> None:
    kernels = [
        wavesim.Kernel(grid=at + 1, work=wavesim.Duration.constant(ns=500)) for at in range(25)
    ]
    run = wavesim.simulate("h200", wavesim.Program(kernels))
    section = next(s for s in run_page(run).sections if s.title == "Kernels")
    assert section.table is not None
    assert len(section.table.rows) == 20
    assert "5 further shapes" in str(section.table.note)


def test_a_run_with_too_many_ctas_for_slots_has_the_other_charts() -> None:
    kernel = wavesim.Kernel(grid=20_000, work=wavesim.Duration.constant(ns=500))
    titles = [
        str(chart.get("title", chart))
        for chart in charts_of(render(run_page(wavesim.simulate("h200", kernel))))
    ]
    assert len(titles) == 4
    assert not any("CTAs by slot" in title for title in titles)


def test_a_run_of_kernels_is_reported_without_ctas() -> None:
    kernel = wavesim.Kernel(grid=200, work=wavesim.Duration.constant(ns=500))
    run = wavesim.simulate("h200", kernel, detail="kernels")
    assert len(charts_of(render(run_page(run)))) == 4


def test_a_loaded_run_gives_the_same_report(run: wavesim.Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run")
    loaded, simulated = run_page(wavesim.load(tmp_path / "run")), run_page(run)
    assert (loaded.facts, loaded.headlines) == (simulated.facts, simulated.headlines)
    for one, other in zip(loaded.sections, simulated.sections, strict=True):
        assert (one.text, one.points, one.table) == (other.text, other.points, other.table)
        assert len(one.charts) == len(other.charts)


def test_a_report_is_written_whole_or_not_at_all(
    run: wavesim.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "nowhere" / "r.html"
    with pytest.raises(WavesimError, match=str(target)):
        write_report(run, target)
    old = tmp_path / "r.html"
    old.write_text("old")
    monkeypatch.setattr(pages, "render", lambda _: "\ud800")  # no UTF-8
    with pytest.raises(UnicodeEncodeError):
        write_report(run, old)
    assert old.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.html"]


def test_values_stand_in_the_unit_of_their_column() -> None:
    frame = pl.DataFrame(
        {"wait_ns": [1234.5, None], "share": [0.123, 1.0], "grid": [12_345, 0], "name": ["a", "b"]}
    )
    table = table_of(
        frame, {"wait_ns": "wait", "share": "of all", "grid": "grid", "name": "n", "z": "z"}
    )
    assert [(column.heading, column.number) for column in table.columns] == [
        ("wait", True),
        ("of all", True),
        ("grid", True),
        ("n", False),
    ]
    assert table.rows == (("1.234 µs", "12.3%", "12,345", "a"), ("-", "100.0%", "0", "b"))


def test_text_that_could_end_a_script_stays_in_its_chart() -> None:
    chart = alt.Chart(alt.InlineData(values=[{"x": "</script><b>"}])).mark_point().encode(x="x:N")
    html = render(Page("t", sections=(Section("s", charts=(chart,)),)))
    assert "</script><b>" not in html
    (spec,) = charts_of(html)
    assert list(spec["datasets"].values()) == [[{"x": "</script><b>"}]]


def test_a_page_without_charts_needs_no_javascript() -> None:
    assert "<script" not in render(Page("t", facts=(("a", "<b>"),)))
