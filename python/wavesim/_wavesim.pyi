"""The engine. Specs cross as JSON, lists of numbers as buffers, frames as Arrow streams."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Frame",
    "Machine",
    "RunRecords",
    "__version__",
    "catalogue_device",
    "catalogue_find",
    "catalogue_names",
    "check_kernel",
    "check_program",
    "generic_device",
    "limits_of",
    "occupancies",
    "occupancy",
    "scaled_device",
    "simulate",
    "span_ps",
]

__version__: str

@final
class Machine:
    """A device that was read from JSON and validated, to be used for any number of runs."""

    def __new__(cls, json: str) -> Machine: ...

@final
class Frame:
    """A frame that any Arrow library takes over without a copy."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...
    def __len__(self) -> int: ...

@final
class RunRecords:
    """All that a run leaves behind."""

    def kernels(self) -> Frame: ...
    def ctas(self) -> Frame | None: ...
    def sms(self) -> Frame: ...
    def l2(self) -> Frame: ...
    def warps(self) -> Frame: ...
    def l2_slices(self) -> Frame | None: ...
    def l2_windows(self) -> Frame | None: ...
    def ledger(self) -> Frame: ...
    def timeline(self, bins: int) -> Frame: ...
    @property
    def slots(self) -> int: ...
    @property
    def makespan_ps(self) -> int: ...
    @property
    def digest(self) -> str: ...

def simulate(
    machine: Machine,
    program: str,
    arrays: Sequence[NDArray[np.float64]],
    seed: int,
    detail: str,
    dispatcher: str,
    first_sms: Sequence[int],
    issue: str,
) -> RunRecords: ...
def span_ps(machine: Machine, program: str) -> int: ...
def check_program(program: str, arrays: Sequence[NDArray[np.float64]]) -> None: ...
def check_kernel(kernel: str) -> None: ...
def catalogue_names() -> list[str]: ...
def catalogue_find(name: str) -> str | None: ...
def catalogue_device(name: str) -> str: ...
def generic_device(capability: str, title: str, sms: int) -> str: ...
def limits_of(capability: str) -> str: ...
def scaled_device(json: str, sms: int) -> str: ...
def occupancy(machine: Machine, shape: str) -> str: ...
def occupancies(
    machine: Machine,
    threads: Sequence[int],
    registers: Sequence[int],
    shared_bytes: Sequence[int],
    barriers: Sequence[int],
    cluster: Sequence[int],
) -> tuple[list[int], list[int], list[str], list[str | None]]: ...
