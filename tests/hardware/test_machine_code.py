"""What the warps of the measured kernels issue is what the compiler makes of ``kernels.cu``.

The numbers are those of its machine code for an H200: instructions and their stall counts.
"""

import polars as pl
import pytest

import wavesim
from wavesim import Kernel
from wavesim.run import Run
from wavesim.validate.programs import fma_chain


def alone(ilp: int, turns: int, instructions: int) -> Run:
    """One warp of ``fma_chain`` that makes so many turns, of so many multiply-adds each."""
    work = fma_chain(ilp, turns * instructions)
    return wavesim.simulate("h200", Kernel(grid=1, block=32, work=work), issue="exact")


def cycles(run: Run) -> float:
    return run.ctas.select((pl.col("end_ns") - pl.col("start_ns")).sum()).item() * 1.98


def issued(run: Run) -> float:
    return run.warps.filter(pl.col("state") == "selected")["warp_cycles"].sum()


@pytest.mark.parametrize(
    ("ilp", "multiply_adds", "others", "turn"),
    [
        # HFMA2/1, IADD3/4, ISETP/5, the chains, and a branch behind an instruction of 1.
        (1, 64, 4, 1 + 4 + 5 + 63 * 4 + 1 + 10),
        (2, 64, 4, 1 + 4 + 5 + 63 * 4 + 2 + 10),
        (3, 32, 4, 1 + 4 + 5 + 31 * 4 + 3 + 10),
        (4, 32, 4, 1 + 4 + 5 + 31 * 4 + 4 + 10),
        # MOV/2, IADD3/3, three quarters of the chains, ISETP/1, the last quarter, and a branch.
        (5, 16, 4, 2 + 3 + 60 + 1 + 20 + 10),
        (8, 16, 4, 2 + 3 + 96 + 1 + 32 + 10),
    ],
)
def test_a_turn_takes_a_lone_warp_what_its_stall_counts_add_up_to(
    ilp: int, multiply_adds: int, others: int, turn: int
) -> None:
    instructions = multiply_adds * ilp
    few, many = (alone(ilp, turns, instructions) for turns in (20, 120))
    assert cycles(many) - cycles(few) == pytest.approx(100 * turn, abs=2)
    assert issued(many) - issued(few) == 100 * (instructions + others)


def test_eight_chains_that_make_no_turn_skip_the_loop() -> None:
    none, one = (alone(8, turns, 128) for turns in (0, 1))
    # Without a turn the branch is taken and the counter is not set.
    assert issued(one) - issued(none) == 132 + 1
