"""From the measured time of a whole kernel to the duration of its CTAs.

A trace has one time a kernel: from its first CTA's start to its last one's end. What a CTA took is
the duration for which the simulated kernel, alone on the device of the trace, spans that time. The
span grows with the duration, so it is found by a bracketed secant: where CTAs run for long, the
span is a straight line of the duration, and two or three simulations are enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from wavesim import _wavesim
from wavesim.devices import Device
from wavesim.devices import device as catalogue_device
from wavesim.durations import Duration
from wavesim.text import counted, time_text
from wavesim.wire import single_launch
from wavesim.workload import Kernel, Measured, Program

__all__ = ["Solved", "solve"]

_MOST_STEPS = 80
"""Bisection alone would need 62 for the longest duration."""


@dataclass(frozen=True, slots=True)
class Solved:
    """The durations of a program's measured kernels, and what there is to say of them."""

    works: dict[Kernel, Duration] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def solve(program: Program, device: Device) -> Solved:
    """Find the CTA duration of each measured kernel of a program.

    Raises:
        CannotLaunch: the device that a kernel was measured on can't launch it.
        InvalidInput: the name of that device is not known.
    """
    works: dict[Kernel, Duration] = {}
    too_short: list[str] = []
    for launch in program.launches():
        kernel = launch.kernel
        work = kernel.work
        if not isinstance(work, Measured) or kernel in works:
            continue
        home = catalogue_device(work.on) if isinstance(work.on, str) else work.on or device
        target_ps = round(work.span_ns * 1e3)
        shape = kernel.edited(name="", work=Duration.constant(ns=0))
        duration_ps = _duration_ps(home.machine, shape, target_ps)
        if duration_ps == 0 and (floor := _span_ps(home.machine, shape, 0)) > target_ps:
            too_short.append(
                f"{kernel.name}: {time_text(work.span_ns)}, and {time_text(floor / 1e3)} empty"
            )
        scale = work.scale
        if scale is None:
            scale = home.clock.sm_mhz / device.clock.sm_mhz
        works[kernel] = Duration.constant(ns=duration_ps * scale / 1e3)
    return Solved(works, _notes(too_short))


def _notes(too_short: list[str]) -> tuple[str, ...]:
    if not too_short:
        return ()
    return (
        f"{counted(len(too_short), 'measured kernel')} took less time than empty CTAs do here; "
        f"replayed with empty CTAs ({too_short[0]})",
    )


@lru_cache(maxsize=1 << 16)
def _duration_ps(machine: _wavesim.Machine, shape: Kernel, target_ps: int) -> int:
    """Find the duration whose span comes nearest to the target, 0 if even that spans more."""
    low, low_span = 0, _span_ps(machine, shape, 0)
    if low_span >= target_ps:
        return 0
    # A CTA is no longer than the span, so the target as a duration spans at least the target.
    high, high_span = target_ps, _span_ps(machine, shape, target_ps)
    best, best_error = (high, high_span - target_ps)
    for step in range(_MOST_STEPS):
        if best_error == 0 or high - low <= 1:
            break
        slope = (high_span - low_span) / (high - low)
        if abs(best_error) < slope / 2:
            break  # one picosecond more or less in each CTA would be further off
        guess = low + round((target_ps - low_span) / slope)
        # Where the line bends, the secant can creep: every third step halves the bracket.
        if step % 3 == 2:
            guess = (low + high) // 2
        guess = min(max(guess, low + 1), high - 1)
        span = _span_ps(machine, shape, guess)
        if abs(span - target_ps) < abs(best_error):
            best, best_error = guess, span - target_ps
        if span < target_ps:
            low, low_span = guess, span
        else:
            high, high_span = guess, span
    return best


@lru_cache(maxsize=1 << 18)
def _span_ps(machine: _wavesim.Machine, shape: Kernel, duration_ps: int) -> int:
    """Simulate the kernel alone, with CTAs of this duration: first start to last end."""
    return _wavesim.span_ps(machine, single_launch(shape, duration_ps / 1e3))
