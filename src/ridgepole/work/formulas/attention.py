"""Attention kernels that never write the scores: two products forward, five backward (FlashAttention-2, Dao 2023)."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from ridgepole.work.cost import NotRecorded, formula, matrix_unit, need
from ridgepole.work.op import Attention, Call, Cost, Tensor

BACKWARD = 2.5
"""Five products against two: scores again, and the gradients of v, p, q and k."""
LSE_BYTES = 4


Causal = Literal["", "top-left", "bottom-right"]
"""Which corner of the scores the mask starts from, where there are more keys than queries or fewer.

torch's is_causal aligns at the top left; the flash-attn package (since 2.1) at the bottom right, so that one query
over a cache sees all of it.
"""


def _pairs(q: int, kv: int, causal: Causal) -> float:
    """Query-key pairs that are computed, half of a square's diagonal counted."""
    square = min(q, kv)
    if not causal:
        return float(q * kv)
    # Wider than the square are queries that see every key, or keys that every query sees
    whole = (q - square) * kv if causal == "top-left" else (kv - square) * q
    return square * square / 2 + whole


def _cost(call: Call, q: Tensor, k: Tensor, v: Tensor, causal: Causal, mask: Tensor | None, heads_last: bool) -> Cost:
    """`heads_last`: (batch, sequence, heads, size) instead of (batch, heads, sequence, size)."""
    if len(q.shape) == 3:
        q, k, v = (Tensor((1, *t.shape), t.dtype) for t in (q, k, v))
    head, seq = (2, 1) if heads_last else (1, 2)
    what = Attention(
        batch=q.shape[0],
        q_heads=q.shape[head],
        kv_heads=k.shape[head],
        q=q.shape[seq],
        kv=k.shape[seq],
        d=q.shape[-1],
        d_v=v.shape[-1],
        causal=bool(causal),
    )
    flops = round(2 * what.batch * what.q_heads * _pairs(what.q, what.kv, causal) * (what.d + what.d_v))
    rows = what.batch * what.q_heads * what.q
    out = rows * what.d_v * (q.nbytes // max(q.numel, 1) or 1)
    read = q.nbytes + k.nbytes + v.nbytes + (mask.nbytes if mask is not None else 0)
    kernels = 2 if what.q == 1 and what.kv > 512 else 1
    return Cost(flops, read, out + rows * LSE_BYTES, q.dtype, matrix_unit(q.dtype), "attention", kernels, what)


def _backward(forward: Cost, q: Tensor, k: Tensor, v: Tensor) -> Cost:
    """Reads q, k, v, the output, its gradient and the row sums; writes three gradients."""
    out = forward.written
    grads = q.nbytes + k.nbytes + v.nbytes
    detail = replace(forward.detail, backward=True) if isinstance(forward.detail, Attention) else None
    return replace(
        forward,
        flops=round(forward.flops * BACKWARD),
        read=forward.read + 2 * out,
        written=grads,
        kernels=3,
        detail=detail,
    )


def _flag(call: Call, index: int) -> Causal:
    return "top-left" if call.value(index, False) is True else ""


def _kind(call: Call, index: int) -> Causal:
    """xFormers' number of its mask."""
    kind = call.value(index, 0)
    return "top-left" if kind == 1 else "bottom-right" if kind == 2 else ""


def _unpacked(call: Call, q: Tensor, k: Tensor, v: Tensor, at: int) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v as a batch of sequences, where they are packed: their bounds are at `at`, the longest two after those.

    Only sequences of one length can be told apart by their shapes.
    """
    bounds = call.tensor(at)
    if bounds is None:
        return q, k, v
    batch = bounds.numel - 1
    longest = [call.value(at + 2), call.value(at + 3)]
    total = [t.shape[-3] for t in (q, k)]
    for tokens, length in zip(total, longest, strict=True):
        if not isinstance(length, int) or batch < 1 or batch * length != tokens:
            raise NotRecorded("lengths of the packed sequences not recorded")
    return (
        Tensor((batch, total[0] // batch, *q.shape[-2:]), q.dtype),
        Tensor((batch, total[1] // batch, *k.shape[-2:]), k.dtype),
        Tensor((batch, total[1] // batch, *v.shape[-2:]), v.dtype),
    )


@formula(
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_fused_attention_overrideable",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
    "aten::scaled_dot_product_attention",
    "aten::_scaled_dot_product_attention_math",
)
def sdpa(call: Call) -> Cost:
    name = call.operator
    q, k, v = need(call, 0), need(call, 1), need(call, 2)
    if "efficient" in name or "cudnn" in name:
        return _cost(call, q, k, v, _flag(call, 6), call.tensor(3), False)
    if "flash" in name:
        return _cost(call, q, k, v, _flag(call, 4), call.tensor(5), False)
    return _cost(call, q, k, v, _flag(call, 5), call.tensor(3), False)


@formula("aten::_flash_attention_forward")
def flash_forward(call: Call) -> Cost:
    q, k, v = _unpacked(call, need(call, 0), need(call, 1), need(call, 2), 3)
    return _cost(call, q, k, v, _flag(call, 8), None, True)


@formula("aten::_efficient_attention_forward")
def efficient_forward(call: Call) -> Cost:
    causal = _kind(call, 9)
    q, k, v = _unpacked(call, need(call, 0), need(call, 1), need(call, 2), 4)
    return _cost(call, q, k, v, causal, call.tensor(3), True)


@formula("aten::_cudnn_attention_forward")
def cudnn_forward(call: Call) -> Cost:
    return _cost(call, need(call, 0), need(call, 1), need(call, 2), _flag(call, 10), call.tensor(3), False)


_CAUSAL_AT = {
    "aten::_scaled_dot_product_flash_attention_backward": (11, False),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": (7, False),
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": (13, False),
    "aten::_scaled_dot_product_efficient_attention_backward": (11, False),
    "aten::_scaled_dot_product_cudnn_attention_backward": (14, False),
    "aten::_flash_attention_backward": (11, True),
    "aten::_efficient_attention_backward": (14, True),
}
"""Where is_causal is among the arguments (native_functions.yaml), and whether heads come after the sequence."""
_PACKED_AT = {"aten::_flash_attention_backward": 6, "aten::_efficient_attention_backward": 6}
"""Where their sequences' bounds are, if several are packed into one batch."""
_BIASED = {
    "aten::_scaled_dot_product_efficient_attention_backward",
    "aten::_scaled_dot_product_fused_attention_overrideable_backward",
    "aten::_efficient_attention_backward",
}
"""Those that take the mask, as the argument behind v."""


@formula(*_CAUSAL_AT)
def backward(call: Call) -> Cost:
    at, heads_last = _CAUSAL_AT[call.operator]
    q, k, v = need(call, 1), need(call, 2), need(call, 3)
    if call.operator in _PACKED_AT:
        q, k, v = _unpacked(call, q, k, v, _PACKED_AT[call.operator])
    causal = _flag(call, at) or _kind(call, at)
    bias = call.tensor(4) if call.operator in _BIASED else None
    return _backward(_cost(call, q, k, v, causal, bias, heads_last), q, k, v)


@formula("flash_attn::_flash_attn_forward")
def flash_attn_forward(call: Call) -> Cost:
    """(q, k, v, dropout, scale, causal, ...), the sequence before the heads"""
    return _cost(call, need(call, 0), need(call, 1), need(call, 2), _package(call, 5), None, True)


@formula("flash_attn::_flash_attn_backward")
def flash_attn_backward(call: Call) -> Cost:
    """(gradient, q, k, v, out, row sums, dq, dk, dv, dropout, scale, causal, ...)"""
    q, k, v = need(call, 1), need(call, 2), need(call, 3)
    return _backward(_cost(call, q, k, v, _package(call, 11), None, True), q, k, v)


def _package(call: Call, index: int) -> Causal:
    return "bottom-right" if _flag(call, index) else ""


_PAGED = "lengths of the cached sequences not recorded"


@formula(
    "vllm::unified_attention_with_output",
    "vllm::unified_attention",
    "vllm::unified_mla_attention_with_output",
    "vllm::unified_mla_attention",
    "sglang::unified_attention_with_output",
    "flash_attn::_flash_attn_varlen_forward",
    "flash_attn::_flash_attn_varlen_backward",
    "_vllm_fa2_C::varlen_fwd",
    "_vllm_fa3_C::fwd",
)
def paged(call: Call) -> Cost:
    """Over a paged cache or packed sequences: how many keys each query meets is in no argument's shape."""
    raise NotRecorded(_PAGED)


_UNMASKED = "every pair of query and key is counted: the mask of flex attention is not recorded"


@formula("flex_attention", "higher_order::flex_attention")
def flex(call: Call) -> Cost:
    """Without its mask every pair is counted: an upper bound."""
    return replace(_cost(call, need(call, 0), need(call, 1), need(call, 2), "", None, False), assumed=_UNMASKED)


@formula("flex_attention_backward", "higher_order::flex_attention_backward")
def flex_backward(call: Call) -> Cost:
    """(gradient, q, k, v, out, row sums) as a capture writes it"""
    q, k, v = need(call, 1), need(call, 2), need(call, 3)
    return replace(_backward(_cost(call, q, k, v, "", None, False), q, k, v), assumed=_UNMASKED)
