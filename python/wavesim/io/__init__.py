"""Readers of files that profilers write. ``read`` finds out what a file is and reads it."""

from __future__ import annotations

from os import PathLike

from wavesim.io.detect import FileKind, detect
from wavesim.io.kineto import read_kineto
from wavesim.io.trace import Trace
from wavesim.scalars import path_from

__all__ = ["FileKind", "Trace", "detect", "read"]


def read(path: str | PathLike[str], *, keep_partial: bool = False) -> Trace:
    """Read the profile in ``path``: JSON of the PyTorch profiler, plain or gzipped.

    ``keep_partial``: keep what stands before the cut of a file that was cut off, instead of
    raising; ``Trace.problems`` then says so.

    Raises UnsupportedFile, which says what the file is and how to get one that can be read, and
    OSError if it cannot be opened; InvalidInput if ``path`` is no path.
    """
    file = path_from("path", path)
    kind = detect(file)
    assert kind is FileKind.TRACE_JSON  # the only kind that detect returns; others raise there
    return read_kineto(file, keep_partial=keep_partial)
