"""What the command line prints: tables for people, JSON for programs, progress on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from wavesim.text import shortened, value_text

_PIPED_WIDTH = 200


def console() -> Console:
    """Standard output; wide enough not to fold tables where it is no terminal."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(width=_PIPED_WIDTH, highlight=False)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on a terminal's stderr what is being done, and clear it when done."""
    errors = Console(stderr=True)
    if not errors.is_terminal:
        yield
        return
    with errors.status(Text(what)):
        yield


def wrote(path: Path, hint: str = "") -> None:
    """Say on stderr that a file is there."""
    print(f"wrote {path}{f' ({hint})' if hint else ''}", file=sys.stderr)


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal's stderr; None elsewhere. Yields what takes done and total."""
    errors = Console(stderr=True)
    if not errors.is_terminal:
        yield None
        return
    with Progress(*Progress.get_default_columns(), console=errors, transient=True) as bar:
        task = bar.add_task(escape(what), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def print_json(value: object) -> None:
    """Print as one JSON document; what JSON has no number for becomes null."""
    json.dump(plain(value), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def plain(value: object) -> object:
    """Frames as lists of rows, and not-a-number and infinities as null."""
    if isinstance(value, pl.DataFrame):
        return [plain(row) for row in value.iter_rows(named=True)]
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(f"no JSON for {type(value).__name__}")


def print_facts(facts: Mapping[str, str]) -> None:
    """Two columns: what, and its value."""
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        table.add_row(Text(name, style="dim"), Text(value))
    console().print(table)


def print_frame(frame: pl.DataFrame, columns: Mapping[str, str], title: str | None = None) -> None:
    """The columns that the frame has, under the given headings."""
    present = {name: heading for name, heading in columns.items() if name in frame.columns}
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for name, heading in present.items():
        numbers = frame.schema[name].is_numeric()
        table.add_column(heading, justify="right" if numbers else "left", no_wrap=numbers)
    for row in frame.select(present.keys()).iter_rows():
        table.add_row(*(_text(name, value) for name, value in zip(present, row, strict=True)))
    console().print(table)


def _text(name: str, value: object) -> Text:
    return Text(shortened(value_text(name, value)))
