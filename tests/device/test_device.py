"""Devices that are changed, scaled, or described by a trace."""

import copy
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wavesim
from wavesim.errors import InvalidInput

H200_KINETO = {
    "id": 0,
    "name": "NVIDIA H200",
    "totalGlobalMem": 150_109_880_320,
    "computeMajor": 9,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65536,
    "warpSize": 32,
    "sharedMemPerBlock": 49152,
    "numSms": 132,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerBlockOptin": 232_448,
    "sharedMemPerMultiprocessor": 233_472,
}
ROCM_KINETO = {
    "id": 0,
    "name": "AMD Radeon Graphics",
    "computeMajor": 9,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65536,
    "warpSize": 64,
    "sharedMemPerBlock": 65536,
    "numSms": 104,
    "maxSharedMemoryPerMultiProcessor": 65536,
}
KINETO_2021 = {
    "id": 0,
    "name": "Tesla V100-DGXS-32GB",
    "major": 7,
    "minor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiProcessor": 2048,
    "regsPerBlock": 65536,
    "regsPerMultiprocessor": 65536,
    "warpSize": 32,
    "sharedMemPerBlock": 49152,
    "sharedMemPerMultiprocessor": 98304,
    "multiProcessorCount": 80,
    "sharedMemPerBlockOptin": 98304,
}
NSYS = {
    "id": 0,
    "name": "NVIDIA H100 80GB HBM3",
    "smCount": 132,
    "clockRate": 1_755_000_000,
    "l2CacheSize": 52_428_800,
    "memoryBandwidth": 3_200_000_000_000,
    "maxBlocksPerSm": 32,
    "maxWarpsPerSm": 64,
    "maxRegistersPerSm": 65536,
    "maxShmemPerSm": 233_472,
    "maxShmemPerBlockOptin": 232_448,
    "computeMajor": 9,
    "computeMinor": 0,
}


def test_a_trace_that_says_what_the_catalogue_says_gives_the_catalogues_device():
    assert wavesim.Device.from_properties(H200_KINETO) == wavesim.device("h200")
    assert wavesim.Device.from_properties(KINETO_2021) == wavesim.device("v100-sxm2")


def test_a_traces_own_figures_win_over_the_catalogue():
    device = wavesim.Device.from_properties(NSYS)
    assert device.name == "h100-sxm"
    assert device.clock.sm_mhz == 1755
    assert device.dram.bandwidth_gb_s == 3200
    assert device.dram.reached_gb_s < 3200
    assert device.provenance_of("clock.sm_mhz").status == "published"
    assert "trace" in device.provenance_of("clock.sm_mhz").source
    assert device.provenance_of("dram.reached_gb_s").status == "assumed"
    assert device.limits == wavesim.device("h100-sxm").limits


def test_a_slice_of_a_known_device_has_the_traces_sms():
    device = wavesim.Device.from_properties({**H200_KINETO, "numSms": 60})
    assert device.sms == 60
    assert device.provenance_of("topology.gpcs").status == "assumed"


def test_a_rocm_trace_gives_a_cdna_device_with_its_own_register_rules():
    device = wavesim.Device.from_properties(ROCM_KINETO)
    assert (device.vendor, device.compute_capability, device.sms) == ("amd", "gfx90a", 104)
    assert device.title == "AMD Radeon Graphics"
    assert device.limits.registers_per_cta == 131_072
    assert wavesim.occupancy(device, block=1024, registers=128).ctas_per_sm == 1


def test_an_unknown_device_takes_the_defaults_of_its_capability_marked_as_assumed():
    device = wavesim.Device.from_properties({**H200_KINETO, "name": "NVIDIA H900", "numSms": 90})
    assert (device.title, device.sms) == ("NVIDIA H900", 90)
    assert {entry.status for entry in device.provenance.values()} == {"assumed"}
    assert device.limits == wavesim.device("h200").limits


