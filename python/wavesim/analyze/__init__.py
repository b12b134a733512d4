"""What a profile says about a GPU's time, and what would change it.

``analyze(trace)`` gives an ``Analysis``: residency and waves of every kernel, the gap before it and
its cause, the ledger of the whole trace, the trace replayed in the model beside the measured one,
and the same program on other devices or launched as one graph.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from os import PathLike

    from wavesim.analyze.analysis import Analysis
    from wavesim.analyze.summary import Summary
    from wavesim.devices import Device
    from wavesim.io.trace import Trace

__all__ = ["Analysis", "Summary", "analyze"]


def analyze(
    trace: Trace | str | PathLike[str],
    device: Device | str | None = None,
    *,
    gpu: int | None = None,
) -> Analysis:
    """Analyze one GPU of a trace.

    ``device``: what the GPU is; by default what the trace says, else it must be given. ``gpu``:
    which of the trace's GPUs; by default the one with the most kernel time.

    Raises InvalidInput if the device cannot be told or the GPU is not in the trace, and what
    ``wavesim.read`` raises if a path is given.
    """
    # Loaded when asked for: who only simulates does without the readers of traces.
    from wavesim.analyze.analysis import analyze as analyzed  # noqa: PLC0415

    return analyzed(trace, device, gpu=gpu)


_LATER = {"Analysis": "wavesim.analyze.analysis", "Summary": "wavesim.analyze.summary"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'wavesim.analyze' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
