"""The CUDA kernels compile without a GPU, for three generations, and take what they should of an SM."""

from __future__ import annotations

import pytest

from ridgepole.errors import Missing
from ridgepole.kernels.cuda import clocks, compiler
from ridgepole.kernels.device import Refused, open_device
from ridgepole.kernels.kernel import find, kernels

pytest.importorskip("cuda.core")
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")
MOST_REGISTERS, SM_REGISTERS = 255, 65_536
STATIC = {
    "matmul_tiled16": 2 * 16 * 16 * 4,
    "matmul_tiled32": 2 * 32 * 32 * 4,
    "matmul_registers": 2 * 16 * (64 + 4) * 4,
    "chase_shared": 4096 * 4,
    "attention": 2 * 32 * 64 * 4,
    "attention_causal": 2 * 32 * 64 * 4,
}
"""Bytes of shared memory by the arrays in the text; every other kernel has none."""


def taken(name: str, arch: str) -> compiler.Resources:
    kernel = find(name)
    return compiler.resources(kernel.source("cuda"), kernel.entry, kernel.defines, arch)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", sorted(kernels.all()))
def test_it_compiles_without_a_spill_and_fits_an_sm(name: str, arch: str) -> None:
    found = taken(name, arch)
    assert found.spilled == 0
    assert 0 < found.registers <= MOST_REGISTERS
    assert found.shared == STATIC.get(name, 0)
    kernel = find(name)
    sizes = {"hungry8": (1 << 20,)}.get(name) or tuple(1 << 10 for _ in kernel.sizes)
    assert found.registers * kernel.launch(*sizes).threads <= SM_REGISTERS


def test_what_a_thread_keeps_alive_is_in_its_registers() -> None:
    counts = [taken(f"hungry{live}", "sm_90a").registers for live in (8, 16, 32, 64, 128)]
    assert counts == sorted(counts) and counts[-1] >= 128


@pytest.mark.parametrize(
    ("body", "said"),
    [("int x = y;", r'line 2: identifier "y" is undefined'), ("int x = 1 2;", r'line 2: expected a ";"')],
)
def test_an_error_is_one_line_with_the_line_of_the_file(body: str, said: str) -> None:
    with pytest.raises(Refused, match=said) as caught:
        compiler.build(f'extern "C" __global__ void f() {{\n  {body}\n}}', "f", {"TILE": 16}, "sm_90a")
    assert "\n" not in str(caught.value)


def test_a_kernel_that_is_not_there_is_said() -> None:
    with pytest.raises(Refused, match="no kernel of this name"):
        compiler.resources('extern "C" __global__ void f() {}', "g", {}, "sm_90a")


def test_an_architecture_that_is_none_is_one_line() -> None:
    with pytest.raises(Refused) as caught:
        compiler.build('extern "C" __global__ void f() {}', "f", {}, "sm_12")
    assert "\n" not in str(caught.value)


def test_without_a_gpu_it_says_which_part_is_missing() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(Missing, match=r"built without CUDA|finds no CUDA device"):
        open_device("cuda")


def test_clocks_are_read_as_nvidia_smi_writes_them() -> None:
    found = clocks.parse("580.159.04, 1980, 3201, 133.15\n")
    assert (found.driver, found.sm, found.memory, found.power) == ("580.159.04", 1.98e9, 3.201e9, 133.15)
    assert str(found) == "SM 1,980 MHz, memory 3,201 MHz, 133 W"
    unknown = clocks.parse("580.159.04, [N/A], [N/A], [N/A]\n")
    assert unknown.sm is None and "not known" in str(unknown)
    assert clocks.parse("") == clocks.Clocks()
