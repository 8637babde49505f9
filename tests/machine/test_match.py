"""Names of devices: loose, and never another device's."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

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
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA A40", "A40"),
        ("NVIDIA RTX A6000", "RTX A6000"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"),
        ("NVIDIA A100-PCIE-40GB", "A100 PCIe 40GB"),
        ("Tesla V100-PCIE-32GB", "V100 PCIe"),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell Server"),
        ("AMD Instinct MI250X", "MI250X (one GCD)"),
        ("AMD Instinct MI300X OAM", "MI300X"),
        ("H100 80GB HBM2e", "H100 PCIe"),
        ("rtx4090", "RTX 4090"),
        ("3090", "RTX 3090"),
        ("m3 max", "M3 Max (40-core)"),
        ("M3 Max 40-core", "M3 Max (40-core)"),
    ],
)
def test_a_name_leads_to_its_machine(name: str, machine: str) -> None:
    assert catalog.find(name).name == machine


OTHERS = (
    *(
        "H20",
        "H20-3e",
        "H800",
        "NVIDIA H100 64GB",
        "A100X",
        "A800-SXM4-80GB",
        "A100-SXM-64GB",
        "GH200",
        "NVIDIA GH200 480GB",
    ),
    *("H200 NVL", "B100", "B300", "GB300", "L40", "L20", "L400", "A16", "A2", "A30X", "Tesla P100", "V100S-PCIE-32GB"),
    *("Tesla V100-SXM3-32GB", "MI308X", "MI300A", "MI250", "MI350X", "GRID A100-10C", "Quadro RTX 6000", "RTX 6000"),
    *("RTX 4090 Laptop GPU", "RTX 4090 D", "RTX4090D", "RTX 3090 Ti", "RTX 2080", "RTX 2080 SUPER", "RTX A5000"),
    *("RTX 6000 Ada Generation", "RTX PRO 6000 Blackwell Workstation Edition", "RTX 5090 Laptop GPU", "GTX 3090"),
    *("m3 max 30-core", "Apple M5", "Gaudi", "Blackwell", "server", "one GCD", "pro", "max", "sxm", "80gb", "2", "100"),
    *("", " ", "NVIDIA", "GeForce RTX", "AMD Radeon Graphics", "Graphics Device", "A100-SXM4-80GB-Something"),
)


@pytest.mark.parametrize("name", OTHERS)
def test_a_name_of_another_device_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=r"no machine|could be"):
        catalog.find(name)
    assert match(device(name or "?")).machine is None


@given(st.from_regex(re.compile(r"[A-Z]{1,3}\d{1,4}[A-Z]?", re.ASCII), fullmatch=True))
def test_a_model_number_that_no_machine_has_never_matches(name: str) -> None:
    known = frozenset().union(*(words(a) for m in catalog.load().values() for a in (m.name, *m.aliases)))
    try:
        found = catalog.find(name)
    except BadInput:
        return
    assert words(name) <= known
    assert words(name) <= frozenset().union(*(words(a) for a in (found.name, *found.aliases)))


@given(
    st.sampled_from(sorted(catalog.load())),
    st.sampled_from(["D", "Ti", "SUPER", "Laptop GPU", "MIG 1g.10gb", "X", "64GB", "Max-Q", "7", "Ultra Plus"]),
    st.booleans(),
)
def test_one_more_word_makes_another_device(name: str, word: str, glued: bool) -> None:
    longer = name.split("(")[0].strip() + ("" if glued else " ") + word
    known = frozenset().union(*(words(a) for m in catalog.load().values() for a in (m.name, *m.aliases)))
    if words(longer) <= known:
        return
    with pytest.raises(BadInput):
        catalog.find(longer)
    assert match(device(longer)).machine is None


@given(st.sampled_from(sorted(catalog.load())), st.integers(0, 9), st.booleans())
def test_one_more_digit_makes_another_device(name: str, digit: int, first: bool) -> None:
    changed = re.sub(r"(\d+)", lambda m: f"{digit}{m[1]}" if first else f"{m[1]}{digit}", name, count=1)
    try:
        found = catalog.find(changed)
    except BadInput:
        return
    assert words(changed) <= frozenset().union(*(words(a) for a in (found.name, *found.aliases)))


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


@pytest.mark.parametrize(
    "name", ["NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "GRID A100-10C"]
)
def test_a_slice_of_a_gpu_is_not_the_gpu(name: str) -> None:
    found = match(device(name, 10e9, 16, "9.0"))
    assert found.machine is None
    assert "share of a GPU" in found.note
    assert "--on" in found.note


@pytest.mark.parametrize(
    ("cores", "machine", "said"),
    [(40, "M4 Max (40-core)", ""), (None, "M4 Max (40-core)", "several core counts"), (32, None, "properties differ")],
)
def test_an_apple_gpu_is_told_by_its_cores(cores: int | None, machine: str | None, said: str) -> None:
    found = match(device("Apple M4 Max", None, cores))
    assert (found.machine.name if found.machine else None) == machine
    assert said in found.note


@pytest.mark.parametrize(
    ("name", "memory", "sms", "compute", "machine"),
    [
        ("NVIDIA H100 80GB HBM3", 85_018_279_936, 132, "9.0", "H100 SXM"),
        ("NVIDIA H100 PCIe", 85_029_158_912, 114, "9.0", "H100 PCIe"),
        ("NVIDIA H100 80GB HBM3", 85_018_279_936, 132, "8.0", None),
        ("NVIDIA H200", 150_109_880_320, 132, "9.0", "H200 SXM"),
        ("NVIDIA H200", 85_018_279_936, 132, "9.0", None),
        ("Tesla V100-SXM2-16GB", 16_935_419_904, 80, "7.0", "V100 SXM2 16GB"),
        ("V100", 16_935_419_904, 80, "7.0", "V100 SXM2 16GB"),
        ("AMD Instinct MI210", 68_702_699_520, 104, "9.0", "MI210"),
        ("AMD Instinct MI300X", 206_141_652_992, 304, "9.4", "MI300X"),
        ("AMD Instinct MI300X", 206_141_652_992, 304, "9.5", None),
        ("AMD Instinct MI300X", 206_141_652_992, 38, "9.4", None),
    ],
)
def test_a_name_holds_only_with_the_properties_of_its_machine(
    name: str, memory: float, sms: int, compute: str, machine: str | None
) -> None:
    found = match(device(name, memory, sms, compute))
    assert (found.machine.name if found.machine else None) == machine


TRACES = {
    "a100-alexnet": "A100 SXM 40GB",
    "a100-compile-graphs-nccl": "A100 SXM 80GB",
    "a100-old-flow-category": "A100 SXM 40GB",
    "b200-vllm-moe-eager": "B200 SXM",
    "h100-bert-small": "H100 SXM",
    "h100-qwen-0.5b": "H100 SXM",
    "h200-resnet50-infer-b1-float32.eager": "H200 SXM",
    "mi210-gpu-only": "MI210",
    "mi300x-bert-small": "MI300X",
    "mi300x-sglang-decode-graph": "MI300X",
    "rocm-vllm-decode-graph": "MI300X",
    "rtx2080ti-linear": "RTX 2080 Ti",
}


@pytest.mark.parametrize("name", sorted(TRACES))
def test_the_device_of_a_real_trace_is_its_machine(name: str, shared: Callable[[str], Path]) -> None:
    with gzip.open(shared(f"traces/{name}.json.gz"), "rt", errors="replace") as file:
        found = re.search(r'"deviceProperties":\s*(\[.*?\])', file.read(), re.DOTALL)
    assert found is not None
    told = json.loads(found[1])[0]
    compute = f"{told['computeMajor']}.{told['computeMinor']}"
    known = DeviceInfo("0", told["name"], told["totalGlobalMem"], told["numSms"], told["warpSize"], compute)
    machine = match(known).machine
    assert machine is not None and machine.name == TRACES[name]


def test_a_known_name_with_foreign_properties_is_not_believed() -> None:
    found = match(device("NVIDIA H100 80GB HBM3", 80e9, 78, "9.0"))
    assert found.machine is None
    assert "properties differ" in found.note


def test_a_name_in_no_table_is_said() -> None:
    found = match(device("NVIDIA Z900", 1e12, 500, "13.0"))
    assert found.machine is None
    assert "in no table" in found.note
