"""A measured machine: its own name, its own figures, and a place only where its user put it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import pytest

from ridgepole.errors import BadInput
from ridgepole.machine import catalog, detect, writing
from ridgepole.machine.match import by_name, match
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


def test_of_two_measurements_of_a_day_the_newer_file_counts(own: Path) -> None:
    writing.write(h200(4.0e12), own / "b.toml")
    writing.write(h200(4.2e12), own / "a.toml")
    os.utime(own / "b.toml", (1, 1))
    catalog.forget()
    found = catalog.measured_here("H200 SXM")
    assert found is not None and found.bandwidth == 4.2e12
    assert catalog.find("h200-measured") == found
    assert catalog.measured_here("") is None


def test_the_later_measurement_counts_however_files_were_copied(own: Path) -> None:
    level = MemoryLevel("dram", "device", None, Figure(4.1e12, "B/s", Source("measured", "later, 2027-01-02")), None)
    later = replace(h200(), memory=tuple(level if m.name == "dram" else m for m in h200().memory))
    writing.write(later, own / "a.toml")
    writing.write(h200(), own / "z.toml")
    os.utime(own / "a.toml", (1, 1))
    catalog.forget()
    assert catalog.measured_here("H200 SXM") == later == catalog.find("h200-measured") == match(Seen()).machine
    assert "2027-01-02" in match(Seen()).note


def test_a_measurement_that_ships_with_us_is_used_only_where_it_is_named() -> None:
    everything = {**catalog.load(), h200().name: h200()}
    assert match(Seen(), everything).machine == catalog.find("h200")
    assert match(Seen(name=""), everything).machine == catalog.find("h200")
    assert by_name("h200", everything) == catalog.find("h200")
    assert by_name("H200 SXM 141GB", everything) == catalog.find("h200")
    assert by_name("h200-measured", everything) == h200()


def test_a_link_to_nowhere_among_the_users_files_is_one_line(own: Path) -> None:
    own.mkdir()
    (own / "gone.toml").symlink_to(own / "nowhere")
    for ask in (lambda: catalog.measured_here("H200 SXM"), catalog.load, lambda: match(Seen())):
        catalog.forget()
        with pytest.raises(BadInput, match=r"gone\.toml cannot be read"):
            ask()


def test_a_measurement_is_never_built_on_a_measurement() -> None:
    assert catalog.datasheet(h200()) == catalog.find("h200")
    assert catalog.datasheet(catalog.find("h100")) == catalog.find("h100")
    with pytest.raises(ValueError, match="build on H200 SXM"):
        build(h200(), Measured())


@pytest.mark.parametrize("value", [0.0, -1e-7, 1.0])
def test_an_overhead_that_none_can_have_is_not_kept(value: float, tmp_path: Path) -> None:
    base = catalog.find("h200")
    found = build(base, Measured(overheads={"graph_gap": Figure(value, "s", HERE)}))
    assert found.overheads.graph_gap == base.overheads.graph_gap
    assert any(note.startswith("graph_gap came out at") for note in found.notes)
    writing.write(found, tmp_path / "x.toml")


def test_one_unit_measured_beside_another_by_its_datasheet_still_loads(tmp_path: Path) -> None:
    halves = {
        ("tensor", "float16"): Figure(7.9e14, "FLOP/s", HERE),
        ("tensor", "bfloat16"): Figure(8e14, "FLOP/s", HERE),
    }
    slow = {"clock": Figure(1.2e9, "Hz", HERE)}
    for found in (Measured(peaks=halves), Measured(limits=slow)):  # type: ignore[arg-type]
        machine = build(catalog.find("h200"), found)
        writing.write(machine, tmp_path / "x.toml")
        assert catalog.find(str(tmp_path / "x.toml")) == machine


def test_a_slow_memory_of_a_cpu_loads_and_of_a_gpu_does_not(tmp_path: Path) -> None:
    slow = {"dram": MemoryLevel("dram", "device", None, Figure(4e9, "B/s", HERE), None)}
    with pytest.raises(BadInput, match=r"not written: .*bandwidth 4e"):
        writing.write(build(catalog.find("h200"), Measured(levels=slow)), tmp_path / "x.toml")
    assert not list(tmp_path.iterdir())
    peaks = MappingProxyType({("vector", "float32"): Figure(5e10, "FLOP/s", HERE)})
    base = replace(catalog.find("h200"), kind="cpu", vendor="", compute="", peaks=peaks)  # type: ignore[arg-type]
    writing.write(build(base, Measured(levels=slow)), tmp_path / "x.toml")


def test_a_file_of_a_measurement_cannot_take_its_machines_name(own: Path) -> None:
    with pytest.raises(BadInput, match="measured_of is its own name"):
        writing.write(replace(h200(), name="H200 SXM"), own / "x.toml")


def test_the_users_own_measurement_takes_a_name_from_the_one_that_ships(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = replace(h200(), name="EPYC of ours measured", measured_of="EPYC of ours", aliases=("cpu-measured",))
    mine = replace(shipped, name="EPYC of mine measured", measured_of="EPYC of mine")
    writing.write(mine, own / "mine.toml")
    writing.write(shipped, tmp_path / "catalog" / "ours.toml")
    monkeypatch.setattr(catalog, "__file__", str(tmp_path / "catalog.py"))
    catalog.forget()
    assert catalog.find("cpu-measured") == mine
    assert catalog.find("EPYC of ours measured").measured_of == "EPYC of ours"


def test_two_of_the_users_that_share_an_alias_are_both_named(own: Path) -> None:
    for name in ("alpha", "beta"):
        each = replace(h200(), name=f"{name} measured", measured_of=name, aliases=("cpu-measured",))
        writing.write(each, own / f"{name}.toml")
    catalog.forget()
    with pytest.raises(BadInput, match="could be alpha measured, beta measured"):
        catalog.find("cpu-measured")


def test_each_count_of_threads_has_its_own_measurement(own: Path) -> None:
    here = detect.cpu()
    for threads in (1, 64):
        sms = replace(here.limits, sms=Figure(float(threads), "1", HERE))
        one = replace(here, name=f"{here.name} {threads} measured", measured_of=here.name, limits=sms)
        writing.write(one, own / f"{threads}.toml")
    for threads in (1, 64):
        found = catalog.measured_here(here.name, threads)
        assert found is not None and found.limits.sms.value == threads
    assert catalog.measured_here(here.name, 7) is None


def test_a_measured_cpu_is_what_this_cpu_is_from_then_on(own: Path) -> None:
    here = detect.cpu()
    writing.write(replace(here, name=here.name + " measured", measured_of=here.name, notes=("mine",)), own / "cpu.toml")
    catalog.forget()
    assert detect.cpu().notes == ("mine",)
    assert detect.cpu(measure_again=True).notes != ("mine",)
