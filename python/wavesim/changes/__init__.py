"""Changes that a diagnosis tries: each simulates another program, or the same on another device.

A change that does not apply is None: one kernel has no launch gap to close.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from wavesim.changes.change import Change
from wavesim.changes.of_device import (
    cheaper_sync,
    faster_arithmetic,
    faster_dram,
    faster_l2,
    faster_tensor_cores,
    ideal_dispatcher,
    more_lanes,
    nearer_memory,
)
from wavesim.changes.of_program import (
    dependent_launches,
    even_rounds,
    no_clusters,
    no_order,
    one_counter,
    one_graph,
    one_more_resident,
    persistent,
    whole_carve_out,
    whole_waves,
)

if TYPE_CHECKING:
    from wavesim.run import Run

__all__ = ["CHANGES", "Change"]

CHANGES: Mapping[str, tuple[Callable[[Run], Change | None], ...]] = {
    "launch": (one_graph, dependent_launches),
    "fill": (ideal_dispatcher,),
    "starved": (ideal_dispatcher, persistent),
    "blocked": (one_more_resident, whole_carve_out, no_clusters),
    "tail": (whole_waves, one_counter),
    "dependency": (whole_waves, one_counter, no_order),
    "busy": (
        faster_dram,
        faster_l2,
        nearer_memory,
        faster_tensor_cores,
        more_lanes,
        faster_arithmetic,
        cheaper_sync,
        even_rounds,
    ),
}
"""For each account the changes that could give it back."""
