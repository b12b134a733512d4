"""Builds small profiler files with the oddities of real ones."""

import gzip
import json
from pathlib import Path

import pytest

H200 = {
    "id": 0,
    "name": "NVIDIA H200",
    "totalGlobalMem": 150109880320,
    "computeMajor": 9,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65536,
    "warpSize": 32,
    "sharedMemPerBlock": 49152,
    "numSms": 132,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerBlockOptin": 232448,
    "sharedMemPerMultiprocessor": 233472,
}
BASE_US = 5123744715857.758  # an absolute time as the profiler writes it


class KinetoFile:
    """Events to write; times in us after BASE_US unless absolute=True."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[object] = []
        self.header: dict[str, object] = {"schemaVersion": 1, "deviceProperties": [H200]}

    def kernel(self, name="gemm", ts=10.0, dur=5.0, *, stream=7, cat="kernel", tid=None, **args):
        given = {
            "device": 0,
            "stream": stream,
            "correlation": 1,
            "registers per thread": 32,
            "shared memory": 24,
            "grid": [264, 1, 1],
            "block": [128, 1, 1],
            "est. achieved occupancy %": 50,
        } | args
        given = {key.replace("_", " "): value for key, value in given.items() if value is not ...}
        return self.add(cat, name, ts, dur, pid=0, tid=stream if tid is None else tid, args=given)

    def call(self, name="cudaLaunchKernel", ts=0.0, dur=4.0, *, correlation=1, cat="cuda_runtime"):
        return self.add(cat, name, ts, dur, pid=99, tid=99, args={"correlation": correlation})

    def add(self, cat, name, ts, dur, **more):
        if isinstance(ts, float):
            ts = round(BASE_US + ts, 3)
        self.events.append({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, **more})
        return self

    def text(self) -> str:
        return json.dumps(self.header | {"traceEvents": self.events})

    def write(self, name="trace.json", *, text: str | bytes | None = None) -> Path:
        path = self.folder / name
        content = self.text() if text is None else text
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") and text is None else data)
        return path


@pytest.fixture
def kineto(tmp_path):
    return KinetoFile(tmp_path)


@pytest.fixture
def problems():
    """The problems of a trace as {what: count}."""
    return lambda trace: dict(trace.problems.select("what", "count").iter_rows())
