"""What is simulated instead of a run."""

from __future__ import annotations

from dataclasses import dataclass
from types import UnionType
from typing import Literal

from wavesim.devices import Device
from wavesim.warps import Loop, Warps
from wavesim.workload import Persistent, Program

__all__ = ["WORTH_SIMULATING", "Change", "does", "has"]


WORTH_SIMULATING = 0.01
"""Share of the time from which on it is tried what would give it back."""


@dataclass(frozen=True)
class Change:
    """What is simulated instead.

    ``words`` completes the sentence "With ... it takes 12 µs". ``assuming`` is what
    the change takes for granted of the real work, empty if nothing.
    """

    words: str
    program: Program
    dispatcher: Literal["hardware", "ideal"]
    assuming: str = ""
    device: Device | None = None
    """Another device; the run's own if there is none."""
    limit: str = ""
    """What limits the run if this change helps."""


def has(program: Program, kinds: type | UnionType) -> bool:
    """Whether a kernel's work is of these kinds; see :func:`does`."""
    return any(does(launch.kernel.work, kinds) for launch in program.launches())


def does(work: object, kinds: type | UnionType) -> bool:
    """Whether work is of these kinds, or a program of its warps has such segments.

    A persistent kernel with a static schedule is of none: its CTAs ask nobody for tasks.
    """
    if isinstance(work, Persistent) and work.schedule == "static":
        return False
    if isinstance(work, kinds):
        return True
    if isinstance(work, Warps):
        return any(does(segment, kinds) for program in work.programs for segment in program)
    return isinstance(work, Loop) and any(does(segment, kinds) for segment in work.body)
