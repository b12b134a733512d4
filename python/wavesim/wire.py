"""Specs as the engine takes them: JSON beside lists of numbers, and its answers read back.

The engine speaks of its own paths (``program.kernels[3].grid[0]``); a caller is told of the path he
wrote (``items[7].kernel.grid[0]``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from wavesim import _wavesim
from wavesim.durations import Bimodal, Duration, LogNormal, PerCta
from wavesim.errors import InvalidInput
from wavesim.tiles import raster
from wavesim.warps import PollNumbers

if TYPE_CHECKING:
    import numpy as np

    from wavesim.access import Access
    from wavesim.workload import Copy, Graph, Kernel, Launch, Program, Record, Wait

    Array = np.ndarray[tuple[int], np.dtype[np.float64]]

__all__ = ["Wire", "check_shape", "check_work", "single_launch", "translated", "wire_of"]

_ENGINE_KINDS = {"lognormal": "log_normal", "streamed": "stream", "warp_programs": "warps"}
_WORDS = {"await": "wait", "barrier": "barrier", "branch": "branch"}
_EMPTY = {"duration": {"constant": {"ns": 0.0}}}
_ACCESS = re.compile(r"^\.work\.warps\.accesses\[(\d+)\]")
_KERNEL = re.compile(r"^(?:program\.)?kernels\[(\d+)\]")
_TAG = re.compile(
    r"\.(?:launch|record|wait|copy|graph|persistent|grid_sync|access|tiles|streaming|warps"
    r"|(?<=\]\.)(?:arithmetic|tensor|shared|load|store|poll|loop)(?=\.)|from(?=\.)"
    r"|(?<=\.pattern\.)(?:stream|reuse|panels|attention|strided|random|listed|broadcast|chase)"
    r"|chain(?=\.(?:before|after|needs))|duration(?=\.\w))\b"
)


@dataclass(frozen=True, slots=True, eq=False)
class Wire:
    """A program for the engine."""

    program: str
    arrays: tuple[Array, ...]
    paths: tuple[str, ...]
    """For each of the engine's kernels, where it stands in the program."""
    accesses: tuple[tuple[str, ...], ...] = ()
    """For each of them, where the accesses that its warps name stand in the kernel."""

    def check(self) -> None:
        """Have the engine check all that needs no device; raises InvalidInput."""
        try:
            _wavesim.check_program(self.program, self.arrays)
        except InvalidInput as error:
            raise translated(error, self) from None


def wire_of(program: Program, works: Mapping[Kernel, Duration] | None = None) -> Wire:
    """Give a program as the engine takes it.

    Args:
        program: the program.
        works: durations found for measured kernels; one that is not there gets empty CTAs.
    """
    kernels: dict[Kernel, int] = {}
    paths: list[str] = []

    def items_of(items: Iterable[Launch | Record | Wait | Copy | Graph], path: str) -> list[Any]:
        return [item_of(item, f"{path}[{i}]") for i, item in enumerate(items)]

    def item_of(item: Launch | Record | Wait | Copy | Graph, path: str) -> dict[str, Any]:
        fields = dict(item.__dict__)
        kind = fields.pop("kind")
        if kind == "launch":
            kernel = fields["kernel"]
            if kernel not in kernels:
                kernels[kernel] = len(kernels)
                paths.append(f"{path}.kernel")
            fields["kernel"] = kernels[kernel]
        elif kind == "copy":
            fields["duration"] = {"ns": fields.pop("duration_ns")}
        elif kind == "graph":
            fields["items"] = items_of(fields["items"], f"{path}.items")
        return {kind: fields}

    items = items_of(program.items, "items")
    arrays: list[Array] = []
    wired = {
        "kernels": [_kernel(kernel, arrays, (works or {}).get(kernel)) for kernel in kernels],
        "items": items,
        "streams": {number: {"priority": s.priority} for number, s in program.streams.items()},
    }
    accesses = tuple(_accesses(kernel) for kernel in kernels)
    return Wire(_json(wired), tuple(arrays), tuple(paths), accesses)


def single_launch(kernel: Kernel, duration_ns: float) -> str:
    """Give the program of one launch whose CTAs all take this time."""
    fields = _kernel(kernel, [], None, shape_only=True)
    fields["work"] = {"duration": {"constant": {"ns": duration_ns}}}
    return _json({"kernels": [fields], "items": [{"launch": {"kernel": 0}}]})


