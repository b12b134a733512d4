"""How long each CTA (or task) takes, from its first instruction to its last.

Every kind can be given in nanoseconds or in cycles of the SM clock; cycles follow the clock of the
device that runs them. Random kinds draw from a stream of their own for each launch, derived from
the run's seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator

from wavesim.errors import InvalidInput
from wavesim.scalars import NUMBER
from wavesim.spec import (
    KINDS,
    LONGEST_NS,
    Editable,
    Numbers,
    Spec,
    mapping_without_none,
    shown,
)

__all__ = ["AnyDuration", "Duration", "PerCta"]

Time = Annotated[float, Field(ge=0, le=LONGEST_NS, allow_inf_nan=False), NUMBER]
"""A length of time: its unit stands in the field's name."""
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), NUMBER]

if TYPE_CHECKING:
    import numpy as np

    Ids: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]


@cache
def _fields_of(length: str) -> tuple[str, str]:
    return (f"{length}_ns", f"{length}_cycles") if length else ("ns", "cycles")


class Duration(Editable, Spec):
    """How long each CTA takes. Made by its constructors, such as ``Duration.constant(ns=500)``.

    Each raises :class:`wavesim.errors.InvalidInput` for times that are negative, not numbers, or
    over 50 days, and unless all its times are given in one unit.
    """

    lengths: ClassVar[tuple[str, ...]] = ()
    """The lengths of time of this kind; each is a field in ``_ns`` and one in ``_cycles``."""

    def model_post_init(self, context: object) -> None:
        """Check that all times are there, in one unit."""
        units = set()
        for length in self.lengths:
            in_ns, in_cycles = _fields_of(length)
            given = [name for name in (in_ns, in_cycles) if self.__dict__[name] is not None]
            if len(given) != 1:
                got = " and ".join(given) if given else "neither"
                why = f"give either {in_ns} or {in_cycles} (got {got})"
                raise InvalidInput(f"{in_ns}: {why}", in_ns, None)
            units.add(given[0] == in_ns)
        if len(units) > 1:
            field = _fields_of(self.lengths[0])[0]
            raise InvalidInput(f"{field}: all times of a duration must have one unit", field, None)

    @property
    def unit(self) -> Literal["ns", "cycles"]:
        """The unit in which the times were given."""
        return "cycles" if self.__dict__[_fields_of(self.lengths[0])[0]] is None else "ns"

    def span(self, length: str) -> dict[str, float]:
        """Give a length as the engine takes it: ``{"ns": 500.0}`` or ``{"cycles": 1000.0}``."""
        unit = self.unit
        return {unit: self.__dict__[_fields_of(length)[unit == "cycles"]]}

    @staticmethod
    def constant(ns: float | None = None, *, cycles: float | None = None) -> Constant:
        """All CTAs take the same time."""
        return Constant(**mapping_without_none({"ns": ns, "cycles": cycles}))

    @staticmethod
    def uniform(
        low_ns: float | None = None,
        high_ns: float | None = None,
        *,
        low_cycles: float | None = None,
        high_cycles: float | None = None,
    ) -> Uniform:
        """Uniform from ``low`` to ``high``."""
        return Uniform(**mapping_without_none(locals()))

    @staticmethod
    def normal(
        mean_ns: float | None = None,
        std_ns: float | None = None,
        *,
        mean_cycles: float | None = None,
        std_cycles: float | None = None,
    ) -> Normal:
        """Normal; negative draws count as zero, so a wide one has a larger mean than asked for."""
        return Normal(**mapping_without_none(locals()))

    @staticmethod
    def lognormal(
        mean_ns: float | None = None, cv: float = 0.1, *, mean_cycles: float | None = None
    ) -> LogNormal:
        """Log-normal, by the mean and the coefficient of variation of the durations themselves."""
        return LogNormal(**mapping_without_none(locals()))

    @staticmethod
    def exponential(
        mean_ns: float | None = None, *, mean_cycles: float | None = None
    ) -> Exponential:
        """Exponential."""
        return Exponential(**mapping_without_none(locals()))

    @staticmethod
    def bimodal(
        low_ns: float | None = None,
        high_ns: float | None = None,
        high_share: float = 0.5,
        *,
        low_cycles: float | None = None,
        high_cycles: float | None = None,
    ) -> Bimodal:
        """``high`` with probability ``high_share``, else ``low``."""
        return Bimodal(**mapping_without_none(locals()))

    @staticmethod
    def per_cta(ns: object = None, *, cycles: object = None) -> PerCta:
        """One value a CTA (or task), by id: an array, a list or a Polars column.

        A contiguous ``float64`` array is read in place. Raises InvalidInput for values that are no
        durations; that there is one for each CTA is checked when a kernel is made of it.
        """
        return PerCta(**mapping_without_none({"ns": ns, "cycles": cycles}))

    @staticmethod
    def function(
        ns: Callable[[Ids], object] | None = None,
        *,
        cycles: Callable[[Ids], object] | None = None,
    ) -> Function:
        """``ns(ids)``: times from the array of all CTA ids (or task numbers), 0, 1, 2 ...

        It is called once, when a kernel is made of it; the kernel keeps the values.
        """
        return Function(**mapping_without_none({"ns": ns, "cycles": cycles}))


