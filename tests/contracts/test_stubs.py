"""The stubs say what the extension has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_stubs_are_those_of_the_extension():
    result = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "wavesim._wavesim"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
    )
    assert result.returncode == 0, result.stdout + result.stderr
