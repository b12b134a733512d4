"""What a profile says about a GPU's time, and what would change it.

``analyze(trace)`` gives an ``Analysis``: residency and waves of every kernel, the gap before it and
its cause, the ledger of the whole trace, the trace replayed in the model beside the measured one,
and the same program on other devices or launched as one graph.
"""

from wavesim.analyze.analysis import Analysis, analyze
from wavesim.analyze.summary import Summary

__all__ = ["Analysis", "Summary", "analyze"]
