"""The error of a prediction, given that each quantity was measured twice.

What two measurements of one thing differ by is the limit of any prediction, so the error is the
distance from the simulated value to the interval between the two, and nothing inside it:

- a time: the distance less the tick of the clock that it was read from, not below 0, over the mean
  of the two measurements;
- a count or a number of bytes: the distance over the mean, without a tick;
- a share: the distance itself.

Errors are fractions: 0.01 is one percent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

__all__ = ["MEASURES", "Measure", "Summary", "error_of"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measured column: the kind of quantity, and the tick of the clock it was read from."""

    name: str
    kind: Literal["time", "count", "share"]
    tick: float = 0.0


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        # %globaltimer advances every 32 ns.
        Measure("span_ns", "time", tick=32.0),
        # Two CUDA events tell apart what lies about 0.3 us apart.
        Measure("event_us", "time", tick=0.3),
        Measure("median_us", "time", tick=0.3),
        Measure("device_us", "time", tick=0.3),
        Measure("cycles_per_load", "count"),
        Measure("mean_cycles", "count"),
        Measure("dram_bytes", "count"),
        Measure("hit_share", "share"),
        Measure("sm_sectors", "count"),
        Measure("max_active_clusters", "count"),
        Measure("sms_used", "count"),
        # Of the first wave's CTAs, on the SM where they were logged; measured is all of them.
        Measure("placement", "share"),
    )
}
"""Everything that is predicted, by name: columns, and ``placement``."""


def error_of(measure: Measure, simulated: float, first: float, again: float | None = None) -> float:
    """Give the error of a simulated value.

    Args:
        measure: what was measured; its tick is in the unit of the values.
        simulated: the prediction.
        first: the one measurement.
        again: the other; None where there is only one.

    Returns:
        A fraction, 0 or more; infinite for a count that should be 0 and is not.
    """
    low, high = sorted((first, first if again is None else again))
    distance = max(low - simulated, simulated - high, 0.0)
    if measure.kind == "share":
        return distance
    distance = max(distance - measure.tick, 0.0)
    mean = (low + high) / 2
    if mean > 0:
        return distance / mean
    return math.inf if distance > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """The errors of several rows in three numbers; NaN where there are no rows."""

    rows: int
    mape: float
    """Their mean."""
    p90: float
    """What nine of ten do not exceed (with linear interpolation between two rows)."""
    worst: float

    @classmethod
    def of(cls, errors: Sequence[float]) -> Summary:
        """Summarise the errors of rows."""
        if not errors:
            return cls(0, math.nan, math.nan, math.nan)
        values = np.asarray(errors, dtype=np.float64)
        p90 = math.inf if np.isinf(values).any() else float(np.quantile(values, 0.9))
        return cls(len(errors), float(values.mean()), p90, float(values.max()))
