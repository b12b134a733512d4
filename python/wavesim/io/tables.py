"""TOML tables with the path at which they stand, so that errors name the field and the value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from wavesim.errors import InvalidInput
from wavesim.spec import Spec, shown, within
from wavesim.text import meant

__all__ = ["Table", "fail"]

T = TypeVar("T")
S = TypeVar("S", bound=Spec)

_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "a table",
}


def fail(field: str, value: object, why: str) -> NoReturn:
    """Raise the error of a field: ``kernels.gemm.block: must be a whole number (got 'x')``."""
    raise InvalidInput(f"{field}: {why} (got {shown(value)})", field, value)


@dataclass(frozen=True)
class Table:
    """A table of the file: its values, and its path (empty for the file itself)."""

    values: Mapping[str, object]
    path: str

    def at(self, key: str) -> str:
        """The path of a key of this table."""
        return f"{self.path}.{key}" if self.path else key

    def keys_from(self, allowed: Iterable[str]) -> None:
        """Refuse any other key, and name the one that was probably meant."""
        known = list(allowed)
        for key in self.values:
            if key not in known:
                why = f"no such field{meant(key, known)}"
                raise InvalidInput(f"{self.at(key)}: {why}", self.at(key), key)

    def get(self, key: str, kind: type[T], default: T) -> T:
        """The value of a key, or the default; its type is checked."""
        return self.need(key, kind) if key in self.values else default

    def need(self, key: str, kind: type[T]) -> T:
        """The value of a key that must be there; its type is checked."""
        if key not in self.values:
            field = self.at(key)
            raise InvalidInput(f"{field}: is needed, {_KINDS[kind]}", field, None)
        value = self.values[key]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        # bool is an int in Python, and never a number in a file.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            fail(self.at(key), value, f"must be {_KINDS[kind]}")
        return value

    def table(self, key: str) -> Table:
        """The table under a key."""
        return Table(self.need(key, dict), self.at(key))

    def tables(self, key: str) -> list[Table]:
        """The tables of the list under a key; none if there is no such key."""
        found = []
        for at, value in enumerate(self.get(key, list, [])):
            path = f"{self.at(key)}[{at}]"
            if not isinstance(value, dict):
                fail(path, value, "must be a table")
            found.append(Table(value, path))
        return found

    def named_tables(self, key: str) -> dict[str, Table]:
        """The tables under a table of tables, by name; none if there is no such key."""
        if key not in self.values:
            return {}
        outer = self.table(key)
        return {name: outer.table(name) for name in outer.values}

    def spec(self, model: type[S], **given: object) -> S:
        """The spec that the table describes.

        Its keys are the model's fields; ``given`` are passed besides, and replace keys of the same
        name. Faults get the table's path in front.
        """
        self.keys_from(model.model_fields)
        fields = {**self.values, **given}
        for name, field in model.model_fields.items():
            if field.is_required() and name not in fields:
                raise InvalidInput(f"{self.at(name)}: is needed", self.at(name), None)
        try:
            return model.model_validate(fields)
        except InvalidInput as error:
            raise self.within(error) from error

    def within(self, error: InvalidInput) -> InvalidInput:
        """The error with this table's path in front of its field."""
        return within(self.path, error)