class Constant(Duration):
    """All CTAs take the same time."""

    lengths: ClassVar[tuple[str, ...]] = ("",)
    kind: Literal["constant"] = "constant"
    ns: Time | None = None
    cycles: Time | None = None


class Uniform(Duration):
    """Uniform from ``low`` to ``high``."""

    lengths: ClassVar[tuple[str, ...]] = ("low", "high")
    kind: Literal["uniform"] = "uniform"
    low_ns: Time | None = None
    high_ns: Time | None = None
    low_cycles: Time | None = None
    high_cycles: Time | None = None

    def model_post_init(self, context: object) -> None:
        """Check that the lowest is not over the highest as well."""
        super().model_post_init(context)
        (low,), (high,) = self.span("low").values(), self.span("high").values()
        if low > high:
            field = _fields_of("low")[self.unit == "cycles"]
            raise InvalidInput(f"{field}: is over the highest, {high:g} (got {low:g})", field, low)


class Normal(Duration):
    """Normal, with negative draws set to zero."""

    lengths: ClassVar[tuple[str, ...]] = ("mean", "std")
    kind: Literal["normal"] = "normal"
    mean_ns: Time | None = None
    std_ns: Time | None = None
    mean_cycles: Time | None = None
    std_cycles: Time | None = None


class LogNormal(Duration):
    """Log-normal by mean and coefficient of variation."""

    lengths: ClassVar[tuple[str, ...]] = ("mean",)
    kind: Literal["lognormal"] = "lognormal"
    mean_ns: Time | None = None
    mean_cycles: Time | None = None
    cv: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False), NUMBER]


class Exponential(Duration):
    """Exponential."""

    lengths: ClassVar[tuple[str, ...]] = ("mean",)
    kind: Literal["exponential"] = "exponential"
    mean_ns: Time | None = None
    mean_cycles: Time | None = None


class Bimodal(Duration):
    """One of two values."""

    lengths: ClassVar[tuple[str, ...]] = ("low", "high")
    kind: Literal["bimodal"] = "bimodal"
    low_ns: Time | None = None
    high_ns: Time | None = None
    low_cycles: Time | None = None
    high_cycles: Time | None = None
    high_share: Share = 0.5


class PerCta(Duration):
    """One value a CTA (or task), by id."""

    lengths: ClassVar[tuple[str, ...]] = ("",)
    kind: Literal["per_cta"] = "per_cta"
    ns: Numbers | None = None
    cycles: Numbers | None = None

    @property
    def values(self) -> Numbers:
        """The values, in the unit they were given in."""
        values = self.ns if self.ns is not None else self.cycles
        assert values is not None  # held by the check that one unit is given
        return values


class Function(Duration):
    """A function of the CTA ids. A kernel turns it into values: see :meth:`of`."""

    lengths: ClassVar[tuple[str, ...]] = ("",)
    kind: Literal["function"] = "function"
    ns: Callable[[Any], Any] | None = None
    cycles: Callable[[Any], Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _not_from_a_file(cls, fields: Any) -> Any:
        """Say what to use instead where a file asks for a function, which it can't hold."""
        named = isinstance(fields, Mapping) and "kind" in fields
        if named and not any(callable(fields.get(unit)) for unit in ("ns", "cycles")):
            why = "a function can be given in Python only; a file lists its values: 'per_cta'"
            raise InvalidInput(f"kind: {why} (got 'function')", "kind", "function")
        return fields

    def of(self, count: int) -> PerCta:
        """Give the values for ids 0 to ``count - 1``."""
        import numpy as np  # noqa: PLC0415 (loaded when there are arrays)

        unit = self.unit
        values = getattr(self, unit)(np.arange(count))
        if np.ndim(values) != 1 or np.shape(values)[0] != count:
            why = f"a function of {count} ids must give {count} values (got {shown(values)})"
            raise InvalidInput(f"{unit}: {why}", unit, values)
        return PerCta(**{unit: values})


AnyDuration = Annotated[
    Constant | Uniform | Normal | LogNormal | Exponential | Bimodal | PerCta | Function,
    Field(discriminator="kind"),
    KINDS,
]
"""Any kind of duration; in files told by ``kind``."""


def for_count(duration: Duration, count: int, of: str, field: str = "") -> Duration:
    """Give the duration with functions made into values, and as many values as are needed."""
    if isinstance(duration, Function):
        return duration.of(count)
    if isinstance(duration, PerCta) and len(duration.values) != count:
        got = len(duration.values)
        why = f"one value {of} is needed, {count:,} in all (got {got:,})"
        raise InvalidInput(f"{field}: {why}" if field else why, field or None, got)
    return duration
