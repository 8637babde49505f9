"""Kernel names, as a reader wants them."""

from __future__ import annotations

import pytest

from ridgepole.attribute.short import short


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("void at::native::(anonymous namespace)::layer_norm_kernel<float>(int)", "layer_norm_kernel"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",
            "vectorized_elementwise_kernel CUDAFunctor_add",
        ),
        ("void cublasLt::splitKreduce_kernel<32, 16, int>(cublasLt::Args)", "splitKreduce_kernel"),
        ("aten::mm", "aten::mm"),
        ("nvjet_sm90_tst_256x8_64x6", "nvjet_sm90_tst_256x8_64x6"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("</script>::x", "</script>::x"),
    ],
)  # fmt: skip
def test_a_kernel_is_called_by_its_own_name(name: str, said: str) -> None:
    assert short(name) == said
