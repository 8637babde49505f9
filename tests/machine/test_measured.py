"""A measured machine: its own name, its own figures, and a place only where its user put it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest

from ridgepole.errors import BadInput
from ridgepole.machine import catalog, detect, writing
from ridgepole.machine.match import match
from ridgepole.machine.measured import Measured, build
from ridgepole.machine.model import Figure, Machine, MemoryLevel, Source
from ridgepole.price.undiscounted import constants

HERE = Source("measured", "a test, 2026-12-01")


@dataclass(frozen=True)
class Seen:
    name: str = "NVIDIA H200"
    memory: int | None = 150_109_880_320
    sms: int | None = 132
    warp: int | None = 32
    compute: str = "9.0"


def h200(bandwidth: float = 4.3e12) -> Machine:
    """An H200 whose bandwidth and bf16 peak were measured."""
    from dataclasses import replace

    base = catalog.find("h200")
    found = build(
        base,
        Measured(
            peaks={("tensor", "bfloat16"): Figure(7.6e14, "FLOP/s", HERE)},
            levels={"dram": MemoryLevel("dram", "device", None, Figure(bandwidth, "B/s", HERE), None)},
            overheads={"launch": Figure(2.6e-6, "s", HERE)},
            notes=("measured by a test",),
        ),
    )
    return replace(found, tuning=MappingProxyType(dict(constants(base, found))))


@pytest.fixture
def own(own_home: Path) -> Path:
    """The folder of the user's machine files, read afresh before and after."""
    catalog.forget()
    yield own_home / "machines"
    catalog.forget()


def test_it_keeps_what_was_not_measured_with_its_own_source() -> None:
    base, found = catalog.find("h200"), h200()
    assert found.name == "H200 SXM measured" and found.measured_of == "H200 SXM"
    assert found.bandwidth == 4.3e12 and found.overheads.launch.source == HERE
    assert found.peak("vector", "float32") == base.peak("vector", "float32")
    assert found.level("l2") == base.level("l2")
    assert found.level("dram").capacity == base.level("dram").capacity  # type: ignore[union-attr]


def test_a_name_means_the_datasheet_unless_it_says_measured(own: Path) -> None:
    writing.write(h200(), own / "h200.toml")
    catalog.forget()
    assert catalog.find("h200").name == "H200 SXM"
    assert catalog.find("NVIDIA H200").name == "H200 SXM"
    assert catalog.find("h200-measured").name == "H200 SXM measured"
    with pytest.raises(BadInput):
        catalog.find("measured")


def test_a_device_is_the_datasheet_row_until_its_user_measured_it(own: Path) -> None:
    assert match(Seen()).machine == catalog.find("h200")
    writing.write(h200(), own / "h200.toml")
    catalog.forget()
    found = match(Seen())
    assert found.machine == h200()
    assert "measured here" in found.note
    assert match(Seen(name="NVIDIA H100 80GB HBM3", memory=80_000_000_000)).machine == catalog.find("h100")


def test_a_nameless_device_is_not_split_between_a_machine_and_its_measurement(own: Path) -> None:
    writing.write(h200(), own / "h200.toml")
    catalog.forget()
    assert match(Seen(name="")).machine == h200()


def test_of_two_measurements_the_newer_file_counts(own: Path) -> None:
    writing.write(h200(4.0e12), own / "b.toml")
    writing.write(h200(4.2e12), own / "a.toml")
    os.utime(own / "b.toml", (1, 1))
    found = catalog.measured_here("H200 SXM")
    assert found is not None and found.bandwidth == 4.2e12
    assert catalog.measured_here("") is None


def test_a_measured_cpu_is_what_this_cpu_is_from_then_on(own: Path) -> None:
    from dataclasses import replace

    here = detect.cpu()
    writing.write(replace(here, name=here.name + " measured", measured_of=here.name, notes=("mine",)), own / "cpu.toml")
    catalog.forget()
    assert detect.cpu().notes == ("mine",)
    assert detect.cpu(measure_again=True).notes != ("mine",)
