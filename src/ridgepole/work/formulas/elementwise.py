"""Pointwise operators: every input read once, the broadcast result written once.

FLOP an element by the table below: one for an add, multiply, compare or select; a transcendental counts 8, which is
about what its polynomial takes on the vector units (assumed; it decides a bucket only near the ridge).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ridgepole import dtypes
from ridgepole.work.cost import (
    SCALAR_TYPES,
    NotRecorded,
    access,
    broadcast,
    formula,
    in_place,
    listed,
    promote,
    written,
)
from ridgepole.work.op import Call, Cost, Family, Tensor

TRANSCENDENTAL = 8

_TESTS = "isnan isinf isfinite isposinf isneginf logical_not signbit"
_COMPARES = "eq ne lt le gt ge logical_and logical_or logical_xor"

_ARITY: Mapping[int, Mapping[int, str]] = {
    # tensors read: FLOP an element: operators
    1: {
        0: "view_as_real_copy _conj_physical",
        1: f"{_TESTS} abs neg negative relu relu6 hardtanh threshold clamp clip clamp_min clamp_max square sign sgn "
        "ceil floor "
        "round trunc frac bitwise_not reciprocal "
        "leaky_relu hardshrink softshrink conj_physical nan_to_num deg2rad rad2deg",
        4: "sqrt rsqrt hardsigmoid hardswish softsign",
        TRANSCENDENTAL: "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh "
        "tanh asinh acosh atanh "
        "sigmoid erf erfc erfinv lgamma digamma special_entr special_ndtri logit elu celu selu log_sigmoid "
        "log_sigmoid_forward sinc i0 angle special_expit special_log_ndtr",
        2 + TRANSCENDENTAL: "gelu silu mish softplus swish glu",
    },
    2: {
        1: f"add sub subtract rsub mul multiply maximum minimum max_other fmax fmin {_COMPARES} bitwise_and bitwise_or "
        "bitwise_xor bitwise_left_shift bitwise_right_shift __and__ __or__ __xor__ __lshift__ __rshift__ __iand__ "
        "__ior__ add_relu heaviside copysign masked_fill where_self floor_divide relu_backward threshold_backward "
        "hardtanh_backward leaky_relu_backward nextafter prelu _prelu_kernel gcd lcm",
        2: "div divide true_divide remainder fmod div_rounding",
        4: "hypot sigmoid_backward tanh_backward hardsigmoid_backward hardswish_backward",
        TRANSCENDENTAL: "pow atan2 float_power xlogy logaddexp logaddexp2 softplus_backward elu_backward "
        "log_sigmoid_backward",
        4 + TRANSCENDENTAL: "gelu_backward silu_backward mish_backward",
        2 + TRANSCENDENTAL: "glu_backward",
    },
    3: {
        1: "where",
        2: "lerp clamp_tensor",
        3: "addcmul addcdiv",
    },
}

_FLOPS = {
    f"aten::{name}": flops for table in _ARITY.values() for flops, names in table.items() for name in names.split()
}
_TENSORS = {f"aten::{name}": n for n, table in _ARITY.items() for names in table.values() for name in names.split()}
_TO_BOOL = {f"aten::{name}" for name in f"{_TESTS} {_COMPARES}".split()}


def pointwise(
    call: Call, tensors: tuple[Tensor, ...], flops: int, dtype: str = "", family: Family = "elementwise"
) -> Cost:
    """`flops` an element of the broadcast of `tensors`, the result of `dtype` (theirs where "")."""
    if not tensors:
        raise NotRecorded("inputs not recorded")
    shape = call.outputs[0].shape if call.outputs else broadcast(t.shape for t in tensors)
    working = promote(tensors)
    out = dtype or (tensors[0].dtype if in_place(call) else working)
    count = prod(shape)
    read = sum(t.nbytes for t in tensors)
    return Cost(flops * count, read, written(call, shape, out), working, "vector", family)


def _base(call: Call) -> str:
    name = call.operator.split(".")[0]
    if name in _FLOPS:
        return name
    return name[:-1] if name.endswith("_") else name


@formula(*_FLOPS)
def table(call: Call) -> Cost:
    name = _base(call)
    tensors = call.tensors[: max(_TENSORS[name], 2 if name == "aten::where" and len(call.tensors) == 2 else 0)]
    if name in _TO_BOOL:
        return pointwise(call, tensors, _FLOPS[name], "" if in_place(call) else "bool")
    divides = name in ("aten::div", "aten::divide", "aten::true_divide")
    whole = bool(tensors) and dtypes.find(tensors[0].dtype) in ("int64", "int32", "int16", "int8", "uint8", "bool")
    return pointwise(call, tensors, _FLOPS[name], "float32" if divides and whole and not in_place(call) else "")


_FOREACH = {
    1: "add sub mul maximum minimum clamp_max clamp_min abs neg zero sign round floor ceil trunc frac reciprocal",
    2: "div addcmul addcdiv lerp",
    4: "sqrt rsqrt",
    TRANSCENDENTAL: "exp log sin cos tanh sigmoid pow erf expm1 log1p log2 log10",
    0: "copy",
}
_FOREACH_FLOPS = {f"aten::_foreach_{name}": flops for flops, names in _FOREACH.items() for name in names.split()}
TENSORS_A_LAUNCH = 110
"""Tensors whose addresses fit one multi-tensor launch (depth 1; fewer with more lists): torch's MultiTensorApply."""


