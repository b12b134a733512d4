"""Writes the table of docs/model.md: what each timing is worth. ``python docs/worth_table.py``.

Each timing of the device is set to what it would be if the model did not have it, all else as it
is, and the measurements are simulated again. It takes some minutes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import wavesim
from wavesim.validate import validate

REFERENCE = Path(__file__).parents[1] / "reference/h200"
FAMILIES = [
    "empty",
    "spin",
    "spin_dist",
    "spoiler",
    "cluster",
    "persistent_static",
    "persistent_atomic",
    "gridsync",
    "launch_stream",
    "launch_graph",
    "launch_graph_pdl",
    "streams",
    "two_kernels",
    "mixed_residency",
]
# What a timing is without it: nothing, but for these.
NEUTRAL = {
    "sync.queued_requests": 1_000_000,
    "dispatch.max_setup_cycles": 1e6,
    "dispatch.crowded_warps": 1e6,
    "dispatch.unheard_ends": 1e6,
}
LEFT_OUT = {
    "dispatch.crowded_setup_cycles": "goes with crowded_warps",
    "dispatch.crowded_setup_warp_cycles": "goes with crowded_warps",
    "launch.event_ns": "belongs to the measurement",
    "launch.submit_ns": "shifts whole runs",
}


def errors(device: wavesim.Device) -> dict[str, float]:
    """Give the mean error of each family, without those of a count."""
    found = validate(REFERENCE, families=FAMILIES, device=device).families
    rows = found.filter(found["measure"].is_in(["span_ns", "event_us"]) & (found["rows"] > 0))
    worst: dict[str, float] = {}
    for family, mape in rows.select("family", "mape").iter_rows():
        worst[family] = max(worst.get(family, 0.0), mape)
    return worst


def timings(device: wavesim.Device) -> dict[str, float]:
    """Give the timings of dispatch, launch and synchronisation by path."""
    parts = {part: getattr(device, part).model_dump() for part in ("dispatch", "launch", "sync")}
    return {
        f"{part}.{name}": value
        for part, fields in parts.items()
        for name, value in fields.items()
        if (isinstance(value, float) or f"{part}.{name}" in NEUTRAL)
        and f"{part}.{name}" not in LEFT_OUT
    }


def table() -> str:
    """Simulate everything without each timing in turn."""
    device = wavesim.device("h200")
    base = errors(device)
    lines = ["| timing | value | mean errors with it, and without |", "|---|---|---|"]
    for path, value in timings(device).items():
        without = errors(device.edited({path: NEUTRAL.get(path, 0.0)}))
        worse = sorted(base, key=lambda family: base[family] - without[family])
        said = [
            f"`{family}` {base[family]:.2%} → {without[family]:.2%}"
            for family in worse[:3]
            if without[family] - base[family] >= 0.0005
        ]
        lines.append(f"| `{path}` | {value:g} | {', '.join(said) or 'no change over 0.05 %'} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


if __name__ == "__main__":
    page = Path(__file__).with_name("model.md")
    marked = re.compile(r"(<!-- worth -->\n).*?(<!-- end -->)", re.DOTALL)
    filled = table()
    page.write_text(marked.sub(lambda match: f"{match[1]}{filled}\n{match[2]}", page.read_text()))
