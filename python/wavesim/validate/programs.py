"""What the warps of the measured kernels issue, read off the machine code of ``kernels.cu``.

A line of code is written as a word an instruction: its pipe (``fma``, ``alu``, ``heavy``,
``other``), a slash, and the cycles until the warp's next one; ``7fma/4`` are seven of them.
``ldc``, ``lds``, ``sts`` and ``bar`` are the memory unit's, ``await`` waits for what was asked for,
``jump`` is a taken branch.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, get_args

from wavesim.access import Access
from wavesim.warps import (
    Arithmetic,
    Await,
    Barrier,
    Branch,
    Load,
    Loop,
    Poll,
    Segment,
    Shared,
    Warps,
)

if TYPE_CHECKING:
    import numpy as np

__all__ = ["FETCH", "fma_chain", "mixed", "smem_barrier", "spin_listed"]

FETCH = 135.0
"""From a block's first clock reading until its code behind that has been fetched: as long in all of
these kernels."""

_LONGEST_UNROLLED = 128
"""The compiler unrolls a loop four times, or less, so that no more multiply-adds stand in it."""

_WORD = re.compile(r"(\d*)([a-z]+)(?:/(\d+))?")
_PIPES = get_args(Arithmetic.model_fields["pipe"].annotation)


def _code(text: str) -> list[Segment]:
    return [_instruction(word) for word in text.split()]


def _instruction(word: str) -> Segment:
    found = _WORD.fullmatch(word)
    assert found is not None, word
    count, name, stall = int(found[1] or 1), found[2], found[3]
    if name in _PIPES:
        return Arithmetic(count, latency_cycles=int(stall), pipe=name)
    others: dict[str, Segment] = {
        "ldc": Shared("constant", wait=False),
        "lds": Shared("load", wait=False),
        "sts": Shared("store"),
        "bar": Barrier(),
        "await": Await(),
        "jump": Branch(),
    }
    return others[name]


# From the first reading of the clock: thread 0 reads the global timer too, arguments are loaded.
_BEGIN = "other/20 other/2 alu/13 other/1"
# Barrier, then the record's SM number and the second reading.
_LEAVE = "bar other/5 other/20"
_END = "other/2 alu/2 alu/4 alu/7 " + _LEAVE


def fma_chain(ilp: int, per_thread: int) -> Warps:
    """``fma_chain<ilp>`` with ``per_thread`` multiply-adds in a thread."""
    iterations = max(per_thread // (16 * ilp), 0)
    unroll = 4
    while unroll > 1 and 16 * ilp * unroll > _LONGEST_UNROLLED:
        unroll //= 2
    if unroll == 1:
        return _rolled(ilp, iterations)

    def body(times: int, head: str) -> list[Segment]:
        count = 16 * ilp * times
        # Nothing waits for the last of each chain but the next turn.
        return [
            *_code(head),
            Arithmetic(count - ilp, ilp),
            Arithmetic(ilp, ilp, latency_cycles=ilp),
        ]

    turns, rest = divmod(iterations, unroll)
    program = _code(
        _BEGIN + " ldc alu/2 await alu/13 other/5 alu/2 alu/2 alu/2 alu/11 other/5 alu/7"
    )
    if turns:
        program.append(Loop(turns, body(unroll, "heavy/1 alu/4 alu/5")))
    if rest:
        program += [*_code("other/5 other/7"), Loop(rest, body(1, "alu/3 alu/3"))]
    else:
        program.append(Branch())
    return Warps([*program, *_code("fma/2 alu/2 fma/2 " + _END)], startup_cycles=FETCH)


def _rolled(ilp: int, iterations: int) -> Warps:
    """``fma_chain<ilp>`` whose loop is not unrolled, as it is for five to eight chains.

    It counts up where the others count down, and compares behind three quarters of a turn.
    """
    program = _code(_BEGIN + " other/1" + " alu/2" * (2 * ilp - 1) + " alu/1")
    if iterations:
        turn = [
            *_code("alu/2 alu/3"),
            Arithmetic(12 * ilp, ilp),
            *_code("alu/1"),
            Arithmetic(4 * ilp, ilp),
        ]
        program += [*_code("other/6 heavy/11"), Loop(iterations, turn)]
    else:
        program.append(Branch())
    total = "fma/1 other/2 alu/1 fma/3 alu/1 fma/1 other/2 alu/1" + " fma/4" * (ilp - 4) + " fma/5"
    program += _code(f"{total} alu/13 other/1 alu/5 other/2 {_LEAVE}")
    return Warps(program, startup_cycles=FETCH)


def _multiply_adds(count: int, enter: str, loop: str, sixteen: str) -> list[Segment]:
    """A loop over eight dependent multiply-adds at a time, as the compiler lays it out.

    It unrolls 32 of them, then 16, then 8; each part is skipped by a branch where too few are left.
    """
    count = -(-count // 8) * 8
    if count == 0:
        return [Branch()]
    done, fresh = 0, True
    program = _code(enter + " jump alu/2 alu/4 alu/13")
    if count <= 24:
        program.append(Branch())
    else:
        turns = -(-(count - 24) // 32)
        done, fresh = 32 * turns, False
        program += _code("other/5 alu/2 alu/11")
        program.append(Loop(turns, _code(loop + " 31fma/4 fma/1")))
    program += _code("alu/2 alu/4 alu/13")
    if count - done <= 8:
        program.append(Branch())
    else:
        done, fresh = done + 16, False
        program += _code(f"other/5 {sixteen} 15fma/4 fma/7")
    program += _code("alu/13")
    if fresh or done < count:
        program += _code("other/5 heavy/10 7fma/4 fma/7")
    else:
        program.append(Branch())
    return program


def smem_barrier(per_iteration: int, iterations: int) -> Warps:
    """``smem_barrier`` with ``per_iteration`` multiply-adds in each iteration."""
    begin = (
        " alu/2 alu/13 other/5 alu/1 other/26 other/5 other/26 alu/6 other/26 heavy/1 alu/5 heavy/4"
        " heavy/6 heavy/5 alu/5 heavy/1 alu/4 alu/13 alu/4 alu/13 alu/2 alu/4 alu/1 other/6"
    )
    body = [
        *_code("sts ldc other/7 bar await alu/2 alu/3 lds await fma/6"),
        *(_code("other/5") if per_iteration else ()),
        *_multiply_adds(
            per_iteration, "alu/1 other/1 alu/11", "heavy/1 other/6 alu/3", "other/1 other/1 alu/3"
        ),
        *_code("bar"),
    ]
    program = [*_code(_BEGIN + begin), Loop(iterations, body), *_code("alu/1 " + _END)]
    return Warps(program, startup_cycles=FETCH)


def mixed(per_load: int, iterations: int, access: Access) -> Warps:
    """``mixed`` with ``per_load`` multiply-adds a load, of the lines of ``access``."""
    address = "ldc other/1 other/4 heavy/5 alu/4 await alu/5 heavy/3 alu/4 alu/1 other/3 alu/6"
    body = [
        *_code(address),
        Load(access=access, wait=False),
        *_code("alu/1 other/6 alu/2 await alu/2 alu/2 alu/5 fma/1"),
        *(_code("other/6") if per_load else ()),
        *_multiply_adds(
            per_load, "alu/1 heavy/1 alu/11", "heavy/1 alu/4 alu/5", "other/2 alu/2 alu/1"
        ),
        *_code("alu/1"),
    ]
    begin = " other/20 alu/1 heavy/1 alu/11 other/5 heavy/1 other/3 alu/5 heavy/7"
    program = [*_code(_BEGIN + begin), Loop(iterations, body), *_code("alu/2 alu/2 " + _END)]
    return Warps(program, startup_cycles=FETCH)


def spin_listed(cycles: np.ndarray[Any, np.dtype[np.float64]]) -> Warps:
    """``spin`` where each block waits for its own time, which it loads from a list of them.

    The wait counts from the first instruction, long before the code behind it has been fetched.
    """
    entry = "other/2 alu/4 alu/1 other/12 other/20 ldc await heavy/5"
    end = "bar other/2 alu/4 alu/4 alu/13 other/5 other/1 other/1 other/2"
    program = [
        *_code(f"other/1 {_BEGIN} {entry}"),
        Load(footprint_bytes=4 * len(cycles)),
        Poll(cycles, since="start"),
        *_code(end),
    ]
    return Warps(program)
