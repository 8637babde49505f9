"""Operators that only a CPU runs, as the calls that a GPU would run instead."""

from __future__ import annotations

from collections.abc import Callable

from ridgepole.work.op import Call, Tensor

HALF = ("float16", "bfloat16")


def on_gpu(call: Call) -> Call:
    """The call that a CUDA build of PyTorch makes where a CPU build makes this one."""
    translate = _TRANSLATIONS.get(call.operator)
    return translate(call) if translate is not None else call


def _attention(call: Call) -> Call:
    """(q, k, v, dropout, is_causal, *, attn_mask, scale)"""
    q, k, v, dropout, causal, mask, scale = call.args
    if isinstance(q, Tensor) and q.dtype in HALF and mask is None:
        return Call("aten::_scaled_dot_product_flash_attention", (q, k, v, dropout, causal, False, scale), call.outputs)
    args = (q, k, v, mask, False, dropout, causal, scale)
    return Call("aten::_scaled_dot_product_efficient_attention", args, call.outputs)


def _attention_backward(call: Call) -> Call:
    """(gradient, q, k, v, out, logsumexp, dropout, is_causal, *, attn_mask, scale)"""
    grad, q, k, v, out, rows, dropout, causal, mask, scale = call.args
    if isinstance(q, Tensor) and q.dtype in HALF and mask is None:
        longest = tuple(t.shape[2] if isinstance(t, Tensor) else 0 for t in (q, k))
        args = (grad, q, k, v, out, rows, None, None, *longest, dropout, causal, None, None, scale)
        return Call("aten::_scaled_dot_product_flash_attention_backward", args, call.outputs)
    args = (grad, q, k, v, mask, out, rows, None, None, dropout, (True, True, True, False), causal, scale)
    return Call("aten::_scaled_dot_product_efficient_attention_backward", args, call.outputs)


def _takes_cudnn(x: Tensor | None, weight: Tensor | None) -> bool:
    """Whether cuDNN normalises the batch: not bfloat16, whose native kernel is the faster one, nor 2-D inputs."""
    return x is not None and weight is not None and x.dtype in ("float32", "float16") and len(x.shape) > 2


def _batch_norm(call: Call) -> Call:
    """The arguments are the same ones."""
    if not _takes_cudnn(call.tensor(0), call.tensor(1)):
        return call
    return Call("aten::cudnn_batch_norm", call.args, call.outputs)


def _batch_norm_backward(call: Call) -> Call:
    """(gradient, x, weight, mean, variance, saved mean, saved 1/deviation, train, eps, mask)"""
    grad, x, weight, mean, var, saved_mean, saved_var, _train, eps, _mask = call.args
    if not _takes_cudnn(call.tensor(1), call.tensor(2)):
        return call
    args = (x, grad, weight, mean, var, saved_mean, saved_var, eps, None)
    return Call("aten::cudnn_batch_norm_backward", args, call.outputs)


_TRANSLATIONS: dict[str, Callable[[Call], Call]] = {
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention,
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "aten::native_batch_norm": _batch_norm,
    "aten::native_batch_norm_backward": _batch_norm_backward,
}
