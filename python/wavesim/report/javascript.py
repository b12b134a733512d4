"""The charts' JavaScript, which every report holds: bundled once a machine, and kept."""

from __future__ import annotations

import functools
from importlib import metadata
from pathlib import Path

import altair as alt
from platformdirs import user_cache_path

from wavesim.errors import WavesimError
from wavesim.io.atomic import atomic_file

__all__ = ["cache_folder", "charts_javascript"]


@functools.cache
def charts_javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed, of the Vega-Lite version for which Altair writes charts.

    To bundle them takes seconds, and the result only depends on two versions, so it lies in a file
    of the user's cache from then on. Where none can be kept, only time is lost.

    Raises:
        WavesimError: the package that holds them is not there.
    """
    try:
        import vl_convert  # noqa: PLC0415  (80 MB of shared library: loaded for a report only)

        bundler = metadata.version("vl-convert-python")
    except ImportError as error:
        raise WavesimError(
            "a report needs the package vl-convert-python, which holds the charts' JavaScript"
        ) from error
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    name = f"charts-{bundler}-{version}.js"
    bundle = _kept(name)
    if not bundle:
        bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", version)
        _keep(name, bundle)
    return bundle


def _kept(name: str) -> str:
    try:
        return (cache_folder() / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, RuntimeError):  # the last: there is no home
        return ""


def _keep(name: str, text: str) -> None:
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(folder / name, (".js",)) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except (OSError, WavesimError, RuntimeError):
        pass


def cache_folder() -> Path:
    """Where the platform keeps what a program can make again."""
    return user_cache_path("wavesim", appauthor=False)
