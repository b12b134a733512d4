"""What a device is made of: frozen models of the same shape as the engine's own.

Lengths of time in SM cycles or nanoseconds, sizes in bytes, bandwidths in GB/s (1e9 bytes a
second), clocks in MHz: the unit stands in each name. What each number means is told once, by the
engine's documentation and by the descriptions here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wavesim.scalars import NUMBER, Finite, Truth
from wavesim.spec import Spec

__all__ = [
    "L2",
    "Clock",
    "Dispatch",
    "Dram",
    "Gpc",
    "Group",
    "IssueTimings",
    "LaunchTimings",
    "Limits",
    "Provenance",
    "SyncTimings",
    "Topology",
]


Count = Annotated[int, Field(ge=0, lt=2**32), NUMBER]
"""What the engine counts in 32 bits."""
Size = Annotated[int, Field(ge=0, lt=2**63), NUMBER]
"""What the engine counts in 64 bits."""
SmNumber = Annotated[int, Field(ge=0, lt=2**16), NUMBER]
"""An SM, as ``%smid`` numbers it."""


class Provenance(Spec):
    """Where a number is from."""

    source: str
    """What was read or done to get it."""
    status: Literal["measured", "published", "assumed"]
    """How well it is known."""


class Group(Spec):
    """SMs that are dispatched to in one burst; a cluster lies inside one group."""

    sms: tuple[SmNumber, ...]
    """SM numbers, in the order of dispatch."""
    max_cluster: Count | None = None
    """The largest cluster placed here, where that is less than the number of SMs."""


class Gpc(Spec):
    """A GPC (AMD: an XCD)."""

    groups: tuple[Group, ...]
    """What the dispatcher visits one after the other; most GPCs are one group."""
    half: Annotated[int, Field(ge=0, le=255), NUMBER] = 0
    """The part of L2 that is near to these SMs."""
    far: Truth = False
    """Whether the dispatcher's messages take longer to and from here."""

    @property
    def sms(self) -> tuple[int, ...]:
        """Its SMs, in the order of dispatch."""
        return tuple(sm for group in self.groups for sm in group.sms)


class Topology(Spec):
    """The GPCs in the (cyclic) order of dispatch."""

    gpcs: tuple[Gpc, ...]


class Limits(Spec):
    """What an SM (AMD: a CU) and a launch may hold."""

    warp_size: Count
    sub_partitions: Count
    threads: Count
    """Resident threads an SM."""
    warps: Count
    """Resident warps an SM."""
    ctas: Count
    """Resident CTAs an SM."""
    threads_per_cta: Count
    block: tuple[Count, Count, Count]
    """The largest CTA in x, y and z."""
    grid: tuple[Size, Size, Size]
    """The largest grid in x, y and z."""
    registers: Count
    """Registers an SM."""
    registers_per_cta: Count
    registers_per_thread: Count
    register_unit: Count
    """Registers are given to a warp in multiples of this."""
    accumulation_unit: Count | None = None
    """AMD: architectural registers are rounded up to this before accumulation registers follow."""
    shared_bytes: Count
    """Shared memory (AMD: LDS) an SM."""
    shared_default_bytes: Count
    """Shared memory a CTA without asking for more."""
    shared_optin_bytes: Count
    """Shared memory a CTA that has opted in."""
    shared_reserved_bytes: Count
    """Shared memory that the system takes of each CTA."""
    shared_unit_bytes: Count
    """Shared memory is given to a CTA in multiples of this."""
    carve_outs_bytes: tuple[Count, ...]
    """The sizes that shared memory can be set to, ascending."""
    barriers: Count | None = None
    """Hardware barriers an SM, where they limit residency."""
    barriers_per_cta: Count
    ctas_in_clusters: Count
    """Resident CTAs an SM when a kernel is launched in clusters, of any size."""
    max_cluster: Count
    """The largest portable cluster; 1 where there are no clusters."""
    max_nonportable_cluster: Count
    """The largest cluster when the kernel allows non-portable sizes."""
    tensor_flops_per_cycle: Count
    """What an SM's tensor cores do a cycle: 16-bit operands added up in 32 bits, no sparsity; a
    multiply-add is two."""
    fp32_lanes: Count
    """Multiply-adds of 32-bit floats that an SM does a cycle."""


class Clock(Spec):
    """The clock that cycles are counted in."""

    sm_mhz: Finite