def test_an_unknown_capability_keeps_what_the_trace_says_of_it():
    said = {**H200_KINETO, "name": "NVIDIA P1", "computeMajor": 6, "numSms": 56}
    said |= {"sharedMemPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 49152}
    device = wavesim.Device.from_properties(said)
    assert device.compute_capability == "6.0"
    assert device.limits.shared_bytes == 65536
    assert device.provenance_of("limits.shared_bytes").status == "published"
    assert device.provenance_of("limits.register_unit").status == "assumed"


@pytest.mark.parametrize("name", ["", None])
def test_an_unnamed_device_is_told_by_capability_and_sms(name):
    device = wavesim.Device.from_properties({**H200_KINETO, "name": name})
    assert device.sms == 132
    assert device.title == "unnamed device of compute capability 9.0"


def test_a_known_name_alone_is_enough():
    assert wavesim.Device.from_properties({"id": 0, "name": "NVIDIA H200"}).name == "h200"


def test_figures_of_zero_are_no_figures():
    said = {**NSYS, "clockRate": 0, "memoryBandwidth": 0, "l2CacheSize": None}
    assert wavesim.Device.from_properties(said) == wavesim.device("h100-sxm")


@pytest.mark.parametrize(
    ("properties", "field"),
    [
        ({}, "properties.computeMajor"),
        ({"name": "What"}, "properties.computeMajor"),
        ({"name": "What", "computeMajor": 9, "computeMinor": 0}, "properties.numSms"),
        ({**H200_KINETO, "numSms": "many"}, "properties.numSms"),
        ({**H200_KINETO, "numSms": -1}, "properties.numSms"),
        ({**H200_KINETO, "warpSize": float("nan")}, "properties.warpSize"),
        ({**H200_KINETO, "name": 7}, "properties.name"),
        ({**NSYS, "smCount": 1e12}, "sms"),
        ([], "properties"),
    ],
)
def test_properties_that_say_too_little_or_nonsense_are_refused(properties, field):
    with pytest.raises(InvalidInput) as caught:
        wavesim.Device.from_properties(properties)
    assert caught.value.field == field


def test_an_edit_changes_one_number_and_says_so():
    h200 = wavesim.device("h200")
    slow = h200.edited({"clock.sm_mhz": 1500})
    assert slow.clock.sm_mhz == 1500
    assert slow.name == "h200*"
    assert slow.provenance_of("clock.sm_mhz").source == "edited by the caller"
    assert slow.provenance_of("l2.bytes") == h200.provenance_of("l2.bytes")
    assert h200.clock.sm_mhz == 1980
    assert slow.edited({"clock.sm_mhz": 1980}).numbers() == h200.numbers()


def test_with_other_parts_of_l2_the_gpcs_are_dealt_over_them_unless_they_are_told():
    h200 = wavesim.device("h200")
    one = h200.edited({"l2.halves": 1})
    assert {gpc.half for gpc in one.topology.gpcs} == {0}
    assert one.provenance_of("topology.gpcs").source == "edited by the caller"
    four = one.edited({"l2.halves": 4.0, "l2.slices": 96})
    assert [gpc.half for gpc in four.topology.gpcs] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert h200.edited({"l2.halves": 2}).topology == h200.topology
    with pytest.raises(InvalidInput, match=r"topology.gpcs\[0\].half: L2 has 1 part"):
        h200.edited({"l2.halves": 1, "topology.gpcs": h200.model_dump()["topology"]["gpcs"]})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"l2.halves": 3}, "a multiple of 3 up to 30078, such as 93 or 96 (got 94)"),
        ({"l2.halves": 4}, "a multiple of 4 up to 30080, such as 92 or 96 (got 94)"),
        ({"l2.halves": 96}, "a multiple of 96 up to 30048, such as 96 (got 94)"),
        ({"l2.slices": 95}, "a multiple of 2 up to 30080, such as 94 or 96 (got 95)"),
        ({"l2.slices": 0}, "a multiple of 2 up to 30080, such as 2 (got 0)"),
        ({"l2.slices": 10**6}, "a multiple of 2 up to 30080, such as 30080 (got 1000000)"),
    ],
)
def test_slices_that_do_not_divide_over_the_parts_are_refused_with_numbers_that_do(changes, said):
    h200 = wavesim.device("h200")
    with pytest.raises(InvalidInput) as caught:
        h200.edited(changes)
    assert (caught.value.field, str(caught.value).endswith(said)) == ("l2.slices", True), caught
    for slices in re.findall(r"\d+", said.partition("such as ")[2].partition(" (got")[0]):
        assert h200.edited({**changes, "l2.slices": int(slices)}).l2.slices == int(slices)


