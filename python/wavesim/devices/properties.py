"""Devices from what traces say of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from wavesim import _wavesim
from wavesim.devices.catalogue import device as catalogue_device
from wavesim.devices.device import Device
from wavesim.devices.parts import Provenance
from wavesim.errors import InvalidInput

__all__ = ["device_of"]

# The names under which traces give each figure, in lower case: PyTorch's profiler (CUDA, ROCm, and
# the form of 2021), then Nsight Systems.
_KEYS: dict[str, tuple[str, ...]] = {
    "major": ("computemajor", "major"),
    "minor": ("computeminor", "minor"),
    "sms": ("numsms", "multiprocessorcount", "smcount"),
    "warp_size": ("warpsize", "threadsperwarp"),
    "threads_per_cta": ("maxthreadsperblock",),
    "threads": ("maxthreadspermultiprocessor",),
    "warps": ("maxwarpspersm",),
    "ctas": ("maxblockspersm",),
    "registers": ("regspermultiprocessor", "maxregisterspersm"),
    "registers_per_cta": ("regsperblock", "maxregistersperblock"),
    "shared_bytes": (
        "sharedmempermultiprocessor",
        "maxsharedmemorypermultiprocessor",
        "maxshmempersm",
    ),
    "shared_default_bytes": ("sharedmemperblock", "maxshmemperblock"),
    "shared_optin_bytes": ("sharedmemperblockoptin", "maxshmemperblockoptin"),
    "clock_hz": ("clockrate",),
    "l2_bytes": ("l2cachesize",),
    "dram_bytes_s": ("memorybandwidth",),
}
_LIMITS = (
    "warp_size",
    "threads_per_cta",
    "threads",
    "warps",
    "ctas",
    "registers",
    "registers_per_cta",
    "shared_bytes",
    "shared_default_bytes",
    "shared_optin_bytes",
)
# What HIP calls the compute capability of a CDNA device.
_CDNA = {(9, 0): "gfx90a", (9, 4): "gfx942", (9, 5): "gfx950"}


def device_of(properties: Mapping[str, Any]) -> Device:
    """Make the device that a trace's properties describe: see :meth:`Device.from_properties`."""
    if not isinstance(properties, Mapping):
        kind = type(properties).__name__
        raise InvalidInput(f"properties: must be a mapping (got {kind})", "properties", kind)
    lower = {str(key).lower(): (str(key), value) for key, value in properties.items()}
    figures = {name: figure for name in _KEYS if (figure := _figure(lower, name)) is not None}
    title = _title(lower)
    capability = _capability(figures)
    base = _base(title, capability, figures)
    if (sms := figures.get("sms")) is not None and int(sms) != base.sms:
        base = base.scaled(sms=int(sms))
    changes = _changes(base, figures)
    if not changes:
        return base
    changes["name"] = base.name
    told = Provenance(source="what the trace says of its device", status="published")
    device = base.with_numbers(changes, told)
    if "dram.bandwidth_gb_s" in changes:
        share = base.dram.reached_gb_s / base.dram.bandwidth_gb_s
        reached = {"dram.reached_gb_s": share * device.dram.bandwidth_gb_s, "name": base.name}
        assumed = Provenance(source=f"the share that {base.title} reaches", status="assumed")
        device = device.with_numbers(reached, assumed)
    return device


def _figure(lower: Mapping[str, tuple[str, Any]], name: str) -> float | None:
    """Give the first figure of this name that is there; 0 is none, except as minor version."""
    for key in _KEYS[name]:
        written, value = lower.get(key, (key, None))
        if value is None or value == "":
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if isinstance(value, bool) or not math.isfinite(number) or number < 0:
            field = f"properties.{written}"
            raise InvalidInput(f"{field}: must be a number (got {value!r})", field, value)
        if number > 0 or name == "minor":
            return number
    return None


def _title(lower: Mapping[str, tuple[str, Any]]) -> str:
    _, name = lower.get("name", ("name", None))
    if name is None:
        return ""
    if not isinstance(name, str):
        raise InvalidInput(
            f"properties.name: must be a text (got {name!r})", "properties.name", name
        )
    return name.strip()


def _capability(figures: Mapping[str, float]) -> str | None:
    if "major" not in figures:
        return None
    major, minor = int(figures["major"]), int(figures.get("minor", 0))
    # Only AMD's devices have warps (waves) of 64.
    if figures.get("warp_size") == 64:
        return _CDNA.get((major, minor), "gfx942" if (major, minor) > (9, 0) else "gfx90a")
    return f"{major}.{minor}"


def _base(title: str, capability: str | None, figures: Mapping[str, float]) -> Device:
    """Choose the device that gives what the trace does not say."""
    if title and _wavesim.catalogue_find(title) is not None:
        known = catalogue_device(title)
        if capability in (None, known.compute_capability):
            return known
    if capability is None:
        raise InvalidInput(
            "properties.computeMajor: is missing, and the catalogue has no device named "
            f"{title!r}: give the compute capability and the number of SMs, or choose a device",
            "properties.computeMajor",
        )
    if "sms" not in figures:
        raise InvalidInput(
            "properties.numSms: is missing, and the catalogue has no device named "
            f"{title!r} of compute capability {capability}",
            "properties.numSms",
        )
    sms = int(figures["sms"])
    return Device.model_validate_json(_wavesim.generic_device(capability, title, sms))


def _changes(base: Device, figures: Mapping[str, float]) -> dict[str, Any]:
    """Say where the trace's figures differ from the device's."""
    found: dict[str, Any] = {}
    for name in _LIMITS:
        if name in figures:
            found[f"limits.{name}"] = int(figures[name])
    if base.vendor == "amd":
        # HIP counts registers another way than a launch does, and has no opt-in.
        found.pop("limits.registers", None)
        found.pop("limits.registers_per_cta", None)
        if "limits.shared_default_bytes" in found:
            found.setdefault("limits.shared_optin_bytes", found["limits.shared_default_bytes"])
    if "limits.threads" in found and "limits.warps" not in found:
        warp_size = found.get("limits.warp_size", base.limits.warp_size)
        found["limits.warps"] = found["limits.threads"] // warp_size
    if "clock_hz" in figures:
        found["clock.sm_mhz"] = figures["clock_hz"] / 1e6
    if "l2_bytes" in figures:
        found["l2.bytes"] = int(figures["l2_bytes"])
    if "dram_bytes_s" in figures:
        found["dram.bandwidth_gb_s"] = figures["dram_bytes_s"] / 1e9
    numbers = base.numbers()
    return {path: value for path, value in found.items() if numbers.get(path) != value}
