"""Residency, held against NVIDIA's answers and a measured chip (reference/occupancy/README.md)."""

from pathlib import Path

import polars as pl
import pytest

import wavesim
from wavesim.errors import InvalidInput

REFERENCE = Path(__file__).parents[2] / "reference"
UNLIMITED = 2**31 - 1


@pytest.fixture(scope="module")
def cases():
    return pl.read_parquet(REFERENCE / "occupancy" / "cases.parquet")


def of_capability(capability):
    return wavesim.device("h200").edited({"compute_capability": capability})


def answers(cases):
    devices = {capability: of_capability(capability) for capability in cases["cc"].unique()}
    for row in cases.iter_rows(named=True):
        found = wavesim.occupancy(
            devices[row["cc"]],
            block=row["threads"],
            registers=row["registers"],
            shared_memory=row["static_shared"] + row["dynamic_shared"],
            barriers=row["barriers"],
        )
        yield row, found


def test_all_4000_reference_cases_are_exact(cases):
    assert len(cases) == 4000
    wrong = []
    for row, found in answers(cases):
        answer = {
            "launches": found.launchable,
            "blocks_per_sm": found.ctas_per_sm,
            "limiter": found.limiter,
            "by_registers": found.by_registers,
            "by_shared": UNLIMITED if found.by_shared is None else found.by_shared,
            "by_warps": found.by_warps,
            "by_blocks": found.by_blocks,
            "by_barriers": found.by_barriers,
        }
        if any(row[name] != value for name, value in answer.items()):
            wrong.append((row, answer))
    assert not wrong, f"{len(wrong)} of {len(cases)} differ, first {wrong[0]}"


def test_binding_limits_equal_the_residency_and_limiters_hold_them(cases):
    undercut = 0
    for _, found in answers(cases):
        bounds = {
            "REGS": found.by_registers,
            "SMEM": found.by_shared,
            "WARPS": found.by_warps,
            "BLOCKS": found.by_blocks,
            "BARRIERS": found.by_barriers,
        }
        assert found.binding == tuple(
            sorted(name for name, bound in bounds.items() if bound == found.ctas_per_sm)
        )
        assert set(found.binding) <= set(found.limiters)
        undercut += found.binding != found.limiters
    assert undercut == 69


def test_a_column_of_shapes_gets_the_same_answers_as_one_by_one(cases):
    rows = cases.filter(pl.col("cc") == "9.0")
    frame = wavesim.occupancies(
        of_capability("9.0"),
        block=rows["threads"],
        registers=rows["registers"].to_numpy(),
        shared_memory=(rows["static_shared"] + rows["dynamic_shared"]).to_list(),
        barriers=rows["barriers"],
    )
    assert frame["ctas_per_sm"].to_list() == rows["blocks_per_sm"].to_list()
    assert frame["limiter"].to_list() == rows["limiter"].to_list()
    assert frame["refusal"].is_null().to_list() == rows["launches"].to_list()


def test_all_measured_cluster_capacities_are_exact():
    rows = pl.read_parquet(REFERENCE / "h200" / "runs.parquet").filter(
        pl.col("experiment") == "cluster"
    )
    assert len(rows) == 45
    for row in rows.iter_rows(named=True):
        found = wavesim.occupancy(
            "h200",
            block=row["block"],
            registers=row["regs"],
            shared_memory=row["smem"],
            cluster=row["cluster"],
            cluster_launch=True,
            non_portable_cluster=True,
        )
        assert found.max_active_clusters == row["max_active_clusters"], row


def test_cluster_capacity_over_block_sizes_and_shared_memory_is_exact():
    rows = pl.read_parquet(REFERENCE / "occupancy" / "clusters.parquet")
    for row in rows.iter_rows(named=True):
        found = wavesim.occupancy(
            "h200",
            block=row["block"],
            registers=16,
            shared_memory=row["dynamic_shared"],
            cluster=max(row["cluster"], 1),
            cluster_launch=row["cluster"] > 0,
            non_portable_cluster=True,
        )
        assert found.ctas_per_sm == row["resident"], row
        if row["cluster"] == 0:
            assert found.ctas_per_sm == row["blocks_per_sm"], row
        else:
            assert found.max_active_clusters == row["max_active_clusters"], row


