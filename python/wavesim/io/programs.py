"""Programs as JSON without repetition: a kernel is written once, however often it is launched.

Lists of numbers (a duration for each CTA) go into a frame beside it, and the devices that kernels
were measured on into a list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from wavesim.devices import Device
from wavesim.spec import Numbers, Spec
from wavesim.workload import Copy, Graph, Kernel, Launch, Program, Record, Stream, Wait

__all__ = ["decode_program", "encode_program"]

Item = Launch | Record | Wait | Copy | Graph

_ITEMS: Mapping[str, type[Record | Wait | Copy]] = {"record": Record, "wait": Wait, "copy": Copy}
_LIST = "list_of_numbers"
_DEVICE = "device"


class _Encoder:
    def __init__(self) -> None:
        self.kernels: dict[Kernel, int] = {}
        self.lists: dict[Numbers, int] = {}
        self.devices: list[Device] = []

    def item(self, item: Item) -> dict[str, Any]:
        fields = {name: getattr(item, name) for name in type(item).model_fields}
        if isinstance(item, Launch):
            fields["kernel"] = self.kernels.setdefault(item.kernel, len(self.kernels))
        elif isinstance(item, Graph):
            fields["items"] = [self.item(node) for node in item.items]
        return fields

    def plain(self, value: Any) -> Any:
        """A field's value in JSON's terms."""
        if isinstance(value, Numbers):
            return {_LIST: self.lists.setdefault(value, len(self.lists))}
        if isinstance(value, Device):
            if value not in self.devices:
                self.devices.append(value)
            return {_DEVICE: self.devices.index(value)}
        if isinstance(value, Spec):
            return {name: self.plain(getattr(value, name)) for name in type(value).model_fields}
        if isinstance(value, tuple):
            return [self.plain(part) for part in value]
        return value


def encode_program(program: Program) -> tuple[dict[str, Any], pl.DataFrame | None]:
    """The program as JSON, and its lists of numbers.

    Returns:
        What ``json.dumps`` takes; and a frame of ``list`` u32 and ``value`` f64, None if there is
        no list.
    """
    encoder = _Encoder()
    items = [encoder.item(item) for item in program.items]
    encoded = {
        "kernels": [encoder.plain(kernel) for kernel in encoder.kernels],
        "devices": [device.model_dump(mode="json") for device in encoder.devices],
        "items": items,
        "streams": {str(number): s.model_dump() for number, s in program.streams.items()},
    }
    if not encoder.lists:
        return encoded, None
    lengths = [len(numbers) for numbers in encoder.lists]
    numbers = pl.DataFrame(
        {
            "list": np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths),
            "value": np.concatenate([numbers.array for numbers in encoder.lists]),
        }
    )
    return encoded, numbers


def decode_program(encoded: Mapping[str, Any], numbers: pl.DataFrame | None) -> Program:
    """The program of :func:`encode_program`.

    Raises:
        InvalidInput: a field can't be.
        KeyError, TypeError, IndexError: it is not of the shape that ``encode_program`` gives.
    """
    lists: list[Numbers] = []
    if numbers is not None:
        groups = numbers.group_by("list", maintain_order=True).agg("value").sort("list")
        lists = [Numbers(values) for values in groups["value"]]
    devices = [Device.model_validate(device) for device in encoded["devices"]]
    kernels = [
        Kernel.model_validate(_restored(kernel, lists, devices)) for kernel in encoded["kernels"]
    ]
    streams = {int(number): Stream(**fields) for number, fields in encoded["streams"].items()}
    return Program([_item(item, kernels) for item in encoded["items"]], streams)


def _restored(value: Any, lists: Sequence[Numbers], devices: Sequence[Device]) -> Any:
    if isinstance(value, list):
        return [_restored(part, lists, devices) for part in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_LIST}:
        return lists[value[_LIST]]
    if value.keys() == {_DEVICE}:
        return devices[value[_DEVICE]]
    return {name: _restored(part, lists, devices) for name, part in value.items()}


def _item(fields: Mapping[str, Any], kernels: Sequence[Kernel]) -> Any:
    kind = fields["kind"]
    if kind == "launch":
        return Launch.model_validate({**fields, "kernel": kernels[fields["kernel"]]})
    if kind == "graph":
        items = [_item(node, kernels) for node in fields["items"]]
        return Graph.model_validate({**fields, "items": items})
    return _ITEMS[kind].model_validate(fields)