def check_shape(kernel: Kernel) -> None:
    """Have the engine check a kernel's shape; raises InvalidInput with the field and its value."""
    try:
        _wavesim.check_kernel(_json(_kernel(kernel, [], None, shape_only=True)), ())
    except InvalidInput as error:
        raise InvalidInput(str(error), error.field, _value(kernel, error)) from None


def check_work(kernel: Kernel) -> None:
    """Have the engine check what the CTAs of a kernel do; raises InvalidInput."""
    arrays: list[Array] = []
    fields = _json(_kernel(kernel, arrays, None))
    try:
        _wavesim.check_kernel(fields, arrays)
    except InvalidInput as error:
        field = error.field or ""
        path = _path(f".{field}", _accesses(kernel)).removeprefix(".")
        message = str(error).removeprefix(field)
        raise InvalidInput(f"{path}{message}", path, error.value) from None


def translated(error: InvalidInput, wire: Wire) -> InvalidInput:
    """Give an error of the engine with the path that the caller wrote."""
    field = error.field or ""
    if found := _KERNEL.match(field):
        number = int(found[1])
        path = wire.paths[number] + _path(field[found.end() :], wire.accesses[number])
    else:
        path = _TAG.sub("", field.removeprefix("program."))
    message = str(error).removeprefix(field)
    return type(error)(f"{path}{message}", path, error.value)


def _path(field: str, accesses: Sequence[str]) -> str:
    """Give the engine's path of a kernel's field, from its dot on, as the caller wrote it."""
    path = ""
    if named := _ACCESS.match(field):
        path = f".{accesses[int(named[1])]}"
        field = field[named.end() :]
    return path + _TAG.sub("", field)


def _accesses(kernel: Kernel) -> tuple[str, ...]:
    """Where the accesses that the kernel's warps name stand in it."""
    if kernel.work.kind != "warp_programs":
        return ()
    return tuple(f"work.{path}" for path in kernel.work.accesses().values())


def _json(value: object) -> str:
    return to_json(value).decode()


def _value(kernel: Kernel, error: InvalidInput) -> object:
    """Find what stands at the error's field; what the engine read if there is no such field."""
    name, _, index = (error.field or "").partition("[")
    value = getattr(kernel, name, error.value)
    return value[int(index.rstrip("]"))] if index and isinstance(value, tuple) else value


def _kernel(
    kernel: Kernel, arrays: list[Array], found: Duration | None, *, shape_only: bool = False
) -> dict[str, Any]:
    fields = dict(kernel.__dict__)
    work = fields.pop("work") if found is None else found
    fields["work"] = _EMPTY if shape_only else _work(work, arrays)
    return fields


def _work(work: Any, arrays: list[Array]) -> dict[str, Any]:
    if isinstance(work, Duration):
        return {"duration": _duration(work, arrays)}
    if work.kind == "persistent":
        duration = _duration(work.duration, arrays)
        return {
            "persistent": {
                "tasks": work.tasks,
                "duration": duration,
                "schedule": work.schedule,
                "overhead": {"cycles": work.overhead_cycles},
                "startup": {"cycles": work.startup_cycles},
            }
        }
    if work.kind == "chain":
        needs: dict[str, Any] = {"previous": {"distance": work.needs}}
        if not isinstance(work.needs, int):
            first = len(arrays)
            arrays.extend(numbers.array for numbers in work.needs)
            needs = {"lists": {"arrays": list(range(first, len(arrays)))}}
        before, after = _duration(work.before, arrays), _duration(work.after, arrays)
        return {"chain": {"before": before, "after": after, "needs": needs}}
    if work.kind in _ENCODERS:
        return {_ENGINE_KINDS.get(work.kind, work.kind): _ENCODERS[work.kind](work, arrays)}
    return _EMPTY


def _grid_sync(work: Any, arrays: list[Array]) -> dict[str, Any]:
    return {"rounds": work.rounds, "duration": _duration(work.duration, arrays)}


