"""Gathers, scatters and embeddings: the rows that are touched move, not the whole table."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ridgepole import dtypes
from ridgepole.work.cost import NotRecorded, broadcast, formula, in_place, need, written
from ridgepole.work.op import Call, Cost, Tensor


def _gather(call: Call, table: Tensor, index: Tensor, shape: tuple[int, ...]) -> Cost:
    wrote = written(call, shape, table.dtype)
    # Each gathered element is read once, and never more than the whole table where it is smaller.
    read = min(wrote, table.nbytes) + index.nbytes
    return Cost(0, read, wrote, table.dtype, "vector", "gather")


@formula("aten::embedding")
def embedding(call: Call) -> Cost:
    table, index = need(call, 0), need(call, 1)
    return _gather(call, table, index, (*index.shape, table.shape[-1]))


@formula("aten::index_select")
def index_select(call: Call) -> Cost:
    table, index = need(call, 0), need(call, 2)
    dim = call.value(1, 0)
    shape = list(table.shape)
    if isinstance(dim, int) and shape:
        shape[dim % len(shape)] = index.numel
    return _gather(call, table, index, tuple(shape))


@formula("aten::gather", "aten::take_along_dim")
def gather(call: Call) -> Cost:
    table = need(call, 0)
    index = call.tensors[1] if len(call.tensors) > 1 else None
    if index is None:
        raise NotRecorded("index not recorded")
    return _gather(call, table, index, index.shape)


@formula("aten::take")
def take(call: Call) -> Cost:
    return _gather(call, need(call, 0), need(call, 1), need(call, 1).shape)


def _indices(call: Call, at: int) -> tuple[Tensor | None, ...]:
    value = call.value(at)
    if not isinstance(value, tuple):
        raise NotRecorded("indices not recorded")
    return tuple(v if isinstance(v, Tensor) else None for v in value)


def _indexed(x: Tensor, indices: tuple[Tensor | None, ...]) -> tuple[tuple[int, ...], int]:
    """The shape of x[indices] and the bytes of the indices. A bool mask is taken to keep everything it covers."""
    given = [i for i in indices if i is not None]
    covered = sum(len(i.shape) if i.dtype == "bool" else 1 for i in given)
    kept = [n for n, i in zip(x.shape, indices, strict=False) if i is None]
    rest = x.shape[len([i for i in indices if i is None]) + covered :]
    shape = broadcast((i.numel,) if i.dtype == "bool" else i.shape for i in given)
    return (*shape, *kept, *rest), sum(i.nbytes for i in given)


ALL_KEPT = "a mask is taken to keep everything it covers: how much is not recorded"


def _said(call: Call, indices: tuple[Tensor | None, ...]) -> str:
    """What the size of x[indices] rests on."""
    masked = any(i is not None and i.dtype in ("bool", "uint8") for i in indices)
    return ALL_KEPT if masked and not call.outputs else ""


@formula("aten::index", "aten::_unsafe_index", "aten::_unsafe_masked_index")
def index(call: Call) -> Cost:
    """(x, indices), or (x, mask, indices, fill)"""
    x = need(call, 0)
    masked = "masked" in call.operator
    indices = _indices(call, 2 if masked else 1)
    shape, size = _indexed(x, indices)
    size += need(call, 1).nbytes if masked else 0
    wrote = written(call, shape, x.dtype)
    return Cost(0, min(wrote, x.nbytes) + size, wrote, x.dtype, "vector", "gather", assumed=_said(call, indices))


@formula("aten::index_put", "aten::_index_put_impl", "aten::_unsafe_index_put")
def index_put(call: Call) -> Cost:
    """Values into x[indices]; in place only those rows move. Accumulating sorts the indices first."""
    adds = call.value(3, False) is True
    return _put(call, need(call, 0), _indices(call, 1), need(call, 2), adds)


@formula("aten::_unsafe_masked_index_put_accumulate")
def masked_index_put(call: Call) -> Cost:
    """(x, mask, indices, values)"""
    cost = _put(call, need(call, 0), _indices(call, 2), need(call, 3), True)
    return replace(cost, read=cost.read + need(call, 1).nbytes)


def _put(call: Call, x: Tensor, indices: tuple[Tensor | None, ...], values: Tensor, adds: bool) -> Cost:
    shape, size = _indexed(x, indices)
    count = prod(shape)
    moved = count * dtypes.itemsize(x.dtype)
    read = values.nbytes + size + (moved if adds else 0)
    spared = 0 if in_place(call) else x.nbytes
    kernels = 4 if adds else 1
    # Outputs of a put have x's shape: how much of it a mask names they do not say
    said = _said(replace(call, outputs=()), indices)
    flops = count if adds else 0
    return Cost(flops, read + spared, moved + spared, x.dtype, "vector", "scatter", kernels, assumed=said)


@formula(
    "aten::scatter",
    "aten::scatter_add",
    "aten::scatter_reduce",
    "aten::index_add",
    "aten::index_copy",
    "aten::index_fill",
    "aten::index_reduce",
)
def scatter(call: Call) -> Cost:
    """(self, dim, index, source): source and index are read, the elements they name read and written."""
    x = need(call, 0)
    others = call.tensors[1:]
    if not others:
        raise NotRecorded("index not recorded")
    where = others[0]
    source = others[1] if len(others) > 1 else where
    moved = min(source.numel, x.numel) * dtypes.itemsize(x.dtype)
    adds = any(word in call.operator for word in ("add", "reduce"))
    read = where.nbytes + (source.nbytes if len(others) > 1 else 0) + (moved if adds else 0)
    whole = 0 if in_place(call) else x.nbytes
    return Cost(source.numel if adds else 0, read + whole, moved + whole, x.dtype, "vector", "scatter")


@formula("aten::embedding_dense_backward", "aten::embedding_backward")
def embedding_backward(call: Call) -> Cost:
    """(gradient, indices, rows, ...): sorts the indices, then adds each row's gradients into a table of zeros."""
    grad, index = need(call, 0), need(call, 1)
    rows = call.value(2)
    if call.outputs:
        wrote = call.outputs[0].nbytes
    elif isinstance(rows, int):
        wrote = rows * grad.shape[-1] * dtypes.itemsize(grad.dtype)
    else:
        raise NotRecorded("table size not recorded")
    return Cost(grad.numel, grad.nbytes + 5 * index.nbytes, wrote, grad.dtype, "vector", "scatter", 5)


