"""The charts' JavaScript: bundled once, kept by its versions, and never in the way of a report."""

from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest
import vl_convert

from wavesim.report import javascript
from wavesim.report.javascript import cache_folder, charts_javascript

Bundled = Callable[[], int]


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Bundled]:
    """Count the bundles that are made; the real ones take seconds."""
    made: list[str] = []

    def bundle(snippet: str, version: str) -> str:
        assert "vegaEmbed" in snippet
        made.append(version)
        return f"charts of {version} \N{MICRO SIGN}"

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    charts_javascript.cache_clear()
    yield lambda: len(made)
    charts_javascript.cache_clear()


def again() -> str:
    """Ask as another process does."""
    charts_javascript.cache_clear()
    return charts_javascript()


def test_it_is_bundled_once_a_machine(bundled: Bundled, tmp_path: Path) -> None:
    first = charts_javascript()
    assert again() == first
    assert bundled() == 1
    assert [file.suffix for file in (tmp_path / "cache" / "wavesim").iterdir()] == [".js"]


def test_another_version_is_bundled_anew(bundled: Bundled, monkeypatch: pytest.MonkeyPatch) -> None:
    charts_javascript()
    monkeypatch.setattr(metadata, "version", lambda _: "99.0")
    again()
    assert bundled() == 2
    assert len(list(cache_folder().iterdir())) == 2


@pytest.mark.parametrize("content", [b"", b"\xff\xfe"])
def test_a_file_that_is_damaged_is_made_again(bundled: Bundled, content: bytes) -> None:
    first = charts_javascript()
    (file,) = cache_folder().iterdir()
    file.write_bytes(content)
    assert again() == first
    assert bundled() == 2
    assert again() == first
    assert bundled() == 2


def test_where_nothing_can_be_kept_only_time_is_lost(bundled: Bundled, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, where the folder should be")
    first = charts_javascript()
    assert again() == first
    assert bundled() == 2


def test_where_there_is_no_home_only_time_is_lost(
    bundled: Bundled, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home(*_: object, **__: object) -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(javascript, "user_cache_path", no_home)
    first = charts_javascript()
    assert again() == first
    assert bundled() == 2
