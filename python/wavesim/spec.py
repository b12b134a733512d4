"""What all specs have in common: frozen, checked when made, with faults that name their field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

import polars as pl
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from wavesim.errors import InvalidInput
from wavesim.scalars import is_truth
from wavesim.text import any_of, meant

if TYPE_CHECKING:
    import numpy as np

__all__ = ["KINDS", "LIST", "LONGEST_NS", "CtaNumbers", "Editable", "Numbers", "Spec"]

LONGEST_NS = 4.32e15
"""The longest time there is, in nanoseconds (50 days) and in cycles: sums of two never overflow."""


class Spec(BaseModel):
    """A frozen model whose faults are :class:`wavesim.errors.InvalidInput`."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    positional: ClassVar[tuple[str, ...]] = ()
    """The fields that can be given without their name, in order."""

    def __init__(self, *values: Any, **fields: Any) -> None:
        if values:
            fields = self._named(values, fields)
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise as_invalid_input(error) from None

    def _named(self, values: tuple[Any, ...], fields: dict[str, Any]) -> dict[str, Any]:
        kind, names = type(self).__name__, self.positional[: len(values)]
        if len(values) > len(names):
            known = f": {', '.join(self.positional)}" if self.positional else ""
            why = f"{kind} takes {len(self.positional)} values without a name at most{known}"
            raise InvalidInput(f"{why} (got {len(values)})", None, values)
        for name, value in zip(names, values, strict=True):
            if name in fields:
                why = f"{kind} got two values for it ({shown(value)} and {shown(fields[name])})"
                raise InvalidInput(f"{name}: {why}", name, value)
        return dict(zip(names, values, strict=True)) | fields

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Read a mapping of the model's shape; raises InvalidInput."""
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            raise as_invalid_input(error) from None

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """Read JSON of the model's shape; raises InvalidInput."""
        try:
            return super().model_validate_json(json_data, **options)
        except ValidationError as error:
            raise as_invalid_input(error) from None

    @model_validator(mode="before")
    @classmethod
    def _knows_its_fields(cls, values: Any) -> Any:
        """Refuse other names before anything else: one that is misspelt is missing as well."""
        for name in values if isinstance(values, Mapping) else ():
            if name not in cls.model_fields:
                known = [field for field in cls.model_fields if field != "kind"]
                why = f"{cls.__name__} has no such field{meant(str(name), known)}"
                raise InvalidInput(f"{name}: {why}", str(name), values[name])
        return values

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Show what differs from the defaults."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if name != "kind" and (field.is_required() or value != field.default):
                yield name, value

    def __str__(self) -> str:
        return repr(self)


class Editable:
    """A spec whose fields can be given other values."""

    def edited(self, **changes: Any) -> Self:
        """Give the same spec with other values in some fields, checked like a new one."""
        assert isinstance(self, Spec)
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate({**fields, **changes})


def as_invalid_input(error: ValidationError) -> InvalidInput:
    """Give the first fault that pydantic found as wavesim's own error."""
    first = error.errors(include_url=False)[0]
    path = _path_of(first["loc"])
    value, why = first["input"], first["msg"].removeprefix("Value error, ")
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InvalidInput):
        if cause.field:
            why = str(cause).removeprefix(f"{cause.field}: ")
            dot = "." if path and not cause.field.startswith("[") else ""
            path = f"{path}{dot}{cause.field}"
            return InvalidInput(f"{path}: {why}", path, cause.value)
        return InvalidInput(f"{path}: {cause}" if path else str(cause), path, value)
    if first["type"] == "missing":
        return InvalidInput(f"{path}: is needed", path, None)
    if first["type"] == "literal_error":
        why = why.replace("'", "")
    why = _lowered(why).replace("input should", "must")
    for words, plain in _PLAIN:
        why = re.sub(words, plain, why)
    return InvalidInput(f"{path}: {why} (got {shown(value)})", path, value)


