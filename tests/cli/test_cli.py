"""The command line: what it prints where, and how it fails."""

import gzip
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import wavesim
from wavesim.cli import commands, main, output

SCENARIO = """
device = "h200"
[kernels."gemm<float, 4>[/red]"]
grid = 900
registers = 128
work = { kind = "lognormal", mean_ns = 4_000, cv = 0.2 }
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "s.toml"
    file.write_text(SCENARIO)
    return file


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Five kernels of an H200, launched from one stream."""
    events: list[dict[str, Any]] = []
    for at in range(5):
        ts = 100.0 + 20.0 * at
        call = {"correlation": at}
        events.append(
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
            | {"ts": ts, "dur": 4.0, "args": call}
        )
        args = {"device": 0, "stream": 7, "grid": [300, 1, 1], "block": [256, 1, 1]}
        args |= {"registers per thread": 64, "shared memory": 0, **call}
        events.append(
            {"ph": "X", "cat": "kernel", "name": "gemm[/red]", "pid": 0, "tid": 7}
            | {"ts": ts + 8.0, "dur": 10.0, "args": args}
        )
    device = {
        "id": 0,
        "name": "NVIDIA H200",
        "computeMajor": 9,
        "computeMinor": 0,
        "numSms": 132,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerMultiprocessor": 65536,
        "sharedMemPerMultiprocessor": 233472,
    }
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"deviceProperties": [device], "traceEvents": events}))
    return file


def said(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> tuple[str, str]:
    """What the command wrote to standard output and to standard error."""
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert stopped.value.code == code, err
    return out, err


def test_run_prints_the_run_and_nothing_to_stderr(
    capsys: pytest.CaptureFixture[str], scenario: Path
) -> None:
    out, err = said(capsys, "run", scenario)
    run = wavesim.read_scenario(scenario).simulate()
    assert run.digest in out
    assert "gemm<float, 4>[/red]" in out
    assert "tail: " in out
    assert err == ""


def test_run_as_json_is_the_frames_of_the_run(
    capsys: pytest.CaptureFixture[str], scenario: Path
) -> None:
    out, err = said(capsys, "run", scenario, "--json", "--seed", 3)
    run = wavesim.read_scenario(scenario).simulate(seed=3)
    found = json.loads(out)
    assert found["digest"] == run.digest
    assert found["seed"] == 3
    assert pl.DataFrame(found["ledger"])["time_ps"].sum() == run.slots * run.makespan_ps
    assert found["kernels"][0]["grid"] == 900
    assert {finding["account"] for finding in found["diagnosis"]} >= {"tail", "launch"}
    assert err == ""


def test_run_writes_what_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], scenario: Path, tmp_path: Path
) -> None:
    perfetto, saved = tmp_path / "t.json.gz", tmp_path / "saved"
    report = tmp_path / "r.html"
    out, _ = said(
        capsys, "run", scenario, "--perfetto", perfetto, "--save", saved, "--report", report
    )
    assert wavesim.load(saved).digest in out
    assert json.loads(gzip.decompress(perfetto.read_bytes()))["traceEvents"]
    assert report.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_detail_of_the_file_can_be_replaced(
    capsys: pytest.CaptureFixture[str], scenario: Path, tmp_path: Path
) -> None:
    said(capsys, "run", scenario, "--detail", "kernels", "--save", tmp_path / "saved")
    assert wavesim.load(tmp_path / "saved").detail == "kernels"


