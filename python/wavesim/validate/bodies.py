"""What the device code of the measured kernels costs around the waiting that it is asked for.

Numbers are SM cycles and were read off the block logs and the machine code of
``reference/h200/kernels.cu``; the engine adds what the device takes to set up a CTA. They belong to
that code, not to any device, and none is changed while rows are validated.
"""

from __future__ import annotations

from wavesim.durations import Duration

__all__ = ["GRAPH_CALL_NS", "UNNOTED_REGISTERS", "empty", "spin", "spin_regs", "unlogged"]

UNNOTED_REGISTERS = 32
"""Registers a thread where the table has none: 2,048 threads of 32 fill an SM's registers exactly,
so that they limit nothing that threads do not limit."""

POLL = 45.0
"""The waiting loop reads the clock this far apart, so a block leaves it up to so much late: 39 to
42 by the machine code, and a few more where warps share a scheduler."""

SHORTEST = 56.0
"""A loop that has nothing to wait for takes this long all the same."""

LOG = 100.0
"""From leaving the loop to the second reading of the clock: barrier, the record's other fields."""

UNLOGGED = 14.0
"""From leaving the loop to the end of a block that writes no record."""

REGISTERS_AROUND = 520.0
"""``spin_regs``: 120 registers are set up before the loop and added up one by one after it."""

REGISTERS_TURN = 240.0
"""``spin_regs``: one turn of its loop, 120 multiply-adds for each of two warps a scheduler; blocks
on the same SM slow each other down in proportion."""

EMPTY = 40.0
"""A kernel without a statement."""

GRAPH_CALL_NS = 7_700.0
"""What the host sees of a graph beside the time between its first start and its last end: the call
that launches it and the wait for its end. The same for all rows of ``launch_graph_pdl``."""


def empty() -> Duration:
    """``empty_kernel``."""
    return Duration.constant(cycles=EMPTY)


def spin(cycles: float) -> Duration:
    """``spin``, with its record: ``cycles`` as asked for."""
    low = max(cycles, SHORTEST) + LOG
    return Duration.uniform(low_cycles=low, high_cycles=low + POLL)


def unlogged(cycles: float) -> Duration:
    """``spin`` without a record."""
    low = max(cycles, SHORTEST) + UNLOGGED
    return Duration.uniform(low_cycles=low, high_cycles=low + POLL)


def spin_regs(cycles: float, resident: int) -> Duration:
    """``spin_regs`` with ``resident`` blocks on an SM."""
    low = max(cycles, SHORTEST) + LOG + REGISTERS_AROUND + REGISTERS_TURN * resident
    return Duration.uniform(low_cycles=low, high_cycles=low + POLL)