def within(path: str, error: InvalidInput) -> InvalidInput:
    """Give the error with a path in front of its field's."""
    field = error.field or ""
    why = str(error).removeprefix(field).removeprefix(": ")
    dot = "." if path and field and not field.startswith("[") else ""
    at = f"{path}{dot}{field}"
    return InvalidInput(f"{at}: {why}", at, error.value)


_PLAIN = (
    (r"valid dictionary or instance of (\w+)", r"spec (\1) or its fields"),
    ("valid dictionary", "mapping"),
    ("valid integer", "whole number"),
    ("valid number", "number"),
    ("whole number, unable to parse string as an integer", "whole number"),
    ("valid string", "string"),
    ("callable", "a function"),
    ("unable to parse input string as an integer, exceeded maximum size", "is too large"),
    ("valid tuple", "list"),
)
"""Pydantic's words, and those of someone who does not know it."""


def shown(value: object) -> str:
    """Show a value in an error: short, whatever it is."""
    text = repr(value)
    if not isinstance(value, str):
        text = " ".join(text.split())  # columns and arrays are shown in lines
    return text if len(text) <= 120 else f"{text[:100]}... ({type(value).__name__})"


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


TAGS: set[str] = set()
"""All kinds of specs: pydantic puts them into its locations, and no caller wrote them there."""


class _Kinds:
    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        kinds = frozenset(_kinds_of(source))
        TAGS.update(kinds)
        offered = any_of(kind for kind in _kinds_of(source) if kind != _ONLY_IN_PYTHON)

        def checked(value: Any) -> Any:
            if isinstance(value, Mapping):
                _check_kind(value, kinds, offered)
            elif not isinstance(value, Spec) or getattr(value, "kind", None) not in kinds:
                why = f"must be a spec or its fields, of the kind {offered}"
                raise InvalidInput(f"{why} (got {shown(value)})", None, value)
            return value

        return core_schema.no_info_before_validator_function(checked, handler(source))


KINDS = _Kinds()
"""In the annotation of a union of specs told by ``kind``: says of another one which there are."""


def _kinds_of(union: Any) -> Iterator[str]:
    if isinstance(union, type) and issubclass(union, Spec):
        yield union.model_fields["kind"].default
    else:
        # Of an annotated union the first is the union, and what follows has no parts.
        for part in get_args(union):
            yield from _kinds_of(part)


