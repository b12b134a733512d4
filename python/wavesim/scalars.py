"""Numbers, truth values and paths as callers write them: what is taken for one, and what is not.

Pydantic reads ``"128"`` and ``True`` as numbers, and ``1`` and ``"yes"`` as true. In a simulation
each of these is a mistake that nothing would tell: a grid of ``True`` CTAs runs. So each number of
a spec is checked by :data:`NUMBER` first, and each truth value is a :data:`Truth`. NumPy's scalars
are numbers like Python's, and a whole float is a whole number (``1e6`` CTAs).
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AllowInfNan, BeforeValidator
from pydantic_core import PydanticCustomError

from wavesim.errors import InvalidInput

__all__ = [
    "KEY",
    "NUMBER",
    "Finite",
    "Truth",
    "is_truth",
    "listed",
    "path_from",
    "whole",
    "whole_from",
]

T = TypeVar("T")


def is_truth(value: object) -> bool:
    """Whether a value is True or False, Python's or NumPy's."""
    kind = type(value)
    return kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"))


def whole(value: object) -> int | None:
    """Give an integer, Python's or NumPy's, as Python's; None if it is no integer."""
    if is_truth(value) or not hasattr(value, "__index__"):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array of more than one
        return None


def whole_from(field: str, value: object, least: int, most: int) -> int:
    """Give an integer of a range; raises InvalidInput that names the argument."""
    found = whole(value)
    if found is None or not least <= found <= most:
        raise InvalidInput(
            f"{field}: must be from {least} to {most:,} (got {value!r})", field, value
        )
    return found


def listed(field: str, values: Iterable[T], of: str) -> tuple[T, ...]:
    """Give the values of a list ``of`` something; raises InvalidInput for what is no list."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInput(f"{field}: must be a list of {of} (got {values!r})", field, values)
    return tuple(values)


def path_from(field: str, value: object, what: str = "a path") -> Path:
    """Give the path that an argument names; raises InvalidInput for what is none."""
    try:
        path = os.fspath(value)  # type: ignore[call-overload]
    except TypeError:
        path = None
    if not isinstance(path, str) or "\0" in path:
        raise InvalidInput(f"{field}: must be {what} (got {value!r})", field, value)
    return Path(path)


def _number(value: Any) -> Any:
    if type(value) is int or type(value) is float:
        return value
    if is_truth(value) or isinstance(value, str | bytes):
        raise PydanticCustomError("number", "must be a number")
    return value


def _key(value: Any) -> Any:
    if is_truth(value):
        raise PydanticCustomError("number", "must be a whole number")
    return value


def _truth(value: Any) -> Any:
    if type(value) is bool:
        return value
    if not is_truth(value):
        raise PydanticCustomError("truth", "must be true or false")
    return bool(value)


NUMBER = BeforeValidator(_number)
"""Behind a number's bounds in its annotation: refuses what only looks like one."""
KEY = BeforeValidator(_key)
"""The same for a number that is a key, which JSON writes as text."""
Finite = Annotated[float, AllowInfNan(False), NUMBER]
"""A number that is neither infinite nor none."""
Truth = Annotated[bool, BeforeValidator(_truth)]
"""True or False, and nothing that only looks like it."""
