"""What the device code of the measured kernels costs around the waiting that it is asked for.

Numbers are SM cycles and were read off the block logs and the machine code of
``reference/h200/kernels.cu``; the engine adds what the device takes to set up a CTA. They belong to
that code, not to any device, and none is changed while rows are validated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from wavesim.durations import Duration

__all__ = [
    "ELEMENT",
    "FLUSHED_COLD",
    "GELU",
    "GRAPH_CALL_NS",
    "LAST_WARP",
    "LOOP_FINISH",
    "LOOP_STARTUP",
    "LOOP_TURN",
    "PRODUCT_EPILOGUE",
    "PRODUCT_STARTUP",
    "PRODUCT_STEP",
    "PROFILED_NS",
    "UNNOTED_REGISTERS",
    "GridBarrier",
    "TaskLoop",
    "empty",
    "spin",
    "spin_regs",
    "spin_regs_beside",
    "unlogged",
]

Cycles: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

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

LAST_WARP = 200.0
"""For how long the warp that writes the record is alone: the others leave at the barrier. Read off
logs of how far refills run ahead, ``reference/h200_holdout/settle/refills``."""

LOG_ALONE = 85.0
"""The same where a block has an SM to itself: nobody is in its way, and the loop's phase is that of
its own clock. From the waiting asked for, not from leaving the loop."""

SHORTEST_ALONE = 178.0
"""And with nothing to wait for: the code behind the loop is still being fetched."""

UNLOGGED = 14.0
"""From leaving the loop to the end of a block that writes no record."""

REGISTERS_AROUND = 470.0
"""``spin_regs``: 120 registers are set up before the loop and added up one by one after it."""

REGISTERS_TURN = 265.0
"""``spin_regs``: one turn of its loop, 120 multiply-adds for each of two warps a scheduler; blocks
on the same SM slow each other down in proportion. The loop is left up to a turn late; the middle is
taken, with a turn for the registers' last sum."""

LOOP_TURN = 43.0
"""A loop that loads 16 bytes a thread and adds them up: what a turn takes beside its load."""

FLUSHED_COLD = 3_000.0
"""Before an SM's first load when a memset has swept L2: addresses are translated anew."""

LOOP_STARTUP = 100.0
"""Before its first load."""

LOOP_FINISH = 100.0
"""Behind its last: barrier, record."""

PRODUCT_STARTUP = 500.0
"""``gemm``: addresses are worked out before a tile's first loads."""

PRODUCT_STEP = 130.0
"""``gemm``: from the end of a step's arithmetic to the next step: a barrier, the next addresses."""

PRODUCT_EPILOGUE = 1_500.0
"""``gemm``: the sums become bf16, go through shared memory and are stored."""

PROFILED_NS = 370.0
"""What a profiler counts of a kernel beside the time from where the dispatcher could begin until it
knows that all has ended. Read off the compiled rows of ``elementwise`` with 65,536 elements."""

ELEMENT = 2.0
"""Elementwise kernels: instructions an element beside its arithmetic, for vectors of loads and
stores and their addresses."""

GELU = 26.0
"""Instructions an element of the exact GELU: an error function and three multiplications."""

GRAPH_CALL_NS = 7_700.0
"""What the host sees of a graph beside the time between its first start and its last end: the call
that launches it and the wait for its end. The same for all rows of ``launch_graph_pdl``."""


def empty() -> Duration:
    """``empty_kernel``: not a statement."""
    return Duration.constant(cycles=0.0)


def spin(cycles: float, resident: int = 2) -> Duration:
    """``spin``, with its record: ``cycles`` as asked for, ``resident`` blocks on an SM."""
    if resident == 1:
        return Duration.constant(cycles=max(cycles + LOG_ALONE, SHORTEST_ALONE))
    low = max(cycles, SHORTEST) + LOG
    return Duration.uniform(low_cycles=low, high_cycles=low + POLL)


def unlogged(cycles: float) -> Duration:
    """``spin`` without a record."""
    low = max(cycles, SHORTEST) + UNLOGGED
    return Duration.uniform(low_cycles=low, high_cycles=low + POLL)


@dataclass(frozen=True)
class _Poll:
    """The waiting loop by its machine code: it is left at the first reading that is late enough."""

    first: float
    """When it reads the clock first."""
    period: float

    def until(self, cycles: Cycles) -> Cycles:
        """When it is left."""
        late = np.maximum(cycles - self.first, 0.0)
        return self.first + self.period * np.ceil(late / self.period)


def _poll(first: float, resident_warps: int) -> _Poll:
    # Six instructions and a taken branch. Two warps of one scheduler are in each other's way, by
    # the same in every turn, and before the loop; more of them by more and less.
    if resident_warps <= SCHEDULERS:
        return _Poll(first, 39.0)
    return _Poll(first + 2.0 if resident_warps <= 2 * SCHEDULERS else first, 42.0)


