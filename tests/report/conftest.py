"""Runs and a trace to report on."""

import json
from pathlib import Path

import pytest

import wavesim
from wavesim import (
    Access,
    Duration,
    Graph,
    Kernel,
    Launch,
    Program,
    Record,
    Streaming,
    Wait,
    Warps,
)
from wavesim.streaming import Array
from wavesim.warps import Arithmetic, Barrier, Load, Loop, Shared

NAME = 'void gemm<float, 4>(T const&)</script><script>alert("x")</script>'
SECRET = "token-hunter2"

DEVICE = {
    "id": 0,
    "name": "NVIDIA H200",
    "computeMajor": 9,
    "computeMinor": 0,
    "numSms": 132,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 233472,
}


@pytest.fixture(scope="session")
def run() -> wavesim.Run:
    """Two kernels on two streams, with a name that is hostile to HTML."""
    large = Kernel(grid=600, registers=128, work=Duration.lognormal(4_000, 0.2), name=NAME)
    small = Kernel(grid=90, work=Duration.constant(ns=2_000), name="reduce<&>")
    return wavesim.simulate(
        "h200",
        Program(
            [
                Launch(large),
                Record("e"),
                Wait("e", stream=1),
                Launch(small, stream=1),
                Graph([large, small]),
            ]
        ),
    )


@pytest.fixture(scope="session")
def detailed() -> wavesim.Run:
    """A run of memory work, streaming work and a warp program, recorded over time."""
    turn = [Load(footprint_bytes=2**24), Shared("store"), Barrier(), Arithmetic(40)]
    works = {
        "reuse": Access.reuse(16_384, 1_056, passes=3),
        "copy": Streaming(2**20, Array(4, 1), Array(4, 2)),
        NAME: Warps([Loop(40, turn)]),
    }
    kernels = [Kernel(264, 256, work=work, name=name) for name, work in works.items()]
    return wavesim.simulate("h200", Program([*kernels, kernels[0]]), detail="memory")


def write_trace(path: Path, kernels: int = 40) -> Path:
    """A trace of one stream whose metadata and host events hold a secret."""
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": f"/home/{SECRET}/train.py"}},
        {"ph": "X", "cat": "cpu_op", "name": SECRET, "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0},
    ]
    for at in range(kernels):
        ts = 100.0 + 20.0 * at
        call = {"correlation": at}
        events.append(
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
            | {"ts": ts, "dur": 4.0, "args": call}
        )
        args = {"device": 0, "stream": 7, "grid": [300, 1, 1], "block": [256, 1, 1]}
        args |= {"registers per thread": 64, "shared memory": 0, "correlation": at}
        events.append(
            {"ph": "X", "cat": "kernel", "name": NAME, "pid": 0, "tid": 7}
            | {"ts": ts + 8.0, "dur": 10.0, "args": args}
        )
    document = {"deviceProperties": [DEVICE], "hostname": SECRET, "traceEvents": events}
    path.write_text(json.dumps(document))
    return path


@pytest.fixture(scope="session")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> wavesim.Analysis:
    """The analysis of a small trace."""
    return wavesim.analyze(write_trace(tmp_path_factory.mktemp(SECRET) / f"{SECRET}.json"))
