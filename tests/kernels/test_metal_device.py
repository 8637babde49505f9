"""kernels/metal/device.py with a stand-in for torch.mps. No Apple machine ran it: this holds it to torch's source."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from ridgepole.errors import Missing
from ridgepole.kernels.device import Launch, Refused, backends
from ridgepole.kernels.metal import device
from ridgepole.kernels.prepare import prepare
from ridgepole.machine import detect

from .metal_shim import torch_mps
from .metal_shim.shim import NO_COMPILER, Shim, compiler

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("metal")


@pytest.fixture
def torch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    if compiler() is None:
        pytest.skip(NO_COMPILER)
    made = torch_mps.stand_in(Shim(folder))
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


@pytest.fixture
def metal(torch: SimpleNamespace) -> device.Metal:
    return device.Metal(0)


def test_metal_is_tried_after_cuda_and_before_opencl() -> None:
    found = backends.all()["metal"]
    assert (found.suffix, found.order) == (".metal", 1)


def test_here_metal_is_missing_in_one_line_that_says_what_it_takes() -> None:
    if sys.platform == "darwin":
        pytest.skip("this is about machines that are no Mac")
    with pytest.raises(Missing, match=r"built without Metal.*Mac with Apple silicon") as caught:
        backends.all()["metal"].names()
    assert "\n" not in str(caught.value)
    with pytest.raises(Missing):
        backends.all()["metal"].open(0)


def test_a_mac_without_a_device_and_a_torch_too_old_are_each_told(torch: SimpleNamespace) -> None:
    torch.backends.mps.is_available = lambda: False
    with pytest.raises(Missing, match="finds no Metal"):
        device.names()
    torch.backends.mps.is_available = lambda: True
    del torch.mps.compile_shader
    with pytest.raises(Missing, match=r"torch 2\.8 or later, and this is 2\.0\.stand-in: pip install"):
        device.names()


def test_a_device_says_its_name_cores_and_memory(torch: SimpleNamespace, metal: device.Metal) -> None:
    assert device.names() == ("Apple M0",)
    assert (metal.limits.sms, metal.limits.memory) == (torch_mps.CORES, torch_mps.MEMORY)
    assert (metal.limits.warp, metal.limits.threads_per_block, metal.limits.shared_per_block) == (32, 1024, 32768)
    assert "torch 2.0.stand-in" in metal.driver


def test_an_older_torch_leaves_name_and_cores_to_the_system(
    torch: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    del torch.backends.mps.get_name, torch.backends.mps.get_core_count
    said = {"ioreg": '"gpu-core-count" = 30\n', "sysctl": "Apple M3 Max\n"}
    monkeypatch.setattr(detect, "_said", lambda *command: said[command[0]])
    found = device.Metal(0)
    assert (found.name, found.limits.sms) == ("Apple M3 Max", 30)
    said["ioreg"] = ""
    with pytest.raises(Missing, match="how many cores"):
        device.Metal(0)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("add", (1000,)),
        ("matmul_tiled16", (17, 33, 5)),
        ("matmul_registers", (65, 63, 17)),
        ("attention_causal", (2, 70)),
        ("chase_registers", (9,)),
        ("shared_probe", (4096, 3)),
        ("empty", ()),
    ],
)
def test_a_kernel_prepared_through_torch_gives_what_float64_gives(
    metal: device.Metal, name: str, sizes: tuple[int, ...]
) -> None:
    prepare(metal, name, *sizes, sets=2).run(1)


def test_threads_are_counted_in_all_and_a_threadgroup_by_its_own(metal: device.Metal) -> None:
    made = prepare(metal, "matmul_tiled16", 17, 33, 5)
    assert made.program.kernel.calls[-1] == ([48, 32, 1], [16, 16, 1])  # type: ignore[attr-defined]


def test_lines_of_errors_are_those_of_the_file_whatever_macros_come_first(metal: device.Metal) -> None:
    said = device.text("kernel", "add", {"TILE": 16, "DEEP": 8})
    assert said == '#define TILE 16\n#define DEEP 8\n#line 1 "add.metal"\nkernel'
    assert device._said(SyntaxError("add.metal:7:3: error: no such thing\nmore")) == "line 7: no such thing"
    assert device._said(RuntimeError("")) == "RuntimeError"
    with pytest.raises(Refused, match="add does not compile for Apple M0"):
        metal.compile("kernel void add() { what; }", "add", {})
    with pytest.raises(Refused, match="does not compile for Apple M0: Failed to create function state object"):
        metal.compile("kernel void add() {}", "other", {})


def test_what_a_kernel_cannot_have_is_refused_before_it_is_launched(metal: device.Metal) -> None:
    with pytest.raises(Refused, match="2048 threads a threadgroup, where it gives this kernel at most 1024"):
        prepare(metal, "add", 4096, launch=Launch((2, 1, 1), (2048, 1, 1)))
    with pytest.raises(Refused, match=r"asks for 16,400 B.*16,384 B here"):
        prepare(metal, "shared_probe", 4100, 1)


def test_memory_that_is_out_is_told_in_one_line(metal: device.Metal, torch: SimpleNamespace) -> None:
    def empty(*args: object, **kwargs: object) -> None:
        raise RuntimeError("MPS backend out of memory (MPS allocated: 1 GB)\nUse less")

    torch.empty = empty
    with pytest.raises(Refused, match=r"no room for 4,000 B more \(MPS backend out of memory") as caught:
        metal.upload(numpy.zeros(1000, "float32"))
    assert "\n" not in str(caught.value)


def test_elapsed_queues_every_call_and_waits_before_and_after(metal: device.Metal, torch: SimpleNamespace) -> None:
    ran: list[tuple[int, int]] = []
    before = len(torch.mps.waits)
    assert metal.elapsed(lambda i: ran.append((i, len(torch.mps.waits) - before)), 3) > 0
    assert ran == [(0, 1), (1, 1), (2, 1)]
    assert len(torch.mps.waits) - before == 2
    assert metal.graph(lambda i: None, 3) is None


def test_a_buffer_comes_back_as_it_went(metal: device.Metal) -> None:
    array = numpy.arange(7, dtype="uint32")
    array.flags.writeable = False
    assert numpy.array_equal(metal.download(metal.upload(array), "uint32", 7), array)
    assert metal.download(metal.upload(array[:0]), "uint32", 0).size == 0
