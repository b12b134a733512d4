"""Folders of measurements: the repository's own, and small ones made for a test."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from wavesim.validate import Validation, validate

REFERENCE = Path(__file__).parents[2] / "reference/h200"


@pytest.fixture(scope="session")
def reference() -> Path:
    return REFERENCE


@pytest.fixture(scope="session")
def runs() -> pl.DataFrame:
    return pl.read_parquet(REFERENCE / "runs.parquet")


@pytest.fixture(scope="session")
def validation() -> Validation:
    return validate(REFERENCE)


@pytest.fixture
def folder_of(tmp_path: Path) -> Callable[..., Path]:
    """Make a folder whose runs.parquet has these rows."""

    def make(rows: pl.DataFrame, blocks: pl.DataFrame | None = None) -> Path:
        rows.write_parquet(tmp_path / "runs.parquet")
        if blocks is not None:
            blocks.write_parquet(tmp_path / "blocks.parquet")
        return tmp_path

    return make
