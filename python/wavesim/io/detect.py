"""What a file is, by its content; and what to do with one that wavesim does not read."""

from __future__ import annotations

import sqlite3
import tarfile
import zipfile
import zlib
from contextlib import closing
from enum import StrEnum
from os import PathLike
from pathlib import Path

from wavesim.errors import UnsupportedFile
from wavesim.io.json_events import JsonEvents, open_bytes
from wavesim.scalars import path_from

_HEAD_BYTES = 1 << 16
_PROFILE = "record one with torch.profiler.profile(...) and export_chrome_trace(path)"

# What only the suffix or a few magic bytes can tell, each with the way out of it.
_BY_SUFFIX = {
    ".nsys-rep": "an Nsight Systems report, whose format is private; "
    "export it: nsys stats -r cuda_gpu_trace, or record with torch.profiler",
    ".qdrep": "an Nsight Systems report of an old version, whose format is private; "
    "record with torch.profiler instead",
    ".ncu-rep": "an Nsight Compute report, whose format is private; "
    "it describes single kernels, not a timeline",
    ".nvvp": "a profile of the Visual Profiler, long retired; record with torch.profiler",
    ".pftrace": "a Perfetto protobuf trace; wavesim reads the JSON that the profiler itself wrote",
    ".perfetto-trace": "a Perfetto protobuf trace; "
    "wavesim reads the JSON that the profiler itself wrote",
    ".pb": "a protobuf file, perhaps an XPlane profile of JAX or TensorFlow; "
    "it is no PyTorch profile",
}
_BY_MAGIC = (
    (b"\x28\xb5\x2f\xfd", "compressed with zstd; decompress it first: zstd -d FILE"),
    (b"\xfd7zXZ\x00", "compressed with xz; decompress it first: xz -d FILE"),
    (b"BZh", "compressed with bzip2; decompress it first: bzip2 -d FILE"),
    (b"\x04\x22\x4d\x18", "compressed with lz4; decompress it first: lz4 -d FILE"),
    (b"PAR1", "a Parquet table; a run saved by wavesim is opened with wavesim.load(FOLDER)"),
    (b"NVR\x00", "an Nsight Compute report; it describes single kernels, not a timeline"),
    (b"\x7fELF", "a program, not a profile"),
    (b"%PDF", "a PDF document, not a profile"),
)
_TEXT = (
    ("<!doctype html", "an HTML page, not a profile"),
    ("<html", "an HTML page, not a profile"),
    ("version https://git-lfs", "a Git LFS pointer, not the file itself; fetch it: git lfs pull"),
    ("==prof==", "Nsight Compute output; it describes single kernels, not a timeline"),
    ('"id","process id"', "an Nsight Compute CSV; it describes single kernels, not a timeline"),
    ("start (ns),", "an nsys stats CSV, which does not say when the host launched a kernel"),
    ("-kernel name =", "an Accel-Sim kernel trace; it holds instructions, not a timeline"),
    ("memcpyhtod,", "an Accel-Sim kernel list; it holds instructions, not a timeline"),
)

# Words in event categories that only the profiles of other machines have.
_OTHER_MACHINES = {
    "mtia": "an MTIA accelerator",
    "hpu": "a Gaudi accelerator",
    "npu": "an NPU",
    "xla": "an XLA device",
    "tpu": "a TPU",
}
_HOST_CATEGORIES = {"cpu_op", "operator", "python_function", "user_annotation"}
_ACTIVITIES = "record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"


class FileKind(StrEnum):
    """The kinds of file that wavesim tells apart and can read."""

    TRACE_JSON = "trace-json"