class Dispatch(Spec):
    """How fast the global dispatcher places CTAs; cycles are SM cycles."""

    deal: Literal["gpc_bursts", "round_robin"]
    """The pattern over the GPCs: bursts, breadth first (NVIDIA), or CTA i to GPC i mod n
    (AMD)."""
    visit_cycles: Finite
    """First placement: one visit of the dispatcher to a GPC, which gives each SM with room one
    CTA."""
    refill_cycles: Finite
    """The serial server of the whole die: what it costs to learn that a CTA has ended, and to
    give its slot away."""
    single_cluster_cycles: Finite
    """What a cluster of a single CTA costs more than a visit, but for the first one on an SM."""
    cluster_latency_cycles: Finite
    """What a cluster of several CTAs takes longer to be sent into slots that came back."""
    send_cycles: Finite
    """From the dispatcher's decision to the first instruction of the CTA, on a near GPC."""
    return_cycles: Finite
    """From a CTA's last instruction to the dispatcher, from a near GPC."""
    far_send_cycles: Finite
    """What a far GPC adds to ``send_cycles``."""
    far_return_cycles: Finite
    """What a far GPC adds to ``return_cycles``."""
    cold_cycles: Finite
    """What the first CTA of a launch on an SM takes longer to start: its instructions are
    fetched."""
    cold_return_cycles: Finite
    """What the first CTA of a launch that ends on an SM takes longer to return its slot, for the
    same reason."""
    out_cycles: Finite
    """What the unit that the SMs of a TPC share takes to let a CTA out."""
    out_each_cycles: Finite
    """What each CTA of the same SM that is out and has no successor adds to that, this one
    counted."""
    out_gap_cycles: Finite
    """The least time between a CTA of several warps that is let out of an SM, and the next one of
    that SM."""
    unheard_ends: Finite
    """Of the whole die, ends of CTAs that the dispatcher has not heard of: no more are let out until
    it has. Whole, one at least."""
    in_cycles: Finite
    """What the unit takes to let a CTA in, without its warps' share."""
    in_warp_cycles: Finite
    """What each warp adds to that."""
    fetched_interval_cycles: Finite
    """The least time between the starts of CTAs that arrived while their instructions were
    fetched."""
    setup_cycles: Finite
    """What an SM takes to set up a CTA, without its warps' share; CTAs are set up one after the
    other."""
    setup_warp_cycles: Finite
    """What each warp adds to that."""
    crowded_warps: Finite
    """Above this number of warps that run on the SM, setting up is slower."""
    crowded_setup_cycles: Finite
    """``setup_cycles`` there."""
    crowded_setup_warp_cycles: Finite
    """``setup_warp_cycles`` there."""
    max_setup_cycles: Finite
    """Setting up a CTA takes no longer than this."""


class LaunchTimings(Spec):
    """How long it takes from one kernel to the next."""

    host_issue_ns: Finite
    """From one launch call of a host thread to the next."""
    submit_ns: Finite
    """From a launch call to the dispatcher of an idle device."""
    stream_gap_ns: Finite
    """Two kernels of one stream: from the first's completion to the second at the
    dispatcher."""
    graph_gap_ns: Finite
    """The same between two nodes of a graph."""
    dependent_gap_ns: Finite
    """Programmatic dependent launch: from the last signal or end of a CTA to the dependent
    kernel at the dispatcher."""
    release_ns: Finite
    """Dependent CTAs that wait: from the completion of the kernel ahead to the start of their
    work."""
    flush_ns: Finite
    """The same from when its last stores have been acknowledged."""
    dependent_check_ns: Finite
    """What a dependent CTA takes from its first instruction to the start of its work, when
    nothing holds it."""
    drain_ns: Finite
    """The longest time that a CTA's last stores take to be acknowledged; a kernel is complete
    only then."""
    switch_ns: Finite
    """From the last placement of one kernel to the first of the next that was ready already."""
    event_ns: Finite
    """What two CUDA events around a launch see beside the kernel itself."""
    resident_kernels: Count
    """Kernels that can be on the device at once."""
    greatest_priority: Annotated[int, Field(ge=-(2**31), lt=2**31), NUMBER]
    """The most urgent stream priority (the least urgent is 0; a lower number is more
    urgent)."""


class SyncTimings(Spec):
    """How long CTAs take to hear of each other through L2; cycles are SM cycles."""

    atomic_service_cycles: Finite
    """What one atomic costs the word it goes to."""
    load_service_cycles: Finite
    """What a load that bypasses L1 costs it."""
    change_cycles: Finite
    """What going over from atomics to loads costs it, and back."""
    queued_requests: Count
    """How many requests its queue holds; more than these wait outside, atomics and loads
    apart."""
    atomic_latency_cycles: Finite
    """A round trip to an idle word, on average over the die."""
    atomic_half_cycles: Finite
    """By how much a round trip is shorter in the word's own half of L2, and longer in the
    other."""
    barrier_arrive_cycles: Finite
    """Grid barrier: from the end of a CTA's work to its atomic: the CTA's barrier, and the
    fence."""
    barrier_poll_cycles: Finite
    """From a poll's answer to the next poll."""
    barrier_leave_cycles: Finite
    """From the answer that lets a CTA pass to the start of its next work."""


