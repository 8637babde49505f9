"""The Metal kernels' own text, compiled by a C++ compiler and run on the CPU with real threads and barriers.

This is what stands in for an Apple machine: it holds the text to float64, to its bounds and to its barriers. It says
nothing of Apple's compiler, nor of speed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ridgepole.kernels.device import Refused
from ridgepole.kernels.kernel import find, kernels
from ridgepole.kernels.prepare import prepare

from .metal_shim.shim import NO_COMPILER, Shim, compiler, sanitized
from .metal_shim.signature import signatures

SIZES: dict[str, tuple[tuple[int, ...], ...]] = {
    "add": ((1024,), (1,), (1000,)),
    "add_wide": ((1024,), (1,), (1003,), (1025,)),
    "add_stream": ((8192,), (1,), (4097,), (12283,)),
    "copy": ((1024,), (777,)),
    "copy_wide": ((1024,), (3,), (1022,)),
    "copy_stream": ((4096,), (4095,), (9001,)),
    "strided_copy": ((1024, 1), (4096, 33), (64, 1025), (1, 1)),
    "matmul_naive": ((32, 32, 32), (1, 1, 1), (17, 33, 5)),
    "matmul_tiled16": ((32, 32, 32), (1, 1, 1), (17, 33, 5), (16, 15, 49)),
    "matmul_tiled32": ((32, 64, 32), (1, 1, 1), (33, 31, 37)),
    "matmul_registers": ((64, 64, 32), (1, 1, 1), (65, 63, 17), (3, 130, 40)),
    "chase": ((1024, 16, 1000), (1, 1, 5), (100, 7, 0x101)),
    "chase_shared": ((4096, 16, 1000), (5, 2, 9)),
    "chase_registers": ((1000,), (1,)),
    "shared_probe": ((4096, 3), (4095, 40), (1, 2)),
    "empty": ((),),
    "spin": ((512, 100), (1, 1), (300, 7)),
    "hungry8": ((8 * 300,), (8,)),
    "hungry16": ((16 * 300,),),
    "hungry32": ((32 * 300,),),
    "hungry64": ((64 * 300,),),
    "hungry128": ((128 * 300,), (128,)),
    "double": ((1000,),),
    "plus_one": ((1000,),),
    "double_plus_one": ((1000,), (1,)),
    "attention": ((1, 64), (2, 1), (2, 97)),
    "attention_causal": ((1, 64), (2, 1), (2, 97)),
}
WAITING = ("matmul_tiled16", "matmul_registers", "shared_probe", "attention", "attention_causal")
"""Kernels whose threads wait for each other, and sizes at which each of their barriers matters."""
WAITING_SIZES = {"matmul_tiled16": (32, 32, 64), "matmul_registers": (64, 64, 48), "shared_probe": (4096, 40)}
MOST_SHARED = 32 << 10
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if compiler() is None:
        pytest.skip(NO_COMPILER)
    return tmp_path_factory.mktemp("metal")


@pytest.fixture
def watched(folder: Path) -> Path:
    """The folder, where the compiler can watch for accesses that leave their array."""
    if not sanitized():
        pytest.skip("this compiler has no sanitizers of addresses and behaviour")
    return folder


@pytest.fixture(scope="module")
def shim(folder: Path) -> Shim:
    return Shim(folder)


def changed(old: str, new: str, which: int = 0) -> Callable[[str], str]:
    """What puts `new` in place of the `which`-th `old`, which must be there."""

    def edit(text: str) -> str:
        at = [match.start() for match in re.finditer(re.escape(old), text)]
        return text[: at[which]] + new + text[at[which] + len(old) :]

    return edit


def sources() -> list[str]:
    return sorted(p.name for p in resources.files("ridgepole.kernels.metal").iterdir() if p.name.endswith(".metal"))


def test_no_kernel_of_the_library_goes_without_a_run() -> None:
    assert set(SIZES) == set(kernels.all())


@pytest.mark.parametrize("name", SIZES)
def test_every_kernel_gives_what_float64_gives_at_ordinary_and_awkward_sizes(shim: Shim, name: str) -> None:
    for sizes in SIZES[name]:
        made = prepare(shim, name, *sizes)
        assert made.error.relative <= made.kernel.tolerance
        assert made.program.shared is not None and made.program.shared <= MOST_SHARED


@pytest.mark.parametrize("name", ["matmul_tiled32", *WAITING])
def test_the_order_in_which_threads_run_between_barriers_is_nothing_to_the_result(folder: Path, name: str) -> None:
    first, second = (
        prepare(Shim(folder, seed=seed), name, *WAITING_SIZES.get(name, (2, 70)) if name in WAITING else (33, 40, 70))
        for seed in (2, 3)
    )
    assert numpy.array_equal(first.output(), second.output())


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(m=st.integers(1, 70), n=st.integers(1, 70), k=st.integers(1, 40))
def test_a_product_of_any_sizes_is_right_in_registers(shim: Shim, m: int, n: int, k: int) -> None:
    prepare(shim, "matmul_registers", m, n, k)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(n=st.integers(1, 20_000))
def test_a_stream_of_any_length_is_added_whole(shim: Shim, n: int) -> None:
    prepare(shim, "add_stream", n)


def test_a_larger_shared_memory_is_a_larger_array(shim: Shim) -> None:
    made = prepare(shim, "shared_probe", MOST_SHARED // 4, 3, defines={"BYTES": MOST_SHARED})
    assert made.program.shared == MOST_SHARED


@pytest.mark.parametrize("name", SIZES)
def test_a_kernel_declares_the_librarys_arguments_in_their_order(name: str) -> None:
    kernel = find(name)
    taken = next(s for s in signatures(kernel.source("metal")) if s.name == kernel.entry)
    types = {"float32": "float", "uint32": "uint"}
    inputs = kernel.make(numpy.random.default_rng(0), *SIZES[name][0])
    wanted = [
        *(("buffer", f"const {types[array.dtype.name]}") for array in inputs),
        *(("buffer", types[output.dtype]) for output in kernel.outputs),
        *(("size", "uint") for _ in kernel.sizes),
    ]
    assert [(argument.kind, argument.type) for argument in taken.arguments] == wanted
    assert [argument.index for argument in taken.arguments] == list(range(len(wanted)))
    assert tuple(argument.name for argument in taken.arguments if argument.kind == "size") == kernel.sizes
    # Metal wants the positions of a kernel to have one number of dimensions.
    assert len({position.type for position in taken.positions}) <= 1


@pytest.mark.parametrize("name", sources())
def test_a_text_is_ascii_and_says_which_library_it_uses(name: str) -> None:
    text = resources.files("ridgepole.kernels.metal").joinpath(name).read_bytes().decode("ascii")
    assert "#include <metal_stdlib>\nusing namespace metal;\n" in text
    # torch has no way to give threadgroup memory at launch.
    assert "[[threadgroup(" not in text


@pytest.mark.parametrize(
    ("name", "which"), [(name, which) for name in WAITING for which in range(1 if name == "shared_probe" else 2)]
)
def test_without_one_of_its_barriers_a_kernel_is_wrong(folder: Path, name: str, which: int) -> None:
    broken = Shim(folder, edit=changed(BARRIER, "", which))
    with pytest.raises(Refused, match="gives a wrong result"):
        prepare(broken, name, *WAITING_SIZES.get(name, (1, 97)))


def test_threadgroup_memory_that_nobody_wrote_is_not_zero(folder: Path) -> None:
    broken = Shim(folder, edit=changed("tile_a[t.y][t.x] =", "if (t.x != 3) tile_a[t.y][t.x] ="))
    with pytest.raises(Refused, match="gives a wrong result"):
        prepare(broken, "matmul_tiled16", 16, 16, 16)


def test_a_barrier_that_some_threads_do_not_come_to_is_refused(folder: Path) -> None:
    broken = Shim(folder, edit=changed(BARRIER, f"if (t.x < 8) {BARRIER}"))
    with pytest.raises(Refused, match=r"line \d+: the threads of a threadgroup part at this barrier"):
        prepare(broken, "matmul_tiled16", 16, 16, 16)


def test_a_barrier_that_does_not_order_threadgroup_memory_is_refused(folder: Path) -> None:
    broken = Shim(folder, edit=changed("mem_flags::mem_threadgroup", "mem_flags::mem_none"))
    with pytest.raises(Refused, match="does not order threadgroup memory"):
        prepare(broken, "matmul_tiled16", 16, 16, 16)


@pytest.mark.parametrize(
    ("name", "sizes", "guard", "without"),
    [
        ("add", (1000,), "if (i < n) out[i]", "out[i]"),
        ("add_wide", (1003,), "quad < n / 4", "quad <= n / 4"),
        ("copy_stream", (4097,), "n - first >= TILE", "true"),
        ("strided_copy", (64, 3), "& (n - 1)", ""),
        ("matmul_naive", (17, 16, 16), "if (row >= m || col >= n) return;", ""),
        ("matmul_tiled16", (17, 16, 16), "row < m && ", ""),
        ("matmul_registers", (16, 65, 16), "r < m && q < n", "r < m"),
        ("hungry8", (8 * 10,), "if (t >= apart) return;", ""),
        ("spin", (100, 3), "if (i < threads) out[i] = x", "out[i + 1] = x"),
        ("attention", (1, 33), "row < n ?", "true ?"),
    ],
)
def test_without_its_guard_a_kernel_leaves_its_buffers_and_is_caught(
    watched: Path, name: str, sizes: tuple[int, ...], guard: str, without: str
) -> None:
    with pytest.raises(Refused, match="heap-buffer-overflow"):
        prepare(Shim(watched, edit=changed(guard, without)), name, *sizes)


def test_an_index_past_a_threadgroup_array_is_caught(watched: Path) -> None:
    broken = Shim(watched, edit=changed("tile_a[t.y][i]", "tile_a[t.y][i + 1]"))
    with pytest.raises(Refused, match="index 16 out of bounds"):
        prepare(broken, "matmul_tiled16", 16, 16, 16)


def test_a_wide_access_that_is_not_aligned_is_caught(watched: Path) -> None:
    broken = Shim(watched, edit=changed("(device const float4 *)a)", "(device const float4 *)(a + 1))"))
    with pytest.raises(Refused, match="misaligned address"):
        prepare(broken, "add_wide", 1024)


def test_a_text_that_is_no_program_is_refused_by_its_line(folder: Path) -> None:
    with pytest.raises(Refused, match=r"metal:6:\d+: error"):
        prepare(Shim(folder, edit=changed("empty() {", "empty() {\n    what;")), "empty")
