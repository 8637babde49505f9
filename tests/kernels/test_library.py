"""Every kernel of the library, run by OpenCL and held to float64 at ordinary and at awkward sizes."""

from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepole.errors import BadInput, Missing
from ridgepole.kernels.device import Device, Refused, open_device
from ridgepole.kernels.kernel import find, kernels
from ridgepole.kernels.library import chase, hungry
from ridgepole.kernels.prepare import prepare

STREAMS = ("add", "add_wide", "add_stream", "copy", "copy_wide", "copy_stream", "double", "plus_one", "double_plus_one")
RUNGS = ("matmul_naive", "matmul_tiled16", "matmul_tiled32", "matmul_registers")
AWKWARD = (1, 7, 63, 65, 100, 257)
EVERY: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(STREAMS, (4099,)),
    **dict.fromkeys(RUNGS, (65, 100, 33)),
    **{f"hungry{live}": (live * 65,) for live in hungry.LIVES},
    "strided_copy": (1024, 33),
    "chase": (4096, 16, 1000),
    "chase_shared": (4096, 16, 1000),
    "chase_registers": (1000,),
    "shared_probe": (4096, 3),
    "empty": (),
    "spin": (256, 30),
    "attention": (2, 100),
    "attention_causal": (2, 100),
}
few = settings(max_examples=12, deadline=None)


@pytest.fixture(scope="module")
def device() -> Device:
    try:
        return open_device("opencl")
    except Missing as error:
        pytest.skip(str(error))


def test_every_kernel_of_the_library_has_sizes_here() -> None:
    assert set(kernels.all()) == set(EVERY)


@pytest.mark.parametrize("name", sorted(EVERY))
def test_every_kernel_gives_what_float64_gives(device: Device, name: str) -> None:
    made = prepare(device, name, *EVERY[name])
    assert made.error.relative <= find(name).tolerance
    if name not in ("empty", "chase", "chase_shared", "chase_registers", "shared_probe"):
        assert made.bytes > 0


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("n", (*AWKWARD, 4096))
def test_a_stream_reaches_its_last_element_at_any_size(device: Device, name: str, n: int) -> None:
    prepare(device, name, n)


@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (7, 63, 65), (65, 7, 100), (257, 65, 1), (1, 100, 257), (64, 128, 32)])
def test_a_rung_handles_matrices_that_are_no_multiple_of_its_tile(
    device: Device, name: str, sizes: tuple[int, int, int]
) -> None:
    prepare(device, name, *sizes)


@few
@given(m=st.integers(1, 140), n=st.integers(1, 140), k=st.integers(1, 140))
def test_all_rungs_agree_on_any_product(m: int, n: int, k: int) -> None:
    device = _cached()
    results = [prepare(device, name, m, n, k).output() for name in RUNGS]
    for result in results[1:]:
        assert numpy.allclose(result, results[0], rtol=0, atol=1e-4 * math.sqrt(k))


@few
@given(power=st.integers(0, 12), half=st.integers(0, 3000))
def test_an_odd_stride_reads_each_element_once(power: int, half: int) -> None:
    n, stride = 1 << power, 2 * half + 1
    made = prepare(_cached(), "strided_copy", n, stride)
    read = find("strided_copy").make(numpy.random.default_rng(20261201), n, stride)[0]
    assert sorted(made.output().tolist()) == sorted(read.tolist())


@few
@given(lines=st.integers(1, 300), stride=st.integers(1, 40), steps=st.integers(1, 2000))
def test_a_chase_ends_where_its_permutation_says(lines: int, stride: int, steps: int) -> None:
    made = prepare(_cached(), "chase", lines * stride, stride, steps)
    order = chase.slots(numpy.random.default_rng(20261201), lines * stride, stride)
    assert made.output()[0] == order[steps % lines]


@given(lines=st.integers(1, 500), stride=st.integers(1, 40), rest=st.integers(0, 39))
def test_a_chase_is_one_cycle_through_every_line(lines: int, stride: int, rest: int) -> None:
    elements = lines * stride + rest % stride
    (following,) = find("chase").make(numpy.random.default_rng(1), elements, stride, 1)
    seen, at = set(), 0
    for _ in range(lines):
        seen.add(at)
        at = int(following[at])
    assert at == 0 and seen == {line * stride for line in range(lines)}


@pytest.mark.parametrize("name", ("attention", "attention_causal"))
@pytest.mark.parametrize("sizes", [(1, 1), (3, 7), (2, 63), (1, 65), (2, 257)])
def test_attention_handles_any_number_of_queries(device: Device, name: str, sizes: tuple[int, int]) -> None:
    prepare(device, name, *sizes)


def test_a_causal_query_does_not_see_later_keys(device: Device) -> None:
    """The first query sees one key only, so that its result is that key's value."""
    made = prepare(device, "attention_causal", 1, 70)
    value = find("attention_causal").make(numpy.random.default_rng(20261201), 1, 70)[2]
    assert numpy.allclose(made.output()[0, 0], value[0, 0], rtol=1e-6)


