"""Convolutions as implicit matrix products: m = outputs x positions, n = output channels, k = inputs x window."""

from __future__ import annotations

from dataclasses import replace

from ridgepole import dtypes
from ridgepole.price.kernel import Ask, Estimate, model
from ridgepole.price.models.matmul import on_tensor, plain, product
from ridgepole.work.op import Gemm

VECTOR_LOAD = 16
"""Bytes: pixels with fewer of channels (an RGB image's) cannot be loaded as vectors, and the matrix units starve."""


@model("conv")
def conv(ask: Ask) -> Estimate:
    """The product's time, at the convolution's own share of it (gathering its windows is not free)."""
    detail = ask.cost.detail
    if not isinstance(detail, Gemm) or not ask.peak:
        return plain(ask)
    narrow = _pixel_bytes(ask) < VECTOR_LOAD and on_tensor(ask)
    one = product(ask, replace(detail, aligned=VECTOR_LOAD) if narrow else detail)
    share = ask.constant("conv.fraction") * (ask.constant("conv.narrow") if narrow else 1.0)
    seconds = ask.floor + (one.seconds - ask.floor) / share
    if narrow:
        why = f"{_pixel_bytes(ask)} B of channels a pixel, too few for {VECTOR_LOAD}-byte loads"
        return replace(one, seconds=seconds, limit="alignment", why=why)
    return replace(one, seconds=seconds)


def _pixel_bytes(ask: Ask) -> int:
    """Bytes of one position's input channels; plenty where the input's shape is not known."""
    source = next((t for t in ask.op.call.tensors if len(t.shape) >= 3), None)
    return source.shape[1] * dtypes.itemsize(source.dtype) if source else VECTOR_LOAD
