"""Numbers and truth values as callers write them: what is taken for one, and what is not.

Pydantic reads ``"128"`` and ``True`` as numbers, and ``1`` and ``"yes"`` as true. In a simulation
each of these is a mistake that nothing would tell: a grid of ``True`` CTAs runs. NumPy's scalars
are numbers like Python's, and a whole float is a whole number (``1e6`` CTAs).
"""

from __future__ import annotations

import operator
from typing import Any

from pydantic_core import CoreSchema, PydanticCustomError

__all__ = ["is_truth", "refusing_look_alikes", "whole"]

_CHILDREN = ("schema", "fields", "choices", "items_schema", "values_schema", "definitions")
"""Where a pydantic schema has others in it; the keys of a mapping are text in JSON."""


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


def _number(value: Any) -> Any:
    if type(value) is int or type(value) is float:
        return value
    if is_truth(value) or isinstance(value, str | bytes):
        raise PydanticCustomError("number", "must be a number")
    return value


def _truth(value: Any) -> Any:
    if type(value) is bool:
        return value
    if not is_truth(value):
        raise PydanticCustomError("truth", "must be true or false")
    return bool(value)


_CHECKS = {"int": _number, "float": _number, "bool": _truth}


def refusing_look_alikes(schema: CoreSchema, model: type) -> CoreSchema:
    """Give a model's schema with these checks before each of its numbers and truth values.

    Other models inside it have gone through here themselves. A plain union is left as it is: its
    own validator says what it takes.
    """
    changed: CoreSchema = _changed(schema, model)
    return changed


def _changed(schema: Any, model: type) -> Any:
    if isinstance(schema, list):
        return [_changed(item, model) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if kind in _CHECKS:
        check = {"type": "no-info", "function": _CHECKS[kind]}
        return {"type": "function-before", "function": check, "schema": schema}
    if kind == "union" or (kind == "model" and schema["cls"] is not model):
        return schema
    found = dict(schema)
    for name in _CHILDREN:
        child = schema.get(name)
        if isinstance(child, dict) and "type" not in child:
            found[name] = {key: _changed(inner, model) for key, inner in child.items()}
        elif child is not None:
            found[name] = _changed(child, model)
    return found