def test_a_small_register_chain_can_be_followed_by_hand(device: Device) -> None:
    made = prepare(device, "chase_registers", 2)
    seed = int(find("chase_registers").make(numpy.random.default_rng(20261201), 2)[0][0])
    once = (seed * seed + chase.OFFSET) % 2**32
    assert made.output()[0] == (once * once + chase.OFFSET) % 2**32


def test_the_threads_of_a_hungry_kernel_cover_the_input(device: Device) -> None:
    """Averaging keeps the sum: what all threads give together is the sum of all the elements."""
    made = prepare(device, "hungry16", 16 * 257)
    read = find("hungry16").make(numpy.random.default_rng(20261201), 16 * 257)[0]
    assert math.isclose(float(made.output().sum()), float(read.astype("float64").sum()), rel_tol=1e-3, abs_tol=1e-3)


@pytest.mark.parametrize(
    ("name", "sizes", "said"),
    [
        ("strided_copy", (1000, 3), "power of two"),
        ("strided_copy", (1024, 4), "odd"),
        ("hungry16", (100,), "multiple of 16"),
        ("chase", (4, 8, 1), "no element"),
        ("chase_shared", (8192, 1, 1), "at most 4096"),
        ("matmul_naive", (1 << 16, 1 << 16, 1), "32-bit"),
        ("add", (), "takes 1 sizes"),
        ("add", (0,), "from 1 to"),
        ("add", (1 << 32,), "from 1 to"),
    ],
)
def test_sizes_a_kernel_cannot_run_are_refused_with_the_reason(
    device: Device, name: str, sizes: tuple[int, ...], said: str
) -> None:
    with pytest.raises(Refused, match=said) as caught:
        prepare(device, name, *sizes)
    assert "\n" not in str(caught.value)


def test_a_kernel_that_does_not_exist_is_answered_with_those_that_do(device: Device) -> None:
    with pytest.raises(BadInput, match="matmul_tiled32"):
        prepare(device, "subtract", 10)


def test_a_wrong_kernel_is_never_timed(device: Device) -> None:
    """Reading past the local memory that was asked for gives another sum, and that is seen."""
    with pytest.raises(Refused, match="wrong result"):
        prepare(device, "shared_probe", 4096, 3, defines={"BYTES": 1024})


def test_inputs_rotate_over_sets_and_each_set_gives_the_result(device: Device) -> None:
    made = prepare(device, "add", 1000, sets=3)
    for i in range(6):
        made.run(i)
    device.synchronize()
    outputs = [device.download(held[-1], "float32", 1000) for held in made.sets]
    assert all(numpy.array_equal(output, outputs[0]) for output in outputs)


@pytest.mark.parametrize(
    ("name", "sizes", "flops", "moved"),
    [
        ("add", (1000,), 1000, 12_000),
        ("copy", (1000,), 0, 8_000),
        ("matmul_naive", (2, 3, 5), 60, 4 * (10 + 15 + 6)),
        ("double_plus_one", (1000,), 2000, 8_000),
        ("spin", (8, 100), 1600, 32),
        ("attention", (2, 128), 4 * 2 * 128 * 128 * 64, 16 * 2 * 128 * 64),
        ("attention_causal", (2, 128), 2 * 2 * 128 * 128 * 64, 16 * 2 * 128 * 64),
    ],
)
def test_what_a_kernel_costs_is_arithmetic(name: str, sizes: tuple[int, ...], flops: float, moved: float) -> None:
    kernel = find(name)
    assert kernel.flops(*sizes) == flops
    assert kernel.bytes(*sizes) == moved


def test_a_large_product_is_held_to_a_sample_of_rows_with_both_its_ends() -> None:
    kernel = find("matmul_naive")
    inputs = kernel.make(numpy.random.default_rng(1), 1000, 8, 8)
    (expected,) = kernel.reference(inputs, 1000, 8, 8)
    assert expected.where[0] == 0 and expected.where[-1] == 999 and len(expected.where) <= 256


_opened: list[Device] = []


def _cached() -> Device:
    """One device for all examples: hypothesis does not take a fixture for each."""
    if not _opened:
        try:
            _opened.append(open_device("opencl"))
        except Missing as error:
            pytest.skip(str(error))
    return _opened[0]


def test_every_source_says_what_it_costs_and_calls_no_slow_multiply_add() -> None:
    for kernel in kernels.all().values():
        text = kernel.source("opencl")
        assert text.startswith("// "), kernel.name
        code = "\n".join(line.split("//")[0] for line in text.splitlines())
        assert "fma(" not in code and "mad(" not in code, kernel.name
        assert len(text.splitlines()) < 60, kernel.name
