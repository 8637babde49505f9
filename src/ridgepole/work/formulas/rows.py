"""Operators that walk rows: reductions, softmax, scans, sorts. Norms and losses have files of their own."""

from __future__ import annotations

from math import ceil, log2, prod

from ridgepole import dtypes
from ridgepole.work.cost import NotRecorded, formula, in_place, ints, need, stated_dtype, whole, written
from ridgepole.work.formulas.elementwise import pointwise
from ridgepole.work.op import Call, Cost, Family, Rows, Tensor

INDEX_BYTES = 8


def along(x: Tensor, dims: tuple[int, ...] | None) -> Rows:
    """The runs of `x` along `dims`; one run of everything where there are none."""
    if not x.shape:
        return Rows(1, 1)
    if not dims:
        return Rows(1, x.numel)
    length = prod(x.shape[d] for d in {d % len(x.shape) for d in dims})
    return Rows(x.numel // max(length, 1), length)


def rowwise(
    call: Call, family: Family, x: Tensor, rows: Rows, flops: int, read: int, wrote: int, kernels: int = 1
) -> Cost:
    """A cost of `flops` an element of `x`."""
    return Cost(flops * x.numel, read, wrote, x.dtype, "vector", family, kernels, rows)


_REDUCE = {
    "sum": 1, "nansum": 1, "mean": 1, "prod": 1, "amax": 1, "amin": 1, "max": 1, "min": 1, "argmax": 1, "argmin": 1,
    "any": 1, "all": 1, "count_nonzero": 1, "aminmax": 2, "var": 3, "std": 3, "var_mean": 3, "std_mean": 3, "norm": 2,
    "linalg_vector_norm": 2, "logsumexp": 10, "median": 4, "nanmedian": 4, "trace": 1, "nanmean": 2, "equal": 1,
}  # fmt: skip
_DIMS_AT = {"norm": 2, "linalg_vector_norm": 2}
_INDEX_TOO = {"max", "min", "median", "nanmedian"}
_SUMS = {"sum": 3, "nansum": 3, "prod": 3}
"""Those that widen whole numbers to int64, and where a dtype is among their arguments."""
_PAIRS = {"aminmax", "var_mean", "std_mean"}
_TO_INDEX = {"argmax": "int64", "argmin": "int64", "any": "bool", "all": "bool", "count_nonzero": "int64"}
_IN_STEPS = {"logsumexp": 9}
"""Kernels of those that are calls of others: maximum, its infinities masked, difference, exponential, sum, logarithm
and sum (native/ReduceOps.cpp)."""
TWO_STAGES = 65536
"""Elements from which a reduction of everything takes a second kernel."""


@formula(*(f"aten::{name}" for name in _REDUCE))
def reduction(call: Call) -> Cost:
    """One read of the input; over all of it a second kernel may add the parts."""
    name = call.operator.split("::")[1].split(".")[0]
    x = need(call, 0)
    if name in ("max", "min") and call.tensor(1) is not None:
        return pointwise(call, (x, need(call, 1)), 1)
    at = _DIMS_AT.get(name, 1)
    # A bare number there is a dtype, to those that take dimensions as a list
    listless = name in ("sum", "nansum", "mean") and not isinstance(call.value(at), tuple)
    rows = along(x, None if listless else ints(call, at))
    dtype = _TO_INDEX.get(name, x.dtype)
    if name in _SUMS:
        dtype = stated_dtype(call, _SUMS[name]) or ("int64" if whole(x.dtype) else x.dtype)
    finds = name in _INDEX_TOO and call.value(1) is not None
    size = dtypes.itemsize(dtype) * (2 if name in _PAIRS else 1) + (INDEX_BYTES if finds else 0)
    wrote = sum(t.nbytes for t in call.outputs) if call.outputs else rows.rows * size
    two = rows.rows == 1 and rows.length > TWO_STAGES
    kernels = _IN_STEPS.get(name, 2 if two else 1)
    return rowwise(call, "reduction", x, rows, _REDUCE[name], x.nbytes, wrote, kernels)


@formula("aten::dist")
def dist(call: Call) -> Cost:
    """The norm of a difference."""
    x, other = need(call, 0), need(call, 1)
    read = x.nbytes + other.nbytes
    return rowwise(call, "reduction", x, along(x, None), 3, read, dtypes.itemsize(x.dtype), 2)


@formula("aten::renorm")
def renorm(call: Call) -> Cost:
    """(x, p, dim, maximum): the norm of each slice, then its scale."""
    x = need(call, 0)
    dim = ints(call, 2) or (0,)
    kept = x.shape[dim[0]] if x.shape else 1
    rows = Rows(kept, x.numel // max(kept, 1))
    return rowwise(call, "reduction", x, rows, 3, x.nbytes, written(call, x.shape, x.dtype), 3)


@formula("aten::segment_reduce")
def segments(call: Call) -> Cost:
    """(data, how, lengths...): data is read once, a result a segment written."""
    x = need(call, 0)
    bounds = next(iter(call.tensors[1:]), None)
    if bounds is None:
        raise NotRecorded("lengths of the segments not recorded")
    wrote = written(call, (bounds.numel, *x.shape[1:]), x.dtype)
    rows = Rows(bounds.numel, x.numel // max(bounds.numel, 1))
    return rowwise(call, "reduction", x, rows, 1, x.nbytes + bounds.nbytes, wrote)


@formula("aten::_softmax", "aten::_log_softmax", "aten::softmax", "aten::log_softmax", "aten::_safe_softmax")
def softmax(call: Call) -> Cost:
    """Maximum, exponential, sum, quotient: about 12 FLOP an element, one read and one write."""
    x = need(call, 0)
    # half_to_float, or a dtype of its own
    dtype = "float32" if call.value(2) is True else stated_dtype(call, 2) or x.dtype
    return rowwise(call, "softmax", x, along(x, ints(call, 1)), 12, x.nbytes, written(call, x.shape, dtype))


@formula("aten::_softmax_backward_data", "aten::_log_softmax_backward_data")
def softmax_backward(call: Call) -> Cost:
    """(gradient, result, dim, the input's dtype)"""
    grad, out = need(call, 0), need(call, 1)
    wrote = written(call, grad.shape, stated_dtype(call, 3) or grad.dtype)
    return rowwise(call, "softmax", grad, along(grad, ints(call, 2)), 4, grad.nbytes + out.nbytes, wrote)


_SCANS = {"cumsum": 1, "cumprod": 1, "logcumsumexp": 10, "cummax": 1, "cummin": 1}
_SCAN_HELPERS = {"_cummax_helper": 3, "_cummin_helper": 3}
"""Those that write into arguments, and where their dimension is."""


@formula(*(f"aten::{name}" for name in (*_SCANS, *_SCAN_HELPERS)))
def scan(call: Call) -> Cost:
    """(x, dim, dtype): one read, one write, and where the extreme was for those that find one."""
    x = need(call, 0)
    name = call.operator.split("::")[1].split(".")[0].removesuffix("_")
    finds = "cummax" in name or "cummin" in name
    stated = "" if finds else stated_dtype(call, 2)
    dtype = stated or ("int64" if whole(x.dtype) and not finds and not in_place(call) else x.dtype)
    wrote = written(call, x.shape, dtype) + (x.numel * INDEX_BYTES if finds and not call.outputs else 0)
    dims = ints(call, _SCAN_HELPERS.get(name, 1))
    return rowwise(call, "scan", x, along(x, dims), _SCANS.get(name, 1), x.nbytes, wrote)


SORTED_AT_ONCE = 4096
"""Longest rows that a block sorts in shared memory."""


def sort_cost(call: Call, x: Tensor, rows: Rows, wrote: int, keep_index: bool = True) -> Cost:
    """Values and indices pass through memory once a byte of the key (radix sort, cub), rows of 4,096 or less once."""
    compare = max(1, ceil(log2(max(rows.length, 2))))
    passes = 1 if rows.length <= SORTED_AT_ONCE else dtypes.itemsize(x.dtype)
    pair = dtypes.itemsize(x.dtype) + (8 if keep_index else 0)
    moved = passes * x.numel * pair
    return Cost(compare * x.numel, moved, max(moved, wrote), x.dtype, "vector", "sort", max(1, passes), rows)


@formula(
    "aten::sort",
    "aten::argsort",
    "aten::msort",
    "aten::unique_dim",
    "aten::_unique2",
    "aten::_unique",
    "aten::unique_consecutive",
)
def sort(call: Call) -> Cost:
    x = need(call, 0)
    at = 2 if "stable" in call.operator else 1
    dims = ints(call, at) if "sort" in call.operator else None
    rows = along(x, dims or ((-1,) if "sort" in call.operator else None))
    return sort_cost(call, x, rows, written(call, x.shape, x.dtype))


@formula("aten::topk", "aten::kthvalue", "aten::mode")
def topk(call: Call) -> Cost:
    """Each row is read a few times to find the threshold; k values and indices are written."""
    x = need(call, 0)
    rows = along(x, ints(call, 2) or (-1,))
    k = call.value(1, 1)
    count = k if isinstance(k, int) and "topk" in call.operator else 1
    wrote = sum(t.nbytes for t in call.outputs) if call.outputs else rows.rows * count * (dtypes.itemsize(x.dtype) + 8)
    return Cost(4 * x.numel, x.nbytes, wrote, x.dtype, "vector", "sort", 2, rows)


@formula("aten::searchsorted", "aten::bucketize")
def searchsorted(call: Call) -> Cost:
    if len(call.tensors) < 2:
        raise NotRecorded("values or boundaries not recorded")
    first, second = call.tensors[:2]
    edges, values = (first, second) if "search" in call.operator else (second, first)
    steps = max(1, ceil(log2(max(edges.shape[-1] if edges.shape else 1, 2))))
    return Cost(
        steps * values.numel,
        values.nbytes + edges.nbytes,
        written(call, values.shape, "int64"),
        values.dtype,
        "vector",
        "gather",
    )


@formula("aten::histc", "aten::bincount")
def histogram(call: Call) -> Cost:
    x = need(call, 0)
    wrote = sum(t.nbytes for t in call.outputs) if call.outputs else 100 * dtypes.itemsize(x.dtype)
    return Cost(2 * x.numel, x.nbytes, wrote, x.dtype, "vector", "scatter")
