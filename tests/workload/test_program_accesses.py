"""Loads and stores of warp programs that go through L2: how they are written, counted, refused."""

import numpy as np
import pytest

import wavesim
from wavesim import Access, Kernel, Program, Warps
from wavesim.errors import InvalidInput
from wavesim.warps import Arithmetic, Barrier, Load, Loop, Store

MODES = ("rates", "exact")
SECTOR = 32


def lasted(run):
    return run.kernels["duration_ns"][-1]


def loop(turns, *body):
    return Warps([Loop(turns, list(body))])


@pytest.mark.parametrize("issue", MODES)
@pytest.mark.parametrize(
    ("access", "bytes_each"),
    [
        (Access.stream(32_768), 32_768),
        (Access.random(2**23, pieces=256), 32_768),
        (Access.strided(128, 256, 512), 32_768),
        (Access.listed(np.arange(66 * 64) * 128.0 % 2**16, 128), 8_192),
        (Access.broadcast(32_768, skew_bytes=1_024), 32_768),
        (Access.reuse(4_096, 66, passes=8, shift=5), 32_768),
    ],
    ids=lambda value: value.pattern.kind if isinstance(value, Access) else None,
)
def test_a_program_moves_what_the_same_access_moves_by_itself_in_the_same_time(
    issue, access, bytes_each
):
    # What lines of L2 differ by is drawn for CTAs in accesses, and in programs for stepped warps
    # only: which of them meet at a line depends on it.
    even = wavesim.device("h200").edited({"issue.l2_spread_cycles": 0.0})
    turns = bytes_each // (64 * 16)
    alone = Kernel(66, 64, work=access.edited(overhead_cycles=15.0, cold_cycles=0.0))
    program = Kernel(66, 64, work=loop(turns, Load(access=access, bytes=512)))
    # Who meets goes by chance, so it is what several seeds come to that is the same.
    plain = [wavesim.simulate(even, alone, seed=seed) for seed in range(3)]
    runs = [wavesim.simulate("h200", program, issue=issue, seed=seed) for seed in range(3)]
    for run in plain + runs:
        counts = run.l2.select("requested_sectors", "written_sectors").row(0)
        assert counts == (66 * bytes_each // SECTOR, 0)
    for column in ("sm_sectors", "dram_read_bytes"):
        of_runs, of_plain = (np.mean([run.l2[column][0] for run in one]) for one in (runs, plain))
        assert of_runs == pytest.approx(of_plain, rel=0.03), column
    assert np.mean([*map(lasted, runs)]) == pytest.approx(np.mean([*map(lasted, plain)]), rel=0.05)


@pytest.mark.parametrize(("issue", "on_their_way"), [("rates", 0.1), ("exact", 0.37)])
def test_what_is_stored_is_counted_and_no_faster_than_l2_takes_it(issue, on_their_way):
    access = Access.stream(65_536, write=True)
    program = Kernel(264, 256, work=loop(16, Store(access=access, bytes=512)))
    run = wavesim.simulate("h200", program, issue=issue)
    plain = wavesim.simulate("h200", Kernel(264, 256, work=access))
    assert run.l2["written_sectors"][0] == 264 * 65_536 // SECTOR
    assert run.l2["requested_sectors"][0] == 0
    # The last stores of a program are under way when it ends; stepped, 93 of each SM's 256.
    assert 1.0 - on_their_way < lasted(run) / lasted(plain) < 1.1


@pytest.mark.parametrize("issue", MODES)
def test_segments_that_name_equal_accesses_walk_through_them_together(issue):
    access = Access.stream(8_192)
    one = Load(access=access, bytes=256)
    both = loop(8, one, Arithmetic(4), one)
    run = wavesim.simulate("h200", Kernel(20, 64, work=both), issue=issue)
    # 16 instructions of 2 warps move 8 KiB; walked through twice it would be found again.
    assert run.l2["requested_sectors"][0] == 20 * 8_192 // SECTOR
    assert run.l2["dram_read_bytes"][0] == 20 * 8_192


@pytest.mark.parametrize("issue", MODES)
def test_short_stretches_and_single_segments_ask_for_all_they_name(issue):
    first, last = Access.stream(512, buffer=1), Access.stream(512, write=True, buffer=2)
    many = Access.stream(128 * 1_000, buffer=3)
    segments = [
        Load(access=first),
        Loop(500, [Arithmetic(64)]),
        Load(1_000, access=many),
        Barrier(),
        Store(access=last),
    ]
    run = wavesim.simulate("h200", Kernel(33, 32, work=Warps(segments)), issue=issue)
    assert run.l2["requested_sectors"][0] == 33 * (128 + 128_000) // SECTOR
    assert run.l2["written_sectors"][0] == 33 * 128 // SECTOR


@pytest.mark.parametrize("issue", MODES)
def test_programs_and_memory_work_beside_each_other_slow_each_other_down(issue):
    reads = Kernel(528, 256, work=Access.stream(131_072))
    programs = Kernel(
        264, 256, work=loop(64, Load(access=Access.stream(131_072, buffer=1), bytes=256))
    )
    alone = [lasted(wavesim.simulate("h200", kernel, issue=issue)) for kernel in (reads, programs)]
    launches = [wavesim.Launch(reads), wavesim.Launch(programs, stream=1)]
    both = wavesim.simulate("h200", Program(launches), issue=issue).kernels
    for together, by_itself in zip(both["duration_ns"], alone, strict=True):
        assert together > 1.1 * by_itself
    # DRAM is busy all the time, with either: it takes no longer than one after the other.
    assert both["end_ns"].max() - both["start_ns"].min() < 1.05 * sum(alone)


def test_arithmetic_hides_loads_that_are_asked_for_ahead():
    access = Access.stream(65_536)

    def of(arithmetic, **fields):
        turn = [
            Load(access=access, bytes=512, **fields),
            Arithmetic(arithmetic),
            wavesim.warps.Await(),
        ]
        return lasted(wavesim.simulate("h200", Kernel(132, 128, work=loop(32, *turn))))

    ahead, behind = of(400, wait=False), of(400)
    assert ahead < 0.75 * behind
    # 400 dependent instructions take 1,600 cycles a turn, and the load none.
    assert ahead == pytest.approx(32 * 1_600 / 1.98, rel=0.05)


def test_a_kernel_that_is_launched_again_finds_what_it_read_at_random_places():
    access = Access.random(2**30, pieces=400)
    kernel = Kernel(8, 32, work=loop(100, Load(4, access=access)))
    run = wavesim.simulate("h200", Program([kernel] * 2), seed=3)
    assert run.l2["dram_read_bytes"].to_list() == [pytest.approx(8 * 400 * 128, rel=0.01), 0]
    other = wavesim.simulate("h200", kernel, seed=4)
    assert other.kernels["duration_ns"][0] != run.kernels["duration_ns"][0]


def test_windows_and_slices_of_a_program_add_up_to_what_it_moved():
    kernel = Kernel(64, 128, work=loop(20, Load(access=Access.stream(10_240))))
    run = wavesim.simulate("h200", kernel, detail="memory")
    for frame in (run.l2_windows, run.l2_slices):
        assert frame["requested_sectors"].sum() == run.l2["requested_sectors"][0] == 64 * 320


def test_accesses_survive_saving(tmp_path):
    access = Access.listed([0.0, 128.0, 256.0, 0.0], 128)
    run = wavesim.simulate("h200", Kernel(2, 32, work=loop(2, Load(access=access))))
    run.save(tmp_path / "run")
    again = wavesim.load(tmp_path / "run")
    assert again.program == run.program
    assert again.l2.equals(run.l2)


READ, WRITE = Access.stream(4_096), Access.stream(4_096, write=True)
PANELS = Access.panels(512, 512, steps=1, tiles_m=2, tiles_n=2)


@pytest.mark.parametrize(
    ("segments", "field", "why"),
    [
        ([Load(33, access=READ)], "[0].access.pattern", "CTA 0 walks through it in 33 steps"),
        (
            [Arithmetic(1), Loop(9, [Load(4, access=READ)])],
            "[1].body[0].access.pattern",
            "in 36 steps of 128 bytes, and it ends after 32",
        ),
        (
            [Load(access=READ, bytes=256), Load(access=READ)],
            "[1].bytes",
            "all that name access 0 move the same bytes, and others move 256",
        ),
        (
            [Load(access=Access.stream(4_096, buffer_bytes=8_191))],
            "[0].access.buffer_bytes",
            "the pattern leaves its buffer: it reaches 8192 bytes",
        ),
        (
            [Load(access=Access.listed([0.0, 128.0], buffer_bytes=128))],
            "[0].access.pattern.offsets[1]",
            "an offset is a whole number of bytes from 0 to 0",
        ),
    ],
)
def test_what_a_program_cannot_walk_through_is_refused_with_its_segment(segments, field, why):
    with pytest.raises(InvalidInput) as caught:
        wavesim.simulate("h200", Kernel(2, 32, work=Warps(segments)))
    assert (caught.value.field or "").endswith(f"work.programs[0]{field}")
    assert why in str(caught.value)


def test_a_grid_that_does_not_fit_the_tiles_of_an_access_is_told_what_would():
    why = r"^grid: programs\[0\]\[0\].access: 2 x 2 tiles need 4 CTAs \(got 2\)$"
    with pytest.raises(InvalidInput, match=why) as caught:
        Kernel(2, 32, work=Warps([Load(access=PANELS)]))
    assert (caught.value.field, caught.value.value) == ("grid", 2)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Load(access=WRITE), "access.write"),
        (lambda: Store(access=READ), "access.write"),
        (lambda: Load(access=READ, latency_cycles=5), "footprint_bytes"),
        (lambda: Load(access=READ.edited(overhead_cycles=4.0)), "access.overhead_cycles"),
        (
            lambda: Load(access={"kind": "access", "pattern": {"kind": "streamed", "bytes": 0}}),
            None,
        ),
    ],
)
def test_what_is_no_access_of_a_segment_is_refused(make, field):
    with pytest.raises(InvalidInput) as caught:
        make()
    assert caught.value.field == (field or "access.pattern.bytes")