def spin_regs(cycles: float, resident: int) -> Duration:
    """``spin_regs`` with ``resident`` blocks on an SM."""
    low = _spin_regs(cycles, resident)
    return Duration.uniform(low_cycles=low, high_cycles=low + POLL)


def spin_regs_beside(cycles: float, residents: Sequence[int]) -> Duration:
    """``spin_regs`` where each block has its own number of blocks on its SM."""
    low = np.array([_spin_regs(cycles, resident) for resident in residents])
    return Duration.per_cta(cycles=low + POLL / 2)


def _spin_regs(cycles: float, resident: int) -> float:
    return max(cycles, SHORTEST) + LOG + REGISTERS_AROUND + REGISTERS_TURN * resident


SCHEDULERS = 4

TASK_INSTRUCTIONS = 25.0
"""What a warp issues for one task that waits for nothing."""

SERVED = 6.65
"""Waiting warps that one scheduler keeps at full rate: six issue slots and a lost one of each 42 to
46 cycles. Read off the rows with 32 and 64 warps an SM; docs/deviations.md, 4."""

TOGETHER = 0.85
"""More of them for each further warp of a block: those of a block come out of a barrier together,
so that nearly all of them read the clock before the first has turned its loop."""

HIDDEN = 4.0
"""Warps of a scheduler that issue in the time that each waits for its own instructions."""

SECOND_TURN = 4.5
"""With so many warps more than are served, the last blocks that leave a grid barrier begin their
wait a whole wait late. Read off ``settle/barriers.parquet``, where 6 to 16 warps a scheduler wait
2,000 cycles or none; docs/deviations.md, 4."""


@dataclass(frozen=True)
class _Crowd:
    """Waiting warps that share the four schedulers of an SM."""

    warps: int
    """Of a block."""
    blocks: float
    """On the SM at once."""

    @property
    def each(self) -> float:
        """Warps of a block to a scheduler."""
        return self.warps / SCHEDULERS

    @property
    def waiting(self) -> float:
        """Warps to a scheduler."""
        return self.each * self.blocks

    @property
    def served(self) -> float:
        """Warps that a scheduler keeps at full rate."""
        return SERVED + TOGETHER * max(self.each - 1.0, 0.0)

    @property
    def slowdown(self) -> float:
        """How much longer waiting takes, if every block has to come through: 1 or more.

        The oldest warps are served first; a block that is not served starts its wait late.
        """
        return max(self.waiting / self.served, 1.0)

    @property
    def issue_beside(self) -> float:
        """How long a block waits for the issue slots of others that come through the same code."""
        return TASK_INSTRUCTIONS * max(self.waiting - self.each - HIDDEN, 0.0)

    @property
    def second_turn(self) -> float:
        """How much of a wait passes before all blocks that leave a grid barrier have begun theirs.

        Those that find no slot read the clock when others have left, one wait later. With few more
        warps than are served they get on slowly meanwhile.
        """
        return min(max(self.waiting - self.served, 0.0) / SECOND_TURN, 1.0)

    def behind(self, poll: _Poll, left: float) -> float:
        """How much later a block goes on than a lone warp, which leaves the loop after ``left``.

        It goes on with its last warp, and where there are more warps than are served, that one
        reads the clock a turn later. A wait that is over at the first reading has no turns.
        """
        return poll.period if self.slowdown > 1 and left > poll.first else 0.0


