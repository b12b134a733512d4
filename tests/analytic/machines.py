"""Machines on which arithmetic is exact: only what a test names takes time."""

import wavesim
from wavesim import Device, Duration, Kernel


def without_overhead(device: Device | str, **changes: float) -> Device:
    """A device with a free dispatcher and free launches; ``part__field`` sets a number again."""
    device = wavesim.device(device) if isinstance(device, str) else device
    times = {
        path: 0.0
        for path in device.numbers()
        if path.split(".")[0] in ("dispatch", "launch") and path.endswith(("_cycles", "_ns"))
    }
    return device.edited(times | {name.replace("__", "."): n for name, n in changes.items()})


def of_sms(sms: int, name: str = "a100", **changes: float) -> Device:
    """The same with so many SMs, numbered as that device's are."""
    return without_overhead(wavesim.device(name).scaled(sms=sms), **changes)


def one_an_sm(device: Device, grid: int, work: object, **fields: object) -> Kernel:
    """A kernel whose CTAs take so much shared memory that an SM holds one."""
    kernel = Kernel(grid, work=work, shared_memory=device.limits.shared_optin_bytes, **fields)
    assert wavesim.occupancy(device, block=256, shared_memory=kernel.shared_memory).ctas_per_sm == 1
    return kernel


def makespan_ns(device: Device, grid: int, ns: float) -> float:
    """How long CTAs of this length take, one an SM, without overhead."""
    kernel = one_an_sm(device, grid, Duration.constant(ns=ns))
    return wavesim.simulate(device, kernel, dispatcher="ideal", detail="kernels").makespan_ns


def used(device: Device, grid: int, work: object) -> float:
    """The share of the slots that such CTAs use."""
    run = wavesim.simulate(device, one_an_sm(device, grid, work), dispatcher="ideal")
    return run.kernels["utilization"][0]
