"""Saved runs: what is loaded is what was saved, and damage is named."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import wavesim
from wavesim import Duration, Graph, Kernel, Launch, Measured, Persistent, Program, Record, Stream
from wavesim.errors import InvalidInput, UnsupportedFile, WavesimError


def everything() -> Program:
    """Each kind of item and of work, one kernel twice."""
    gemm = Kernel(grid=(20, 10), work=Duration.lognormal(4_000, 0.3), name="gemm<float, 4>")
    listed = Kernel(grid=50, work=Duration.per_cta(np.linspace(100.0, 900.0, 50)))
    tasks = Persistent(30, Duration.per_cta(cycles=np.arange(30.0)), "atomic")
    measured = Kernel(grid=400, work=Measured(20_000.0, on=wavesim.device("a100-sxm4-80")))
    return Program(
        [
            Launch(gemm),
            Launch(gemm, stream=1, at_ns=5_000.0),
            Record("e"),
            wavesim.Wait("e", stream=1),
            wavesim.Copy(2_000.0, stream=1),
            Graph([listed, Launch(Kernel(grid=4, work=tasks), dependent=True)], stream=1),
            Launch(measured),
        ],
        {1: Stream(priority=-1)},
    )


@pytest.fixture(scope="module")
def run() -> wavesim.Run:
    return wavesim.simulate("h200", everything(), seed=7)


def test_a_loaded_run_is_the_saved_one(run: wavesim.Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run")
    loaded = wavesim.load(tmp_path / "run")
    for frame in ("kernels", "ctas", "sms", "ledger"):
        assert_frame_equal(getattr(loaded, frame), getattr(run, frame))
    assert_frame_equal(loaded.timeline(100), run.timeline(100))
    for field in ("device", "program", "seed", "detail", "dispatcher", "makespan_ps", "slots"):
        assert getattr(loaded, field) == getattr(run, field), field
    assert (loaded.digest, loaded.version, loaded.notes) == (run.digest, run.version, run.notes)


def test_a_loaded_program_simulates_to_the_same_digest(run: wavesim.Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run")
    loaded = wavesim.load(tmp_path / "run")
    again = wavesim.simulate(loaded.device, loaded.program, seed=loaded.seed)
    assert again.digest == run.digest


def test_a_kernel_is_written_once_however_often_it_is_launched(tmp_path: Path) -> None:
    kernel = Kernel(grid=1_000, work=Duration.per_cta(np.full(1_000, 50.0)))
    run = wavesim.simulate("h200", Program([kernel] * 20), detail="kernels")
    run.save(tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert len(manifest["program"]["kernels"]) == 1
    assert pl.read_parquet(tmp_path / "run" / "numbers.parquet").height == 1_000


def test_a_run_of_kernels_has_no_ctas_after_loading_either(tmp_path: Path) -> None:
    kernel = Kernel(grid=10, work=Duration.constant(ns=100))
    wavesim.simulate("h200", kernel, detail="kernels").save(tmp_path / "run")
    loaded = wavesim.load(tmp_path / "run")
    with pytest.raises(InvalidInput, match="detail"):
        _ = loaded.ctas


def test_saving_again_replaces_the_whole_folder(run: wavesim.Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run")
    small = wavesim.simulate(
        "h200", Kernel(grid=10, work=Duration.constant(ns=100)), detail="kernels"
    )
    small.save(tmp_path / "run")
    assert wavesim.load(tmp_path / "run") == small
    assert not (tmp_path / "run" / "ctas.parquet").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_a_folder_with_other_files_is_not_replaced(run: wavesim.Run, tmp_path: Path) -> None:
    run.save(tmp_path)
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(WavesimError, match="holds files that are not a saved run's"):
        run.save(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "precious"


def test_an_account_of_more_than_64_bits_is_kept_exactly(
    run: wavesim.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = run.ledger.with_columns(pl.col("time_ps").cast(pl.Int128) + 2**70)
    stored = run.stored()
    monkeypatch.setattr(
        wavesim.Run,
        "stored",
        lambda _: type(stored)(
            stored.kernel_frame, stored.cta_frame, stored.sm_frame, large, stored.timeline_frame
        ),
    )
    run.save(tmp_path / "run")
    assert_frame_equal(wavesim.load(tmp_path / "run").ledger, large)


def test_a_changed_byte_is_noticed_and_the_file_named(run: wavesim.Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run")
    file = tmp_path / "run" / "ctas.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(UnsupportedFile, match=rf"{file}: damaged") as caught:
        wavesim.load(tmp_path / "run")
    assert caught.value.path == str(file)


def test_a_missing_file_is_named(run: wavesim.Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run")
    file = tmp_path / "run" / "sms.parquet"
    file.unlink()
    with pytest.raises(UnsupportedFile, match=rf"{file}: missing"):
        wavesim.load(tmp_path / "run")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "damaged: no JSON"),
        ("[]", "not a manifest of a saved run"),
        ('{"format": "something else"}', "not a manifest of a saved run"),
        ('{"format": "wavesim run", "format_version": 99, "version": "9.0"}', "format 99"),
        ('{"format": "wavesim run", "format_version": 1, "version": "0.1"}', "format 1"),
        ('{"format": "wavesim run", "format_version": 2}', "field 'files' is missing"),
        ('{"format": "wavesim run", "format_version": 2, "files": 3}', "damaged"),
    ],
)
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(UnsupportedFile, match=why):
        wavesim.load(tmp_path)


def test_what_is_no_folder_of_a_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFile, match="does not exist; a saved run is a folder"):
        wavesim.load(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(UnsupportedFile, match="is a file; a saved run is a folder"):
        wavesim.load(tmp_path / "file")
    with pytest.raises(UnsupportedFile, match="no saved run: it has no manifest"):
        wavesim.load(tmp_path)


def test_a_manifest_that_names_files_outside_the_folder_is_refused(
    run: wavesim.Run, tmp_path: Path
) -> None:
    run.save(tmp_path / "run")
    file = tmp_path / "run" / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["files"]["../secret"] = {"bytes": 0, "sha256": ""}
    file.write_text(json.dumps(manifest))
    with pytest.raises(UnsupportedFile, match="names a file that is no part of a run"):
        wavesim.load(tmp_path / "run")
