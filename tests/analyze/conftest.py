"""Small traces, written as the profiler writes them and read back."""

import json
from pathlib import Path

import pytest

import wavesim

REFERENCE = Path(__file__).parents[2] / "reference/h200/kineto"
H200 = {"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132}


class TraceMaker:
    """Events of one GPU; times in us."""

    def __init__(self, folder):
        self.folder = folder
        self.events = []
        self.device = H200

    def call(self, ts, dur, correlation, name="cudaLaunchKernel"):
        args = {"correlation": correlation}
        return self._add("cuda_runtime", name, ts, dur, tid=99, pid=99, args=args)

    def kernel(self, ts, dur, correlation, *, stream=7, grid=264, block=128, gpu=0, **args):
        given = {
            "device": gpu,
            "stream": stream,
            "correlation": correlation,
            "registers per thread": 32,
            "shared memory": 0,
            "grid": [grid, 1, 1],
            "block": [block, 1, 1],
        } | {name.replace("_", " "): value for name, value in args.items()}
        return self._add("kernel", f"k{correlation}", ts, dur, tid=stream, pid=gpu, args=given)

    def copy(self, ts, dur, correlation, *, stream=7):
        args = {"device": 0, "stream": stream, "correlation": correlation, "bytes": 4096}
        return self._add("gpu_memcpy", "Memcpy DtoD", ts, dur, tid=stream, pid=0, args=args)

    def wait(self, ts, correlation, *, stream, on_stream, record):
        args = {
            "cuda_sync_kind": "Stream Wait Event",
            "device": 0,
            "stream": stream,
            "correlation": correlation,
            "wait_on_stream": on_stream,
            "wait_on_cuda_event_record_corr_id": record,
        }
        return self._add("cuda_sync", "Stream Wait Event", ts, 1.0, tid=stream, pid=0, args=args)

    def _add(self, cat, name, ts, dur, **more):
        self.events.append({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, **more})
        return self

    def read(self):
        path = self.folder / "trace.json"
        devices = [] if self.device is None else [self.device]
        path.write_text(json.dumps({"deviceProperties": devices, "traceEvents": self.events}))
        return wavesim.read(path)

    def analyze(self, *args, **options):
        return wavesim.analyze(self.read(), *args, **options)


@pytest.fixture
def trace(tmp_path):
    return TraceMaker(tmp_path)


@pytest.fixture(scope="session")
def reference():
    """Analyses of the project's own traces of an H200, each made once."""
    made = {}

    def analysis(name):
        if name not in made:
            made[name] = wavesim.analyze(REFERENCE / f"{name}.json.gz")
        return made[name]

    return analysis
