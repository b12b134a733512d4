"""Scenarios: a device and a program written as TOML, for the command line.

The keys of a table are the fields of the spec that it stands for, so whatever the spec takes the
file takes. ``docs/guides/scenario.md`` describes the file for its writer.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import polars as pl

from wavesim.devices import Device, device
from wavesim.errors import InvalidInput, UnsupportedFile
from wavesim.io.tables import Table, fail
from wavesim.scalars import path_from
from wavesim.simulate import simulate
from wavesim.spec import Numbers, within
from wavesim.text import any_of
from wavesim.workload import Copy, Graph, Kernel, Launch, Program, Record, Stream, Wait

if TYPE_CHECKING:
    from wavesim.run import Run

__all__ = ["Scenario", "read_scenario"]

Detail = Literal["ctas", "kernels", "memory"]
Dispatcher = Literal["hardware", "ideal"]
Issue = Literal["rates", "exact"]

_DETAILS = ("ctas", "kernels", "memory")
_DISPATCHERS = ("hardware", "ideal")
_ISSUES = ("rates", "exact")
_KEYS = ("device", "seed", "detail", "dispatcher", "issue", "kernels", "streams", "program")
_ITEMS: Mapping[str, tuple[type[Launch | Record | Wait | Copy | Graph], str]] = {
    "launch": (Launch, "kernel"),
    "record": (Record, "event"),
    "wait": (Wait, "event"),
    "copy_ns": (Copy, "duration_ns"),
    "graph": (Graph, "items"),
}
"""The key that tells what an item's table is: what it stands for, and which field the key gives."""
_ITEM = re.compile(r"\.?items\[(\d+)\]\.?")
_STREAM = re.compile(r"^streams\[(\d+)\]")
_MOST_REPEATS = 100_000


@dataclass(frozen=True)
class Scenario:
    """What a scenario file describes."""

    device: Device
    program: Program
    seed: int = 0
    detail: Detail = "ctas"
    dispatcher: Dispatcher = "hardware"
    issue: Issue = "rates"
    written: tuple[Written, ...] = field(default=(), repr=False, compare=False)
    """Where each item of the program stands in the file."""

    def simulate(self, seed: int | None = None, detail: Detail | None = None) -> Run:
        """Simulate it; ``seed`` and ``detail`` replace the file's.

        Raises:
            InvalidInput: as :func:`wavesim.simulate`, with the paths of the file.
        """
        try:
            return simulate(
                self.device,
                self.program,
                seed=self.seed if seed is None else seed,
                detail=self.detail if detail is None else detail,
                dispatcher=self.dispatcher,
                issue=self.issue,
            )
        except InvalidInput as error:
            raise _where_written(error, self.written) from error


@dataclass(frozen=True)
class Written:
    """Where an item of the program stands in the file.

    ``path``: of its table; ``kernel``: of the kernel's table, if it is a launch; ``inner``: the
    items of a graph.
    """

    path: str
    item: Launch | Record | Wait | Copy | Graph
    kernel: str = ""
    inner: tuple[Written, ...] = ()


def read_scenario(path: str | os.PathLike[str]) -> Scenario:
    """Read a scenario file.

    Raises:
        UnsupportedFile: the file is no TOML; says in which line.
        InvalidInput: ``path`` is none, or a field is missing, unknown or can't be; names its path
            and value.
        OSError: the file cannot be opened.
    """
    file = path_from("path", path)
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise UnsupportedFile(f"{file}: no text in UTF-8, so no scenario", file) from error
    except tomllib.TOMLDecodeError as error:
        raise UnsupportedFile(f"{file}: not valid TOML: {error}", file) from error
    except RecursionError as error:
        raise UnsupportedFile(f"{file}: nested too deeply to be a scenario", file) from error
    return scenario(values, file.parent)


def scenario(values: Mapping[str, object], folder: Path = Path()) -> Scenario:
    """The scenario of a TOML document that is already parsed.

    Args:
        values: the document.
        folder: the folder from which relative paths in it count.

    Raises:
        InvalidInput: as in :func:`read_scenario`.
    """
    table = Table(values, "")
    table.keys_from(_KEYS)
    program, written = _program(table, folder)
    return Scenario(
        device=_device(table),
        program=program,
        written=written,
        seed=table.get("seed", int, 0),
        detail=cast(Detail, _choice(table, "detail", _DETAILS, "ctas")),
        dispatcher=cast(Dispatcher, _choice(table, "dispatcher", _DISPATCHERS, "hardware")),
        issue=cast(Issue, _choice(table, "issue", _ISSUES, "rates")),
    )


