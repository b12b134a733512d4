"""A report as data (headings, numbers, tables, charts) and its rendering as one HTML file.

The file needs nothing from a network: the charts' JavaScript stands in it, and a content security
policy in its head forbids the browser to load anything. Everything that comes from a user, such as
the names of kernels, is escaped.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field
from typing import Any

import altair as alt
import jinja2
import polars as pl

from wavesim.io.atomic import atomic_file
from wavesim.io.formats import PAGES
from wavesim.report.javascript import charts_javascript
from wavesim.text import shortened, value_text

CELL = 160
"""So many characters of a text are shown in a table; C++ kernel names run to thousands."""


@dataclass(frozen=True)
class Column:
    """A column's heading, and whether it holds numbers (set to the right)."""

    heading: str
    number: bool = False


@dataclass(frozen=True)
class Table:
    """A table of text; ``note`` stands below it."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str | None = None


@dataclass(frozen=True)
class Point:
    """A titled paragraph of a section, with its key figure."""

    title: str
    text: str
    figure: str | None = None
    colour: str | None = None


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it, in this order."""

    title: str
    text: str | None = None
    points: tuple[Point, ...] = ()
    table: Table | None = None
    charts: tuple[alt.TopLevelMixin, ...] = ()


@dataclass(frozen=True)
class Page:
    """A whole report: ``facts`` say what it is about, ``headlines`` are its key numbers."""

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    headlines: tuple[tuple[str, str], ...] = ()
    sections: tuple[Section, ...] = field(default_factory=tuple)


def write_page(page: Page, path: str | os.PathLike[str]) -> None:
    """Write the page as one HTML file.

    Raises:
        InvalidInput: ``path`` is no path.
        WavesimError: the file cannot be written; names ``path``. An existing file stays as it was.
    """
    html = render(page)
    with atomic_file(path, PAGES) as temporary:
        temporary.write_text(html, encoding="utf-8")


def render(page: Page) -> str:
    """The page as HTML."""
    charts: list[dict[str, Any]] = []
    places: list[list[int]] = []
    for section in page.sections:
        places.append(list(range(len(charts), len(charts) + len(section.charts))))
        charts.extend(chart.to_dict() for chart in section.charts)
    return _template().render(
        page=page,
        sections=list(zip(page.sections, places, strict=True)),
        charts=charts,
        javascript=charts_javascript() if charts else "",
    )


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("wavesim.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("page.html")


def table_of(frame: pl.DataFrame, columns: dict[str, str], note: str | None = None) -> Table:
    """The columns of a frame that it has, under the given headings, each in the unit of its name.

    See ``wavesim.text.value_text``.
    """
    present = [name for name in columns if name in frame.columns]
    rows = tuple(
        tuple(shortened(value_text(name, v), CELL) for name, v in zip(present, row, strict=True))
        for row in frame.select(present).iter_rows()
    )
    headings = tuple(Column(columns[name], frame.schema[name].is_numeric()) for name in present)
    return Table(headings, rows, note)
