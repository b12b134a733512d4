"""Files and folders that are either the old ones or the new ones, whole.

What is written goes to a temporary name beside the target, is brought to the disk, and takes the
target's name at the end. A full disk, a crash or an exception leaves what was there before.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from wavesim.errors import WavesimError
from wavesim.scalars import path_from
from wavesim.text import any_of


def check_file(path: str | os.PathLike[str], suffixes: Sequence[str], field: str = "path") -> None:
    """See that a file of this name could be written, before anything is worked out for it.

    Args:
        path: the file.
        suffixes: what its name may end in.
        field: the argument that names it.

    Raises:
        InvalidInput: it is no path.
        WavesimError: its name has none of these suffixes, it is a folder, or lies in none that can
            be written in.
    """
    target = path_from(field, path)
    with _named_errors(target):
        why = ""
        if target.is_dir():
            why = "it is a folder"
        elif target.suffix.lower() not in suffixes:
            why = f"its name must end in {any_of(suffixes)}"
        elif not target.parent.is_dir():
            why = f"there is no folder {target.parent}"
        elif not os.access(target.parent, os.W_OK):
            why = os.strerror(errno.EACCES)
        if why:
            raise WavesimError(f"cannot write {target}: {why}")


@contextmanager
def atomic_file(path: str | os.PathLike[str], suffixes: Sequence[str]) -> Iterator[Path]:
    """Yield a temporary path to write to; at the end it becomes ``path``.

    Args:
        path: the file.
        suffixes: what its name may end in: each stands for a format.

    Raises:
        InvalidInput: ``path`` is no path.
        WavesimError: the file cannot be written; names ``path``. An existing file stays as it was.
    """
    check_file(path, suffixes)
    target = Path(path)
    with _named_errors(target):
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            _sync(temporary)
            # mkstemp makes files that only the owner reads; a result has the user's usual mode.
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync(target.parent)


@contextmanager
def atomic_folder(
    folder: str | os.PathLike[str], replaceable: Callable[[Path], bool]
) -> Iterator[Path]:
    """Yield a temporary folder to fill; at the end it becomes ``folder``.

    Args:
        folder: where; one that exists is replaced whole.
        replaceable: whether an existing folder may be replaced. It is asked so that no folder of
            something else is ever deleted.

    Raises:
        InvalidInput: ``folder`` is no path.
        WavesimError: the folder cannot be written or may not be replaced; names ``path``. An
            existing folder stays as it was.
    """
    target = path_from("folder", folder)
    with _named_errors(target):
        _check_replaceable(target, replaceable)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            yield temporary
            for file in sorted(temporary.iterdir()):
                file.chmod(0o666 & ~_umask())
                _sync(file)
            temporary.chmod(0o777 & ~_umask())
            _sync(temporary)
            _check_replaceable(target, replaceable)
            _swap(temporary, target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        _sync(target.parent)


def _check_replaceable(target: Path, replaceable: Callable[[Path], bool]) -> None:
    if target.exists() and not target.is_dir():
        raise WavesimError(f"cannot write {target}: it is a file, not a folder")
    if target.is_dir() and any(target.iterdir()) and not replaceable(target):
        raise WavesimError(
            f"cannot write {target}: it holds files that are not a saved run's; "
            "name another folder or empty it"
        )


def _swap(new: Path, target: Path) -> None:
    """Give ``new`` the name ``target``; put the old folder back if that fails."""
    if not target.exists():
        new.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    target.rename(old)  # onto an empty folder, which rename replaces
    try:
        new.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _named_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise WavesimError(f"cannot write {target}: {reason}") from error
    except pl.exceptions.PolarsError as error:  # what it makes of a full disk
        raise WavesimError(f"cannot write {target}: {error}") from error


def _sync(path: Path) -> None:
    """Bring a file, or a folder's list of names, to the disk."""
    if path.is_dir() and os.name == "nt":
        return  # Windows opens no folders, and renames there are in the journal
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
