"""Streaming kernels: elementwise operations, reductions, copies and fills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from wavesim.durations import Time
from wavesim.errors import InvalidInput
from wavesim.scalars import NUMBER
from wavesim.spec import Editable, Spec

__all__ = ["Array", "Streaming"]


class Array(Editable, Spec):
    """An array that a kernel streams through: elements of ``bytes``, one behind the other.

    It lies in ``buffer`` (a number; kernels that use the same one find what others left of it in
    L2), from ``offset_bytes`` on. ``bytes`` is at most 4,096 for inputs and outputs, and 65,536 for
    a result.
    """

    positional: ClassVar[tuple[str, ...]] = ("bytes", "buffer", "offset_bytes")
    bytes: Annotated[int, Field(ge=1, le=2**16), NUMBER]
    buffer: Annotated[int, Field(ge=0, lt=2**16), NUMBER] = 0
    offset_bytes: Annotated[int, Field(ge=0, le=2**40), NUMBER] = 0

    if TYPE_CHECKING:

        def __init__(self, bytes: int, buffer: int = 0, offset_bytes: int = 0) -> None: ...


def _arrays(given: Any) -> Any:
    """Read one array, or several."""
    return given if isinstance(given, Sequence) and not isinstance(given, str) else (given,)


Arrays = Annotated[tuple[Array, ...], BeforeValidator(_arrays)]


class Streaming(Editable, Spec):
    """A kernel that streams through arrays: elementwise, a reduction, a copy, a fill.

    A CTA is a loop. In each iteration its threads load some elements of all ``inputs``, work on
    them when they have come, and store those of all ``outputs``; the next iteration begins when
    these have been taken in. Loads and stores go through L2 as those of :class:`Access` do. The
    arithmetic goes to the FP32 lanes of the SM (``limits.fp32_lanes`` of the device, of which a
    CTA of fewer warps than sub-partitions reaches as many fewer), which its CTAs share. So a CTA's
    time follows from what everybody else does to its SM, to L2 and to DRAM at that moment.

    A copy has an input and an output, a fill no input, a reduction no output but a ``result``::

        Streaming(2**24, inputs=[Array(4, 0), Array(4, 1)], outputs=Array(4, 2), operations=1)
        Streaming(2**24, inputs=Array(4), operations=1, result=Array(4, 1))

    Args:
        elements: of each array, over the whole grid; no array is larger than 1 TiB.
        inputs: the arrays that are loaded; :class:`Array`, or several of them.
        outputs: the arrays that are stored. One that is an input too is worked on in place.
        operations: instructions an element on the FP32 lanes, a multiply-add being one. Of a pipe
            with half of the lanes each counts two.
        result: what each CTA stores behind its last iteration: ``bytes`` a CTA.
        share: ``"contiguous"``: each CTA has neighbouring elements, whole iterations of them, and
            the last CTAs less, or none. ``"grid_stride"``: in each iteration the CTAs lie one
            behind the other.
        thread_elements: elements a thread takes in one iteration, all of whose loads are in flight
            together; by default as many as 16 bytes hold of the widest array, at most as many as
            4,096 bytes do.
        startup_cycles: before a CTA's first iteration.
        cold_cycles: before an SM's first iteration in the launch; by default as the device says.
        overhead_cycles: what an iteration takes beside its loads, arithmetic and stores.
        finish_cycles: behind the last one.

    ``run.l2`` has what each launch moved.
    """

    positional: ClassVar[tuple[str, ...]] = ("elements", "inputs", "outputs")
    kind: Literal["streaming"] = "streaming"
    elements: Annotated[int, Field(ge=1, le=2**40), NUMBER]
    inputs: Arrays = ()
    outputs: Arrays = ()
    operations: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False), NUMBER] = 0.0
    result: Array | None = None
    share: Literal["contiguous", "grid_stride"] = "contiguous"
    thread_elements: Annotated[int, Field(ge=1, le=2**12), NUMBER] | None = None
    startup_cycles: Time = 0.0
    cold_cycles: Time | None = None
    overhead_cycles: Time = 0.0
    finish_cycles: Time = 0.0

    if TYPE_CHECKING:

        def __init__(
            self,
            elements: int,
            inputs: Array | Sequence[Array] = (),
            outputs: Array | Sequence[Array] = (),
            **fields: Any,
        ) -> None: ...

    def model_post_init(self, context: object) -> None:
        """See that it moves something."""
        if not self.inputs and not self.outputs:
            why = "a streaming kernel has an input or an output (got neither)"
            raise InvalidInput(f"inputs: {why}", "inputs", ())

    @property
    def bytes_in(self) -> int:
        """The bytes that the whole grid loads."""
        return self.elements * sum(array.bytes for array in self.inputs)

    @property
    def bytes_out(self) -> int:
        """The bytes that the whole grid stores, without its CTAs' results."""
        return self.elements * sum(array.bytes for array in self.outputs)
