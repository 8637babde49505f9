"""The catalog: what ships loads, what is impossible does not, and every figure knows where it came from."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize("name", PROMISED)
def test_the_machines_that_were_promised_are_there(name: str) -> None:
    assert catalog.find(name).bandwidth > 0


# Where the catalog means to differ from the facts it was made of, and why.
CORRECTED = {
    ("B200 SXM 180GB", "fp32_vec_tflops"): "NVIDIA's individual figure is 75; 80 is the GB200's",
    ("B200 SXM 180GB", "tf32_dense_tflops"): "2.2 PFLOP/s with sparsity",
    ("H200 SXM 141GB", "l2_mb"): "the driver reports 60 MiB",
    ("V100 SXM2 32GB", "int8_dense_tops"): "not the tensor cores': DP4A",
}
PEAKS = {
    "fp32_vec_tflops": ("vector", "float32"),
    "tf32_dense_tflops": ("tensor", "tf32"),
    "fp16_tensor_dense_tflops": ("tensor", "float16"),
    "bf16_tensor_dense_tflops": ("tensor", "bfloat16"),
    "fp8_dense_tflops": ("tensor", "float8"),
    "int8_dense_tops": ("tensor", "int8"),
    "fp4_dense_tflops": ("tensor", "float4"),
}


def test_the_catalog_agrees_with_the_facts_it_was_checked_against(shared: Callable[[str], Path]) -> None:
    with shared("facts/gpus.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["vendor"] in ("NVIDIA", "AMD", "Intel")]
    for row in rows:
        gpu = row["gpu"]
        machine = catalog.find(gpu.replace(" (per GPU)", ""))
        half = 0.5 if gpu == "MI250X" else 1.0  # the package is two devices
        said = {
            "mem_bw_gbs": machine.bandwidth / 1e9,
            "l2_mb": _capacity(machine, "l2"),
            "llc_mb": _capacity(machine, "llc"),
        }
        for column, (unit, dtype) in PEAKS.items():
            peak = machine.peak(unit, dtype)  # type: ignore[arg-type]
            said[column] = None if peak is None else peak.value / 1e12
        for column, value in said.items():
            if row[column] and (gpu, column) not in CORRECTED:
                assert value == pytest.approx(float(row[column]) * half, rel=0.06 if column == "l2_mb" else 0.002), (
                    gpu,
                    column,
                )
        if row["sms_or_cus"]:
            assert machine.limits.sms.value == float(row["sms_or_cus"]) * half


def _capacity(machine: Machine, level: str) -> float | None:
    found = machine.level(level)
    return None if found is None or found.capacity is None else found.capacity.value / 1e6


def test_fp8_is_twice_sixteen_bits_and_never_the_sparse_four_times() -> None:
    for machine in catalog.load().values():
        half, eight = machine.peak("tensor", "bfloat16"), machine.peak("tensor", "float8")
        if machine.name == "Gaudi 3" or machine.measured_of:  # whose fp8 is as fast as its bf16; what was reached
            continue
        if half is not None and eight is not None:
            assert eight.value == pytest.approx(2 * half.value, rel=0.02), machine.name


def test_fp64_is_never_taken_for_fp32() -> None:
    # A GeForce does fp64 at a 64th of fp32; without a figure of its own it would be priced at fp32's.
    for machine in catalog.load().values():
        if machine.vendor in ("NVIDIA", "AMD"):
            plain, double = machine.peak("vector", "float32"), machine.peak("vector", "float64")
            assert plain is not None and double is not None, machine.name
            assert plain.value / 70 < double.value <= plain.value, machine.name


def test_every_gpu_knows_how_many_sms_it_has() -> None:
    assert {m.name for m in catalog.load().values() if m.limits.sms.source.kind == "assumed"} == set()


def test_an_h200_has_the_l2_that_its_driver_reports() -> None:
    level = catalog.find("h200").level("l2")
    assert level is not None and level.capacity is not None
    assert level.capacity.value == 60 * 1024**2
    assert level.capacity.source.kind == "measured"


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


@pytest.mark.parametrize("what", ["pipe", "device"])
@pytest.mark.timeout(20)
def test_a_machine_file_that_may_never_end_is_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "mine.toml"
    if what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(os.devnull)
    with pytest.raises(BadInput, match=r"mine\.toml cannot be read: it is not a regular file"):
        catalog.read(path)


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


SHIPPED = sorted((Path(catalog.__file__).parent / "catalog").glob("*.toml"))
ODD = [
    "true",
    "-1",
    "0",
    "nan",
    "inf",
    "1e400",
    '""',
    '"x"',
    "[]",
    "{}",
    "[1]",
    "{ value = 1 }",
    "9" * 400,
    "2026-12-01",
]


@given(st.sampled_from(SHIPPED), st.data(), st.sampled_from(ODD))
def test_any_value_in_any_place_loads_or_is_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, shipped: Path, data: st.DataObject, odd: str
) -> None:
    lines = shipped.read_text().splitlines()
    places = [i for i, line in enumerate(lines) if " = " in line and not line.startswith("#")]
    place = data.draw(st.sampled_from(places))
    key = lines[place].split(" = ")[0]
    path = tmp_path_factory.getbasetemp() / "odd.toml"
    path.write_text("\n".join([*lines[:place], f"{key} = {odd}", *lines[place + 1 :]]))
    try:
        machines = catalog.read(path)
    except BadInput as error:
        assert "\n" not in str(error)
        assert "odd.toml" in str(error)
        assert " object " not in str(error), "Python's own words for a slip of ours"
    else:
        for machine in machines:
            # A CPU launches nothing, in no time.
            assert all(figure.value > 0 or (machine.kind == "cpu" and figure.value == 0) for figure in figures(machine))
