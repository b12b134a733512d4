"""The guides: what they show works."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import wavesim

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


def blocks(guide: str, language: str) -> list[str]:
    text = (GUIDES / guide).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", blocks("scenario.md", "toml"), ids=lambda text: text[:20])
def test_each_scenario_of_the_guide_can_be_simulated(text: str, tmp_path: Path) -> None:
    pl.DataFrame({"cycles": np.full(1_000, 900.0)}).write_parquet(tmp_path / "measured.parquet")
    file = tmp_path / "s.toml"
    file.write_text(text)
    run = wavesim.read_scenario(file).simulate()
    assert run.makespan_ns > 0


def test_the_guide_has_scenarios() -> None:
    assert len(blocks("scenario.md", "toml")) == 7


def test_the_code_of_the_report_guide_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in blocks("report.md", "python"):
        exec(compile(code, "report.md", "exec"), names)
    assert re.search(r"^(tail|dependency|launch) 0\.\d+", capsys.readouterr().out, re.MULTILINE)
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "run.json.gz", "saved"}