@pytest.mark.parametrize(
    ("capability", "block", "registers", "shared_kb", "ctas"),
    [
        ("9.0", 32, 8, 12, 17),  # 19 without the system's kilobyte
        ("8.0", 224, 92, 0, 2),  # 3 if registers were not split over the sub-partitions
        ("8.0", 192, 92, 0, 3),
        ("8.6", 128, 16, 49, 2),
        ("8.6", 128, 16, 50, 1),
        ("8.6", 128, 16, 99, 1),
        ("8.6", 128, 16, 100, 0),
        ("8.7", 128, 16, 163, 1),
        ("10.3", 512, 156, 0, 0),
        ("10.3", 256, 156, 0, 1),
        ("9.0", 384, 168, 227, 1),
        ("12.1", 32, 16, 0, 24),
    ],
)
def test_published_edges(capability, block, registers, shared_kb, ctas):
    found = wavesim.occupancy(
        of_capability(capability),
        block=block,
        registers=registers,
        shared_memory=shared_kb * 1024,
    )
    assert found.ctas_per_sm == ctas
    assert found.launchable == (ctas > 0)


@pytest.mark.parametrize(
    ("shape", "limit", "words"),
    [
        ({"block": 1056}, "threads_per_cta", "32 over the limit of 1024"),
        ({"block": 1024, "registers": 96}, "registers_per_cta", "32768 over the limit of 65536"),
        ({"block": 32, "registers": 256}, "registers_per_thread", "1 over the limit of 255"),
        ({"block": 32, "shared_memory": 232_449}, "shared_optin_bytes", "1 over the limit of"),
        ({"block": 32, "barriers": 17}, "barriers_per_cta", "1 over the limit of 16"),
        ({"block": 32, "cluster": 16}, "cluster", "non_portable_cluster"),
        ({"block": 32, "cluster": 32, "non_portable_cluster": True}, "cluster", "16 over"),
    ],
)
def test_a_refusal_says_which_limit_and_by_how_much(shape, limit, words):
    found = wavesim.occupancy("h200", **shape)
    assert (found.launchable, found.ctas_per_sm, found.warps) == (False, 0, 0)
    assert found.refusal.limit == limit
    assert words in str(found.refusal)
    assert found.refusal.wanted > found.refusal.allowed


def test_unknown_registers_limit_nothing():
    found = wavesim.occupancy("h200", block=128, registers=0)
    assert found.by_registers is None
    assert found.ctas_per_sm == 16


def test_a_cdna_wave_has_64_lanes_and_a_lane_512_registers():
    found = wavesim.occupancy("mi300x", block=256, registers=128)
    assert (found.warps_per_cta, found.ctas_per_sm, found.limiter) == (4, 4, "REGS")
    split = wavesim.occupancy("mi300x", block=256, registers=128, accumulation_registers=128)
    assert split.ctas_per_sm == 2


def test_threads_of_three_dimensions_are_multiplied():
    flat = wavesim.occupancy("h200", block=256)
    assert wavesim.occupancy("h200", block=(8, 8, 4)) == flat
    assert wavesim.occupancy("h200", block=[256]) == flat


@pytest.mark.parametrize(
    ("shape", "field"),
    [
        ({"block": -1}, "block"),
        ({"block": 128.0}, "block"),
        ({"block": "128"}, "block"),
        ({"block": (1, 1, 65)}, "block[2]"),
        ({"block": (1, 1, 1, 1)}, "block"),
        ({"block": ()}, "block"),
        ({"block": (0, 1)}, "block[0]"),
        ({"block": 32, "registers": None}, "registers"),
        ({"block": 32, "shared_memory": 2**32}, "shared_memory"),
        ({"block": 32, "cluster": True}, "cluster"),
    ],
)
def test_what_no_kernel_can_have_is_an_error_that_names_the_field(shape, field):
    with pytest.raises(InvalidInput) as caught:
        wavesim.occupancy("h200", **shape)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ({"block": [32, 64], "registers": [16, 16, 16]}, "block"),
        ({"block": [32, -64]}, "block[1]"),
        ({"block": [32.5]}, "block"),
        ({"block": [[32]]}, "block"),
    ],
)
def test_columns_that_are_no_counts_are_refused(columns, field):
    with pytest.raises(InvalidInput) as caught:
        wavesim.occupancies("h200", **columns)
    assert caught.value.field == field


def test_no_shapes_give_an_empty_frame():
    assert wavesim.occupancies("h200", block=[]).height == 0
