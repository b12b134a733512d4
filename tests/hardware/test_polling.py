"""What is taken to be known of kernels whose warps wait by reading the clock.

The numbers are those of the polling warps in ``reference/h200_holdout/settle`` and of the rows with
few of them; docs/deviations.md, 4, says what they leave out.
"""

from pathlib import Path

import numpy as np
import polars as pl
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
        assert slowdown == pytest.approx(8 / 6.65)
        assert task == pytest.approx(32 + 42 * turns * slowdown + (42 if turns else 0))


def test_more_blocks_than_fit_share_the_turns_of_their_waves() -> None:
    # Two blocks are served beside each other, and five fit: one that comes sixth begins with the
    # last of the five, and the six take as long as three times two.
    loop = TaskLoop.of("static", warps=12, blocks=5)
    task, six = loop.of_tasks(6_000.0, [1] * 6)
    waves = 2
    assert waves * (task + six.startup) == pytest.approx(3 * 6_000, rel=0.1)
    # With many tasks each, so much of the time of all as a scheduler does not serve at once.
    task, many = loop.of_tasks(6_000.0, [100] * 6)
    assert waves * task == pytest.approx(6 * 3 / many.crowd.served * 6_000, rel=0.02)


def test_warps_of_a_block_issue_behind_each_other_but_those_of_others_while_it_asks() -> None:
    few, many = (TaskLoop.of("atomic", warps, 1) for warps in (16, 32))
    assert many.overhead - few.overhead == pytest.approx(4 * 25 + 4 * 5)
    assert TaskLoop.of("atomic", 32, 2).overhead == many.overhead


def test_blocks_of_a_crowd_that_take_tasks_begin_late_if_they_come_together() -> None:
    loop = TaskLoop.of("atomic", warps=16, blocks=4)
    _, together = loop.of_tasks(0.0, [2] * 4)
    _, one_by_one = loop.of_tasks(0.0, [2] * 5)
    # The warps of three other blocks issue before the last one's first question.
    assert together.startup - one_by_one.startup == 25 * (12 - 4)
    # And it is behind those two that are served when it comes, not behind the first.
    _, waited = loop.of_tasks(500.0, [2] * 4)
    assert 100 < waited.startup - together.startup < 500


SETTLED = Path(__file__).parents[2] / "reference/h200_holdout/settle"


def test_blocks_that_find_no_slot_behind_a_barrier_wait_once_more() -> None:
    for blocks, turns in [(6, 0.0), (8, 1.35 / 4.5), (12, 1.0), (16, 1.0)]:
        body = GridBarrier.of(4, blocks)
        at_once = left(TaskLoop.of("static", 4, blocks), 2_000.0)
        crowded = 42 if turns else 0
        begun = body.wait(2_000.0) - body.wait(0.0) - crowded - at_once
        assert begun == pytest.approx(turns * at_once - 32 * (1 + turns))


@pytest.mark.parametrize("blocks", [6, 7, 8, 9, 10, 12, 14, 16])
def test_what_waiting_adds_to_a_grid_barrier_is_what_was_measured(blocks: int) -> None:
    table = pl.read_parquet(SETTLED / "barriers.parquet")
    rounds = table.filter(pl.col("block") == 128, pl.col("grid") == 132 * blocks)
    of = dict(rounds.group_by("cycles").agg(pl.col("ns_a_round").median()).iter_rows())
    body = GridBarrier.of(4, blocks)
    added = body.wait(2_000.0) - body.wait(0.0)
    assert added == pytest.approx((of[2_000] - of[0]) * 1.98, rel=0.14)


@pytest.mark.parametrize(
    ("block", "cycles"), [(256, 2_000), (256, 4_000), (512, 2_000), (512, 4_000), (1_024, 2_000)]
)
def test_so_it_is_for_blocks_of_more_warps(block: int, cycles: int) -> None:
    table = pl.read_parquet(SETTLED / "waits.parquet")
    full = table.filter(
        pl.col("what") == "barrier", pl.col("block") == block, pl.col("grid") * block == 132 * 2_048
    )
    span = dict(full.group_by("cycles").agg(pl.col("span_ns").median()).iter_rows())
    rounds = 10
    body = GridBarrier.of(block // 32, 2_048 // block)
    added = body.wait(cycles) - body.wait(0.0)
    assert added == pytest.approx((span[cycles] - span[0]) / rounds * 1.98, rel=0.15)