@pytest.mark.parametrize(("loads", "stores"), [(8, 0), (0, 8), (2, 2), (8, 8)])
def test_loads_and_stores_from_dram_take_as_long_stepped_as_at_shared_rates(loads, stores):
    turns, warps = 8, 8
    moved = turns * warps * 128
    body: list[object] = [Arithmetic(64)]
    if loads:
        body.append(Load(loads, access=Access.stream(loads * moved)))
    if stores:
        body.append(Store(stores, access=Access.stream(stores * moved, buffer=1, write=True)))
    kernel = Kernel(grid=32, block=32 * warps, work=Warps([Loop(turns, body)]))
    device = wavesim.device("h200").scaled(sms=2)
    spans = [
        wavesim.simulate(device, kernel, issue=mode).makespan_ns for mode in ("rates", "exact")
    ]
    assert spans[0] == pytest.approx(spans[1], rel=0.06)


def test_what_warps_wait_for_between_instructions_does_not_depend_on_how_long_loads_take():
    # Each of 64 dependent multiply-adds waits 3 cycles for the one before; there is no barrier.
    turns, warps, ctas = 16, 8, 64
    program = [Loop(turns, [Load(8, access=Access.stream(turns * warps * 1024)), Arithmetic(64)])]
    device = wavesim.device("h200").scaled(sms=8)
    run = wavesim.simulate(device, Kernel(grid=ctas, block=32 * warps, work=Warps(program)))
    states = dict(run.warps.select("state", "warp_cycles").iter_rows())
    assert states["wait"] == pytest.approx(ctas * warps * turns * 64 * 3, rel=0.15)
    assert states.get("barrier", 0) == 0
