"""The largest of three times names the bucket; without a machine, only what holds on all of them is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepole.attribute.three_times import fits_in_time, from_cache, ridges, suspects, times
from ridgepole.machine import catalog

H100 = catalog.find("h100")


def test_doubling_a_matrix_is_travel_eighty_times_over() -> None:
    # x * 2 at 4096 x 4096 bf16: 16.8 MFLOP at 67 TFLOP/s, 67.1 MB at 3.35 TB/s.
    found = times(16_777_216, 67_108_864, "bfloat16", "vector", H100)
    assert found.bucket == "memory"
    assert found.t_memory == pytest.approx(20.0e-6, rel=0.01)
    assert found.t_compute == pytest.approx(0.25e-6, rel=0.01)


def test_a_large_product_is_arithmetic() -> None:
    found = times(2 * 4096**3, 3 * 4096**2 * 2, "bfloat16", "tensor", H100)
    assert (found.bucket, found.cause) == ("compute", "compute")
    assert found.t_compute == pytest.approx(2 * 4096**3 / 989e12)


def test_work_below_the_smallest_kernels_time_is_overhead_though_the_gpu_is_busy() -> None:
    found = times(1000, 4000, "float32", "vector", H100)
    assert (found.bucket, found.cause) == ("overhead", "kernel-floor")


def test_one_figure_alone_names_no_bucket() -> None:
    assert times(None, 10**9, "bfloat16", "tensor", H100).bucket == "unknown"
    assert times(10**12, None, "bfloat16", "tensor", H100).bucket == "unknown"


def test_an_elementwise_kernel_is_memory_bound_on_every_machine() -> None:
    found = times(10**6, 8 * 10**6, "float32", "vector", None)
    assert found.bucket == "memory"
    assert "holds on every machine in the catalog" in found.reason
    assert found.t_memory is None and found.floor is None


def test_between_the_ridges_of_the_catalog_only_the_machine_can_tell() -> None:
    low, high = ridges("tensor", "bfloat16")
    middle = round((low * high) ** 0.5 * 1e6)
    found = times(middle, 10**6, "bfloat16", "tensor", None)
    assert found.bucket == "unknown"
    assert "--on" in found.reason


def test_kernels_named_volta_ran_on_volta_or_turing() -> None:
    among = suspects(["volta_sgemm_128x64_nn", "void at::native::elementwise"])
    assert among == {m.name for m in catalog.load().values() if m.architecture in ("Volta", "Turing")}
    # 60 FLOP/B of fp32: above both of their ridges, below that of some later GPU.
    assert times(60 * 10**6, 10**6, "float32", "vector", None).bucket == "unknown"
    found = times(60 * 10**6, 10**6, "float32", "vector", None, among)
    assert found.bucket == "compute"
    assert f"holds on all {len(among)} machines that it can be" in found.reason


def test_a_machine_whose_memory_could_not_have_moved_the_bytes_is_no_suspect() -> None:
    # 1.92 GB in 1.1 ms, as a trace shows: 1.75 TB/s, and far more than an L2 holds. An A100 of 40 GB gives 1.56 TB/s.
    among = suspects(["ampere_sgemm_128x64_nn"], [(1_922_602_752, 1_100_000)])
    assert "A100 SXM 80GB" in among and "H100 SXM" in among
    assert not {"A100 SXM 40GB", "L40S", "L4", "RTX 4090", "MI300X", "V100 SXM2 32GB"} & among


def test_what_no_machine_could_have_moved_rules_none_out() -> None:
    assert suspects([], [(10**12, 1000)]) == frozenset()


def test_more_than_memory_gives_and_caches_hold_cannot_have_moved() -> None:
    one_ms = 1_000_000
    assert fits_in_time(3_350_000_000, one_ms, H100)
    assert fits_in_time(3_390_000_000, one_ms, H100) and from_cache(3_390_000_000, one_ms, H100)
    assert not fits_in_time(4_000_000_000, one_ms, H100)


@given(st.integers(0, 10**15), st.integers(0, 10**12), st.sampled_from(["float32", "bfloat16", "float16", "int64"]))
def test_the_bucket_is_that_of_the_largest_time(flops: int, nbytes: int, dtype: str) -> None:
    found = times(flops, nbytes, dtype, "vector", H100)
    assert found.t_compute is not None and found.t_memory is not None and found.floor is not None
    largest = max(found.t_compute, found.t_memory, found.floor)
    named = {"compute": found.t_compute, "memory": found.t_memory, "overhead": found.floor}[found.bucket]
    assert named == largest
