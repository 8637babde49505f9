"""Convolutions: 2 FLOP a multiply-add of every output element with its window, as an implicit matrix product."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ridgepole import dtypes
from ridgepole.work.cost import NotRecorded, formula, ints, matrix_unit, need, written
from ridgepole.work.formulas.matmul import alignment
from ridgepole.work.op import Call, Cost, Gemm, Tensor

Window = tuple[tuple[int, ...] | None, tuple[int, ...] | None, tuple[int, ...] | None]
"""Stride, padding and dilation; None where they were not recorded."""


def _spread(values: tuple[int, ...] | None, dims: int) -> tuple[int, ...]:
    if not values:
        raise NotRecorded("stride, padding and dilation not recorded")
    return values * dims if len(values) == 1 else values


def _out_size(call: Call, x: Tensor, w: Tensor, window: Window, added: tuple[int, ...] | None) -> tuple[int, ...]:
    """The result's size as recorded, else by the window's arithmetic; `added`: a transposed one's output padding."""
    if call.outputs:
        return call.outputs[0].shape[2:] if len(call.outputs[0].shape) == len(w.shape) else call.outputs[0].shape[1:]
    dims = len(w.shape) - 2
    stride, pad, dilation = (_spread(values, dims) for values in window)
    pairs = zip(x.shape[2:], w.shape[2:], stride, pad, dilation, strict=True)
    if added is None:
        return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in pairs)
    extra = _spread(added or (0,), dims)
    return tuple((n - 1) * s - 2 * p + d * (k - 1) + 1 + e for (n, k, s, p, d), e in zip(pairs, extra, strict=True))