@pytest.mark.parametrize("halves", [1, 3, 5, 8])
def test_edited_devices_and_those_of_the_catalogue_have_the_same_gpcs_near_to_a_part(halves):
    a100 = wavesim.device("a100-sxm4-40")
    changes = {"l2.halves": halves, "l2.slices": 120, "l2.bytes": 120 << 18}
    parts = [gpc.half for gpc in a100.edited(changes).topology.gpcs]
    count = len(parts)
    assert parts == [i * halves // count for i in range(count)]
    again = a100.edited({**changes, "l2.slices": 120}).edited(
        {"l2.halves": a100.l2.halves, "l2.slices": 120}
    )
    assert again.topology == a100.topology, "as the catalogue has them"


def test_another_capability_brings_its_limits():
    edited = wavesim.device("h200").edited({"compute_capability": "8.6"})
    assert (edited.limits.ctas, edited.limits.barriers) == (16, None)


@pytest.mark.parametrize(
    ("path", "suggestion"),
    [
        ("clock.smmhz", "clock.sm_mhz"),
        ("sm_mhz", "clock.sm_mhz"),
        ("l2.size_bytes", "l2.bytes"),
        ("provenance", "Device.numbers"),
        ("", "Device.numbers"),
    ],
)
def test_an_edit_of_an_unknown_path_names_the_nearest(path, suggestion):
    with pytest.raises(InvalidInput, match=suggestion) as caught:
        wavesim.device("h200").edited({path: 1})
    assert caught.value.field == path


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("clock.sm_mhz", -1),
        ("clock.sm_mhz", float("nan")),
        ("limits.warps", 0),
        ("limits.warps", -4),
        ("limits.warps", 2**40),
        ("limits.shared_optin_bytes", 10**6),
        ("l2.halves", 0),
        ("l2.halves", -1),
        ("l2.halves", 256),
        ("dram.reached_gb_s", 10**6),
        ("dispatch.refill_cycles", "slow"),
        ("launch.greatest_priority", 3),
        ("limits.carve_outs_bytes", [8, 4]),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_path(path, value):
    with pytest.raises(InvalidInput) as caught:
        wavesim.device("h200").edited({path: value})
    assert caught.value.field == path


@pytest.mark.parametrize(
    ("gpcs", "field"),
    [
        ([], "topology.gpcs"),
        ([{"groups": []}], "topology.gpcs"),
        ([{"groups": [{"sms": [0, 0]}]}], "topology.gpcs[0].groups[0].sms[1]"),
        ([{"groups": [{"sms": [1]}]}], "topology.gpcs[0].groups[0].sms[0]"),
        ([{"groups": [{"sms": [0]}], "half": 2}], "topology.gpcs[0].half"),
        ([{"groups": [{"sms": [0], "max_cluster": 0}]}], "topology.gpcs[0].groups[0].max_cluster"),
    ],
)
def test_a_list_of_gpcs_that_cannot_be_is_refused_where_it_is_wrong(gpcs, field):
    with pytest.raises(InvalidInput) as caught:
        wavesim.device("h200").edited({"topology.gpcs": gpcs})
    assert caught.value.field == field


@given(sms=st.integers(1, 600), name=st.sampled_from(["h200", "a100", "mi300x", "l4"]))
def test_scaling_keeps_gpc_sizes_and_memory_per_sm(sms, name):
    device = wavesim.device(name)
    scaled = device.scaled(sms=sms)
    assert scaled.sms == sms
    sizes = [len(gpc.sms) for gpc in device.topology.gpcs]
    found = [len(gpc.sms) for gpc in scaled.topology.gpcs]
    assert all(size == sizes[i % len(sizes)] for i, size in enumerate(found[:-1]))
    assert sorted(sm for gpc in scaled.topology.gpcs for sm in gpc.sms) == list(range(sms))
    ratio = sms / device.sms
    assert scaled.dram.bandwidth_gb_s == pytest.approx(ratio * device.dram.bandwidth_gb_s)
    whole_sets = device.l2.ways * device.l2.line_bytes * device.l2.halves
    assert scaled.l2.bytes == pytest.approx(ratio * device.l2.bytes, abs=whole_sets)
    assert (scaled.dispatch, scaled.launch, scaled.limits, scaled.clock) == (
        device.dispatch,
        device.launch,
        device.limits,
        device.clock,
    )


def test_scaling_to_the_same_size_changes_nothing():
    assert wavesim.device("h200").scaled(sms=132) == wavesim.device("h200")


@pytest.mark.parametrize("sms", [0, -1, 65_536, 1.5, "132", None, True])
def test_a_number_of_sms_that_cannot_be_is_refused(sms):
    with pytest.raises(InvalidInput) as caught:
        wavesim.device("h200").scaled(sms=sms)
    assert caught.value.field == "sms"


def test_the_largest_die_is_told_where_l2_would_be_too_large():
    device = wavesim.device("h200")
    with pytest.raises(InvalidInput, match=r"^sms: .* at most 36044 SMs, .* \(got 65535\)"):
        device.scaled(sms=65_535)
    assert device.scaled(sms=36_044).sms == 36_044


def test_a_device_survives_pickling_and_json():
    device = wavesim.device("h200").scaled(sms=40)
    assert pickle.loads(pickle.dumps(device)) == device
    assert wavesim.Device.model_validate_json(device.model_dump_json()) == device
    assert copy.deepcopy(device) == device
    assert hash(pickle.loads(pickle.dumps(device))) == hash(device)


def test_a_device_cannot_be_changed():
    device = wavesim.device("h200")
    with pytest.raises(ValueError, match="frozen"):
        device.name = "other"
    with pytest.raises(ValueError, match="frozen"):
        device.clock.sm_mhz = 1.0


def test_an_unknown_field_is_refused():
    data = wavesim.device("h200").model_dump()
    data["clock"]["boost_mhz"] = 2000
    with pytest.raises(InvalidInput, match=r"clock\.boost_mhz"):
        wavesim.Device.model_validate(data)


@pytest.mark.parametrize("changes", [{3: 4}, [("clock.sm_mhz", 1)], 7])
def test_changes_that_are_no_paths_to_values_are_refused(changes):
    with pytest.raises(InvalidInput, match=r"^changes: "):
        wavesim.device("h200").edited(changes)
