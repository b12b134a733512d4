"""Devices: the catalogue, changes of it, devices from traces, and residency.

``device("h200")`` is a :class:`Device`; ``devices()`` is the catalogue as a frame, with the source
and the status of every number; ``occupancy(device, ...)`` is how many CTAs of a kernel an SM holds.
"""

from wavesim.devices.catalogue import device, devices
from wavesim.devices.device import Device
from wavesim.devices.occupancy import Occupancy, Refusal, occupancies, occupancy
from wavesim.devices.parts import (
    L2,
    Clock,
    Dispatch,
    Dram,
    Gpc,
    Group,
    LaunchTimings,
    Limits,
    Provenance,
    SyncTimings,
    Topology,
)

__all__ = [
    "L2",
    "Clock",
    "Device",
    "Dispatch",
    "Dram",
    "Gpc",
    "Group",
    "LaunchTimings",
    "Limits",
    "Occupancy",
    "Provenance",
    "Refusal",
    "SyncTimings",
    "Topology",
    "device",
    "devices",
    "occupancies",
    "occupancy",
]