def test_analyze_prints_a_summary(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    out, err = said(capsys, "analyze", trace)
    assert "NVIDIA H200" in out
    assert "gemm[/red]" in out
    assert err == ""


def test_analyze_as_json_adds_up(
    capsys: pytest.CaptureFixture[str], trace: Path, tmp_path: Path
) -> None:
    out, err = said(capsys, "analyze", trace, "--json", "--perfetto", tmp_path / "p.json")
    assert err == f"wrote {tmp_path / 'p.json'} (open it at ui.perfetto.dev)\n"
    found = json.loads(out)
    assert found["kernels"][0]["calls"] == 5
    assert sum(row["time_ns"] for row in found["ledger"]) == pytest.approx(found["span_ns"])
    events = json.loads((tmp_path / "p.json").read_text())["traceEvents"]
    assert len([e for e in events if e["ph"] == "X" and e["pid"] == 1]) == 5


def test_analyze_takes_another_device(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    out, _ = said(capsys, "analyze", trace, "--device", "a100-sxm4-80", "--json")
    assert json.loads(out)["device"] == "a100-sxm4-80"


def test_advice_is_in_the_command_lines_own_words(
    capsys: pytest.CaptureFixture[str], trace: Path
) -> None:
    text = trace.read_text()
    trace.write_text(text[:-40])
    _, err = said(capsys, "analyze", trace, code=2)
    assert "--keep-partial reads what is there" in err
    assert "keep_partial" not in err
    out, _ = said(capsys, "analyze", trace, "--keep-partial")
    assert "4 kernels" in out
    trace.write_text(json.dumps({"traceEvents": json.loads(text)["traceEvents"]}))
    _, err = said(capsys, "analyze", trace, code=2)
    assert "such as --device h200 (wavesim devices lists them)" in err


def test_occupancy_says_the_residency_and_the_limiter(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["occupancy", "--device", "h200", "--block", 256, "--registers", 128]
    out, _ = said(capsys, *words)
    assert "CTAs an SM" in out
    assert "REGS" in out
    out, _ = said(capsys, *words, "--json")
    assert json.loads(out)["ctas_per_sm"] == 2


def test_occupancy_says_why_a_kernel_does_not_launch(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = said(capsys, "occupancy", "--device", "h200", "--block", 2_000)
    assert "no: 2000 threads a CTA" in out


def test_devices_marks_what_is_assumed(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = said(capsys, "devices")
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert "1,850*" in lines["b200"]
    assert "*" not in lines["h200"]


def test_the_numbers_that_devices_shows_have_sources() -> None:
    fields = set(wavesim.devices(numbers=True)["field"])
    assert fields.issuperset(commands._SHOWN_NUMBERS.values())


def test_devices_as_json_is_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = said(capsys, "devices", "--json")
    assert [row["device"] for row in json.loads(out)] == wavesim.devices()["device"].to_list()
    out, _ = said(capsys, "devices", "--sources", "--json")
    assert {"field", "status", "source"} <= json.loads(out)[0].keys()


def test_validate_prints_the_errors_by_family(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    reference = Path(__file__).parents[2] / "reference" / "h200" / "runs.parquet"
    rows = pl.read_parquet(reference).filter(pl.col("experiment") == "spin").head(3)
    rows.write_parquet(tmp_path / "runs.parquet")
    out, err = said(capsys, "validate", tmp_path, "--table", tmp_path / "table.parquet")
    assert "span_ns" in out
    assert err == ""
    assert pl.read_parquet(tmp_path / "table.parquet").height == 3
    out, _ = said(capsys, "validate", tmp_path, "--family", "spin", "--json")
    (family,) = json.loads(out)
    assert (family["family"], family["rows"]) == ("spin", 3)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["run"], "requires an argument"),
        (["frobnicate"], "Unknown command"),
        (["run", "nowhere.toml"], "nowhere.toml: No such file or directory"),
        (["analyze", "nowhere.json"], "nowhere.json: No such file or directory"),
        (["analyze", "{trace}", "--top", "0"], "--top: must be from 1 to 4,294,967,295 (got 0)"),
        (["analyze", "{trace}", "--top", "9" * 30], "--top: must be from 1 to 4,294,967,295"),
        (["analyze", "{trace}", "--gpu", "5"], "5"),
        (["analyze", "{scenario}"], "s.toml"),
        (["run", "{trace}"], "trace.json: not valid TOML"),
        (["run", "{scenario}", "--seed", "-1"], "seed: must be from 0"),
        (["run", "{scenario}", "--detail", "warps"], "warps"),
        (["run", "{scenario}", "--save", "{scenario}"], "s.toml: it is a file, not a folder"),
        (["run", "{scenario}", "--report", "{folder}"], "it is a folder"),
        (["occupancy", "--device", "h2oo", "--block", "32"], "device: no such device"),
        (
            ["occupancy", "--device", "h200", "--block", "x"],
            "--block: must be a whole number (got x)",
        ),
        (["run", "{scenario}", "--seed", "1.5"], "--seed: must be a whole number (got 1.5)"),
        (["analyze", "{trace}", "--gpu", "0.5"], "--gpu: must be a whole number (got 0.5)"),
        (["validate", "{folder}"], "has none of the tables"),
        (["validate", "{folder}", "--table", "t.xlsx"], "t.xlsx: its name must end in .parquet, "),
        (["run", "{scenario}", "--report", "r.pdf"], "r.pdf: its name must end in .html or .htm"),
        (["analyze", "{trace}", "--perfetto", "/dev/stdout"], "must end in .json or .gz"),
        (["run", "{scenario}", "--perfetto", "no/such/t.json"], "there is no folder no/such"),
    ],
)
def test_what_a_user_can_put_right_is_one_line_and_code_2(
    capsys: pytest.CaptureFixture[str], scenario: Path, trace: Path, words: list[str], why: str
) -> None:
    named = {"{scenario}": scenario, "{trace}": trace, "{folder}": scenario.parent}
    out, err = said(capsys, *(named.get(word, word) for word in words), code=2)
    assert out == ""
    assert err.startswith("wavesim: ")
    assert err.count("\n") == 1
    assert why in err


@pytest.mark.parametrize("command", ["analyze", "run", "occupancy", "devices", "validate"])
def test_each_command_explains_itself(capsys: pytest.CaptureFixture[str], command: str) -> None:
    out, _ = said(capsys, command, "--help")
    assert f"wavesim {command}" in out
    assert "--json" in out


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = said(capsys, "--version")
    assert out.strip() == wavesim.__version__


def test_a_deadlock_is_an_error_of_the_input(
    capsys: pytest.CaptureFixture[str], scenario: Path
) -> None:
    scenario.write_text(
        'device = "h200"\n[kernels.k]\ngrid = 5_000\nblock = 1024\n'
        'work = { kind = "grid_sync", rounds = 2, duration = { kind = "constant", ns = 9 } }\n'
    )
    _, err = said(capsys, "run", scenario, code=2)
    assert err.count("\n") == 1


def test_ctrl_c_ends_with_130_and_no_traceback(
    capsys: pytest.CaptureFixture[str], scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(wavesim, "read_scenario", interrupted)
    _, err = said(capsys, "run", scenario, code=130)
    assert err == ""


@pytest.mark.parametrize(
    ("words", "first"),
    [("devices --sources --json", "["), ("devices --sources", "device"), ("--help", "Usage")],
)
def test_a_reader_that_has_enough_ends_it_quietly(words: str, first: str) -> None:
    # Without a reader at all, what is printed last fails as well as what is printed first.
    for reader in ("head -n 1", "true"):
        command = f"set -o pipefail; {sys.executable} -m wavesim {words} | {reader}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
        assert done.stderr == ""
        assert done.stdout.startswith(first if reader != "true" else "")


def test_a_terminal_sees_what_is_being_done_and_a_pipe_does_not(scenario: Path) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "wavesim", "run", str(scenario), "--json"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
        check=True,
    )
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert "simulating s.toml" in shown
    json.loads(done.stdout)


def test_what_json_has_no_number_for_is_null() -> None:
    value = {"a": float("nan"), "b": (float("inf"), 1.5), "c": pl.DataFrame({"x": [True, None]})}
    assert output.plain(value) == {"a": None, "b": [None, 1.5], "c": [{"x": True}, {"x": None}]}
