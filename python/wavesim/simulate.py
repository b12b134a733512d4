"""The one function that everything else is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from wavesim import _wavesim
from wavesim.devices import Device
from wavesim.devices import device as catalogue_device
from wavesim.errors import InvalidInput
from wavesim.frames import Recorded
from wavesim.measured import solve
from wavesim.run import Detail, Dispatcher, Issue, Run
from wavesim.scalars import listed, whole
from wavesim.text import any_of
from wavesim.wire import translated, wire_of
from wavesim.workload import Kernel, Launch, Measured, Program

__all__ = ["simulate"]


def simulate(
    device: Device | str,
    program: Program | Kernel,
    *,
    seed: int = 0,
    detail: Literal["ctas", "kernels", "memory"] = "ctas",
    dispatcher: Literal["hardware", "ideal"] = "hardware",
    first_sms: Sequence[int] = (),
    issue: Literal["rates", "exact"] = "rates",
) -> Run:
    """Simulate a program, or one launch of a kernel, on a device.

    Args:
        device: the device, or its name in the catalogue.
        program: what the host issues.
        seed: of every random stream, 0 to 2^64 - 1. Equal input and seed give an equal run.
        detail: what is recorded: ``"ctas"``, a row for each CTA; ``"kernels"``, which is faster
            and needs no memory for CTAs; or ``"memory"``, what L2 moved by slice and by window of
            time beside the CTAs.
        dispatcher: ``"hardware"``, as the device has it; or ``"ideal"``, which gives every free
            slot away at once and for nothing.
        first_sms: where the hardware's dispatcher begins: an SM of the GPC that it visits first,
            and one of the left-over TPC that is first among those, in either order. On the device
            that is where earlier launches left off; a log shows it. What is not given follows from
            the seed.
        issue: how the warps of :class:`wavesim.Warps` share an SM: ``"rates"``, which hold as long
            as the same CTAs are on it (small runs in which hardly any warps meet twice are
            stepped); or ``"exact"``, cycle by cycle, a hundred times as slow.

    Raises:
        InvalidInput: a value that can't be, with the path of its field.
        CannotLaunch: the device refuses a kernel; which limit, and by how much.
        Deadlock: nothing can go on, such as a grid barrier of a launch that is not cooperative and
            does not fit.
        KeyboardInterrupt: Ctrl-C, within a fraction of a second.
    """
    target = catalogue_device(device) if isinstance(device, str) else device
    if not isinstance(target, Device):
        raise InvalidInput(f"device: must be a device or a name (got {device!r})", "device", device)
    if isinstance(program, Kernel):
        asked = Program([Launch(program)])
    elif isinstance(program, Program):
        asked = program
    else:
        why = f"program: must be a program or a kernel (got {type(program).__name__})"
        raise InvalidInput(why, "program", program)
    _one_of("detail", detail, get_args(Detail))
    _one_of("dispatcher", dispatcher, get_args(Dispatcher))
    _one_of("issue", issue, get_args(Issue))
    start = whole(seed)
    if start is None or not 0 <= start < 2**64:
        raise InvalidInput(f"seed: must be from 0 to 2^64 - 1 (got {seed!r})", "seed", seed)
    first = _first_sms(first_sms, target)

    wire, notes = asked.wire, tuple[str, ...]()
    if any(isinstance(launch.kernel.work, Measured) for launch in asked.launches()):
        solved = solve(asked, target)
        wire, notes = wire_of(asked, solved.works), solved.notes
    try:
        records = _wavesim.simulate(
            target.machine, wire.program, wire.arrays, start, detail, dispatcher, first, issue
        )
    except InvalidInput as error:
        found = translated(error, wire)
        raise _of_kernel(found) if isinstance(program, Kernel) else found from None
    return Run(
        Recorded(records),
        device=target,
        program=asked,
        seed=start,
        detail=detail,
        dispatcher=dispatcher,
        first_sms=first,
        issue=issue,
        makespan_ps=records.makespan_ps,
        slots=records.slots,
        digest=records.digest,
        version=_wavesim.__version__,
        notes=notes,
    )


def _one_of(field: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidInput(f"{field}: must be {any_of(choices)} (got {value!r})", field, value)


def _first_sms(first_sms: Sequence[int], device: Device) -> tuple[int, ...]:
    """Check what the engine could not be given."""
    given = listed("first_sms", first_sms, "SMs")
    if len(given) > 2:
        why = f"first_sms: must be at most two SMs (got {len(given)})"
        raise InvalidInput(why, "first_sms", given)
    first = []
    for i, value in enumerate(given):
        sm = whole(value)
        if sm is None or not 0 <= sm < device.sms:
            why = f"first_sms[{i}]: SM numbers run from 0 to {device.sms - 1} (got {value!r})"
            raise InvalidInput(why, f"first_sms[{i}]", value)
        first.append(sm)
    return tuple(first)


def _of_kernel(error: InvalidInput) -> InvalidInput:
    """Speak of the kernel that was given, not of the program that was made of it."""
    made = "items[0].kernel"
    field = (error.field or "").replace(made, "kernel", 1)
    return type(error)(str(error).replace(made, "kernel", 1), field, error.value)
