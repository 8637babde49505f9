"""Pointwise operators: every input read once, the broadcast result written once.

FLOP an element by the table below: one for an add, multiply, compare or select; a transcendental counts 8, which is
about what its polynomial takes on the vector units (assumed; it decides a bucket only near the ridge).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from ridgepole.work.cost import (
    NotRecorded,
    access,
    as_float,
    broadcast,
    formula,
    in_place,
    need,
    promote,
    real_dtype,
    stated_dtype,
    written,
)
from ridgepole.work.op import Call, Cost, Family, Tensor

TRANSCENDENTAL = 8
SPECIAL = 30
"""Bessel, Airy, zeta and their like: a longer series, or several (assumed)."""

_TESTS = "isnan isinf isfinite isposinf isneginf logical_not signbit"
_COMPARES = "eq ne lt le gt ge logical_and logical_or logical_xor"
_ROOTS = "sqrt rsqrt"
_CURVES = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc "
    "erfinv lgamma digamma special_entr special_ndtri logit sinc i0 angle special_expit special_log_ndtr"
)
_SERIES = (
    "polygamma mvlgamma special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 "
    "special_erfcx special_i0e special_i1 special_i1e special_modified_bessel_i0 special_modified_bessel_i1 "
    "special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0 "
    "special_scaled_modified_bessel_k1 special_spherical_bessel_j0"
)
_SERIES_OF_TWO = (
    "igamma igammac special_zeta special_chebyshev_polynomial_t special_chebyshev_polynomial_u "
    "special_chebyshev_polynomial_v special_chebyshev_polynomial_w special_shifted_chebyshev_polynomial_t "
    "special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v "
    "special_shifted_chebyshev_polynomial_w special_hermite_polynomial_h special_hermite_polynomial_he "
    "special_laguerre_polynomial_l special_legendre_polynomial_p"
)

_ARITY: Mapping[int, Mapping[int, str]] = {
    # tensors read: FLOP an element: operators
    1: {
        0: "_conj_physical",
        1: f"{_TESTS} abs neg negative relu relu6 hardtanh threshold square sign sgn ceil floor round trunc frac "
        "bitwise_not reciprocal leaky_relu hardshrink softshrink conj_physical nan_to_num deg2rad rad2deg",
        2: "frexp",
        4: f"{_ROOTS} hardsigmoid hardswish softsign",
        TRANSCENDENTAL: f"{_CURVES} elu celu selu log_sigmoid log_sigmoid_forward",
        2 + TRANSCENDENTAL: "gelu silu mish softplus swish",
        SPECIAL: _SERIES,
    },
    2: {
        0: "complex",
        1: f"add sub subtract rsub mul multiply maximum minimum fmax fmin {_COMPARES} bitwise_and bitwise_or "
        "bitwise_xor bitwise_left_shift bitwise_right_shift __and__ __or__ __xor__ __lshift__ __rshift__ __iand__ "
        "__ior__ heaviside copysign masked_fill floor_divide relu_backward threshold_backward "
        "hardtanh_backward leaky_relu_backward nextafter prelu _prelu_kernel gcd lcm clamp_min clamp_max "
        "hardshrink_backward softshrink_backward rrelu_with_noise",
        2: "div divide true_divide remainder fmod rrelu_with_noise_backward",
        4: "hypot sigmoid_backward tanh_backward hardsigmoid_backward hardswish_backward ldexp logit_backward",
        TRANSCENDENTAL: "pow atan2 float_power xlogy special_xlog1py logaddexp logaddexp2 softplus_backward "
        "elu_backward log_sigmoid_backward",
        2 * TRANSCENDENTAL: "polar",
        4 + TRANSCENDENTAL: "gelu_backward silu_backward mish_backward",
        SPECIAL: _SERIES_OF_TWO,
    },
    3: {
        1: "where",
        2: "lerp clamp clip",
        3: "addcmul addcdiv",
        4: "_prelu_kernel_backward",
    },
}

_FLOPS = {
    f"aten::{name}": flops for table in _ARITY.values() for flops, names in table.items() for name in names.split()
}
_TENSORS = {f"aten::{name}": n for n, table in _ARITY.items() for names in table.values() for name in names.split()}
_TO_BOOL = {f"aten::{name}" for name in f"{_TESTS} {_COMPARES}".split()}
_TO_FLOAT = {
    f"aten::{name}"
    for name in f"{_ROOTS} {_CURVES} {_SERIES} {_SERIES_OF_TWO} reciprocal deg2rad rad2deg atan2 xlogy special_xlog1py "
    "copysign div divide true_divide".split()
}
"""Operators that make fractions of whole numbers."""
_KEEPS_DTYPE = {"aten::masked_fill", "aten::threshold_backward", "aten::_prelu_kernel_backward"}
"""Operators whose result has the first tensor's dtype."""
_TO_REAL = {"aten::abs", "aten::angle"}
_TO_COMPLEX = {"float16": "complex32", "float32": "complex64", "float64": "complex128"}
_RESULTS = {"aten::frexp": 2, "aten::_prelu_kernel_backward": 2}
_COMPLEX_FLOPS = {"aten::mul": 6, "aten::div": 11, "aten::abs": 4, "aten::addcmul": 8, "aten::reciprocal": 6}
"""FLOP of the parts, by hand; of other operators each part is taken to cost what a real number does."""


