"""The known devices."""

from __future__ import annotations

from functools import cache
from typing import Any

import polars as pl

from wavesim import _wavesim
from wavesim.devices.device import Device
from wavesim.errors import InvalidInput

__all__ = ["device", "devices"]


def device(name: str) -> Device:
    """Give a device of the catalogue.

    Args:
        name: the short name (``h200``, ``a100-sxm4-80``), or the product's name as drivers write
            it (``NVIDIA H100 80GB HBM3``), in any case and punctuation. ``h100`` is the SXM one,
            ``a100`` the SXM4 one with 80 GB.

    Raises:
        InvalidInput: for a name that is not known; it suggests the nearest ones.

    """
    if not isinstance(name, str):
        raise InvalidInput(f"device: must be a name (got {name!r})", "device", name)
    found = _wavesim.catalogue_find(name)
    return _of_the_catalogue(name if found is None else found)


@cache
def _of_the_catalogue(name: str) -> Device:
    return Device.model_validate_json(_wavesim.catalogue_device(name))


def devices(*, numbers: bool = False) -> pl.DataFrame:
    """Show the catalogue as a frame: a row a device, or a row a number.

    Args:
        numbers: whether to list every number with its source.

    Returns:
        One row a device: ``device``, ``title``, ``vendor``, ``compute_capability``, ``sms`` u32,
        ``gpcs`` (SMs of each, in the order of dispatch; list of u32), ``sm_mhz`` f64, ``l2_bytes``
        u64, ``dram_gb_s`` f64 (the interface), ``refill_ns`` f64 (serial dispatch, a CTA),
        ``assumed`` (paths of the numbers that are neither measured nor published; list of str) and
        ``sources`` (each with its status; list of str).

        With ``numbers``: ``device``, ``field`` (its path), ``value`` (as text), ``status``
        (measured, published or assumed), ``source``.

    """
    catalogue = [device(name) for name in _wavesim.catalogue_names()]
    if numbers:
        rows = [row for entry in catalogue for row in _number_rows(entry)]
        schema = {name: pl.String for name in ("device", "field", "value", "status", "source")}
        return pl.DataFrame(rows, schema=schema, orient="row")
    return pl.DataFrame([_device_row(entry) for entry in catalogue], schema=_DEVICE_SCHEMA)


_DEVICE_SCHEMA: dict[str, Any] = {
    "device": pl.String,
    "title": pl.String,
    "vendor": pl.String,
    "compute_capability": pl.String,
    "sms": pl.UInt32,
    "gpcs": pl.List(pl.UInt32),
    "sm_mhz": pl.Float64,
    "l2_bytes": pl.UInt64,
    "dram_gb_s": pl.Float64,
    "refill_ns": pl.Float64,
    "assumed": pl.List(pl.String),
    "sources": pl.List(pl.String),
}


def _number_rows(entry: Device) -> list[tuple[str, str, str, str, str]]:
    rows = []
    for path, value in sorted(entry.numbers().items()):
        known = entry.provenance_of(path)
        status, source = ("", "") if known is None else (known.status, known.source)
        rows.append((entry.name, path, _text(value), status, source))
    return rows


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(str(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _device_row(entry: Device) -> dict[str, Any]:
    rows = _number_rows(entry)
    return {
        "device": entry.name,
        "title": entry.title,
        "vendor": entry.vendor,
        "compute_capability": entry.compute_capability,
        "sms": entry.sms,
        "gpcs": [len(gpc.sms) for gpc in entry.topology.gpcs],
        "sm_mhz": entry.clock.sm_mhz,
        "l2_bytes": entry.l2.bytes,
        "dram_gb_s": entry.dram.bandwidth_gb_s,
        "refill_ns": entry.dispatch.refill_cycles * 1e3 / entry.clock.sm_mhz,
        "assumed": [path for _, path, _, status, _ in rows if status == "assumed"],
        "sources": sorted({f"{status}: {source}" for *_, status, source in rows}),
    }
