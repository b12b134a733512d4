"""The catalogue: what is known of each device, and how well."""

import math
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import polars as pl
import pytest

import wavesim
from wavesim.errors import InvalidInput

ROOT = Path(__file__).parents[2]

# Figures as published: name, capability, SMs, clock in MHz, L2 in bytes, DRAM in GB/s.
MIB = 2**20
PUBLISHED = [
    ("v100-sxm2", "7.0", 80, 1530, 6 * MIB, 898),
    ("a100-sxm4-40", "8.0", 108, 1410, 40 * MIB, 1555),
    ("a100-sxm4-80", "8.0", 108, 1410, 40 * MIB, 2039),
    ("a100-pcie-80", "8.0", 108, 1410, 40 * MIB, 1935),
    ("a10", "8.6", 72, 1695, 6 * MIB, 600),
    ("rtx3090", "8.6", 82, 1695, 6 * MIB, 936),
    ("rtx4090", "8.9", 128, 2520, 72 * MIB, 1008),
    ("l40s", "8.9", 142, 2520, 96 * MIB, 864),
    ("l4", "8.9", 58, 2040, 48 * MIB, 300),
    ("h100-sxm", "9.0", 132, 1980, 50 * MIB, 3352),
    ("h100-pcie", "9.0", 114, 1755, 50 * MIB, 2039),
    ("gh200", "9.0", 132, 1980, 60 * MIB, 4023),
    ("h200", "9.0", 132, 1980, 62_914_560, 4800),
    ("b200", "10.0", 148, 1850, 126 * MIB, 8000),
    ("rtx5090", "12.0", 170, 2407, 96 * MIB, 1792),
    ("mi210", "gfx90a", 104, 1700, 8 * MIB, 1600),
    ("mi250x", "gfx90a", 110, 1700, 8 * MIB, 1600),
    ("mi300x", "gfx942", 304, 2100, 288 * MIB, 5300),
]


@pytest.mark.parametrize("figures", PUBLISHED, ids=[row[0] for row in PUBLISHED])
def test_published_figures(figures):
    name, capability, sms, clock, l2, dram = figures
    device = wavesim.device(name)
    assert device.name == name
    assert (device.compute_capability, device.sms) == (capability, sms)
    assert (device.clock.sm_mhz, device.l2.bytes) == (clock, l2)
    assert device.dram.bandwidth_gb_s == dram


def test_the_catalogue_holds_these_devices_and_no_others():
    assert wavesim.devices()["device"].to_list() == [row[0] for row in PUBLISHED]


def test_every_number_has_a_source_and_a_status():
    frame = wavesim.devices(numbers=True)
    assert frame["device"].n_unique() == len(PUBLISHED)
    assert set(frame["status"]) == {"measured", "published", "assumed"}
    assert frame.filter(pl.col("source") == "").is_empty()


def test_only_the_measured_device_claims_measurements():
    frame = wavesim.devices(numbers=True).filter(pl.col("status") == "measured")
    assert frame["device"].unique().to_list() == ["h200"]


def test_assumed_numbers_show_in_the_frame():
    frame = wavesim.devices()
    assumed = dict(zip(frame["device"], frame["assumed"].to_list(), strict=True))
    assert "clock.sm_mhz" in assumed["b200"]
    assert "dram.bandwidth_gb_s" in assumed["a10"]
    assert "l2.bytes" in assumed["mi250x"]
    assert "clock.sm_mhz" in assumed["mi300x"]
    assert "dispatch.refill_cycles" in assumed["rtx4090"]
    assert "dispatch.refill_cycles" not in assumed["a100-sxm4-80"]
    assert "topology.gpcs" in assumed["h100-sxm"]


@pytest.mark.parametrize(
    ("name", "ns"), [("a100", 0.75), ("l40s", 0.53), ("mi210", 1.21), ("h200", 0.603)]
)
def test_dispatch_costs_what_was_measured_or_published(name, ns):
    frame = wavesim.devices().filter(pl.col("device") == wavesim.device(name).name)
    assert frame["refill_ns"].item() == pytest.approx(ns, rel=0.005)


