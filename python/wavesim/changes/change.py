"""What is simulated instead of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wavesim.devices import Device
from wavesim.workload import Program

__all__ = ["Change"]


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