def _choice(table: Table, key: str, choices: tuple[str, ...], default: str) -> str:
    value = table.get(key, str, default)
    if value not in choices:
        fail(table.at(key), value, f"must be {any_of(choices)}")
    return value


def _device(table: Table) -> Device:
    """``device = "h200"``, or a table with a name and what is different."""
    given = table.values.get("device", "")
    if isinstance(given, str):
        return device(table.need("device", str))
    if not isinstance(given, dict):
        fail("device", given, "must be a name, or a table with a name")
    changed = table.table("device")
    changed.keys_from(("name", "sms", "edit"))
    name = changed.need("name", str)
    try:
        found = device(name)
    except InvalidInput as error:
        raise _renamed(error, "device", changed.at("name")) from error
    if "sms" in changed.values:
        sms = changed.need("sms", int)
        try:
            found = found.scaled(sms=sms)
        except InvalidInput as error:
            raise changed.within(error) from error
    if "edit" in changed.values:
        edit = changed.table("edit")
        values = _flat(edit.values)
        try:
            found = found.edited(values)
        except InvalidInput as error:
            at = error.field or ""
            if any(at == path or at.startswith((f"{path}.", f"{path}[")) for path in values):
                raise edit.within(error) from error
            # What does not fit an edited value stands in the catalogue, not in the file.
            why = f"{edit.path}: with these values, {error}"
            raise InvalidInput(why, edit.path, error.value) from error
    return found


