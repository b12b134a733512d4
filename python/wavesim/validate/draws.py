"""The times that the measured runs drew for their tasks.

No table of ``reference/h200`` says which times were drawn, but what drew them is known:
``std::mt19937_64`` and the laws of the C++ standard library (libstdc++). It was found from
``spin_dist``, whose blocks' clocks are logged: seeded with one more than the number of blocks, it
gives all its 36 rows, block by block, to what a block takes beside its wait
(``tests/hardware/test_draws.py``). The tasks of ``persistent_*_dist`` come from one seed for all
rows: of the first 30,000 only :data:`TASK_SEED` gives the nine spans of ``persistent_static_dist``
that chance has a part in to 1.5 %, and it gives them to 0.4 %. The rows of
``persistent_atomic_dist`` had no part in that, nor had those of ``reference/h200_holdout``.

A folder of other measurements lists its times in ``asked.parquet``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from wavesim.validate.bodies import Cycles
from wavesim.validate.tables import Inputs, NotSimulated

__all__ = ["LAWS", "TASK_SEED", "asked", "drawn"]

TASK_SEED = 5
"""Of the tasks of ``persistent_*_dist``, whatever their law."""

_WORDS, _MIDDLE = 312, 156
_ALL = (1 << 64) - 1
_UPPER = _ALL ^ ((1 << 31) - 1)
_TWIST = 0xB5026F5AA96619E9


def _words(seed: int) -> Iterator[int]:
    """Give the 64-bit words of the Mersenne twister MT19937-64 (Nishimura and Matsumoto, 2004)."""
    state = [seed & _ALL]
    for index in range(1, _WORDS):
        last = state[-1]
        state.append((6364136223846793005 * (last ^ last >> 62) + index) & _ALL)
    while True:
        for index in range(_WORDS):
            word = state[index] & _UPPER | state[(index + 1) % _WORDS] & ~_UPPER & _ALL
            twisted = word >> 1 ^ (_TWIST if word & 1 else 0)
            state[index] = state[(index + _MIDDLE) % _WORDS] ^ twisted
        yield from map(_tempered, state)


def _tempered(word: int) -> int:
    word ^= word >> 29 & 0x5555555555555555
    word ^= word << 17 & 0x71D67FFFEDA60000
    word ^= word << 37 & 0xFFF7EEE000000000
    return word ^ word >> 43


def _uniform(seed: int) -> Iterator[float]:
    """Give ``std::uniform_real_distribution<double>(0, 1)``: a word each."""
    return (word / 2.0**64 for word in _words(seed))


def _normal(seed: int) -> Iterator[float]:
    """Give ``std::normal_distribution<double>(0, 1)``: Marsaglia's polar method, y before x."""
    uniform = _uniform(seed)
    while True:
        x = 2.0 * next(uniform) - 1.0
        y = 2.0 * next(uniform) - 1.0
        square = x * x + y * y
        if 0.0 < square <= 1.0:
            scale = math.sqrt(-2.0 * math.log(square) / square)
            yield y * scale
            yield x * scale


def _take(values: Iterator[float], count: int) -> Cycles:
    return np.fromiter(values, np.float64, count)


def _uniforms(seed: int, count: int) -> Cycles:
    return _take(_uniform(seed), count)


def _normals(seed: int, count: int) -> Cycles:
    return _take(_normal(seed), count)


LAWS: dict[str, Callable[[int, int], Cycles]] = {
    "uniform": lambda seed, count: 0.5 + _uniforms(seed, count),
    "normal10": lambda seed, count: 1.0 + 0.1 * _normals(seed, count),
    "exp": lambda seed, count: -np.log1p(-_uniforms(seed, count)),
    "lognormal": lambda seed, count: np.exp(-0.32 + 0.8 * _normals(seed, count)),
    "bimodal": lambda seed, count: np.where(_uniforms(seed, count) < 0.01, 10.0, 0.9 / 0.99),
    "ramp_up": lambda _, count: 2.0 * np.arange(count) / count,
    "ramp_down": lambda _, count: 2.0 * (1.0 - np.arange(count) / count),
    "alternate": lambda _, count: np.where(np.arange(count) % 2, 1.5, 0.5),
    "last_slow": lambda _, count: np.where(np.arange(count) < count - 1, 1.0, 20.0),
}
"""Times by law, in units of their mean. The laws and their parameters were read off the same
logs."""


def asked(inputs: Inputs, count: int, seed: int) -> Cycles:
    """Give the ``count`` times that a row's blocks or tasks were asked to take, in cycles.

    Raises:
        NotSimulated: ``asked.parquet`` lists another number of them, or the law is not known.
    """
    listed = inputs.asked_cycles
    if listed is None:
        return drawn(inputs.text("dist"), inputs.number("mean"), count, seed)
    if len(listed) != count:
        raise NotSimulated(f"asked.parquet has {len(listed)} times for {count} blocks or tasks")
    if not np.all(listed >= 0):
        raise NotSimulated(f"asked.parquet: times must be 0 or more (got {listed.min():g})")
    return listed


def drawn(law: str, mean: float, count: int, seed: int) -> Cycles:
    """Give the ``count`` times of a law with a ``mean``, in its unit, as whole numbers.

    Raises:
        NotSimulated: no such law.
    """
    if law not in LAWS:
        raise NotSimulated(f"dist is none of {', '.join(LAWS)} (got {law!r})")
    return np.maximum(np.floor(mean * LAWS[law](seed, count)), 0.0)
