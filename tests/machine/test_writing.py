"""A machine written as a file is the same machine when it is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepole.errors import BadInput
from ridgepole.machine import catalog, writing
from ridgepole.machine.model import Figure, MemoryLevel, Source

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
SOURCE = st.builds(
    Source, st.sampled_from(["datasheet", "measured", "derived", "assumed"]), TEXT.map(str.strip).filter(bool)
)


def read_back(machine: object, path: Path) -> object:
    writing.write(machine, path)  # type: ignore[arg-type]
    return catalog.find(str(path))


@pytest.mark.parametrize("name", list(catalog.load()))
def test_every_machine_of_the_catalog_comes_back_the_same(name: str, tmp_path: Path) -> None:
    machine = catalog.load()[name]
    assert read_back(machine, tmp_path / "x.toml") == machine


@given(notes=st.lists(TEXT, max_size=3), source=SOURCE, value=st.floats(1e10, 2e13), latency=st.floats(1e-9, 1e-6))
def test_any_note_source_and_figure_comes_back_the_same(
    notes: list[str], source: Source, value: float, latency: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = catalog.find("h100")
    memory = tuple(
        MemoryLevel(m.name, m.scope, m.capacity, Figure(value, "B/s", source), Figure(latency, "s", source))
        for m in base.memory
    )
    dram = Figure(base.bandwidth, "B/s", source)
    memory = (*memory[:-1], replace(memory[-1], bandwidth=dram))
    machine = replace(base, name="mine", notes=tuple(notes), memory=memory, measured_of="H100 SXM")
    assert read_back(machine, tmp_path_factory.mktemp("m") / "x.toml") == machine


@given(name=TEXT.filter(lambda text: any(c.isascii() and c.isalnum() for c in text)), detail=TEXT.filter(str.strip))
def test_any_name_comes_back_the_same_with_every_link_and_constant(
    name: str, detail: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = catalog.find("h200")
    source = Source("measured", detail)
    machine = replace(
        base,
        name=f"x{name}",
        aliases=(name, f"{name}-measured"),
        measured_of="H200 SXM",
        links={"link": Figure(4.5e11, "B/s", source), name: Figure(6.4e10, "B/s", source)},
        tuning={name: Figure(0.97, "elements", source)},
    )
    assert read_back(machine, tmp_path_factory.mktemp("m") / "x.toml") == machine


def test_a_figure_stands_in_one_place_of_the_file() -> None:
    assert writing.text(catalog.find("h200")).count("4800000000000.0") == 1


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"machine file .* cannot be written"):
        writing.write(catalog.find("h100"), tmp_path / "file" / "x.toml")


def test_nothing_is_left_beside_the_file(tmp_path: Path) -> None:
    writing.write(catalog.find("h100"), tmp_path / "x.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["x.toml"]
