"""What is written, and the names that such a file can have."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from wavesim.io.atomic import atomic_file

__all__ = ["FRAMES", "PAGES", "TRACES", "write_frame"]

PAGES = (".html", ".htm")
"""Suffixes of reports."""
TRACES = (".json", ".gz")
"""Suffixes of traces for Perfetto; the second is gzipped."""

_WRITERS: Mapping[str, Callable[[pl.DataFrame, Path], Any]] = {
    ".parquet": pl.DataFrame.write_parquet,
    ".csv": pl.DataFrame.write_csv,
    ".json": pl.DataFrame.write_json,
}

FRAMES = tuple(_WRITERS)
"""Suffixes of frames."""


def write_frame(frame: pl.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a frame: as Parquet, as CSV, or as JSON, a list with an object a row.

    Raises:
        InvalidInput: ``path`` is no path.
        WavesimError: the name ends in none of these, or the file cannot be written.
    """
    with atomic_file(path, FRAMES) as temporary:
        _WRITERS[Path(path).suffix.lower()](frame, temporary)
