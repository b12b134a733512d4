"""What is taken for a number and what is not, in every field of every spec."""

from typing import Any, get_args, get_origin

import numpy as np
import polars as pl
import pytest
from pydantic import BaseModel, ValidationError

import wavesim
from wavesim import Duration, Kernel, Tiles
from wavesim.errors import InvalidInput
from wavesim.spec import Spec

NS = Duration.constant(ns=1.0)


def all_specs(of: type[Spec] = Spec) -> list[type[Spec]]:
    found = [kind for sub in of.__subclasses__() for kind in (sub, *all_specs(sub))]
    return [kind for kind in found if kind.__module__.startswith("wavesim.")]


def scalars_of(annotation: Any) -> set[type]:
    if annotation in (int, float, bool):
        return {annotation}
    if get_origin(annotation) in (tuple, list, dict):
        return set()
    return {kind for inner in get_args(annotation) for kind in scalars_of(inner)}


FIELDS = [
    (kind, name, scalars)
    for kind in sorted(set(all_specs()), key=lambda kind: (kind.__module__, kind.__name__))
    for name, field in kind.model_fields.items()
    if (scalars := scalars_of(field.annotation))
]


def refused(kind: type[Spec], name: str, value: object) -> list[str]:
    kind.model_rebuild()
    try:  # as a model's own __init__ does it, which tells all faults
        BaseModel.__init__(kind.__new__(kind), **{name: value})
    except ValidationError as error:
        return [found["msg"] for found in error.errors() if found["loc"][:1] == (name,)]
    return []


def test_no_number_of_any_spec_is_read_from_text_or_from_a_truth_value() -> None:
    numbers = [(kind, name) for kind, name, scalars in FIELDS if bool not in scalars]
    assert len(numbers) > 200
    for kind, name in numbers:
        for value in (True, np.bool_(True), "1", b"1"):
            assert refused(kind, name, value), (kind, name, value)


def test_no_truth_value_of_any_spec_is_read_from_text_or_from_a_number() -> None:
    truths = [(kind, name) for kind, name, scalars in FIELDS if bool in scalars]
    assert len(truths) > 8
    for kind, name in truths:
        for value in (1, 0.0, "yes", "true"):
            assert refused(kind, name, value) == ["must be true or false"], (kind, name, value)


@pytest.mark.parametrize(
    ("make", "field", "value"),
    [
        (lambda: Kernel(True, work=NS), "grid", True),
        (lambda: Kernel("128", work=NS), "grid", "128"),
        (lambda: Kernel((4, "2"), work=NS), "grid[1]", "2"),
        (lambda: Kernel(1, work=NS, cooperative="no"), "cooperative", "no"),
        (lambda: Tiles(1, 1, 1, tile=(1, 2, True)), "tile[2]", True),
        (lambda: Duration.per_cta([1.0, True]), "ns[1]", True),
        (lambda: Duration.per_cta(["1"]), "ns[0]", "1"),
        (lambda: wavesim.device("h200").edited({"limits.warps": True}), "limits.warps", True),
        (lambda: wavesim.simulate("h200", Kernel(1, work=NS), seed=True), "seed", True),
        (lambda: wavesim.occupancy("h200", block=64, cluster_launch=1), "cluster_launch", 1),
        (lambda: wavesim.Measured(1.0, on=5), "on", 5),
        (lambda: Kernel(1e300, work=NS), "grid[0]", 1e300),
        (lambda: wavesim.Chain(NS, NS, True), "needs", True),
        (lambda: wavesim.Chain(NS, NS, 0), "needs", 0),
    ],
)
def test_what_only_looks_like_a_number_is_told_with_its_field_and_value(
    make: Any, field: str, value: object
) -> None:
    with pytest.raises(InvalidInput, match=r"must be|1 to|is too large") as caught:
        make()
    assert caught.value.field == field
    assert caught.value.value == value
    assert str(caught.value).startswith(f"{field}: ")


@pytest.mark.parametrize("values", [np.array([True]), pl.Series(["1"]), pl.Series([True])])
def test_columns_of_what_are_no_numbers_are_refused(values: Any) -> None:
    with pytest.raises(InvalidInput, match=r"ns\[0\]: must be a number \(got .*(True|'1')"):
        Duration.per_cta(values)


def test_numbers_of_numpy_and_whole_floats_are_numbers() -> None:
    asked = Kernel(np.int64(64), (np.int32(8), 4.0), registers=np.uint8(40), work=NS)
    assert asked == Kernel(64, (8, 4), registers=40, work=NS)
    assert Kernel(np.array([2, 3]), work=NS).grid == (2, 3, 1)
    assert Kernel(1e3, work=NS).ctas == 1_000  # type: ignore[arg-type]
    assert Kernel(1, cooperative=np.True_, work=NS).cooperative is True
    assert Duration.constant(ns=np.float32(2)) == Duration.constant(ns=2)
    assert wavesim.simulate("h200", asked, seed=np.int64(3), first_sms=np.array([4])).seed == 3


def test_values_without_a_name_that_have_no_place_are_told_with_those_that_do() -> None:
    with pytest.raises(InvalidInput, match=r"Kernel takes 2 .*: grid, block \(got 3\)"):
        Kernel(1, 2, 3, work=NS)  # type: ignore[misc]
    with pytest.raises(InvalidInput, match="grid: Kernel got two values for it") as caught:
        Kernel(1, grid=1, work=NS)  # type: ignore[misc]
    assert caught.value.field == "grid"
