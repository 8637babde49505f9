"""The catalog: what ships loads, what is impossible does not, and every figure knows where it came from."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from ridgepole.errors import BadInput
from ridgepole.machine import catalog
from ridgepole.machine.model import Figure, Machine

PROMISED = (
    *("a100", "h100", "h100 pcie", "h100 nvl", "h200", "b200", "l4", "l40s", "t4", "v100", "a10g"),
    *("rtx 3090", "rtx 4090", "rtx 5090", "mi210", "mi250x", "mi300x", "mi325x", "mi355x"),
    *("m1", "m1 ultra", "m2", "m3", "m4", "m4 max"),
)


def figures(machine: Machine) -> list[Figure]:
    levels = [f for level in machine.memory for f in (level.capacity, level.bandwidth, level.latency) if f is not None]
    groups = [getattr(g, n) for g in (machine.limits, machine.overheads) for n in g.__dataclass_fields__]
    return [*machine.peaks.values(), *levels, *(f for f in groups if f is not None), *machine.links.values()]


def test_every_figure_of_every_machine_has_a_source() -> None:
    for machine in catalog.load().values():
        for figure in figures(machine):
            assert figure.source.kind in ("datasheet", "measured", "derived", "assumed"), machine.name
            assert len(figure.source.detail) > 5, machine.name
            assert figure.value > 0 or machine.kind == "cpu"


def test_names_and_aliases_lead_to_their_own_machine() -> None:
    for machine in catalog.load().values():
        for name in (machine.name, *machine.aliases):
            assert catalog.find(name).name == machine.name


def test_the_machines_that_were_promised_are_there() -> None:
    wanted = [
        *[
            "a100",
            "h100",
            "h200",
            "b200",
            "l4",
            "l40s",
            "t4",
            "v100",
            "a10g",
            "mi210",
            "mi250x",
            "mi300x",
            "mi325x",
            "mi355x",
            "m1",
            "m2",
            "m3",
            "m4",
        ]
    ]
    wanted += ["h100 pcie", "h100 nvl", "rtx 3090", "rtx 4090", "rtx 5090", "m1 ultra", "m4 max"]
    for name in wanted:
        assert catalog.find(name) is not None


def test_the_catalog_agrees_with_the_facts_it_was_checked_against(shared: Callable[[str], Path]) -> None:
    names = {"H100 SXM5 80GB": "h100", "A100 SXM4 80GB": "a100", "MI300X": "mi300x", "L4": "l4", "RTX 4090": "rtx 4090"}
    with shared("facts/gpus.csv").open() as file:
        rows = {row["gpu"]: row for row in csv.DictReader(file)}
    for gpu, name in names.items():
        machine, row = catalog.find(name), rows[gpu]
        assert machine.bandwidth == pytest.approx(float(row["mem_bw_gbs"]) * 1e9)
        assert machine.limits.sms.value == float(row["sms_or_cus"])
        peak = machine.peak("tensor", "bfloat16")
        assert peak is not None
        assert peak.value == pytest.approx(float(row["bf16_tensor_dense_tflops"]) * 1e12, rel=0.001)


def test_one_gcd_of_an_mi250x_is_half_of_what_the_package_is_sold_as() -> None:
    gcd = catalog.find("mi250x")
    assert gcd.limits.sms.value == 110
    assert gcd.bandwidth == pytest.approx(1.6385e12)


def test_a_volta_has_no_bf16_tensor_cores_and_runs_it_on_the_vector_units() -> None:
    v100 = catalog.find("v100")
    assert v100.peak("tensor", "bfloat16") is None
    rate = v100.rate("tensor", "bfloat16")
    assert rate is not None and rate.value == 15.7e12


def test_a_users_own_machine_is_found_by_name_and_by_file(own_home: Path) -> None:
    folder = own_home / "machines"
    folder.mkdir()
    shipped = Path(catalog.__file__).parent / "catalog" / "nvidia-hopper.toml"
    text = shipped.read_text()
    head, first = text.split("[[machine]]", 2)[:2]
    mine = (
        head
        + "[[machine]]"
        + first.replace('name = "H100 SXM"', 'name = "Ours"').replace("aliases = [", 'aliases = ["our-box", ')
    )
    (folder / "ours.toml").write_text(mine)
    assert catalog.find("our-box").name == "Ours"
    assert catalog.find(str(folder / "ours.toml")).name == "Ours"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('source = "', 'source = "somewhere: '), "begins with none of"),
        (("bandwidth = ", "bandwidth = true # "), "not a number"),
        (("bandwidth = ", "bandwidth = nan # "), "bandwidth"),
        (("sms = 132", "sms = 13200"), "SMs is outside"),
        (("sms = 132", "sms = -1"), "not a positive number"),
        (("sms = 132", "sms = 1e999"), "not a positive number"),
        (("bandwidth = 3.35e12", "bandwidth = 3.35e9"), "bandwidth 3.35e.09 B/s is outside"),
        (("bandwidth = 3.35e12", "bandwidth = 3.35e15"), "bandwidth 3.35e.15 B/s is outside"),
        (("bandwidth = 3.35e12", "bandwidth = { value = 3350, unit = 'GB/s' }"), "must be in 'B/s'"),
        (("bandwidth = 3.35e12", "bandwidth = '3.35 TFLOP/s'"), "not a quantity in B/s"),
        (("bandwidth = 3.35e12", "bandwith = 3.35e12"), "'bandwith', which is no key"),
        (('"tensor bfloat16" = 9.89e14', '"tensor bfloat16" = 1.979e15'), "quoted with sparsity"),
        (('"tensor float8" = 1.979e15', '"tensor float8" = 3.958e15'), "quoted with sparsity"),
        (('"vector float32" = 6.7e13', '"vector float32" = 6.7e10'), "ridge 0.02 FLOP/B is outside"),
        (("clock = 1.98e9", "clock = 1980"), "clock 1980 Hz is outside"),
        (("l2 = 5e7", "l2 = -5e7"), "l2 capacity is -5e.07, not a positive number"),
        (("launch = { value = 2.5e-6", "launch = { value = 2.5"), "launch 2.5 s is outside"),
        (('confidence = "high"', 'confidence = "certain"'), "none of high, medium, low"),
        (('name = "H100 SXM"', "name = 100"), "name is no text"),
        (('name = "H100 SXM"', 'name = "NVIDIA"'), "no word that tells it"),
        (('aliases = ["h100"', "aliases = [7"), "no list of texts"),
        (('"tensor bfloat16"', '"matrix bfloat16"'), "neither tensor nor vector"),
        (('"tensor bfloat16"', '"tensor bf17"'), "not a dtype"),
        (("[machine.peaks]", "[machine.nothing]"), "'nothing', which is no key"),
        (("bandwidth = 3.35e12", ""), "misses 'bandwidth'"),
        (("warp = 32", ""), "misses 'warp'"),
        (("[[machine]]", "[machine"), "not TOML"),
    ],
)
def test_a_broken_row_says_what_is_wrong_with_it(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    shipped = Path(catalog.__file__).parent / "catalog" / "nvidia-hopper.toml"
    head, row = shipped.read_text().split("[[machine]]", 2)[:2]
    path = tmp_path / "mine.toml"
    path.write_text((head + "[[machine]]" + row).replace(*change))
    with pytest.raises(BadInput, match=said) as caught:
        catalog.find(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no [[machine]] row"),
        ("machine = 3", "no [[machine]] row"),
        ("machine = []", "no [[machine]] row"),
        ("machine = [3]", "a row that is no table"),
        ("machine = [{}]", "a row without a name"),
        ("family = 3\nmachine = [{name = 'X1'}]", "no table"),
        ("family = {limits = 3}\nmachine = [{name = 'X1'}]", "no table"),
        ("machine = [{name = 'X1'}]", "misses 'source'"),
    ],
)
def test_a_file_of_another_shape_says_what_it_lacks(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        catalog.find(str(path))
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_users_file_that_does_not_load_is_named_and_ours_need_none(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = own_home / "machines"
    folder.mkdir()
    (folder / "broken.toml").write_text("machine = [")
    with pytest.raises(BadInput, match=r"broken\.toml is not TOML"):
        catalog.load()
    monkeypatch.setenv("RIDGEPOLE_HOME", str(tmp_path))
    assert "H100 SXM" in catalog.load()


def test_a_machine_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    head, row = (
        (Path(catalog.__file__).parent / "catalog" / "nvidia-hopper.toml").read_text().split("[[machine]]", 2)[:2]
    )
    path = tmp_path / "mine.toml"
    path.write_text(f"{head}[[machine]]{row}[[machine]]{row}")
    with pytest.raises(BadInput, match="is there twice"):
        catalog.read(path)


def test_figures_may_be_written_with_their_units(tmp_path: Path) -> None:
    head, row = (
        (Path(catalog.__file__).parent / "catalog" / "nvidia-hopper.toml").read_text().split("[[machine]]", 2)[:2]
    )
    path = tmp_path / "mine.toml"
    said = row.replace("bandwidth = 3.35e12", 'bandwidth = "3.35 TB/s"').replace("clock = 1.98e9", 'clock = "1.98 GHz"')
    path.write_text(f"{head}[[machine]]{said}")
    assert catalog.find(str(path)) == catalog.find("h100")
