"""wavesim: how a GPU schedules its work.

Which CTA runs on which SM, when, and what the time was lost to::

    import wavesim

    kernel = wavesim.Kernel(grid=1000, block=256, work=wavesim.Duration.constant(ns=5_000))
    run = wavesim.simulate("h200", kernel)
    run.ledger  # where the slots' time went
    run.diagnose()  # what to change, and what that gives back

It is a timing model: it runs no CUDA code and computes no results. Times are nanoseconds, frames
are Polars frames, and every fault of the input is a :class:`wavesim.errors.InvalidInput`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wavesim import errors
from wavesim._wavesim import __version__
from wavesim.analyze import analyze
from wavesim.devices import Device, Occupancy, device, devices, occupancies, occupancy
from wavesim.run import Run
from wavesim.simulate import simulate
from wavesim.streaming import Array
from wavesim.warps import (
    Arithmetic,
    Await,
    Barrier,
    Branch,
    Load,
    Loop,
    Poll,
    Shared,
    Store,
    Tensor,
)
from wavesim.workload import (
    Access,
    Chain,
    Copy,
    Duration,
    Graph,
    GridSync,
    Kernel,
    Launch,
    Measured,
    Persistent,
    Program,
    Record,
    Stream,
    Streaming,
    Tiles,
    Wait,
    Warps,
)

if TYPE_CHECKING:
    from wavesim.analyze import Analysis
    from wavesim.compare import Comparison
    from wavesim.diagnose import Diagnosis, Finding
    from wavesim.io import Trace, read
    from wavesim.io.scenario import Scenario, read_scenario
    from wavesim.io.store import load

__all__ = [
    "Access",
    "Analysis",
    "Arithmetic",
    "Array",
    "Await",
    "Barrier",
    "Branch",
    "Chain",
    "Comparison",
    "Copy",
    "Device",
    "Diagnosis",
    "Duration",
    "Finding",
    "Graph",
    "GridSync",
    "Kernel",
    "Launch",
    "Load",
    "Loop",
    "Measured",
    "Occupancy",
    "Persistent",
    "Poll",
    "Program",
    "Record",
    "Run",
    "Scenario",
    "Shared",
    "Store",
    "Stream",
    "Streaming",
    "Tensor",
    "Tiles",
    "Trace",
    "Wait",
    "Warps",
    "__version__",
    "analyze",
    "device",
    "devices",
    "errors",
    "load",
    "occupancies",
    "occupancy",
    "read",
    "read_scenario",
    "simulate",
]

# What not every use needs is loaded when it is first asked for.
_LATER = {
    "Analysis": "wavesim.analyze",
    "Comparison": "wavesim.compare",
    "Diagnosis": "wavesim.diagnose",
    "Finding": "wavesim.diagnose",
    "Scenario": "wavesim.io.scenario",
    "Trace": "wavesim.io",
    "load": "wavesim.io.store",
    "read": "wavesim.io",
    "read_scenario": "wavesim.io.scenario",
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'wavesim' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