@formula("aten::_embedding_bag", "aten::embedding_bag", "aten::_embedding_bag_forward_only")
def embedding_bag(call: Call) -> Cost:
    """(table, indices, bounds of the bags, ..., weights at 6, whether the last bound is the end)"""
    table, index = need(call, 0), need(call, 1)
    bags = call.tensor(2)
    rows = index.shape[0] if bags is None else max(bags.numel - (call.value(7) is True), 0)
    width = table.shape[-1]
    size = dtypes.itemsize(table.dtype)
    weights = call.tensor(6)
    gathered = min(index.numel * width * size, table.nbytes)
    read = gathered + sum(t.nbytes for t in (index, bags, weights) if t is not None)
    flops = index.numel * width * (1 if weights is None else 2)
    return Cost(flops, read, rows * width * size, table.dtype, "vector", "gather")


@formula("aten::_embedding_bag_backward", "aten::_embedding_bag_dense_backward")
def embedding_bag_backward(call: Call) -> Cost:
    """(gradient, indices, ..., rows of the table at 6 or 5): each bag's gradient is added to the rows it summed."""
    grad, index = need(call, 0), need(call, 1)
    rows = call.value(5 if "dense" in call.operator else 6)
    if not isinstance(rows, int):
        raise NotRecorded("table size not recorded")
    width = grad.shape[-1]
    wrote = rows * width * dtypes.itemsize(grad.dtype)
    return Cost(index.numel * width, grad.nbytes + 5 * index.nbytes, wrote, grad.dtype, "vector", "scatter", 5)


@formula("aten::_embedding_bag_per_sample_weights_backward")
def embedding_bag_weights_backward(call: Call) -> Cost:
    """(gradient, table, indices, ...): a dot product an index."""
    grad, table, index = need(call, 0), need(call, 1), need(call, 2)
    width = table.shape[-1]
    read = grad.nbytes + min(index.numel * width * dtypes.itemsize(table.dtype), table.nbytes) + index.nbytes
    wrote = written(call, index.shape, grad.dtype)
    return Cost(2 * index.numel * width, read, wrote, grad.dtype, "vector", "gather")


@formula("aten::masked_select", "aten::nonzero", "aten::argwhere", "aten::nonzero_static")
def compact(call: Call) -> Cost:
    """Counts, scans and compacts: the mask is read twice, at most everything is written."""
    x = need(call, 0)
    mask = call.tensor(1) if "masked" in call.operator else None
    read = 2 * (mask.nbytes if mask is not None else x.nbytes) + (x.nbytes if mask is not None else 0)
    if call.outputs:
        wrote, said = sum(t.nbytes for t in call.outputs), ""
    else:
        wrote, said = (x.nbytes, ALL_KEPT) if mask is not None else (0, "where something was found is not recorded")
    return Cost(0, read, wrote, x.dtype, "vector", "gather", 4, assumed=said)


@formula("aten::masked_scatter", "aten::masked_scatter_backward", "aten::put")
def masked_scatter(call: Call) -> Cost:
    x = need(call, 0)
    read = sum(t.nbytes for t in call.tensors)
    return Cost(0, read, x.logical_nbytes, x.dtype, "vector", "scatter", 3)


@formula("aten::one_hot")
def one_hot(call: Call) -> Cost:
    index = need(call, 0)
    if not call.outputs:
        raise NotRecorded("number of classes not recorded")
    return Cost(0, index.nbytes, call.outputs[0].nbytes, "int64", "vector", "scatter", 2)


@formula("aten::isin", "aten::isin_sorting")
def isin(call: Call) -> Cost:
    if len(call.tensors) < 2:
        raise NotRecorded("elements or test elements not recorded")
    x, among = call.tensors[0], call.tensors[-1]
    return Cost(
        x.numel * among.numel, x.nbytes + among.nbytes, written(call, x.shape, "bool"), x.dtype, "vector", "elementwise"
    )
