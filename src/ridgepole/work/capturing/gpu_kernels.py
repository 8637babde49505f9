"""What a CUDA build of PyTorch would choose where a CPU build takes another path: attention, RMS norm, dropout.

Each function stands in for the one of torch it is named after, for the duration of a capture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from ridgepole.work.capturing.recorder import Recorder

HALF = (torch.float16, torch.bfloat16)
FLASH_MAX_HEAD = 256


def attention(plain: Callable[..., Any]) -> Callable[..., Any]:
    """`F.scaled_dot_product_attention` as CUDA dispatches it (aten/native/transformers/cuda/sdp_utils.cpp)."""

    def scaled_dot_product_attention(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        if torch.is_autocast_enabled("cpu"):
            fast = torch.get_autocast_dtype("cpu")
            query, key, value = (t.to(fast) if t.dtype is torch.float32 else t for t in (query, key, value))
            if attn_mask is not None and attn_mask.dtype is torch.float32:
                attn_mask = attn_mask.to(fast)
        if _flash(query, key, value, attn_mask, is_causal, enable_gqa):
            q, k, v = (_padded(t, 8) for t in (query, key, value))
            scale = query.shape[-1] ** -0.5 if scale is None else scale
            out = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal, scale=scale)[0]
            return out if out.shape[-1] == value.shape[-1] else out[..., : value.shape[-1]]
        if _efficient(query, key, value, attn_mask):
            bias = None if attn_mask is None else _bias(attn_mask, query, key)
            grads = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
            return torch.ops.aten._scaled_dot_product_efficient_attention(
                query, key, value, bias, grads, dropout_p, is_causal, scale=scale
            )[0]
        return torch.ops.aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]

    return scaled_dot_product_attention


def _fusable(query: Any, key: Any, value: Any) -> bool:
    tensors = (query, key, value)
    if any(t.dim() != 4 or t.is_nested or 0 in t.shape for t in tensors) or len({t.dtype for t in tensors}) > 1:
        return False
    return all(t.stride(-1) == 1 for t in tensors) and query.shape[0] == key.shape[0] == value.shape[0]


def _flash(query: Any, key: Any, value: Any, mask: Any, causal: bool, gqa: bool) -> bool:
    if not torch.backends.cuda.flash_sdp_enabled() or mask is not None or query.dtype not in HALF:
        return False
    if not _fusable(query, key, value) or query.shape[-1] > FLASH_MAX_HEAD:
        return False
    if not query.shape[-1] == key.shape[-1] == value.shape[-1]:
        return False
    if causal and query.shape[2] != key.shape[2]:
        return False
    heads, kv_heads = query.shape[1], key.shape[1]
    return kv_heads == value.shape[1] and (heads == kv_heads or (gqa and heads % kv_heads == 0))


def _efficient(query: Any, key: Any, value: Any, mask: Any) -> bool:
    if not torch.backends.cuda.mem_efficient_sdp_enabled() or query.dtype not in (*HALF, torch.float32):
        return False
    if not _fusable(query, key, value) or not query.shape[1] == key.shape[1] == value.shape[1]:
        return False
    aligned = 4 if query.dtype is torch.float32 else 8
    return query.shape[-1] % aligned == 0 and value.shape[-1] % aligned == 0 and (mask is None or mask.dim() <= 4)


def _padded(tensor: Any, multiple: int) -> Any:
    short = -tensor.shape[-1] % multiple
    return torch.nn.functional.pad(tensor, (0, short)) if short else tensor


def _bias(mask: Any, query: Any, key: Any) -> Any:
    """The mask as the efficient kernel takes it: added, its rows a multiple of 16 apart, of the scores' shape."""
    if mask.dtype is torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), float("-inf"))
    length = mask.shape[-1]
    if length % 16:
        mask = torch.nn.functional.pad(mask, (0, -length % 16))[..., :length]
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])


def dropout(plain: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.dropout`: one kernel that makes the mask and scales."""

    def fused(input: Any, p: float, train: bool) -> Any:
        if train and 0 < p < 1 and input.numel() and input.is_floating_point():
            return torch.native_dropout(input, p, train)[0]
        return plain(input, p, train)

    return fused


def rms_norm(plain: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    """`torch.rms_norm`: one kernel forward, one call backward (CUDA, torch 2.9 on)."""

    class Fused(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, shape: list[int], eps: float) -> Any:
            with recorder.silence():
                out = torch.empty_like(x, memory_format=torch.contiguous_format)
                rows = x.shape[: x.dim() - len(shape)] + (1,) * len(shape)
                scale = torch.empty(rows, dtype=torch.float32)
            recorder.write("aten::_fused_rms_norm", (x, shape, weight, eps), (out, scale))
            ctx.save_for_backward(x, weight, scale)
            ctx.shape = shape
            return out

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, weight, scale = ctx.saved_tensors
            needs = ctx.needs_input_grad[:2]
            with recorder.silence():
                pairs = zip((x, weight), needs, strict=True)
                grads = [torch.empty_like(t) if t is not None and needed else None for t, needed in pairs]
            args = (grad, x, ctx.shape, scale, weight, tuple(needs))
            recorder.write("aten::_fused_rms_norm_backward", args, [g for g in grads if g is not None])
            return (*grads, None, None)

    def fused(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
        same = weight is None or weight.dtype is input.dtype
        if not same or input.dtype not in (*HALF, torch.float32) or recorder.on_host(input):
            return plain(input, normalized_shape, weight, eps)
        shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        eps = torch.finfo(input.dtype).eps if eps is None else eps
        return Fused.apply(recorder.fake(input), None if weight is None else recorder.fake(weight), shape, eps)

    return fused


def flex_attention(recorder: Recorder, note: Callable[[str], None]) -> Callable[..., Any]:
    """`flex_attention` as the one kernel that it is compiled to, which is how it is meant to be called."""

    class Flex(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, query: Any, key: Any, value: Any) -> Any:
            with recorder.silence():
                out = query.new_empty((*query.shape[:-1], value.shape[-1]))
                rows = query.new_empty(query.shape[:-1], dtype=torch.float32)
            recorder.write("higher_order::flex_attention", (query, key, value), (out, rows))
            ctx.save_for_backward(query, key, value, out, rows)
            ctx.mark_non_differentiable(rows)
            return out, rows

        @staticmethod
        def backward(ctx: Any, grad: Any, _: Any) -> Any:
            query, key, value, out, rows = ctx.saved_tensors
            with recorder.silence():
                grads = [torch.empty_like(t) for t in (query, key, value)]
            args = (grad, query, key, value, out, rows)
            recorder.write("higher_order::flex_attention_backward", args, grads)
            return tuple(grads)

    def fused(
        query: Any, key: Any, value: Any, score_mod: Any = None, block_mask: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if block_mask is not None or score_mod is not None:
            note("flex_attention: its mask and score function are not followed, every pair of query and key is counted")
        out, rows = Flex.apply(*(recorder.fake(t) for t in (query, key, value)))
        asked = kwargs.get("return_lse") or kwargs.get("return_aux") is not None or (len(args) > 2 and args[2])
        return (out, rows) if asked else out

    return fused