def _check_kind(fields: Mapping[Any, Any], kinds: frozenset[str], offered: str) -> None:
    if "kind" not in fields:
        for name in get_close_matches("kind", map(str, fields), n=1):
            why = f"{name}: no such field; did you mean kind?"
            raise InvalidInput(why, name, fields[name])
        raise InvalidInput(f"kind: is needed: {offered}", "kind", None)
    kind = fields["kind"]
    if not isinstance(kind, str) or kind not in kinds:
        near = get_close_matches(str(kind), kinds - {_ONLY_IN_PYTHON}, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InvalidInput(f"kind: must be {offered}{hint} (got {shown(kind)})", "kind", kind)


_ONLY_IN_PYTHON = "function"
"""A kind that no file can have, among those that it can."""


_OF_UNIONS = ("constrained-", "function-", "tuple[")
"""How pydantic names the members of a union in its locations."""


def _path_of(location: Iterable[int | str]) -> str:
    """Give a location as a path: ``("items", 0, "launch", "at_ns")`` is ``items[0].at_ns``."""
    path, steps = "", tuple(location)
    for step in steps:
        if step == "[key]":
            continue
        if isinstance(step, int):
            path += f"[{step}]"
        elif step not in TAGS and not step.startswith(_OF_UNIONS):
            path += f".{step}" if path else step
    return path or str(steps[-1] if steps else "")  # a field may have a kind's name


def _no_spec(values: Any) -> Any:
    if isinstance(values, Spec):  # pydantic would go through its fields
        raise ValueError("must be a list")
    return values


LIST = BeforeValidator(_no_spec)
"""In the annotation of a list of specs: refuses a single one."""


class Numbers:
    """A list of ``float64``, read in place: an array that has this type already is not copied.

    Made of anything NumPy takes (arrays, lists, Polars columns). Two are equal when their numbers
    are. What is handed out is read-only; an array that its owner changes afterwards is a spec that
    changed, and nothing can be said of a run that reads it meanwhile.
    """

    __slots__ = ("_array",)

    _least: ClassVar[float] = 0
    _rule: ClassVar[str] = f"a duration is a number from 0 to {LONGEST_NS:g}"
    _what: ClassVar[str] = "a list of numbers"

    def __init__(self, values: object) -> None:
        import numpy as np  # noqa: PLC0415 (takes a fifth of the time that wavesim takes to load)

        if isinstance(values, Numbers):
            values = values.array
        column = values if isinstance(values, pl.Series) else None
        try:
            given = np.asarray(values if column is None else column.to_numpy())
            if given.dtype.kind in "cbSU" or _has_look_alikes(values, given):
                raise TypeError
            array = given.astype(np.float64, copy=False)
        except (TypeError, ValueError, OverflowError):
            for at, value in enumerate(_entries(values)):
                if not _may_be_number(value):
                    why = f"must be a number (got {shown(value)})"
                    raise InvalidInput(f"[{at}]: {why}", f"[{at}]", value) from None
            raise InvalidInput(f"must be {self._what} (got {shown(values)})") from None
        if array.ndim != 1:
            got = f"{array.ndim} dimensions" if array.ndim else shown(values)
            raise InvalidInput(f"must be {self._what} (got {got})")
        outside = ~((array >= self._least) & (array <= LONGEST_NS))
        if outside.any():
            at = int(outside.argmax())
            none = (given if column is None else column)[at] is None  # which is not a number here
            got = "null" if none else f"{array[at]:g}"
            value = None if none else float(array[at])
            raise InvalidInput(f"[{at}]: {self._rule} (got {got})", f"[{at}]", value)
        self._array = array.view()
        self._array.flags.writeable = False

    @property
    def array(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The numbers, read-only."""
        return self._array

    def __len__(self) -> int:
        return len(self._array)

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        return self._array.__array__(dtype, copy=copy)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Numbers):
            return NotImplemented
        same_length = len(self) == len(other)
        return same_length and bool((self._array == other._array).all())

    def __hash__(self) -> int:
        return hash((len(self), self._array[:16].tobytes()))

    def __repr__(self) -> str:
        if len(self) <= 6:
            return repr(self._array.tolist())
        head = ", ".join(f"{value:g}" for value in self._array[:3])
        return f"[{head}, ... {len(self):,} values, mean {self._array.mean():g}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._array.copy(),)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda numbers: numbers.array.tolist(), when_used="json"
            ),
        )


def _has_look_alikes(values: object, array: np.ndarray[Any, Any]) -> bool:
    """Whether truth values or text lie among the numbers; an array of numbers has none."""
    if array.dtype.kind == "O":
        values = array.ravel()
    elif not isinstance(values, list | tuple):
        return False
    return any(is_truth(value) or isinstance(value, str | bytes) for value in values)


def _entries(values: object) -> Iterable[object]:
    """Give the entries of what is a list; of anything else, none."""
    if isinstance(values, list | tuple | pl.Series):
        return values
    return values if getattr(values, "ndim", 0) else ()  # type: ignore[return-value]


def _may_be_number(value: object) -> bool:
    if value is None:  # a missing one, which is told as such
        return True
    if is_truth(value) or isinstance(value, str | bytes):
        return False
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


class CtaNumbers(Numbers):
    """One CTA's number a CTA, or -1 for none; read in place as :class:`Numbers` are."""

    __slots__ = ()

    _least: ClassVar[float] = -1
    _rule: ClassVar[str] = (
        "a CTA waits for one of the grid's CTAs, counted from 0, or for none (-1)"
    )


def mapping_without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Give the fields that were set."""
    return {name: value for name, value in fields.items() if value is not None}
