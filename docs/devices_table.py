"""Writes the tables of docs/devices.md from the catalogue: ``python docs/devices_table.py``."""

from __future__ import annotations

import re
from pathlib import Path

import wavesim


def table() -> str:
    """List the devices, an assumed number in italics."""
    lines = [
        "| device | CC | SMs | GPCs | clock MHz | L2 MiB | DRAM GB/s | dispatch ns a CTA |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in wavesim.devices().iter_rows(named=True):
        cells = [
            f"`{row['device']}`",
            row["compute_capability"],
            str(row["sms"]),
            _marked(row, "topology.gpcs", _sizes(row["gpcs"])),
            _marked(row, "clock.sm_mhz", f"{row['sm_mhz']:g}"),
            _marked(row, "l2.bytes", f"{row['l2_bytes'] / 2**20:g}"),
            _marked(row, "dram.bandwidth_gb_s", f"{row['dram_gb_s']:g}"),
            _marked(row, "dispatch.refill_cycles", f"{row['refill_ns']:.2f}"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _marked(row: dict[str, list[str]], path: str, text: str) -> str:
    return f"*{text}*" if path in row["assumed"] else text


def _sizes(gpcs: list[int]) -> str:
    counts = {size: gpcs.count(size) for size in sorted(set(gpcs))}
    return ", ".join(f"{count} x {size}" for size, count in counts.items())


def filled(text: str) -> str:
    """Give the text with the table between its markers."""
    marked = re.compile(r"(<!-- table -->\n).*?(<!-- end -->)", re.DOTALL)
    return marked.sub(lambda match: f"{match[1]}{table()}\n{match[2]}", text)


if __name__ == "__main__":
    page = Path(__file__).with_name("devices.md")
    page.write_text(filled(page.read_text()))
