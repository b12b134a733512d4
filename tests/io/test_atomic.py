"""Writing that leaves either the old or the new, whole."""

import errno
import os
from pathlib import Path

import pytest

from wavesim.errors import WavesimError
from wavesim.io import atomic
from wavesim.io.atomic import atomic_file, atomic_folder

JSON = (".json",)


def anything(_: Path) -> bool:
    return True


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    with atomic_file(target, JSON) as temporary:
        temporary.write_text("half")
        assert not target.exists()
    assert target.read_text() == "half"
    assert names(tmp_path) == ["out.json"]


def test_an_exception_while_writing_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path,
) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_file(target, JSON) as temporary:
        temporary.write_text("half" * (1 // 0))
    assert target.read_text() == "old"
    assert names(tmp_path) == ["out.json"]


def test_a_full_disk_leaves_the_old_file_and_the_error_names_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic.os, "fsync", full)
    with (
        pytest.raises(WavesimError, match=rf"{target}.*No space left"),
        atomic_file(target, JSON) as temporary,
    ):
        temporary.write_text("new")
    assert target.read_text() == "old"
    assert names(tmp_path) == ["out.json"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "out.json"
    with (
        pytest.raises(WavesimError, match=f"{target}: there is no folder {target.parent}"),
        atomic_file(target, JSON),
    ):
        pass


@pytest.mark.parametrize("name", ["out.csv", "out", "json", ".json", "out.json.zip"])
def test_a_file_of_another_format_is_refused_and_told_which_there_are(
    tmp_path: Path, name: str
) -> None:
    with (
        pytest.raises(WavesimError, match=rf"{name}: its name must end in \.json or \.gz"),
        atomic_file(tmp_path / name, [".json", ".gz"]),
    ):
        pass
    assert names(tmp_path) == []


def test_a_file_gets_the_usual_mode_not_the_temporary_one(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    old = os.umask(0o022)
    try:
        with atomic_file(target, JSON) as temporary:
            temporary.write_text("x")
    finally:
        os.umask(old)
    assert target.stat().st_mode & 0o777 == 0o644


def test_a_folder_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "run"
    target.mkdir()
    (target / "old.parquet").write_text("old")
    with atomic_folder(target, anything) as temporary:
        (temporary / "new.parquet").write_text("new")
        assert names(target) == ["old.parquet"]
    assert names(target) == ["new.parquet"]
    assert names(tmp_path) == ["run"]


def test_a_folder_of_something_else_is_never_replaced(tmp_path: Path) -> None:
    target = tmp_path / "home"
    target.mkdir()
    (target / "thesis.txt").write_text("precious")
    with (
        pytest.raises(WavesimError, match="holds files that are not"),
        atomic_folder(target, lambda _: False),
    ):
        pass
    assert (target / "thesis.txt").read_text() == "precious"


def test_a_failed_swap_puts_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "run"
    target.mkdir()
    (target / "old.parquet").write_text("old")
    rename = Path.rename

    def fails_once(self: Path, to: Path) -> Path:
        if (self / "new.parquet").exists():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", fails_once)
    with (
        pytest.raises(WavesimError, match=rf"{target}: Input/output error"),
        atomic_folder(target, anything) as temporary,
    ):
        (temporary / "new.parquet").write_text("new")
    assert names(target) == ["old.parquet"]
    assert names(tmp_path) == ["run"]
