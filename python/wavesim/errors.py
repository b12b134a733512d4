"""Every error that wavesim raises on purpose.

All derive from ``WavesimError``, so one ``except`` catches what a caller can cause; anything else
that escapes is a fault of wavesim.
"""

from __future__ import annotations

from os import PathLike, fspath

__all__ = ["CannotLaunch", "Deadlock", "InvalidInput", "UnsupportedFile", "WavesimError"]


class WavesimError(Exception):
    """The root of all of wavesim's own errors."""


class InvalidInput(WavesimError, ValueError):
    """A value that cannot be used, with the path of its field.

    ``field`` is the path from the argument the caller wrote (``"kernel.block"``), ``value`` what
    stood there; both are None where the fault lies in no single field.
    """

    def __init__(self, message: str, field: str | None = None, value: object = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value


class CannotLaunch(InvalidInput):
    """A kernel that the device refuses.

    No SM can hold even one of its CTAs, or it is launched cooperatively and the device does not
    hold all of them at once. ``field`` is that which asks for too much: ``"kernel.shared_memory"``.
    """


class Deadlock(WavesimError):
    """A run that cannot go on; the message names who waits for whom."""


class UnsupportedFile(InvalidInput):
    """A file that is not what a reader needs; the message says what it is and what to do.

    ``path`` is the file as the caller named it.
    """

    def __init__(self, message: str, path: str | PathLike[str] | None = None) -> None:
        super().__init__(message, "path", None if path is None else fspath(path))
        self.path = None if path is None else fspath(path)
