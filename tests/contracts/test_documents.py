"""The documents: their Python runs, their commands exist, and their links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import wavesim
from wavesim.cli import app

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.M | re.S)


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if blocks(path, "python")], ids=named)
def test_the_python_of_a_document_runs(path, tmp_path, monkeypatch):
    # One after the other in one namespace, as a reader would type them, in a folder of its own
    # with the repository's files, and a trace where the documents say that the reader has one.
    for name in ("reference", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    trace = ROOT / "reference/h200/kineto/train_eager.json.gz"
    (tmp_path / "trace.json.gz").symlink_to(trace)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "document"}
    for number, block in enumerate(blocks(path, "python")):
        code = compile(block, f"{named(path)}, block {number}", "exec")
        if "import torch" not in block:  # it shows what to do on a machine with a GPU
            exec(code, namespace)


def test_every_scenario_of_a_document_runs(tmp_path):
    pl.DataFrame({"cycles": [2_000.0] * 1_000}).write_parquet(tmp_path / "measured.parquet")
    scenarios = [(path, text) for path in DOCUMENTS for text in blocks(path, "toml")]
    for path, text in scenarios:
        file = tmp_path / "scenario.toml"
        file.write_text(text)
        scenario = wavesim.read_scenario(file)
        assert scenario.simulate(detail="kernels").makespan_ns > 0, named(path)
    assert len(scenarios) >= 7


def test_the_readme_shows_what_its_first_block_prints(capsys):
    exec(blocks(ROOT / "README.md", "python")[0], {})
    printed = capsys.readouterr().out
    assert blocks(ROOT / "README.md", "text")[0].split() == printed.split()


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=named)
def test_an_example_runs_and_says_something(path, tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()


def shell_lines(path: Path) -> list[str]:
    text = "\n".join([*blocks(path, "sh"), *blocks(path, "console"), *blocks(path, "bash")])
    return [*text.splitlines(), *re.findall(r"`((?:make|wavesim) [^`\n]+)`", path.read_text())]


def test_every_make_verb_that_a_document_names_exists():
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    missing = [
        (named(path), verb)
        for path in DOCUMENTS
        for line in shell_lines(path)
        for verb in re.findall(r"(?:^|\$ |&& )make ([a-z-]+)", line)
        if verb not in verbs
    ]
    assert not missing


def test_every_command_that_a_document_names_exists():
    commands = {name for name in app if not name.startswith("-")}
    missing = [
        (named(path), command)
        for path in DOCUMENTS
        for line in shell_lines(path)
        for command in re.findall(r"(?:^|\$ |/)wavesim ([a-z-]+)", line)
        if command not in commands
    ]
    assert not missing


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_every_link_to_a_file_leads_to_one(path):
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", path.read_text())
    missing = [link for link in links if not (path.parent / link).exists()]
    assert not missing


def test_help_lists_every_verb_that_people_use():
    listed = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for verb in ("develop", "test", "fast", "lint", "format", "bench", "demo", "wheel", "clean"):
        assert f"make {verb} " in listed


def test_the_errors_in_the_readme_are_those_of_the_accuracy_page():
    page = (ROOT / "docs/accuracy.md").read_text().split("<!-- end -->")[0]
    rows = re.findall(r"\| ([\d.]+)% \| [\d.]+% \| ([\d.]+)% \|", page)
    errors = [(float(mean), float(worst)) for mean, worst in rows]

    def is_of(text: str, value: float) -> bool:
        decimals = len(text.partition(".")[2])
        return abs(float(text) - value) <= 0.5001 * 10**-decimals

    readme = (ROOT / "README.md").read_text()
    told = re.findall(r"^\| .* \| ([\d., %]+%) \| ([\d., %]+%) \|$", readme, re.MULTILINE)
    pairs = [
        pair
        for means, worsts in told
        for pair in zip(re.findall(r"[\d.]+", means), re.findall(r"[\d.]+", worsts), strict=True)
    ]
    assert len(pairs) > 15
    for mean, worst in pairs:
        assert any(is_of(mean, a) and is_of(worst, b) for a, b in errors), (mean, worst)
