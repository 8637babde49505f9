"""Names of devices: loose, and never another device's."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepole.errors import BadInput
from ridgepole.machine import catalog
from ridgepole.machine.match import match, words
from ridgepole.timeline.model import DeviceInfo


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        ("h100", "H100 SXM"),
        ("H100-SXM5-80GB", "H100 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("A100-SXM4-40GB", "A100 SXM 40GB"),
        ("Tesla V100-SXM2-16GB", "V100 SXM2 16GB"),
        ("Tesla T4", "T4"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("AMD Instinct MI300X VF", "MI300X"),
        ("NVIDIA B200", "B200 SXM"),
        ("Apple M1 Max", "M1 Max"),
    ],
)
def test_a_name_leads_to_its_machine(name: str, machine: str) -> None:
    assert catalog.find(name).name == machine


@pytest.mark.parametrize(
    "name", ["H20", "H800", "RTX 4090 Laptop GPU", "A100X", "L400", "MI308X", "Tesla P100", "GH200 480GB", "", "NVIDIA"]
)
def test_a_name_of_another_device_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=r"no machine|could be"):
        catalog.find(name)


@given(st.from_regex(re.compile(r"[A-Z]{1,3}\d{1,4}[A-Z]?", re.ASCII), fullmatch=True))
def test_a_model_number_that_no_machine_has_never_matches(name: str) -> None:
    known = frozenset().union(*(words(a) for m in catalog.load().values() for a in (m.name, *m.aliases)))
    try:
        found = catalog.find(name)
    except BadInput:
        return
    assert words(name) <= known
    assert words(name) <= frozenset().union(*(words(a) for a in (found.name, *found.aliases)))


def device(name: str = "", memory: float | None = None, sms: int | None = None, compute: str = "") -> DeviceInfo:
    warp = 64 if "Instinct" in name or sms == 304 else 32
    return DeviceInfo("0", name, None if memory is None else int(memory), sms, warp, compute)


def test_properties_decide_between_variants() -> None:
    engineering = device("NVIDIA A100-PG509-200", 42_297_524_224, 108, "8.0")
    assert match(engineering).machine is catalog.find("A100 SXM 40GB")


def test_a_device_without_a_name_is_known_by_properties_that_only_it_has() -> None:
    found = match(device("", 206_141_652_992, 304, "9.4"))
    assert found.machine is not None and found.machine.name == "MI300X"
    assert "no name" in found.note


def test_a_slice_of_a_gpu_is_not_the_gpu() -> None:
    found = match(device("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 10e9, 16, "9.0"))
    assert found.machine is None
    assert "--on" in found.note


def test_a_known_name_with_foreign_properties_is_not_believed() -> None:
    found = match(device("NVIDIA H100 80GB HBM3", 80e9, 78, "9.0"))
    assert found.machine is None
    assert "properties differ" in found.note


def test_a_name_in_no_table_is_said() -> None:
    found = match(device("NVIDIA Z900", 1e12, 500, "13.0"))
    assert found.machine is None
    assert "in no table" in found.note
