"""Chains of elementwise operations, one kernel an operation or fused into one.

What the tables say of these kernels are their launch shapes. In eager mode a block of 128 threads
takes 1,024 elements, as the vectorised kernel does, which is only taken if all tensors are
contiguous and of one shape; so ``bias`` is a whole tensor. Two facts are not in the tables and were
read off the times of the largest rows: an element has 4 bytes, not 2, and what ``add`` adds is one
of the tensors that are there already.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavesim.devices import Device
from wavesim.streaming import Array, Streaming
from wavesim.validate import bodies
from wavesim.validate.families.common import Family, simulated
from wavesim.validate.tables import Inputs, NotSimulated
from wavesim.workload import Kernel, Program

__all__ = ["FAMILIES"]

ELEMENT_BYTES = 4
X, BIAS = 0, 1
TEMPORARY = (2, 3)
"""The buffers of results, in turns: that of the one before the last is free again."""


@dataclass(frozen=True)
class _Operation:
    beside: tuple[int, ...]
    """The buffers of what it takes beside the result of the operation before it."""
    instructions: float
    """For an element."""


_ADD = bodies.ELEMENT + 1.0
_GELU = bodies.ELEMENT + bodies.GELU

CHAINS: dict[str, tuple[_Operation, ...]] = {
    "bias_gelu": (_Operation((BIAS,), _ADD), _Operation((), _GELU)),
    "bias_gelu_scale_add": (
        _Operation((BIAS,), _ADD),
        _Operation((), _GELU),
        _Operation((), _ADD),
        _Operation((X,), _ADD),
    ),
}
"""``scale`` is a number."""


def _elementwise(inputs: Inputs, device: Device) -> dict[str, float]:
    chain = CHAINS.get(inputs.text("chain"))
    if chain is None:
        name = inputs.text("chain")
        raise NotSimulated(f"which operations the chain {name!r} is made of is not in the tables")
    elements = inputs.count("n")
    if inputs.text("mode") == "compiled":
        # What is read twice is kept in registers.
        beside = tuple({buffer: 0 for op in chain for buffer in op.beside if buffer != X})
        saved = bodies.ELEMENT * (len(chain) - 1)
        instructions = sum(operation.instructions for operation in chain) - saved
        chain = (_Operation(beside, instructions),)
    shapes = zip(_shapes(inputs, "grids"), _shapes(inputs, "blocks"), strict=True)
    kernels, last = [], X
    for i, (operation, (grid, block)) in enumerate(zip(chain, shapes, strict=True)):
        out = TEMPORARY[i % 2]
        work = Streaming(
            elements,
            [Array(ELEMENT_BYTES, buffer) for buffer in (last, *operation.beside)],
            Array(ELEMENT_BYTES, out),
            operations=operation.instructions,
            thread_elements=max(elements // (grid * block), 1),
            startup_cycles=bodies.LOOP_STARTUP,
        )
        kernels.append(Kernel(grid, block, work=work))
        last = out
    # Measured again and again: what the time before has left in L2 is there.
    run = simulated(device, Program(kernels * 2)).kernels.tail(len(kernels))
    took_ns = run["complete_ns"] - run["ready_ns"] + bodies.PROFILED_NS
    return {"device_us": float(took_ns.sum()) / 1e3}


def _shapes(inputs: Inputs, name: str) -> list[int]:
    """Read ``"64x1x1 64x1x1"``: one shape a kernel, along x."""
    shapes = [word.split("x") for word in inputs.text(name).split()]
    if any(len(shape) != 3 or shape[1:] != ["1", "1"] for shape in shapes):
        raise NotSimulated(f"{name} must be shapes along x (got {inputs.text(name)!r})")
    if not all(shape[0].isdecimal() and int(shape[0]) > 0 for shape in shapes):
        raise NotSimulated(f"{name} must be whole numbers (got {inputs.text(name)!r})")
    return [int(shape[0]) for shape in shapes]


FAMILIES = (Family("elementwise", ("device_us",), _elementwise),)
