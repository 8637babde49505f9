"""Convolutions as implicit matrix products: m = outputs x positions, n = output channels, k = inputs x window."""

from __future__ import annotations

from dataclasses import replace

from ridgepole.price.kernel import Ask, Estimate, model
from ridgepole.price.models.matmul import plain, product
from ridgepole.work.op import Gemm

NARROW = 16
"""Bytes of input channels a pixel under which the channels cannot be loaded as vectors."""


@model("conv")
def conv(ask: Ask) -> Estimate:
    """The product's time, at the convolution's own share of it (gathering its windows is not free)."""
    detail = ask.cost.detail
    if not isinstance(detail, Gemm) or not ask.peak:
        return plain(ask)
    one = product(ask, detail if detail.batch == 1 else replace(detail, aligned=16))
    work = (one.seconds - ask.floor) / ask.constant("conv.fraction")
    return replace(one, seconds=ask.floor + work)
