"""A device: what a simulation knows of the hardware."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property
from numbers import Real
from typing import Any, Literal, Self, SupportsIndex

from pydantic import model_validator

from wavesim import _wavesim
from wavesim.devices.parts import (
    L2,
    Clock,
    Dispatch,
    Dram,
    IssueTimings,
    LaunchTimings,
    Limits,
    Provenance,
    SyncTimings,
    Topology,
)
from wavesim.errors import InvalidInput
from wavesim.scalars import whole
from wavesim.spec import Spec
from wavesim.text import any_of

__all__ = ["Device"]

_WORDS = ("dispatch.deal", "issue.policy", "l2.replacement", "l2.write_policy")
"""Fields of a device's parts that are words."""


class Device(Spec):
    """A GPU. Immutable: :meth:`scaled` and :meth:`edited` give another one.

    Made by :func:`wavesim.device`, :meth:`from_properties` or from its parts; validated by the
    engine when made, and every fault is a :class:`wavesim.errors.InvalidInput` with the field's
    path and value.
    """

    name: str
    """The short name, such as ``h200``."""
    title: str
    """The product's name."""
    vendor: Literal["nvidia", "amd"]
    compute_capability: str
    """``9.0``, or ``gfx942``."""
    topology: Topology
    limits: Limits
    clock: Clock
    dispatch: Dispatch
    launch: LaunchTimings
    sync: SyncTimings
    issue: IssueTimings
    l2: L2
    dram: Dram
    provenance: Mapping[str, Provenance]
    """Where each number is from: the path of a field, or of a part whose fields share a source."""

    @model_validator(mode="after")
    def _held_by_the_engine(self) -> Self:
        try:
            self.machine  # noqa: B018 (reading it validates the device, once)
        except InvalidInput as error:
            field = str(error.field).removeprefix("device.")
            why = str(error).removeprefix("device.")
            raise InvalidInput(why, field, error.value) from None
        return self

    @cached_property
    def machine(self) -> _wavesim.Machine:
        """The engine's form of this device."""
        return _wavesim.Machine(self.model_dump_json())

    @property
    def sms(self) -> int:
        """The number of SMs (AMD: CUs)."""
        return sum(len(gpc.sms) for gpc in self.topology.gpcs)

    @property
    def has_dependent_launch(self) -> bool:
        """Whether a kernel can be launched before the one ahead has ended; came with clusters."""
        return self.limits.max_cluster > 1

    def provenance_of(self, path: str) -> Provenance | None:
        """Say where the number at a path is from: its own entry, or the nearest part's above."""
        while path:
            if path in self.provenance:
                return self.provenance[path]
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return None

    def numbers(self) -> dict[str, Any]:
        """Give every number by its path, such as ``clock.sm_mhz``; a list of numbers is one entry.

        ``topology.gpcs`` stands for the whole list of GPCs; its entry is the number of SMs of each.
        """
        found: dict[str, Any] = {}
        for part in ("limits", "clock", "dispatch", "launch", "sync", "issue", "l2", "dram"):
            for field, value in getattr(self, part):
                if value is not None and not isinstance(value, str):
                    found[f"{part}.{field}"] = value
        found["topology.gpcs"] = tuple(len(gpc.sms) for gpc in self.topology.gpcs)
        return found

    def scaled(self, *, sms: int) -> Device:
        """Give the same kind of device with another number of SMs.

        GPCs keep their sizes: a larger die repeats the list of GPCs from its start, a smaller one
        drops GPCs from its end, and the last one is cut to fit. L2 (size, bandwidth) and DRAM
        (bandwidth) follow in proportion; latencies stay. The dispatcher stays as it is, one serial
        server for the whole die; so do launches and the clock. What changed is marked as assumed.

        Raises:
            InvalidInput: for a number of SMs that is not from 1 to 65,535, or so large that L2
                would be larger than 16 GiB; the error says how many this device has at most.

        """
        count = whole(sms)
        if count is None:
            raise InvalidInput(f"sms: must be an integer (got {sms!r})", "sms", sms)
        if not 1 <= count <= 65_535:
            why = f"sms: a device has from 1 to 65,535 SMs (got {sms})"
            raise InvalidInput(why, "sms", sms)
        return Device.model_validate_json(
            _wavesim.scaled_device(self.model_dump_json(), count),
        )

    def edited(self, changes: Mapping[str, Any] | None = None, /, **fields: object) -> Self:
        """Give the device with other values, by path: ``edited({"clock.sm_mhz": 1500})``.

        A path may name a number, a whole list (``topology.gpcs``, ``limits.carve_outs_bytes``), a
        policy (``dispatch.deal``, ``l2.replacement``, ``l2.write_policy``), ``name``, ``title`` or
        ``compute_capability``; the last brings the limits of that capability with it, and another
        number of ``l2.halves`` deals the GPCs over them, unless ``topology.gpcs`` says which is
        near to which. Edited values are marked as assumed.

        Raises:
            InvalidInput: for a path that is not there (with the nearest ones), or a value that
                can't be.

        """
        if not isinstance(changes or {}, Mapping) or not all(
            isinstance(at, str) for at in changes or {}
        ):
            why = "changes: a mapping of paths to values is needed"
            raise InvalidInput(f"{why} (got {changes!r})", "changes", changes)
        edited = Provenance(source="edited by the caller", status="assumed")
        return self.with_numbers({**(changes or {}), **fields}, edited)

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Device:
        """Make the device that a trace describes.

        Takes an element of ``deviceProperties`` (or the older ``computeProperties``) of a PyTorch
        profiler trace, CUDA or ROCm, or a row of ``TARGET_INFO_GPU`` of an Nsight Systems export.
        The rest comes from the catalogue when the name is known there, else from the catalogue's
        device of the nearest compute capability, marked as assumed. What the trace says of the
        device wins over both, except for ROCm's register counts, which are no limits of a launch.

        Raises:
            InvalidInput: when neither name nor compute capability and number of SMs say what
                device it is, or a value is no number.

        """
        from wavesim.devices.properties import device_of  # noqa: PLC0415 (it imports this module)

        return device_of(properties)

    def with_numbers(self, changes: Mapping[str, Any], provenance: Provenance) -> Self:
        """Give the device with other values, by path, and say where they are from.

        What :meth:`edited` does, with a source of its own.
        """
        if not changes:
            return self
        changes = self._with_parts_of_l2(changes)
        data = self.model_dump()
        known = [*self.numbers(), *(f"limits.{name}" for name in Limits.model_fields)]
        known += ["name", "title", "compute_capability", *_WORDS]
        if "compute_capability" in changes:
            capability = changes["compute_capability"]
            data["limits"] = json.loads(_wavesim.limits_of(str(capability)))
        for path, value in changes.items():
            if path not in known:
                near = get_close_matches(path, known, n=3, cutoff=0.5)
                near += [name for name in known if name.endswith(f".{path}") and name not in near]
                hint = f"did you mean {any_of(near)}?" if near else "see Device.numbers()"
                raise InvalidInput(f"{path}: a device has no such field; {hint}", path, value)
            *parts, last = path.split(".")
            holder = data
            for part in parts:
                holder = holder[part]
            holder[last] = value
            if path not in ("name", "title"):
                nested = f"{path}."
                data["provenance"] = {
                    name: entry
                    for name, entry in data["provenance"].items()
                    if not name.startswith(nested)
                }
                data["provenance"][path] = provenance
        if "name" not in changes:
            data["name"] = self.name.removesuffix("*") + "*"
        return type(self).model_validate(data)

    def _with_parts_of_l2(self, changes: Mapping[str, Any]) -> Mapping[str, Any]:
        """With GPCs near to parts of L2 that are there, where only the number of parts changes."""
        halves = changes.get("l2.halves")
        if not isinstance(halves, Real) or halves not in range(1, 256):
            return changes  # not changed, or refused
        if halves == self.l2.halves or "topology.gpcs" in changes:
            return changes
        gpcs = self.model_dump()["topology"]["gpcs"]
        for gpc, half in zip(
            gpcs, _wavesim.parts_near_to(len(gpcs), int(float(halves))), strict=True
        ):
            gpc["half"] = half
        return {**changes, "topology.gpcs": gpcs}

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    def __reduce__(self) -> tuple[Any, ...]:
        # The engine's form stays behind: it is made again where the device arrives.
        return (Device.model_validate_json, (self.model_dump_json(),))

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return self.__reduce__()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Give a validated copy with other top-level fields; :meth:`edited` takes paths."""
        return type(self).model_validate({**self.model_dump(), **(update or {})})

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self

    def __repr__(self) -> str:
        return f"Device({self.name!r}, {self.title!r}, {self.sms} SMs)"

    __str__ = __repr__