def launches(count: int, lists: int) -> int:
    """Kernels of one multi-tensor operator over `lists` lists of `count` tensors."""
    room = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}.get(lists, 24)
    return max(1, -(-count // room))


@formula(*_FOREACH_FLOPS)
def foreach(call: Call) -> Cost:
    """A list of tensors at once; in place the first list is written back."""
    lists = [
        listed(call, i) for i, a in enumerate(call.args) if isinstance(a, tuple) and a and isinstance(a[0], Tensor)
    ]
    if not lists:
        raise NotRecorded("tensor lists not recorded")
    first = lists[0]
    name = call.operator.split(".")[0].rstrip("_")
    flops = _FOREACH_FLOPS[name] * sum(t.numel for t in first)
    size = sum(t.nbytes for t in first)
    reads = lists[1:] if name.endswith(("_copy", "_zero")) and in_place(call) else lists
    read = sum(t.nbytes for one in reads for t in one)
    wrote = sum(t.nbytes for t in call.outputs) if call.outputs else size
    return Cost(flops, read, wrote, first[0].dtype, "vector", "elementwise", launches(len(first), len(lists)))


@formula("aten::_foreach_norm")
def foreach_norm(call: Call) -> Cost:
    """One norm a tensor, in two stages."""
    first = listed(call, 0)
    count = sum(t.numel for t in first)
    read = sum(t.nbytes for t in first)
    kernels = launches(len(first), 1) + 1
    return Cost(
        2 * count, read, len(first) * dtypes.itemsize(first[0].dtype), first[0].dtype, "vector", "reduction", kernels
    )


_LOSSES = {
    "mse_loss": 2, "l1_loss": 2, "smooth_l1_loss": 4, "huber_loss": 4, "binary_cross_entropy": 18, "kl_div": 10,
    "binary_cross_entropy_with_logits": 20, "mse_loss_backward": 3, "l1_loss_backward": 3, "huber_loss_backward": 4,
    "smooth_l1_loss_backward": 4, "binary_cross_entropy_backward": 6, "soft_margin_loss": 10,
}  # fmt: skip


@formula(*(f"aten::{name}" for name in _LOSSES))
def loss(call: Call) -> Cost:
    """The difference of two tensors, element by element; the sum at the end is a reduction of its own call."""
    name = call.operator.split("::")[1]
    backward = name.endswith("_backward")
    tensors = call.tensors[: 3 if backward else 2]
    cost = pointwise(call, tensors, _LOSSES[name])
    reduces = not call.outputs and not backward and call.value(2, 1) != 0
    if not reduces:
        return cost
    size = dtypes.itemsize(cost.dtype)
    return Cost(cost.flops, cost.read, size, cost.dtype, "vector", "reduction", 2)


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
    number = call.value(1)
    if not call.operator.startswith("aten::_to_copy") or not isinstance(number, int) or number not in SCALAR_TYPES:
        raise NotRecorded("result's dtype not recorded")
    out = Tensor(x.shape, SCALAR_TYPES[number])
    return Cost(0, x.nbytes, out.nbytes, x.dtype, "vector", access(x, out))
