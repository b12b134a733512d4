"""What is taken to be known of kernels whose warps wait by reading the clock.

The numbers are those of the polling warps in ``reference/h200_holdout/settle`` and of the rows with
few of them; docs/deviations.md, 4, says what they leave out.
"""

import numpy as np
import pytest

from wavesim.validate.bodies import GridBarrier, TaskLoop

MANY = [100] * 8
"""Tasks of eight blocks."""


def left(loop: TaskLoop, cycles: float) -> float:
    return float(loop.poll.until(np.array(cycles)))


def test_a_lone_warp_of_a_scheduler_reads_the_clock_every_39_cycles() -> None:
    assert left(TaskLoop.of("static", warps=4, blocks=1), 1_000.0) == 32 + 25 * 39


@pytest.mark.parametrize(("warps", "blocks"), [(1, 8), (2, 4), (8, 1)])
def test_two_warps_of_a_scheduler_read_it_every_42_cycles_and_first_two_later(
    warps: int, blocks: int
) -> None:
    loop = TaskLoop.of("static", warps, blocks)
    # The 24th reading is on time to the cycle.
    assert left(loop, 1_000.0) == 34 + 23 * 42 == 1_000
    assert left(loop, 1_001.0) == 1_042


def test_the_time_from_wait_to_wait_does_not_depend_on_when_the_clock_is_read_first() -> None:
    alone, shared = (TaskLoop.of("atomic", 1, blocks) for blocks in (4, 8))
    assert shared.overhead + shared.poll.first == alone.overhead + alone.poll.first + 8


def test_blocks_that_have_run_out_of_tasks_slow_nobody_down() -> None:
    loop = TaskLoop.of("static", warps=8, blocks=8)
    full, _ = loop.of_tasks(2_000.0, MANY)
    half, _ = loop.of_tasks(2_000.0, [100] * 4 + [0] * 4)
    four, _ = TaskLoop.of("static", warps=8, blocks=4).of_tasks(2_000.0, MANY[:4])
    assert half == four < full / 1.9


def test_a_block_of_a_crowd_goes_on_a_turn_after_its_wait_unless_that_had_no_turns() -> None:
    loop = TaskLoop.of("static", warps=4, blocks=8)
    for cycles, turns in [(0.0, 0), (500.0, 12)]:
        task, crowded = loop.of_tasks(cycles, MANY)
        slowdown = crowded.crowd.slowdown
        assert slowdown == pytest.approx(8 / 6.7)
        assert task == pytest.approx(32 + 42 * turns * slowdown + (42 if turns else 0))


def test_a_grid_barrier_waits_for_the_last_warp_of_a_crowd() -> None:
    few, crowd = (GridBarrier.of(4, blocks).wait(1_000.0) for blocks in (6, 8))
    assert crowd - few == pytest.approx((8 / 6.7 - 1) * 1_000 + 42)
