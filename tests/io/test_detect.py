"""A file that is no profile is named, with the way to get one."""

import io
import json
import sqlite3
import tarfile
import zipfile
from contextlib import closing

import pytest

from wavesim.errors import InvalidInput, UnsupportedFile, WavesimError
from wavesim.io import read


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.json", b"", "is empty"),
        ("a.json", b"  \n ", "is empty but for white space"),
        ("a.json", b"hello", "is text, but no JSON"),
        ("a.json", b"<!DOCTYPE html><html>", "is an HTML page"),
        ("a.json", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        ("a.json.zst", b"\x28\xb5\x2f\xfd....", "zstd -d"),
        ("a.json.xz", b"\xfd7zXZ\x00....", "xz -d"),
        ("a.nsys-rep", b"anything", "an Nsight Systems report.*nsys stats"),
        ("a.ncu-rep", b"NVR\x00anything", "an Nsight Compute report"),
        ("a.xplane.pb", b"\n\x08/host:CPU", "XPlane"),
        ("a.bin", b"\n\x08\x00/device:TPU:0\x00\xff\xfe", "a binary file"),
        ("a.csv", b'==PROF== Connected\n"ID","Process ID"\n', "Nsight Compute output"),
        ("a.csv", b"Start (ns),Duration (ns),CorrId\n", "an nsys stats CSV"),
        ("kernel-1.traceg", b"-kernel name = k\n-kernel id = 1\n", "an Accel-Sim kernel trace"),
        ("a.parquet", b"PAR1....", "a Parquet table"),
    ],
)
def test_what_is_no_trace_is_named(tmp_path, name, content, says):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UnsupportedFile, match=says) as caught:
        read(path)
    assert caught.value.path == str(path)
    assert isinstance(caught.value, InvalidInput)
    assert isinstance(caught.value, WavesimError)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"schema": "1.1.1", "pid": 1, "nodes": [{"id": 1}]}, "is an execution trace"),
        ({"a": 1, "b": 2}, r"has no traceEvents \(its keys: a, b\)"),
        ({"traceEvents": []}, "without any event"),
        ({"traceEvents": [{"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 1}]}, "of the host alone"),
        ({"traceEvents": [{"ph": "X", "cat": "mtia_ccp_events", "ts": 1}]}, "an MTIA accelerator"),
        ({"traceEvents": [{"ph": "X", "cat": "cuda_runtime", "ts": 1}]}, "only the host"),
        ({"traceEvents": [{"ph": "X", "name": "fusion", "ts": 1}]}, "not written by the PyTorch"),
        ({}, "has no traceEvents"),
        ([], "without any event"),
    ],
)
def test_json_of_another_kind_is_named(tmp_path, document, says):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document))
    with pytest.raises(UnsupportedFile, match=says):
        read(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"traceEvents": [{]}', r"traceEvents\[0\].*character 18"),
        ('{"traceEvents": [1 2 3 4 5 6 7 8 9 10 11 12]}', r"no ',' or '\]' after traceEvents\[0\]"),
        ('{"traceEvents" []}', "no ':' after key"),
        ("{1: 2, 'no': 'json at all, not even a little'}", "not a string"),
        ('{"traceEvents": []} and more', "text after the end"),
        ('{"traceEvents": [' + "[" * 100_000 + "1" + "]" * 100_000 + "]}", "nested too deeply"),
    ],
)
def test_broken_json_is_an_error_with_its_place(tmp_path, text, says):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(UnsupportedFile, match=says):
        read(path)


def test_a_damaged_gzip_is_an_error(tmp_path):
    path = tmp_path / "a.json.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00garbage that is no deflate stream")
    with pytest.raises(UnsupportedFile, match="gzip stream is damaged"):
        read(path)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("CUPTI_ACTIVITY_KIND_KERNEL", "an Nsight Systems SQLite export"),
        ("rocpd_api", "a rocprof database"),
        ("bookmarks", r"SQLite database of something else \(tables: bookmarks\)"),
    ],
)
def test_sqlite_files_are_told_apart_by_their_tables(tmp_path, table, says):
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"create table {table} (a)")
    with pytest.raises(UnsupportedFile, match=says):
        read(path)


def test_a_damaged_sqlite_file_is_an_error(tmp_path):
    path = tmp_path / "a.sqlite"
    path.write_bytes(b"SQLite format 3\x00" + b"\x07" * 200)
    with pytest.raises(UnsupportedFile, match="cannot be opened"):
        read(path)


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_tar_of_ranks_says_to_extract_one(tmp_path, mode):
    path = tmp_path / "ranks.tar.gz"
    with tarfile.open(path, mode) as archive:
        for rank in range(8):
            archive.addfile(tarfile.TarInfo(f"rank{rank}.json"), io.BytesIO())
    with pytest.raises(UnsupportedFile, match="a tar archive of 8 files"):
        read(path)


def test_a_zip_and_a_folder_say_to_give_one_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.json", "{}")
    for path in (tmp_path / "a.zip", tmp_path):
        with pytest.raises(UnsupportedFile, match="give one trace file"):
            read(path)


def test_a_missing_file_is_the_systems_own_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.json")