def pointwise(
    call: Call, tensors: tuple[Tensor, ...], flops: int, dtype: str = "", family: Family = "elementwise"
) -> Cost:
    """`flops` an element of the broadcast of `tensors`, the result of `dtype` (theirs where "")."""
    if not tensors:
        raise NotRecorded("inputs not recorded")
    shape = call.outputs[0].shape if call.outputs else broadcast(t.shape for t in tensors)
    working = promote(tensors)
    out = dtype or (tensors[0].dtype if in_place(call) else working)
    read = sum(t.nbytes for t in tensors)
    return Cost(flops * prod(shape), read, written(call, shape, out), real_dtype(working), "vector", family)


def _base(call: Call) -> str:
    name = call.operator.split(".")[0]
    if name in _FLOPS:
        return name
    return name[:-1] if name.endswith("_") else name


def _result(call: Call, name: str, tensors: tuple[Tensor, ...]) -> str:
    """The dtype of the result of an operator that is not in place; "" for the tensors' own."""
    if in_place(call) or not tensors:
        return ""
    if name in _TO_BOOL:
        return "bool"
    if name in _KEEPS_DTYPE:
        return tensors[0].dtype
    # A condition is no operand
    operands = tensors[1:] if name == "aten::where" else tensors
    scalars = call.args[1:3] if name == "aten::where" else call.args[: _TENSORS[name]] if _TENSORS[name] == 2 else ()
    found = promote(operands or tensors, scalars)
    if name in ("aten::complex", "aten::polar"):
        return _TO_COMPLEX.get(found, found)
    if name in _TO_REAL:
        found = real_dtype(found)
    rounded = name in ("aten::div", "aten::divide") and isinstance(call.value(2), str)
    return as_float(found) if name in _TO_FLOAT and not rounded else found


@formula(*_FLOPS)
def table(call: Call) -> Cost:
    name = _base(call)
    first = 1 if name == "aten::polygamma" else 0
    tensors = tuple(t for t in call.args[first : first + _TENSORS[name]] if isinstance(t, Tensor))
    flops = _FLOPS[name]
    if tensors and any(t.dtype.startswith("complex") for t in tensors):
        flops = _COMPLEX_FLOPS.get(name, 2 * flops)
    cost = pointwise(call, tensors, flops, _result(call, name, tensors))
    return replace(cost, written=cost.written * _RESULTS.get(name, 1)) if not call.outputs else cost


@formula("aten::glu", "aten::glu_backward")
def glu(call: Call) -> Cost:
    """One half of a dimension times the sigmoid of the other."""
    back = "backward" in call.operator
    grad = call.tensors[:1] if back else ()
    x = need(call, 1 if back else 0)
    half = x.numel // 2
    read = x.nbytes + sum(t.nbytes for t in grad)
    wrote = written(call, (x.numel if back else half,), x.dtype)
    return Cost((4 if back else 2 + TRANSCENDENTAL) * half, read, wrote, x.dtype, "vector", "elementwise")


_QUANTIZE = "quantize_per_tensor quantize_per_channel fake_quantize_per_tensor_affine_cachemask "
_QUANTIZE += "fake_quantize_per_channel_affine_cachemask _fake_quantize_per_tensor_affine_cachemask_tensor_qparams"


@formula(*(f"aten::{name}" for name in _QUANTIZE.split()), "aten::dequantize")
def quantize(call: Call) -> Cost:
    """Scale, round, shift and clamp."""
    x = need(call, 0)
    fake = "fake" in call.operator
    dtype = "float32" if "dequantize" in call.operator else x.dtype if fake else stated_dtype(call, 3) or "qint8"
    wrote = written(call, x.shape, dtype) + (x.numel if fake and not call.outputs else 0)
    return Cost(4 * x.numel, x.nbytes, wrote, "float32", "vector", "elementwise")


@formula(
    "aten::_to_copy",
    "aten::to",
    "aten::type_as",
    "aten::_autocast_to_reduced_precision",
    "aten::_autocast_to_full_precision",
)
def cast(call: Call) -> Cost:
    x = call.tensors[0] if call.tensors else None
    if x is None:
        raise NotRecorded("input not recorded")
    if call.outputs:
        return Cost(0, x.nbytes, call.outputs[0].nbytes, x.dtype, "vector", access(x, call.outputs[0]))
    stated = stated_dtype(call, 1) if call.operator.startswith("aten::_to_copy") else ""
    if not stated:
        raise NotRecorded("result's dtype not recorded")
    out = Tensor(x.shape, stated)
    return Cost(0, x.nbytes, out.nbytes, x.dtype, "vector", access(x, out))
