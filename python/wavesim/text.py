"""Values as people read them: times in the unit that fits, shares in percent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

__all__ = [
    "TimeUnit",
    "all_of",
    "any_of",
    "counted",
    "meant",
    "shortened",
    "time_text",
    "value_text",
]

_SHARES = {"share", "utilization", "occupancy", "error"}


@dataclass(frozen=True)
class TimeUnit:
    """A unit for an axis: ``label``, and how many nanoseconds are one of it."""

    label: str
    ns: float

    @classmethod
    def of(cls, span_ns: float) -> TimeUnit:
        """The largest unit of which ``span_ns`` has at least two."""
        for label, ns in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
            if span_ns >= 2 * ns:
                return cls(label, ns)
        return cls("ns", 1.0)

    def axis(self, what: str = "time") -> str:
        """An axis title such as ``time (µs)``."""
        return f"{what} ({self.label})"


def time_text(ns: float) -> str:
    """``ns`` in words, with four significant digits: ``12.35 µs``."""
    # 999.96 ns has four digits as 1 µs, so the unit is chosen after rounding.
    rounded = float(f"{ns:.4g}")
    unit = TimeUnit.of(abs(rounded) * 2)
    return f"{rounded / unit.ns:.4g} {unit.label}"


def any_of(names: Iterable[str]) -> str:
    """What may be given, in an error: ``ctas, kernels or memory``."""
    return _listed(names, "or")


def all_of(names: Iterable[str]) -> str:
    """Several things in a sentence: ``grid barriers, counters and flags``."""
    return _listed(names, "and")


def _listed(names: Iterable[str], word: str) -> str:
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last


def meant(name: str, known: Iterable[str]) -> str:
    """What an error about an unknown name goes on with: the nearest known one, or all."""
    known = list(known)
    if close := get_close_matches(name, known, n=1):
        return f"; did you mean {close[0]}?"
    return f": must be {any_of(known)}" if known else ""


def counted(number: int, noun: str) -> str:
    """``1 kernel``, ``2,000 kernels``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def shortened(text: str, characters: int = 60) -> str:
    """``text`` cut to so many characters; C++ kernel names run to thousands."""
    return text if len(text) <= characters else text[: characters - 1] + "…"


def value_text(name: str, value: object) -> str:
    """A value of the column ``name``, in the unit that the name says.

    ``..._ns`` is shown as a time, shares and utilizations as percentages, null as a dash.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " x ".join(str(part) for part in value)
    if isinstance(value, int | float):
        return _number_text(name, value)
    return "-" if value is None else str(value)


def _number_text(name: str, value: float) -> str:
    if name.endswith("_ns"):
        return time_text(value)
    if name in _SHARES or name.endswith(("_share", "_error")):
        return f"{value:z.1%}"  # z: no minus before a zero
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