def test_gpc_lists_keep_to_the_full_die():
    for name, most, count in [
        ("v100-sxm2", 14, 6),
        ("a100-sxm4-80", 16, 8),
        ("a10", 12, 7),
        ("rtx3090", 12, 7),
        ("rtx4090", 12, 12),
        ("l40s", 12, 12),
        ("h100-pcie", 18, 8),
        ("h200", 18, 8),
        ("b200", 20, 8),
        ("rtx5090", 16, 12),
    ]:
        sizes = [len(gpc.sms) for gpc in wavesim.device(name).topology.gpcs]
        assert max(sizes) <= most, name
        assert len(sizes) <= count, name


def test_the_halves_of_the_measured_device_have_66_sms_each():
    gpcs = wavesim.device("h200").topology.gpcs
    near = {min(gpc.sms) for gpc in gpcs if gpc.half == 0}
    assert near == {2, 4, 6, 14}
    assert sum(len(gpc.sms) for gpc in gpcs if gpc.half == 0) == 66


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("H100", "h100-sxm"),
        ("h100 sxm", "h100-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("nvidia_h100_pcie", "h100-pcie"),
        ("NVIDIA H200", "h200"),
        ("a100", "a100-sxm4-80"),
        ("Tesla V100-SXM2-32GB", "v100-sxm2"),
        ("GeForce RTX 5090", "rtx5090"),
        ("AMD Instinct MI250X", "mi250x"),
    ],
)
def test_names_are_tolerant(name, found):
    assert wavesim.device(name).name == found


@pytest.mark.parametrize(
    ("name", "suggestion"), [("h300", "h200"), ("a100-sxm4", None), ("rtx409", "rtx4090")]
)
def test_unknown_names_suggest_the_nearest(name, suggestion):
    if suggestion is None:
        assert wavesim.device(name).name == "a100-sxm4-40"
        return
    with pytest.raises(InvalidInput, match=suggestion) as caught:
        wavesim.device(name)
    assert caught.value.field == "device"


@pytest.mark.parametrize("name", ["", "NVIDIA", None, 90, "x" * 10_000])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(InvalidInput):
        wavesim.device(name)


def test_numbers_are_finite_and_the_frame_has_no_nulls():
    frame = wavesim.devices()
    assert sum(frame.null_count().row(0)) == 0
    for name in frame["device"]:
        for path, value in wavesim.device(name).numbers().items():
            values = value if isinstance(value, tuple) else (value,)
            assert all(math.isfinite(number) for number in values), (name, path)


def test_the_table_in_the_docs_is_the_catalogue():
    spec = spec_from_file_location("devices_table", ROOT / "docs" / "devices_table.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (ROOT / "docs" / "devices.md").read_text()
    assert module.filled(text) == text, f"run {Path(sys.executable).name} docs/devices_table.py"
    assert len(re.findall(r"^\| `", text, re.MULTILINE)) >= len(PUBLISHED)


@pytest.mark.parametrize(
    ("name", "slices", "slice_bytes"),
    [
        ("v100-sxm2", 64, 96 * 1024),
        ("a100-sxm4-80", 80, 512 * 1024),
        ("h100-sxm", 80, 640 * 1024),
        ("h200", 94, 640 * 1024),  # two of 96 are off
        ("gh200", 94, 640 * 1024),
        ("rtx4090", 96, 768 * 1024),
        ("mi210", 32, 256 * 1024),
    ],
)
def test_l2_is_made_of_equal_slices(name, slices, slice_bytes):
    l2 = wavesim.device(name).l2
    assert (l2.slices, (l2.bytes - l2.reserved_bytes) / l2.slices) == (slices, slice_bytes)


def test_geforce_tensor_cores_add_up_in_32_bits_at_half_the_rate():
    for name, teraflops in [
        ("rtx3090", 71.0),
        ("rtx4090", 165.2),
        ("rtx5090", 209.5),
        ("l4", 121.0),
    ]:
        device = wavesim.device(name)
        rate = device.sms * device.limits.tensor_flops_per_cycle * device.clock.sm_mhz * 1e6
        assert rate == pytest.approx(teraflops * 1e12, rel=0.02), name
