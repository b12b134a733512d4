"""Kernels: what they take, what they refuse, and what they say about it."""

import re

import pytest

from wavesim import Chain, Duration, GridSync, Kernel, Measured, Persistent, Tiles
from wavesim.errors import InvalidInput

WORK = Duration.constant(ns=1_000)


@pytest.mark.parametrize(
    ("given", "grid"),
    [(7, (7, 1, 1)), ((7,), (7, 1, 1)), ((7, 2), (7, 2, 1)), ([7, 2, 3], (7, 2, 3))],
)
def test_a_grid_is_a_number_or_up_to_three(given, grid):
    kernel = Kernel(given, given, work=WORK)
    assert kernel.grid == kernel.block == grid
    assert kernel.ctas == kernel.threads == grid[0] * grid[1] * grid[2]


@pytest.mark.parametrize(
    ("fields", "field", "value"),
    [
        ({"grid": 0}, "grid[0]", 0),
        ({"grid": (1, 0)}, "grid[1]", 0),
        ({"grid": -4}, "grid[0]", -4),
        ({"grid": 2**31}, "grid[0]", 2**31),
        ({"grid": 2**64}, "grid[0]", 2**64),
        ({"grid": (1, 70_000)}, "grid[1]", 70_000),
        ({"grid": 1.5}, "grid[0]", 1.5),
        ({"grid": "many"}, "grid", "many"),
        ({"grid": (1, 1, 1, 1)}, "grid", (1, 1, 1, 1)),
        ({"block": 0}, "block[0]", 0),
        ({"block": 1_025}, "block[0]", 1_025),
        ({"registers": 513}, "registers", 513),
        ({"registers": -1}, "registers", -1),
        ({"shared_memory": -1}, "shared_memory", -1),
        ({"cluster": 0}, "cluster", 0),
        ({"grid": 9, "cluster": 2}, "cluster", 2),
        ({"work": 5}, "work", 5),
        ({"work": {"kind": "magic"}}, "work.kind", "magic"),
        ({"threads": 5}, "threads", 5),
    ],
)
def test_a_kernel_that_cannot_be_is_refused_with_field_and_value(fields, field, value):
    with pytest.raises(InvalidInput) as refused:
        Kernel(**({"grid": 10, "work": WORK} | fields))
    assert refused.value.field == field
    assert refused.value.value == value
    assert str(refused.value).startswith(f"{field}: ")


def test_the_whole_grid_is_bounded_too():
    with pytest.raises(InvalidInput, match=r"^grid: at most 4294967295 CTAs") as refused:
        Kernel((65_535, 65_535, 2), work=WORK)
    assert refused.value.field == "grid"


def test_what_a_kernel_alone_shows_is_told_when_it_is_made():
    needs = Chain(WORK, WORK, needs=[[-1, 2, 1, -1]])
    tiles = Tiles(256, 256, 64, order=[0, 1, 2, 2])
    for fields, path in [
        ({"work": needs}, "work.needs"),
        ({"work": GridSync(3, Duration.per_cta([5.0] * 10))}, "work.duration"),
        ({"work": tiles, "shared_memory": 98_304}, "work.order[3]"),
        ({"work": GridSync(3, WORK), "last_warp_cycles": 5}, "last_warp_cycles"),
    ]:
        with pytest.raises(InvalidInput) as refused:
            Kernel(4, **fields)
        assert refused.value.field == path
        assert str(refused.value).startswith(f"{path}: ")


def test_a_missing_field_is_named():
    with pytest.raises(InvalidInput, match=r"^grid: is needed"):
        Kernel.model_validate({"work": {"kind": "constant", "ns": 5}})


def test_specs_do_not_change_and_edited_copies_are_checked():
    kernel = Kernel(10, work=WORK)
    with pytest.raises(ValueError, match="frozen"):
        kernel.grid = (20, 1, 1)
    assert kernel.edited(grid=20) == Kernel(20, work=WORK)
    assert kernel.edited(grid=20) != kernel
    with pytest.raises(InvalidInput, match=r"^grid\[0\]: "):
        kernel.edited(grid=0)


def test_equal_kernels_are_equal_and_hash_alike():
    values = [1.0, 2.0, 3.0]
    one, other = (Kernel(3, work=Duration.per_cta(values)) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != Kernel(3, work=Duration.per_cta([1.0, 2.0, 4.0]))


def test_a_kernel_shows_what_differs_from_the_defaults():
    kernel = Kernel(10, registers=64, work=WORK)
    assert repr(kernel) == "Kernel(grid=(10, 1, 1), registers=64, work=Constant(ns=1000.0))"
    assert str(kernel) == repr(kernel)


@pytest.mark.parametrize(
    "work",
    [
        Persistent(30, WORK, "atomic"),
        GridSync(3, Duration.per_cta([5.0] * 10)),
        Measured(5_000.0, on="h200", scale=1.5),
        Duration.bimodal(1, 2, 0.1),
    ],
)
def test_every_kind_of_work_comes_back_from_json(work):
    kernel = Kernel(10, cooperative=isinstance(work, GridSync), work=work)
    assert Kernel.model_validate_json(kernel.model_dump_json()) == kernel


def test_a_persistent_kernel_needs_a_value_a_task():
    assert Persistent(3, Duration.per_cta([1, 2, 3])).tasks == 3
    message = "one value a task is needed, 4 in all (got 3)"
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Persistent(4, Duration.per_cta([1, 2, 3]))
