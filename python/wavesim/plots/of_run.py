"""The charts of one run, as ``run.plot`` gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from wavesim.plots.accounts import ledger, timeline
from wavesim.plots.l2 import l2
from wavesim.plots.logged import compare
from wavesim.plots.places import slots, sms
from wavesim.plots.streams import kernels
from wavesim.plots.style import MAX_ROWS
from wavesim.plots.warps import warps, warps_over_time

if TYPE_CHECKING:
    from wavesim.run import Run


@dataclass(frozen=True)
class Plots:
    """Charts of a run. ``slots`` and ``compare`` need CTAs, ``l2`` ``detail="memory"``."""

    run: Run

    def timeline(self, bins: int = 200) -> alt.VConcatChart:
        """Shares of the ledger's accounts over time, stacked, above the running CTAs."""
        return timeline(self.run.timeline(bins=bins))

    def slots(self, limit: int = MAX_ROWS) -> alt.Chart:
        """Every CTA as a bar in its slot; beyond ``limit`` CTAs whole SMs, evenly spaced."""
        frame = self.run.kernels
        names = dict(zip(frame["kernel"].to_list(), frame["name"].to_list(), strict=True))
        return slots(self.run.ctas, names, limit)

    def sms(self) -> alt.Chart:
        """Utilization of each SM, by GPC."""
        return sms(self.run.sms)

    def ledger(self) -> alt.Chart:
        """The ledger as one stacked bar."""
        return ledger(self.run.ledger)

    def kernels(self, limit: int = 3_000) -> alt.Chart:
        """Kernels over time, a row a stream; beyond ``limit`` kernels neighbours share a bar."""
        return kernels(self.run.kernels, limit)

    def l2(self) -> alt.VConcatChart:
        """L2's hit share over time, a line a launch, above what it and DRAM move."""
        frame = self.run.kernels
        names = dict(zip(frame["kernel"].to_list(), frame["name"].to_list(), strict=True))
        return l2(self.run.l2_windows, names)

    def warps(self) -> alt.Chart | alt.VConcatChart:
        """What the warps of each launch with a warp program did, as a stack of states.

        With ``detail="memory"``, beneath it the same over time.
        """
        stack = warps(self.run.warps)
        if self.run.detail != "memory" or self.run.warps_windows.is_empty():
            return stack
        over_time = warps_over_time(self.run.warps_windows, self.run.device.clock.sm_mhz / 1e3)
        chart: alt.VConcatChart = alt.vconcat(stack, over_time)
        return chart

    def compare(self, logged: pl.DataFrame) -> alt.VConcatChart:
        """Running CTAs against a log of blocks (``start_ns``, ``end_ns``), and the differences."""
        return compare(self.run.ctas, logged)