def _access(work: Any, arrays: list[Array]) -> dict[str, Any]:
    pattern = dict(work.pattern.__dict__)
    kind = pattern.pop("kind")
    if kind == "panels":
        arrays.append(work.pattern.tiles())
        pattern["order"] = len(arrays) - 1
    elif kind == "listed":
        arrays.append(work.pattern.offsets.array)
        pattern["offsets"] = len(arrays) - 1
    fields = {name: getattr(work, name) for name in ("write", "buffer", "buffer_bytes")}
    kind = _ENGINE_KINDS.get(kind, kind)
    return {"pattern": {kind: pattern}, **fields, "times": _times(work, work.finish_cycles)}


def _times(work: Any, finish_cycles: float) -> dict[str, Any]:
    cycles = {
        "startup": work.startup_cycles,
        "cold": work.cold_cycles,
        "overhead": work.overhead_cycles,
        "finish": finish_cycles,
    }
    return {name: {"cycles": time} for name, time in cycles.items() if time is not None}


def _warps(work: Any, arrays: list[Array]) -> dict[str, Any]:
    order = None
    if work.order is not None:
        arrays.append(work.order.array)
        order = len(arrays) - 1
    numbers = {access: i for i, access in enumerate(work.accesses())}
    programs = [
        [_segment(inner, numbers, arrays) for inner in program] for program in work.programs
    ]
    times = {name: {"cycles": getattr(work, f"{name}_cycles")} for name in ("startup", "finish")}
    accesses = [_access(access, arrays) for access in numbers]
    return {"programs": programs, "accesses": accesses, "order": order, **times}


def _segment(segment: Any, numbers: Mapping[Access, int], arrays: list[Array]) -> Any:
    fields = dict(segment.__dict__)
    kind = fields.pop("kind")
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "loop":
        fields["body"] = [_segment(inner, numbers, arrays) for inner in segment.body]
    elif kind == "poll":
        fields["body"] = [_segment(inner, numbers, arrays) for inner in segment.body]
        fields["cycles"] = {"constant": segment.cycles}
        if isinstance(segment.cycles, PollNumbers):
            arrays.append(segment.cycles.array)
            fields["cycles"] = {"per_cta": len(arrays) - 1}
    elif kind == "shared":
        fields["kind"] = fields.pop("access")
    elif kind == "load":
        access = fields.pop("access")
        sources = {name: fields.pop(name) for name in ("footprint_bytes", "latency_cycles")}
        fields["from"] = {name: value for name, value in sources.items() if value is not None}
        if access is not None:
            fields["from"] = {"access": numbers[access]}
    elif kind == "store" and segment.access is not None:
        fields["access"] = numbers[segment.access]
    return {kind: fields}


def _tiles(work: Any, arrays: list[Array]) -> dict[str, Any]:
    sizes = ("m", "n", "k", "tile", "element_bytes", "output_bytes", "stages", "buffer")
    fields = {name: getattr(work, name) for name in sizes}
    order = None
    if work.order != "row":
        arrays.append(raster(work.order, *work.grid))
        order = len(arrays) - 1
    return {**fields, "times": _times(work, work.epilogue_cycles), "order": order}


def _streaming(work: Any, arrays: list[Array]) -> dict[str, Any]:
    fields = {name: getattr(work, name) for name in ("elements", "operations", "share")}
    return {
        **fields,
        "times": _times(work, work.finish_cycles),
        "inputs": [dict(array.__dict__) for array in work.inputs],
        "outputs": [dict(array.__dict__) for array in work.outputs],
        "result": None if work.result is None else dict(work.result.__dict__),
        "thread_elements": work.thread_elements,
    }


def _duration(duration: Duration, arrays: list[Array]) -> dict[str, Any]:
    kind = duration.__dict__["kind"]
    if isinstance(duration, PerCta):
        arrays.append(duration.values.array)
        unit = {"ns": 1.0} if duration.ns is not None else {"cycles": 1.0}
        return {kind: {"array": len(arrays) - 1, "unit": unit}}
    if duration.lengths == ("",):
        return {kind: duration.span("")}
    fields: dict[str, Any] = {length: duration.span(length) for length in duration.lengths}
    if isinstance(duration, LogNormal):
        fields["cv"] = duration.cv
    if isinstance(duration, Bimodal):
        fields["high_share"] = duration.high_share
    return {_ENGINE_KINDS.get(kind, kind): fields}


_ENCODERS = {
    "access": _access,
    "tiles": _tiles,
    "streaming": _streaming,
    "warp_programs": _warps,
    "grid_sync": _grid_sync,
}
