"""Autocast as a GPU does it, on CPU tensors: its own default dtype and its own list of ops kept in fp32."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

FULL = (
    "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm group_norm "
    "norm cosine_similarity dist pdist cdist renorm logsumexp softmax softmin log_softmax cumsum cumprod sum prod "
    "interpolate upsample __pow__ __rpow__ nuclear_norm"
)
"""Functions that CUDA's autocast computes in fp32 (aten/autocast_mode.h) and the CPU's does not. Losses are in both."""


def full_precision() -> frozenset[Any]:
    """The functions of `FULL`, under every name that programs call them by."""
    owners = (torch, torch.Tensor, torch.nn.functional)
    return frozenset(getattr(owner, name) for name in FULL.split() for owner in owners if hasattr(owner, name))


def widen(value: Any) -> Any:
    """Tensors of 16-bit floats as fp32; what is no such tensor as it is."""
    if isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16):
        return value.float()
    if isinstance(value, (list, tuple)):
        return type(value)(widen(v) for v in value)
    return value


@contextlib.contextmanager
def on_cpu() -> Iterator[None]:
    """Within, `torch.autocast("cuda")` acts on the CPU tensors that stand for the GPU's."""
    kind = torch.autocast
    plain_init, plain_enter = kind.__init__, kind.__enter__

    def init(
        self: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        on_gpu = device_type != "cpu"
        plain_init(self, "cpu", torch.float16 if dtype is None and on_gpu else dtype, enabled, cache_enabled)

    def enter(self: Any) -> Any:
        self.device = "cpu"  # one made before the capture began
        return plain_enter(self)

    plain_enabled, plain_dtype = torch.is_autocast_enabled, torch.get_autocast_dtype
    kind.__init__, kind.__enter__ = init, enter
    torch.is_autocast_enabled = lambda device="cpu": plain_enabled("cpu")
    torch.get_autocast_dtype = lambda device="cpu": plain_dtype("cpu")
    try:
        yield
    finally:
        kind.__init__, kind.__enter__ = plain_init, plain_enter
        torch.is_autocast_enabled, torch.get_autocast_dtype = plain_enabled, plain_dtype