def detect(path: str | PathLike[str]) -> FileKind:
    """Tell the kind of ``path``.

    Raises UnsupportedFile, saying what the file is and how to get one that can be read, and
    FileNotFoundError or another OSError if it cannot be opened; InvalidInput if it is no path.
    """
    path = path_from("path", path)
    if path.is_dir():
        raise _no(path, "a folder; give one trace file (each rank of a job has its own)")
    if path.stat().st_size == 0:
        raise _no(path, "empty")
    if path.suffix in _BY_SUFFIX:
        raise _no(path, _BY_SUFFIX[path.suffix])
    with path.open("rb") as file:
        magic = file.read(16)
    if magic.startswith(b"SQLite format 3\x00"):
        raise _no(path, _sqlite(path))
    for start, what in _BY_MAGIC:
        if magic.startswith(start):
            raise _no(path, what)
    # is_tarfile takes some text for a tar with an odd header: ask only when it can be none.
    if zipfile.is_zipfile(path):
        raise _no(path, "a zip archive; extract it and give one trace file")
    return _text(path)


def what_instead(events: JsonEvents, categories: set[str], called: bool, count: int) -> str:
    """Say what a trace without GPU work is, as the rest of a sentence that starts with its name.

    ``categories`` are those of its events in lower case, ``called`` says whether it holds host
    calls, ``count`` how many events it has.
    """
    machine = next((word for word in _OTHER_MACHINES if word in " ".join(categories)), None)
    keys = ", ".join(events.keys[:4]) or "none"
    if "nodes" in events.header and "schema" in events.header:
        what = (
            "is an execution trace (operators and their inputs, no GPU times); "
            "give the profiler's own trace, from export_chrome_trace"
        )
    elif not events.has_events:
        what = f"is JSON, but no trace: it has no traceEvents (its keys: {keys})"
    elif not count:
        what = "is a trace without any event"
    elif machine is not None:
        what = f"is a trace of {_OTHER_MACHINES[machine]}, which wavesim does not model"
    elif called:
        what = (
            "holds launch calls but no kernels: the profiler saw only the host; "
            f"{_ACTIVITIES} and synchronize before the profiler stops"
        )
    elif categories & _HOST_CATEGORIES:
        what = f"is a profile of the host alone: it has no kernels; {_ACTIVITIES}"
    else:
        what = (
            f"holds {count:,} trace events, but no kernel of a GPU: "
            "it was not written by the PyTorch profiler"
        )
    return what


def _text(path: Path) -> FileKind:
    try:
        with open_bytes(path) as file:
            head = file.read(_HEAD_BYTES)
    except (EOFError, zlib.error, OSError):
        head = b""  # a damaged gzip stream: the reader says where it breaks
        return FileKind.TRACE_JSON
    text = head.decode("utf-8-sig", errors="replace").lstrip()
    if text[:1] in ("{", "["):
        return FileKind.TRACE_JSON
    if head[257:262] == b"ustar":
        with tarfile.open(path) as archive:
            files = sum(member.isfile() for member in archive)
        raise _no(path, f"a tar archive of {files} files; extract it and give one trace file")
    low = text.lower()
    for start, what in _TEXT:
        if low.startswith(start) or f"\n{start}" in low:
            raise _no(path, what)
    if not text:
        raise _no(path, "empty but for white space")
    if "/host:" in text or "/device:" in text or "\x00" in text or "\ufffd" in text[:1024]:
        what = "a binary file of unknown format (an XPlane profile perhaps); it is no JSON"
        raise _no(path, f"{what}; {_PROFILE}")
    raise _no(path, f"text, but no JSON; {_PROFILE}")


def _sqlite(path: Path) -> str:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute("select name from sqlite_master where type = 'table'")
            tables = sorted(str(name) for (name,) in rows)
    except sqlite3.Error as error:
        return f"an SQLite database that cannot be opened ({error})"
    if any(name.startswith(("CUPTI_ACTIVITY_", "TARGET_INFO_", "META_DATA_")) for name in tables):
        return (
            "an Nsight Systems SQLite export, which this version does not read; "
            "record the same work with torch.profiler instead"
        )
    if any(name.startswith("rocpd_") for name in tables):
        return (
            "a rocprof database, which this version does not read; "
            "record the same work with torch.profiler instead"
        )
    named = ", ".join(tables[:4]) + (", ..." if len(tables) > 4 else "")
    return f"an SQLite database of something else (tables: {named or 'none'})"


def _no(path: Path, what: str) -> UnsupportedFile:
    return UnsupportedFile(f"{path.name} is {what}", path)
