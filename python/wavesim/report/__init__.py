"""Reports: one self-contained HTML file of a run, or of the analysis of a trace."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from wavesim.io.atomic import check_file
from wavesim.io.formats import PAGES
from wavesim.report.of_analysis import analysis_page
from wavesim.report.of_run import run_page
from wavesim.report.page import write_page
from wavesim.run import Run

if TYPE_CHECKING:
    from wavesim.analyze import Analysis

__all__ = ["write_report"]


def write_report(subject: Run | Analysis, path: str | os.PathLike[str]) -> None:
    """Write the report of a run or of an analysis.

    The file opens without a network, and holds no metadata of a trace, no path and no host name.

    Args:
        subject: a run (``wavesim.simulate``) or an analysis (``wavesim.analyze``).
        path: the ``.html`` file; an existing one is replaced only when the new one is whole.

    Raises:
        InvalidInput: ``path`` is no path.
        WavesimError: the file cannot be written; names ``path``.
    """
    check_file(path, PAGES)  # before anything is drawn, or simulated, for it
    write_page(run_page(subject) if isinstance(subject, Run) else analysis_page(subject), path)
