"""Whatever takes a path says of what is none which argument it is, and does so before it works."""

from pathlib import Path

import pytest

import wavesim
from wavesim.io import detect, read
from wavesim.io.formats import write_frame
from wavesim.io.perfetto import write_analysis, write_run
from wavesim.io.scenario import read_scenario
from wavesim.report import write_report
from wavesim.validate import validate

REFERENCE = Path(__file__).parents[2] / "reference" / "h200"


@pytest.fixture(scope="module")
def run():
    kernel = wavesim.Kernel(4, work=wavesim.Duration.constant(ns=100))
    return wavesim.simulate("h200", kernel)


@pytest.fixture(scope="module")
def analysis():
    return wavesim.analyze(REFERENCE / "kineto" / "four_streams.json.gz")


@pytest.fixture(
    params=[3, None, b"x.html", ["x.html"], "a\0.html"], ids=["int", "none", "bytes", "list", "nul"]
)
def no_path(request):
    return request.param


def refused(call, argument, value):
    with pytest.raises(wavesim.errors.InvalidInput) as caught:
        call(value)
    assert str(caught.value).startswith(f"{argument}: must be a ")
    assert str(caught.value).endswith(f"(got {value!r})")
    assert (caught.value.field, caught.value.value) == (argument, value)


def test_readers_name_the_argument(no_path):
    for call in (read, detect, read_scenario):
        refused(call, "path", no_path)
    refused(wavesim.load, "folder", no_path)
    refused(wavesim.analyze, "trace", no_path)
    refused(validate, "folder", no_path)
    if no_path is not None:
        refused(lambda path: validate(REFERENCE, table=path), "table", no_path)


def test_writers_of_runs_name_the_argument(run, no_path):
    for call in (run.report, run.to_perfetto):
        refused(call, "path", no_path)
    refused(lambda path: write_report(run, path), "path", no_path)
    refused(lambda path: write_run(run, path), "path", no_path)
    refused(lambda path: write_frame(run.kernels, path), "path", no_path)
    refused(run.save, "folder", no_path)


def test_writers_of_analyses_name_the_argument_before_they_simulate(analysis, no_path):
    for call in (analysis.report, analysis.to_perfetto):
        refused(call, "path", no_path)
    refused(lambda path: write_analysis(analysis, path), "path", no_path)
    assert "compare" not in vars(analysis), "nothing has been simulated yet"


def test_strings_and_path_likes_are_paths(run, tmp_path):
    class Named:
        def __fspath__(self):
            return str(tmp_path / "run.json")

    run.to_perfetto(Named())
    run.to_perfetto(str(tmp_path / "other.json"))
    assert detect(str(tmp_path / "run.json")) == detect(tmp_path / "other.json")