@dataclass(frozen=True)
class TaskLoop:
    """The loop of a persistent block over its tasks."""

    poll: _Poll
    overhead: float
    """From leaving one task's waiting loop to the next task's first clock reading; with a counter,
    without the counter's answer."""
    startup: float
    """Before the first task, and behind the last: instruction fetch, the record."""
    crowd: _Crowd
    schedule: Literal["static", "atomic"]

    @classmethod
    def of(cls, schedule: Literal["static", "atomic"], warps: int, blocks: int) -> Self:
        """Describe the loop of blocks of ``warps``, so many ``blocks`` on an SM."""
        resident = warps * blocks
        crowd = _Crowd(warps, blocks)
        # Each scheduler fetches the loop for itself.
        fetch = 50.0 * min(resident - 1, SCHEDULERS - 1)
        if schedule == "static":
            barrier = 5.0 * math.ceil(warps / SCHEDULERS) if warps > 1 else 0.0
            shared = 5.0 * min(crowd.waiting, SERVED) if resident > SCHEDULERS else 0.0
            poll = _poll(32.0, resident)
            overhead = STATIC_TURN - poll.first + barrier + shared
            return cls(poll, overhead, 270.0 + fetch, crowd, schedule)
        barrier = 3.0 + 5.0 * max(crowd.each - 1.0, 0.0) if warps > 1 else 0.0
        # Warps of a block that issue behind each other; those of other blocks do while it asks.
        barrier += TASK_INSTRUCTIONS * max(crowd.each - HIDDEN, 0.0)
        poll = _poll(23.0, resident)
        shared = 31.0 - poll.first if resident > SCHEDULERS else 0.0
        return cls(poll, ATOMIC_CHAIN + barrier + shared, 280.0, crowd, schedule)

    def of_tasks(self, cycles: float, shares: Sequence[int]) -> tuple[float, Self]:
        """Give how long a task of ``cycles`` takes, and the loop around such tasks.

        ``shares`` are how many tasks of a static schedule fall to each block of one SM.
        """
        wait = float(self.poll.until(np.array(cycles)))
        crowd = self.crowd
        if self.schedule == "static":
            # Blocks that have run out of tasks are in nobody's way, and where there are more than
            # fit, the next ones come as one by one has ended: the waves of blocks share all turns.
            most = max(shares)
            working = sum(share > 0 for share in shares)
            waves = max(math.ceil(working / self.crowd.blocks), 1)
            crowd = replace(crowd, blocks=sum(shares) / most / waves)
            slowdown = crowd.slowdown
            # No turn passes in which nobody is served while there are tasks.
            turns = min(
                math.ceil(working / self._at_once),
                math.ceil(sum(shares) / self._at_once) - waves * (most - 1) * slowdown,
            )
            late = max(turns / waves - slowdown, 0.0) if slowdown > 1 else 0.0
            # Blocks start one after the other, so that the last one of those that have most to do
            # finds its code fetched.
            apart = SM_EVERY * (min(shares.count(most), self.crowd.blocks) - 1)
            task = self.poll.first + (wait - self.poll.first) * slowdown
            task += crowd.behind(self.poll, wait)
            issue = TASK_INSTRUCTIONS * crowd.waiting - self.poll.first
            overhead = max(self.overhead, issue)
            startup = max(self.startup - apart, 0.0) + late * max(wait - apart, 0.0)
        else:
            # Blocks come from the counter one after the other, and wait together only so far.
            crowd = replace(crowd, blocks=min(crowd.blocks, wait / BLOCK_EVERY))
            slowdown = max(crowd.waiting / COUNTER_SERVED, 1.0)
            task = wait * slowdown + crowd.behind(self.poll, wait)
            overhead = self.overhead
            late = max(2.15 - slowdown, 0.0) if crowd.slowdown > 1 else 0.0
            # The last block comes that much behind those that are served when it does.
            apart = BLOCK_EVERY * min(self.crowd.blocks - 1, self._at_once)
            begin = self.crowd.issue_beside + late * max(wait - apart, 0.0)
            # Where there are more blocks than fit, most begin one by one, as others leave.
            startup = self.startup + (begin if len(shares) <= self.crowd.blocks else 0.0)
        return task, replace(self, overhead=overhead, startup=startup)

    @property
    def _at_once(self) -> int:
        """How many blocks of an SM are served beside each other.

        The last of them may lack a slot for part of a warp.
        """
        return max(math.floor((self.crowd.served + 0.6) / self.crowd.each), 1)

    def loaded(self) -> Self:
        """The same with task times from a list: the first reading waits for a load."""
        return replace(self, poll=replace(self.poll, first=500.0), startup=self.startup + 180.0)

    def loaded_waits(self, cycles: Cycles) -> Cycles:
        """How long tasks take whose times are loaded."""
        return self.loaded().poll.until(cycles) * self.crowd.slowdown


STATIC_TURN = 94.0
"""From leaving one task's waiting loop to the next task's first reading, for a lone block of a
warp."""

ATOMIC_CHAIN = 228.0
"""From the counter's answer to the first reading of the clock, and from leaving the loop to the
next question: two barriers, the task's number through shared memory."""

SM_EVERY = 24.3
"""An SM is given a block this often when an empty device is filled."""

BLOCK_EVERY = 192.0
"""The counter answers an SM this often when all ask: 132 SMs at 1.45 cycles."""

COUNTER_SERVED = 10.9
"""Waiting warps a scheduler, over which tasks from a counter take longer: a block that is not
served takes no task, so that only the sum counts."""


@dataclass(frozen=True)
class GridBarrier:
    """A round of ``gridsync``: the waiting before the barrier."""

    poll: _Poll
    barrier: float
    crowd: _Crowd

    @classmethod
    def of(cls, warps: int, blocks: int) -> Self:
        """Describe it for blocks of ``warps``, so many ``blocks`` on an SM."""
        crowd = _Crowd(warps, blocks)
        barrier = 11.0 * max(warps / SCHEDULERS - 1, 0.0)
        return cls(_poll(32.0, warps * blocks), barrier + crowd.issue_beside, crowd)

    def wait(self, cycles: float) -> float:
        """How long the waiting of ``cycles`` takes."""
        left = float(self.poll.until(np.array(cycles)))
        return (
            left + self.crowd.second_turn * left + self.crowd.behind(self.poll, left) + self.barrier
        )