def _flat(values: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Tables in tables as dotted paths: TOML reads ``clock.sm_mhz = 1`` as a table ``clock``."""
    found: dict[str, object] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def _program(table: Table, folder: Path) -> tuple[Program, tuple[Written, ...]]:
    kernels = {name: _kernel(name, k, folder) for name, k in table.named_tables("kernels").items()}
    if not kernels:
        raise InvalidInput(
            "kernels: is needed; a scenario has at least one kernel", "kernels", None
        )
    streams: dict[int, Stream] = {}
    for name, stream in table.named_tables("streams").items():
        if not (name.isascii() and name.isdigit()):
            fail(f"streams.{name}", name, "a stream's name is its number")
        streams[int(name)] = stream.spec(Stream)
    if "program" in table.values:
        items = [made for item in table.tables("program") for made in _items(item, kernels)]
    elif len(kernels) == 1:
        items = [
            Written(f"kernels.{name}", Launch(kernel), f"kernels.{name}")
            for name, kernel in kernels.items()
        ]
    else:
        names = ", ".join(kernels)
        why = f"program: is needed; with several kernels ({names}) it says in which order they run"
        raise InvalidInput(why, "program", None)
    try:
        return Program(items=[made.item for made in items], streams=streams), tuple(items)
    except InvalidInput as error:
        raise _where_written(error, items) from error


def _where_written(error: InvalidInput, items: Sequence[Written]) -> InvalidInput:
    """The program's error with the path of the file: a repeated launch is many items there."""
    old = rest = error.field or ""
    path, made = "", None
    while found := _ITEM.match(rest):
        made = items[int(found[1])]
        path, rest, items = made.path, rest[found.end() :], made.inner
    if made is None:
        path, rest = "", "program" if rest == "items" else _STREAM.sub(r"streams.\1", rest)
    elif made.kernel and rest.startswith("kernel."):
        path, rest = made.kernel, rest.removeprefix("kernel.")
    else:
        keys = {given: key for key, given in _ITEMS.items()}
        rest = keys.get((type(made.item), rest), rest)
    new = f"{path}.{rest}" if path and rest else path or rest
    return _renamed(error, old, new)


def _renamed(error: InvalidInput, old: str, new: str) -> InvalidInput:
    why = str(error).removeprefix(old).removeprefix(": ")
    return type(error)(f"{new}: {why}" if new else why, new or None, error.value)


def _items(table: Table, kernels: Mapping[str, Kernel], in_graph: bool = False) -> list[Written]:
    """The items of one table: several if a launch is repeated."""
    kinds = [kind for kind in _ITEMS if kind in table.values]
    if not kinds:
        fields = (name for model, _ in _ITEMS.values() for name in model.model_fields)
        table.keys_from([*_ITEMS, *fields, "repeat"])
    if len(kinds) != 1:
        got = " and ".join(kinds) if kinds else "none"
        why = f"needs exactly one of {any_of(_ITEMS)} (got {got})"
        raise InvalidInput(f"{table.path}: {why}", table.path, got)
    (kind,) = kinds
    model, given = _ITEMS[kind]
    others = [name for name in model.model_fields if name not in ("kind", given)]
    table.keys_from([kind, *others, *(("repeat",) if kind == "launch" else ())])
    rest = Table({key: v for key, v in table.values.items() if key != kind}, table.path)
    if kind == "launch":
        return _launches(table, rest, kernels)
    item: Record | Wait | Copy | Graph
    inner: tuple[Written, ...] = ()
    if kind == "record":
        item = rest.spec(Record, event=table.need("record", str))
    elif kind == "wait":
        item = rest.spec(Wait, event=table.need("wait", str))
    elif kind == "copy_ns":
        duration_ns = table.need("copy_ns", float)
        try:
            item = rest.spec(Copy, duration_ns=duration_ns)
        except InvalidInput as error:
            at = f"{table.path}.duration_ns"
            raise (_renamed(error, at, table.at(kind)) if error.field == at else error) from None
    elif in_graph:
        raise InvalidInput(f"{table.at('graph')}: a graph holds no graph", table.at("graph"), kind)
    else:
        inner = tuple(m for t in table.tables("graph") for m in _items(t, kernels, in_graph=True))
        item = rest.spec(Graph, items=tuple(made.item for made in inner))
    return [Written(table.path, item, inner=inner)]


def _launches(table: Table, rest: Table, kernels: Mapping[str, Kernel]) -> list[Written]:
    name = table.need("launch", str)
    if name not in kernels:
        fail(table.at("launch"), name, f"no such kernel: must be {any_of(kernels)}")
    repeat = table.get("repeat", int, 1)
    if not 1 <= repeat <= _MOST_REPEATS:
        fail(table.at("repeat"), repeat, f"must be from 1 to {_MOST_REPEATS:,}")
    values = {key: value for key, value in rest.values.items() if key != "repeat"}
    launch = Table(values, table.path).spec(Launch, kernel=kernels[name])
    return [Written(table.path, launch, f"kernels.{name}")] * repeat


def _kernel(name: str, table: Table, folder: Path) -> Kernel:
    table.keys_from(Kernel.model_fields)
    fields = {"name": name, **table.values}
    if isinstance(fields.get("work"), dict):
        fields["work"] = _with_file(table.table("work"), folder)
    return table.spec(Kernel, **fields)


def _with_file(table: Table, folder: Path) -> dict[str, object]:
    """A work or duration table, with the numbers of a file in place of the file's name."""
    values = dict(table.values)
    for key, value in values.items():
        if isinstance(value, dict):
            values[key] = _with_file(table.table(key), folder)
    if values.get("kind") != "per_cta":
        return values
    table.keys_from(("kind", "ns", "cycles", "file", "column", "unit"))
    given = [key for key in ("ns", "cycles") if key in values]
    if not {"file", "column", "unit"} & values.keys():
        return values
    if given:
        fail(table.at(given[0]), values[given[0]], "must be given here or come from a file")
    unit = _choice(table, "unit", ("ns", "cycles"), "ns")
    return {"kind": "per_cta", unit: _column(table, folder)}


def _column(table: Table, folder: Path) -> Numbers:
    file = folder / table.need("file", str)
    if file.suffix not in (".parquet", ".csv"):
        fail(table.at("file"), str(file), "must end in .parquet or .csv")
    read = pl.read_parquet if file.suffix == ".parquet" else pl.read_csv
    try:
        if file.is_dir():
            raise IsADirectoryError("it is a folder")
        frame = read(file, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0].removesuffix(f": {file}")
        raise InvalidInput(
            f"{table.at('file')}: cannot read {file}: {reason}", table.at("file"), str(file)
        ) from error
    name, at = table.need("column", str), table.at("column")
    if name not in frame.columns:
        fail(at, name, f"no such column; {file} has {', '.join(frame.columns)}")
    column = frame.get_column(name)
    if column.dtype == pl.String:  # as a whole column of a CSV file is for one value of it
        finite = column.cast(pl.Float64, strict=False).is_finite().fill_null(value=False)
        if finite.any() and not finite.all():
            row = finite.arg_min() or 0
            fail(f"{at}[{row}]", column[row], "must be a number")
    if not column.dtype.is_numeric():
        fail(at, name, f"must be a column of numbers; it holds {column.dtype}")
    try:
        return Numbers(column)
    except InvalidInput as error:
        raise within(at, error) from None