class IssueTimings(Spec):
    """How warps share an SM; cycles are SM cycles."""

    policy: Literal[
        "greedy_oldest_cta",
        "greedy_then_oldest",
        "oldest_first",
        "loose_round_robin",
        "two_level",
    ]
    """Which of the warps that could issue does: the same as long as it can, then the oldest CTA's
    in turn; the same, then the oldest; the oldest; one after the other; a few in turn, of which
    one that waits for memory makes room for another."""
    fma_latency_cycles: Count
    """From a multiply-add to one that needs its result."""
    alu_interval_cycles: Count
    """How long an instruction of a pipe with half of the lanes keeps it."""
    tensor_interval_cycles: Count
    """How long a tensor-core instruction (16 x 8 x 16, half precision) keeps the tensor core."""
    tensor_latency_cycles: Count
    """From one to the next on the same accumulator."""
    branch_cycles: Count
    """From a taken branch to the warp's next instruction."""
    branch_slots: Count
    """Issue slots that a taken branch costs its sub-partition beside its own."""
    untaken_branch_cycles: Count
    """From a branch that is not taken to the warp's next instruction."""
    memory_interval_cycles: Count
    """Between two memory instructions of one sub-partition."""
    shared_service_cycles: Finite
    """What a load or store to shared memory costs the SM's memory unit."""
    constant_service_cycles: Finite
    """What a load of constants costs it."""
    global_service_cycles: Finite
    """What a load or store to global memory costs it."""
    barrier_service_cycles: Finite
    """What the arrival of a warp at a barrier costs the unit that counts them."""
    shared_latency_cycles: Count
    """A load from shared memory, once served."""
    constant_latency_cycles: Count
    """A load of constants, once served."""
    barrier_latency_cycles: Count
    """From the last arrival at a barrier to the next instruction of a warp."""
    l2_spread_cycles: Finite
    """How far the latency of a load from L2 is from its mean, at most."""
    gpc_clock_spread: Finite
    """How far the clock of a GPC whose tensor cores are busy is from the mean, at most, as a
    fraction: each GPC has its own. Drawn from the run's seed."""


class L2(Spec):
    """The last cache before memory."""

    bytes: Size
    halves: Annotated[int, Field(ge=1, le=255), NUMBER]
    """The parts it is split into; a line is at home in one of them."""
    slices: Count
    """Those in use, of all parts together; a hash of a line's address says in which one it is."""
    line_bytes: Count
    sector_bytes: Count
    near_latency_cycles: Finite
    """A load that hits in the reader's own part."""
    far_latency_cycles: Finite
    """A load that hits in another part."""
    bandwidth_gb_s: Finite
    """Read bandwidth over the whole device."""
    fabric_bandwidth_gb_s: Finite
    """What the fabric between the parts carries, in all directions together."""
    ways: Count
    """Lines that a set holds."""
    banks: Count
    """Banks that the sets of a part are made of: contiguous data fill one after the other, in turns
    whose order a hash of the address says. With 1, they fill all sets alike. Of sets (by pages of
    4 KiB) that do not split into so many, those left over are not used."""
    replacement: Literal["lru", "not_recently_used", "random", "protected"]
    """Which of them makes room for a new one."""
    protected_ways: Size
    """Under ``"protected"``, how many lines of a set are protected at most."""
    write_policy: Literal["write_back", "write_through"]
    """When DRAM gets what is written: when its line is driven out, or at once."""
    dirty_ways: Count
    """How many lines of a set may be dirty: from there on the oldest is written back, and stays.
    All of them where a set has no more."""
    dirty_stays: Finite
    """Of dirty lines that would make room next, the share that stays for another round instead, as
    if it had been used."""
    reserved_bytes: Size
    """What of it is not there for a kernel's data: slices that are off, code, address tables."""
    port_bytes_per_cycle: Finite
    """What an SM takes in."""
    write_bandwidth_gb_s: Finite
    """Write bandwidth over the whole device."""
    coalesced_requests: Count
    """How many SMs of a GPC share one request for a line that is on its way."""
    coalesced_lines: Count
    """The lines, those asked for last, of which a GPC can tell that a request is on its way."""
    cold_cycles: Finite
    """By how much an SM's first access in a launch comes later."""
    softness: Finite
    """How gradually latency rises when demand comes near the bandwidth: 0 for a sharp bend."""


class Dram(Spec):
    """The device's memory."""

    bandwidth_gb_s: Finite
    """The interface's bandwidth."""
    reached_gb_s: Finite
    """The read bandwidth that kernels reach."""
    latency_cycles: Finite
    """A load that misses L2; the mean over near and far homes."""
    burst_cycles: Finite
    """By how much the last line of a CTA's run comes later than a line alone."""
    spread: Finite
    """Standard deviation of a read's latency over its mean."""
    softness: Finite
    """As of L2."""
    turnaround: Finite
    """What it costs to turn from reading to writing and back, over what it takes to write, where
    writes come one by one."""
