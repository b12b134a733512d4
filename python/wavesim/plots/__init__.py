"""Charts of a run: Altair objects that show in a notebook, save to a file, or go into a report.

Every function takes frames with the documented columns, so a chart can also be made of frames
that were filtered or joined by hand. ``Plots`` binds them to one run and is what ``run.plot``
returns.

A chart never holds more than ``MAX_ROWS`` rows. Where a frame has more, the chart shows less by a
rule that it states in its subtitle; it never samples single CTAs, because a missing CTA would look
like an idle slot.
"""

from __future__ import annotations

from wavesim.plots.accounts import ledger, timeline
from wavesim.plots.l2 import l2
from wavesim.plots.logged import compare
from wavesim.plots.of_run import Plots
from wavesim.plots.places import slots, sms
from wavesim.plots.streams import kernels
from wavesim.plots.style import ACCOUNTS, MAX_ROWS, account_colour
from wavesim.plots.warps import warps, warps_over_time

__all__ = [
    "ACCOUNTS",
    "MAX_ROWS",
    "Plots",
    "account_colour",
    "compare",
    "kernels",
    "l2",
    "ledger",
    "slots",
    "sms",
    "timeline",
    "warps",
    "warps_over_time",
]
