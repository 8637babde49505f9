"""Pooling and resizing: the input read once, the output written once, a window of arithmetic an output."""

from __future__ import annotations

from math import prod

from ridgepole import dtypes
from ridgepole.work.cost import NotRecorded, formula, ints, need
from ridgepole.work.op import Call, Cost, Tensor


def _window(value: tuple[int, ...] | None, dims: int) -> tuple[int, ...]:
    if not value:
        raise NotRecorded("window not recorded")
    return value * dims if len(value) == 1 else value


def _pooled(call: Call, x: Tensor, kernel: tuple[int, ...], maximum: bool) -> tuple[int, ...]:
    """The result's shape: (x, kernel, stride, padding, [dilation of max pools,] ceil_mode, ...)."""
    dims = len(kernel)
    stride = _window(ints(call, 2) or kernel, dims)
    pad = _window(ints(call, 3) or (0,), dims)
    dilation = _window((ints(call, 4) if maximum else None) or (1,), dims)
    ceiling = call.value(5 if maximum else 4, False) is True
    size = []
    for n, k, s, p, d in zip(x.shape[-dims:], kernel, stride, pad, dilation, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        windows = (-(-room // s) if ceiling else room // s) + 1
        # No window may start in the padding behind the input (torch's rule for ceil_mode)
        size.append(windows - 1 if ceiling and (windows - 1) * s >= n + p else windows)
    return (*x.shape[:-dims], *size)


_POOLS = {
    f"aten::{kind}_pool{d}d{suffix}": d
    for kind in ("max", "avg")
    for d in (1, 2, 3)
    for suffix in ("", "_with_indices")
}
INDEX_BYTES = 8


@formula(*_POOLS)
def pool(call: Call) -> Cost:
    """A window's elements an output."""
    dims = _POOLS[call.operator]
    x = need(call, 0)
    kernel = _window(ints(call, 1), dims)
    shape = call.outputs[0].shape if call.outputs else _pooled(call, x, kernel, "max" in call.operator)
    index = INDEX_BYTES if call.operator.endswith("_with_indices") else 0
    wrote = prod(shape) * (dtypes.itemsize(x.dtype) + index)
    return Cost(prod(shape) * prod(kernel), x.nbytes, wrote, x.dtype, "vector", "pool")


_ADAPTIVE = {
    f"aten::{a}{kind}_pool{d}d": d for a in ("adaptive_", "_adaptive_") for kind in ("max", "avg") for d in (1, 2, 3)
}
_FRACTIONAL = {f"aten::fractional_max_pool{d}d": d for d in (2, 3)}


@formula(*_ADAPTIVE, *_FRACTIONAL)
def adaptive(call: Call) -> Cost:
    """(x, size of the result), or for fractional ones (x, kernel, size of the result, samples)"""
    dims = _ADAPTIVE.get(call.operator) or _FRACTIONAL[call.operator]
    x = need(call, 0)
    size = _window(ints(call, 2 if call.operator in _FRACTIONAL else 1), dims)
    shape = call.outputs[0].shape if call.outputs else (*x.shape[:-dims], *size)
    index = INDEX_BYTES if "max" in call.operator else 0
    wrote = prod(shape) * (dtypes.itemsize(x.dtype) + index)
    return Cost(x.numel, x.nbytes, wrote, x.dtype, "vector", "pool")


_BACKWARD = [f"{name}_backward" for name in (*_POOLS, *_ADAPTIVE, *_FRACTIONAL)]


@formula(*_BACKWARD)
def pool_backward(call: Call) -> Cost:
    """(gradient, input, ...): the gradient spread over each window."""
    grad, x = need(call, 0), need(call, 1)
    index = call.tensors[-1].nbytes if "max" in call.operator and len(call.tensors) > 2 else 0
    return Cost(x.numel, grad.nbytes + index, x.logical_nbytes, x.dtype, "vector", "pool")


@formula("aten::max_unpool2d", "aten::max_unpool3d")
def max_unpool(call: Call) -> Cost:
    """(x, indices, size of the result): x scattered into zeros."""
    x, index = need(call, 0), need(call, 1)
    size = ints(call, 2)
    if not call.outputs and size is None:
        raise NotRecorded("output size not recorded")
    shape = call.outputs[0].shape if call.outputs else (*x.shape[: -len(size or ())], *(size or ()))
    wrote = prod(shape) * dtypes.itemsize(x.dtype)
    return Cost(0, x.nbytes + index.nbytes, wrote, x.dtype, "vector", "scatter", 2)


_RESIZES = {
    "nearest1d": 1,
    "nearest2d": 1,
    "nearest3d": 1,
    "_nearest_exact1d": 1,
    "_nearest_exact2d": 1,
    "_nearest_exact3d": 1,
    "linear1d": 4,
    "bilinear2d": 8,
}
_RESIZES |= {"trilinear3d": 16, "bicubic2d": 40, "_bilinear2d_aa": 24, "_bicubic2d_aa": 60}
_RESIZE_FLOPS = {
    f"aten::{'_upsample_' + name[1:] if name.startswith('_') else 'upsample_' + name}": flops
    for name, flops in _RESIZES.items()
}


@formula(*_RESIZE_FLOPS)
def upsample(call: Call) -> Cost:
    x = need(call, 0)
    size = ints(call, 1)
    dims = len(x.shape) - 2
    if call.outputs:
        shape: tuple[int, ...] = call.outputs[0].shape
    elif size is not None and len(size) == dims:
        shape = (*x.shape[:2], *size)
    else:
        raise NotRecorded("output size not recorded")
    flops = _RESIZE_FLOPS[call.operator]
    return Cost(prod(shape) * flops, x.nbytes, prod(shape) * dtypes.itemsize(x.dtype), x.dtype, "vector", "pool")


@formula(*(f"{name}_backward" for name in _RESIZE_FLOPS))
def upsample_backward(call: Call) -> Cost:
    grad = need(call, 0)
    sizes = ints(call, 2)
    if call.outputs:
        wrote = call.outputs[0].nbytes
    elif sizes is not None:
        wrote = prod(sizes) * dtypes.itemsize(grad.dtype)
    else:
        raise NotRecorded("input size not recorded")
    flops = _RESIZE_FLOPS[call.operator.removesuffix("_backward")]
    return Cost(grad.numel * flops, grad.nbytes, wrote, grad.dtype, "vector", "pool")


@formula("aten::grid_sampler", "aten::grid_sampler_2d", "aten::grid_sampler_3d", "aten::cudnn_grid_sampler")
def grid_sample(call: Call) -> Cost:
    """Four (2-D) or eight taps an output pixel, wherever the grid says."""
    x, grid = need(call, 0), need(call, 1)
    taps = 4 if len(x.shape) == 4 else 8
    pixels = prod(grid.shape[:-1]) * x.shape[1]
    wrote = pixels * dtypes.itemsize(x.dtype)
    return Cost(pixels * taps * 3, min(x.nbytes, taps * wrote) + grid.nbytes, wrote, x.dtype, "vector", "gather")


@formula("aten::grid_sampler_2d_backward", "aten::grid_sampler_3d_backward")
def grid_sample_backward(call: Call) -> Cost:
    grad, x, grid = need(call, 0), need(call, 1), need(call, 2)
    read = grad.nbytes + x.nbytes + grid.nbytes
    return Cost(grad.numel * 24, read, x.logical_nbytes + grid.logical_nbytes, x.dtype, "vector", "scatter", 2)