def _forward(
    call: Call,
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    window: Window,
    groups: int,
    added: tuple[int, ...] | None = None,
) -> Cost:
    """`added`: the output padding of a transposed convolution, empty for none; None: it is not transposed."""
    dims = len(w.shape) - 2
    if len(x.shape) == dims + 1:
        x = Tensor((1, *x.shape), x.dtype)
    if len(x.shape) != dims + 2 or dims < 1:
        raise NotRecorded("shapes of a convolution not recorded")
    taps = prod(w.shape[2:])
    batch = x.shape[0]
    size = _out_size(call, x, w, window, added)
    if added is not None:
        channels = w.shape[1] * groups
        macs = batch * prod(x.shape[2:]) * x.shape[1] * w.shape[1] * taps
        gemm = Gemm(groups, batch * prod(x.shape[2:]), w.shape[1] * taps, x.shape[1] // groups)
    else:
        channels = w.shape[0]
        macs = batch * channels * prod(size) * w.shape[1] * taps
        pixels = Tensor((1, w.shape[1] * groups), x.dtype)
        gemm = Gemm(groups, batch * prod(size), channels // groups, w.shape[1] * taps, alignment(pixels))
    read = x.nbytes + w.nbytes + (bias.nbytes if bias is not None else 0)
    wrote = written(call, (batch, channels, *size), x.dtype)
    return Cost(2 * macs, read, wrote, x.dtype, matrix_unit(x.dtype), "conv", 1, gemm)


def _groups(call: Call, index: int) -> int:
    value = call.value(index, 1)
    return value if isinstance(value, int) and value > 0 else 1


@formula("aten::convolution", "aten::_convolution", "aten::convolution_overrideable")
def convolution(call: Call) -> Cost:
    window = (ints(call, 3), ints(call, 4), ints(call, 5))
    added = (ints(call, 7) or ()) if call.value(6, False) is True else None
    return _forward(call, need(call, 0), need(call, 1), call.tensor(2), window, _groups(call, 8), added)


@formula("aten::conv1d", "aten::conv2d", "aten::conv3d")
def conv(call: Call) -> Cost:
    window = (ints(call, 3), ints(call, 4), ints(call, 5))
    return _forward(call, need(call, 0), need(call, 1), call.tensor(2), window, _groups(call, 6))


@formula("aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d")
def conv_transpose(call: Call) -> Cost:
    window = (ints(call, 3), ints(call, 4), ints(call, 7))
    return _forward(call, need(call, 0), need(call, 1), call.tensor(2), window, _groups(call, 6), ints(call, 5) or ())


@formula("aten::cudnn_convolution", "aten::_conv_depthwise2d")
def cudnn(call: Call) -> Cost:
    if "depthwise" in call.operator:
        x, w = need(call, 0), need(call, 1)
        return _forward(call, x, w, call.tensor(3), (ints(call, 4), ints(call, 5), ints(call, 6)), x.shape[1])
    return _forward(
        call, need(call, 0), need(call, 1), None, (ints(call, 3), ints(call, 2), ints(call, 4)), _groups(call, 5)
    )


@formula("aten::cudnn_convolution_transpose", "aten::miopen_convolution_transpose")
def cudnn_transpose(call: Call) -> Cost:
    """(input, weight, [bias of MIOpen,] padding, output padding, stride, dilation, groups, ...)"""
    at = 3 if "miopen" in call.operator else 2
    window = (ints(call, at + 2), ints(call, at), ints(call, at + 3))
    bias = call.tensor(2) if at == 3 else None
    return _forward(call, need(call, 0), need(call, 1), bias, window, _groups(call, at + 4), ints(call, at + 1) or ())


@formula("aten::miopen_convolution", "aten::mkldnn_convolution", "aten::miopen_depthwise_convolution")
def miopen(call: Call) -> Cost:
    window = (ints(call, 4), ints(call, 3), ints(call, 5))
    return _forward(call, need(call, 0), need(call, 1), call.tensor(2), window, _groups(call, 6))


@formula("aten::thnn_conv2d", "aten::_slow_conv2d_forward")
def thnn(call: Call) -> Cost:
    return _forward(call, need(call, 0), need(call, 1), call.tensor(3), (ints(call, 4), ints(call, 5), (1,)), 1)


@formula("aten::cudnn_convolution_relu", "aten::cudnn_convolution_add_relu")
def cudnn_fused(call: Call) -> Cost:
    added = "add" in call.operator
    z = need(call, 2) if added else None
    first = 5 if added else 3
    window = (ints(call, first), ints(call, first + 1), ints(call, first + 2))
    cost = _forward(call, need(call, 0), need(call, 1), call.tensor(first - 1), window, _groups(call, first + 3))
    more = z.nbytes if z is not None else 0
    return Cost(cost.flops, cost.read + more, cost.written, cost.dtype, cost.unit, "conv", 1, cost.detail)


def _backward(
    grad: Tensor, x: Tensor, w: Tensor, mask: tuple[bool, bool], groups: int, transposed: bool = False
) -> Cost:
    """The gradients of input and of weight: each does as much arithmetic as the forward pass, and reads for itself."""
    over = x if transposed else grad
    one = 2 * over.shape[0] * prod(over.shape[2:]) * w.numel
    read, wrote = 0, 0
    if mask[0]:
        read, wrote = read + grad.nbytes + w.nbytes, wrote + x.nbytes
    if mask[1]:
        read, wrote = read + grad.nbytes + x.nbytes, wrote + w.nbytes
    count = sum(mask)
    gemm = Gemm(groups, grad.shape[0] * prod(grad.shape[2:]), w.shape[0] // groups, w.numel // w.shape[0])
    return Cost(one * count, read, wrote, x.dtype, matrix_unit(x.dtype), "conv", max(count, 1), gemm)


def _mask(call: Call, index: int) -> tuple[bool, bool]:
    value = call.value(index)
    if isinstance(value, tuple) and len(value) >= 2:
        return bool(value[0]), bool(value[1])
    return True, True


@formula("aten::convolution_backward", "aten::convolution_backward_overrideable")
def convolution_backward(call: Call) -> Cost:
    last = 10 if "overrideable" not in call.operator else 9
    transposed = call.value(last - 3, False) is True
    grad, x, w = need(call, 0), need(call, 1), need(call, 2)
    cost = _backward(grad, x, w, _mask(call, last), _groups(call, last - 1), transposed)
    wanted = call.value(last)
    if not call.outputs or not isinstance(wanted, tuple) or wanted[2:3] != (True,):
        return cost
    # The bias' gradient is a sum of its own; a trace, which records no outputs, has an op for it. Its few additions
    # are no work of the matrix units.
    wrote = grad.shape[1] * dtypes.itemsize(grad.dtype)
    return replace(
        cost,
        read=cost.read + grad.nbytes,
        written=cost.written + wrote,
        kernels=cost.kernels + 1 if any(_mask(call, last)) else 1,
    )


@formula("aten::cudnn_convolution_backward", "aten::miopen_convolution_backward", "aten::mkldnn_convolution_backward")
def cudnn_backward(call: Call) -> Cost:
    """(input, grad_output, weight, padding, stride, dilation, groups, ..., output_mask)"""
    mask = next((v for v in reversed(call.args) if isinstance(v, tuple) and v and isinstance(v[0], bool)), None)
    chosen = (bool(mask[0]), bool(mask[1])) if mask is not None and len(mask) >= 2 else (True, True)
    return _backward(need(call, 1), need(call, 0), need(call, 2), chosen, _groups(call, 6))


@formula("aten::cudnn_convolution_backward_input", "aten::miopen_convolution_backward_input")
def backward_input(call: Call) -> Cost:
    sizes = ints(call, 0)
    grad, w = need(call, 1), need(call, 2)
    if sizes is None:
        raise NotRecorded("input sizes not recorded")
    return _backward(grad, Tensor(sizes, grad.dtype), w, (True, False), _groups(call, 6))


@formula("aten::cudnn_convolution_backward_weight", "aten::miopen_convolution_backward_weight")
def backward_weight(call: Call) -> Cost:
    sizes = ints(call, 0)
    grad, x = need(call, 1), need(call, 2)
    if sizes is None:
        raise NotRecorded("weight sizes not recorded")
    return _backward(grad, x, Tensor(sizes, grad.dtype), (False, True), _groups(call, 6))
