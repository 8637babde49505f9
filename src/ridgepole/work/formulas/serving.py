"""Custom operators of serving engines: vLLM, AITER, SGLang, FlashInfer. Arguments in the order of their schemas.

Most write into an argument that they are given ("result!"), so that their outputs are recorded even in traces.
"""

from __future__ import annotations

from math import prod

from ridgepole import dtypes
from ridgepole.work.cost import NotRecorded, formula, matrix_unit, need, written
from ridgepole.work.formulas.elementwise import TRANSCENDENTAL
from ridgepole.work.formulas.matmul import alignment, product
from ridgepole.work.op import Call, Cost, Gemm, Rows, Tensor

NORM_FLOPS = 4


def _norm(x: Tensor, weight: Tensor, read: int, wrote: int, added: bool) -> Cost:
    """RMS norm: square, sum, scale and weigh; one more FLOP where a residual is added first."""
    length = x.shape[-1] if x.shape else 1
    rows = Rows(x.numel // max(length, 1), length)
    flops = (NORM_FLOPS + added) * x.numel
    return Cost(flops, read + weight.nbytes, wrote, x.dtype, "vector", "norm", 1, rows)


@formula("_C::rms_norm", "sgl_kernel::rmsnorm", "flashinfer::rmsnorm", "_C::rms_norm_static_fp8_quant")
def rms_norm_into(call: Call) -> Cost:
    """(result!, input, weight, ...)"""
    out, x = need(call, 0), need(call, 1)
    return _norm(x, need(call, 2), x.nbytes, out.nbytes, False)


@formula(
    "aiter::rms_norm", "aiter::rmsnorm2d_fwd", "aiter::rms_norm_cu", "vllm::rocm_aiter_rms_norm", "vllm_ir::rms_norm"
)
def rms_norm(call: Call) -> Cost:
    """(input, weight, eps, ...) → result"""
    x = need(call, 0)
    return _norm(x, need(call, 1), x.nbytes, written(call, x.shape, x.dtype), False)


@formula("_C::fused_add_rms_norm", "sgl_kernel::fused_add_rmsnorm", "flashinfer::fused_add_rmsnorm")
def add_rms_norm_in_place(call: Call) -> Cost:
    """(input!, residual!, weight, ...): both are read and written back."""
    x, residual = need(call, 0), need(call, 1)
    both = x.nbytes + residual.nbytes
    return _norm(x, need(call, 2), both, both, True)


@formula("aiter::rmsnorm2d_fwd_with_add_ck", "aiter::rmsnorm2d_fwd_with_add")
def add_rms_norm_into(call: Call) -> Cost:
    """(result!, input, residual, residual result!, weight, ...)"""
    out, x, residual, kept = need(call, 0), need(call, 1), need(call, 2), need(call, 3)
    return _norm(x, need(call, 4), x.nbytes + residual.nbytes, out.nbytes + kept.nbytes, True)


@formula("vllm::rocm_aiter_rmsnorm2d_fwd_with_add")
def add_rms_norm(call: Call) -> Cost:
    """(input, residual, weight, eps) → result, residual result"""
    x, residual = need(call, 0), need(call, 1)
    both = x.nbytes + residual.nbytes
    return _norm(x, need(call, 2), both, sum(t.nbytes for t in call.outputs) or both, True)


@formula("_C::fused_add_rms_norm_static_fp8_quant")
def add_rms_norm_fp8(call: Call) -> Cost:
    """(result!, input, residual!, weight, scale, ...)"""
    out, x, residual = need(call, 0), need(call, 1), need(call, 2)
    return _norm(x, need(call, 3), x.nbytes + residual.nbytes, out.nbytes + residual.nbytes, True)


@formula("_C::rotary_embedding", "_C::batched_rotary_embedding", "sgl_kernel::rotary_embedding")
def rotary(call: Call) -> Cost:
    """(positions, query!, key!?, head size, cosines and sines, ...): a table row of them a token."""
    positions, q = need(call, 0), need(call, 1)
    k = call.tensor(2)
    turned = q.nbytes + (k.nbytes if k is not None else 0)
    count = q.numel + (k.numel if k is not None else 0)
    table = call.tensor(4)
    rows = min(table.nbytes, positions.numel * table.nbytes // max(table.shape[0], 1)) if table is not None else 0
    return Cost(3 * count, turned + positions.nbytes + rows, turned, q.dtype, "vector", "elementwise")


_GATED = {
    "silu_and_mul": 3 + TRANSCENDENTAL, "mul_and_silu": 3 + TRANSCENDENTAL, "gelu_and_mul": 3 + TRANSCENDENTAL,
    "gelu_tanh_and_mul": 6 + TRANSCENDENTAL, "fatrelu_and_mul": 2, "swigluoai_and_mul": 6 + TRANSCENDENTAL,
    "gelu_new": 6 + TRANSCENDENTAL, "gelu_fast": 6 + TRANSCENDENTAL, "gelu_quick": 3 + TRANSCENDENTAL,
}  # fmt: skip


@formula(*(f"{space}::{name}" for space in ("_C", "sgl_kernel", "flashinfer", "aiter") for name in _GATED))
def gated(call: Call) -> Cost:
    """(result!, input): an activation of one half of each row times the other half."""
    out, x = need(call, 0), need(call, 1)
    flops = _GATED[call.operator.split("::")[1].split(".")[0]]
    return Cost(flops * out.numel, x.nbytes, out.nbytes, x.dtype, "vector", "elementwise")


@formula("_C::static_scaled_fp8_quant", "_C::static_scaled_int8_quant")
def quantize(call: Call) -> Cost:
    """(result!, input, scale)"""
    out, x = need(call, 0), need(call, 1)
    return Cost(3 * x.numel, x.nbytes, out.nbytes, x.dtype, "vector", "elementwise")


@formula(
    "_C::dynamic_scaled_fp8_quant", "_C::dynamic_per_token_scaled_fp8_quant", "_C::dynamic_scaled_int8_quant",
    "sgl_kernel::sgl_per_token_quant_fp8",
)  # fmt: skip
def quantize_by_maximum(call: Call) -> Cost:
    """(result!, input, scale!): the largest element, of all or of each token, sets the scale."""
    out, x = need(call, 0), need(call, 1)
    scale = call.tensor(2)
    wrote = out.nbytes + (scale.nbytes if scale is not None else 0)
    length = x.shape[-1] if x.shape else 1
    rows = Rows(x.numel // max(length, 1), length)
    return Cost(
        4 * x.numel, x.nbytes, wrote, x.dtype, "vector", "reduction", 2 if "per_token" not in call.operator else 1, rows
    )


@formula("_C_cache_ops::reshape_and_cache_flash", "_C_cache_ops::reshape_and_cache")
def into_cache(call: Call) -> Cost:
    """(key, value, key cache!, value cache!, slots, ...): only the new tokens' slots of the cache are written."""
    k, v, cache = need(call, 0), need(call, 1), need(call, 2)
    slots = call.tensor(4)
    wrote = (k.numel + v.numel) * dtypes.itemsize(cache.dtype)
    read = k.nbytes + v.nbytes + (slots.nbytes if slots is not None else 0)
    return Cost(0, read, wrote, k.dtype, "vector", "scatter")


@formula("vllm::unified_kv_cache_update")
def update_cache(call: Call) -> Cost:
    """(key, value, ...): the cache is not among the arguments; its elements are taken to be as wide as the keys'."""
    k, v = need(call, 0), need(call, 1)
    both = k.nbytes + v.nbytes
    return Cost(0, both, both, k.dtype, "vector", "scatter", assumed="the cache is taken to have the keys' dtype")


@formula("_moe_C::topk_softmax", "sgl_kernel::topk_softmax")
def topk_softmax(call: Call) -> Cost:
    """(weights!, indices!, ..., scores): the last tensor has the router's scores."""
    tensors = call.tensors
    if len(tensors) < 3:
        raise NotRecorded("scores not recorded")
    scores, out = tensors[-1], tensors[:-1]
    length = scores.shape[-1] if scores.shape else 1
    rows = Rows(scores.numel // max(length, 1), length)
    wrote = sum(t.nbytes for t in out)
    return Cost(16 * scores.numel, scores.nbytes, wrote, scores.dtype, "vector", "softmax", 1, rows)


@formula("_rocm_C::wvSplitK", "_rocm_C::LLMM1", "_rocm_C::wvSplitKrc")
def skinny(call: Call) -> Cost:
    """(weights (n, k), activations (m, k), ...) → (m, n), on the vector units: few rows reuse nothing."""
    w, x = need(call, 0), need(call, 1)
    n, k = w.shape[-2:]
    m = prod(x.shape[:-1])
    wrote = written(call, (m, n), x.dtype)
    gemm = Gemm(1, m, n, k, alignment(w, x))
    return Cost(2 * m * n * k, w.nbytes + x.nbytes, wrote, x.dtype, "vector", "matmul", 1, gemm)


@formula("_C::cutlass_scaled_mm", "sgl_kernel::fp8_scaled_mm_out")
def cutlass(call: Call) -> Cost:
    """(result!, a, b, scales of a, scales of b, bias?)"""
    out, a, b = need(call, 0), need(call, 1), need(call, 2)
    scales = (call.tensor(3), call.tensor(4), call.tensor(5))
    return product(Call(call.operator, (), (out,)), a, b, *scales, out_dtype=out.dtype)


@formula("vllm::rocm_unquantized_gemm", "vllm::rocm_unquantized_gemm_impl")
def gemm(call: Call) -> Cost:
    """(x, weight (n, k), bias?) → (..., n)"""
    x, w = need(call, 0), need(call, 1)
    n, k = w.shape[-2:]
    m = prod(x.shape[:-1])
    bias = call.tensor(2)
    read = x.nbytes + w.nbytes + (bias.nbytes if bias is not None else 0)
    wrote = written(call, (m, n), x.dtype)
    detail = Gemm(1, m, n, k, alignment(w, x))
    return Cost(2 * m * n * k, read, wrote, x.dtype, matrix_unit(x.dtype), "matmul", 1, detail)


@formula(
    "vllm::moe_forward", "vllm::moe_forward_shared", "vllm::fused_experts", "vllm::inplace_fused_experts",
    "vllm::outplace_fused_experts", "sglang::inplace_fused_experts", "sglang::outplace_fused_experts",
)  # fmt: skip
def experts(call: Call) -> Cost:
    """Tokens and weights of a mixture of experts, where both are recorded: (x, w1 (e, n, k), w2 (e, k, n / 2), weights,
    chosen experts (t, each), ...). Every expert's weights are read once: at most that where few tokens choose."""
    x, w1, w2, chosen = call.tensor(0), call.tensor(1), call.tensor(2), call.tensor(4)
    if x is None or w1 is None or w2 is None or chosen is None or len(w1.shape) != 3 or len(w2.shape) != 3:
        raise NotRecorded("the experts' weights are not among the recorded arguments")
    pairs = chosen.numel
    count = w1.shape[0]
    share = min(pairs, count) / max(count, 1)
    flops = 2 * pairs * (w1.shape[1] * x.shape[-1] + w2.shape[1] * w2.shape[2])
    read = x.nbytes + round(share * (w1.nbytes + w2.nbytes)) + chosen.nbytes
    said = "every expert that can be chosen is taken to be: which are is not recorded"
    return Cost(flops, read, x.nbytes, x.dtype, matrix_unit(x.dtype), "matmul", 6, assumed=said)
