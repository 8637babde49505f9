"""Operators of FBGEMM and TorchRec: lookups in tables that share a buffer, permutes, quantisation, exchange of rows."""

from __future__ import annotations

from math import prod

from ridgepole import dtypes
from ridgepole.work.cost import NotRecorded, formula, need
from ridgepole.work.op import Call, Cost, Tensor

ROW_TAIL = 8
"""Bytes that FP8 rows end with: a scale as fp32, and padding to eight."""
_OPTIMIZERS = ("rowwise_adagrad", "adagrad", "sgd", "adam", "rowwise_weighted_adagrad", "lamb", "partial_rowwise_adam")


@formula(*(f"fbgemm::split_embedding_codegen_lookup_{name}_function" for name in _OPTIMIZERS))
def lookup(call: Call) -> Cost:
    """Rows of several tables that lie one behind another, summed by bag.

    1 is the tables' buffer, 5 the tables' offsets, 7 the tables' summed width, 11 the indices, 12 the bags' bounds, 14
    the indices' weights, 20 the optimizer's first state, which has one element a row (rowwise AdaGrad).
    """
    tables, places, index, bounds = need(call, 1), need(call, 5), need(call, 11), need(call, 12)
    if not tables.numel:
        raise NotRecorded("tables outside device memory: their size is not recorded")
    width = call.value(7)
    state = call.tensor(20)
    if isinstance(width, int) and width > 0:
        row = width / max(places.numel, 1)
        how = "tables of several widths are taken to be looked up alike" if places.numel > 1 else ""
    elif "rowwise_adagrad" in call.operator and state is not None and state.numel:
        row = tables.numel / state.numel
        how = "a row's width is the tables' size by the rows that the optimizer's state has"
    else:
        raise NotRecorded("width of the tables not recorded")
    weights = call.tensor(14)
    gathered = round(index.numel * row * dtypes.itemsize(tables.dtype))
    read = min(gathered, tables.nbytes) + index.nbytes + bounds.nbytes + (weights.nbytes if weights is not None else 0)
    wrote = round(max(bounds.numel - 1, 0) * row) * dtypes.itemsize("float32")
    flops = round(index.numel * row) * (2 if weights is not None else 1)
    return Cost(flops, read, wrote, "float32", "vector", "gather", assumed=how or "results are taken to be fp32")


@formula(*(f"torch::autograd::CppNode<SplitLookupFunction_{name}_Op>" for name in _OPTIMIZERS))
def lookup_backward(call: Call) -> Cost:
    """Which rows are updated its forward call says, not this one."""
    raise NotRecorded("the indices of its forward lookup are not recorded with it")


@formula("fbgemm::FloatToFP8RowwiseQuantized")
def to_fp8_rows(call: Call) -> Cost:
    """fp32 (rows, n) → bytes (rows, n + 8): the largest of each row, then the quotients."""
    x = need(call, 0)
    rows = prod(x.shape[:-1])
    return Cost(4 * x.numel, x.nbytes, x.numel + rows * ROW_TAIL, x.dtype, "vector", "elementwise", 2)


@formula("fbgemm::FP8RowwiseQuantizedToFloat")
def from_fp8_rows(call: Call) -> Cost:
    """bytes (rows, n + 8) → fp32 (rows, n)"""
    x = need(call, 0)
    count = prod(x.shape[:-1]) * max(x.shape[-1] - ROW_TAIL, 0)
    return Cost(2 * count, x.nbytes, count * dtypes.itemsize("float32"), "float32", "vector", "elementwise")


_QUANTIZED = {
    "FloatToHFP8Quantized": 1, "HFP8QuantizedToFloat": 4, "FloatToBfloat16Quantized": 2, "Bfloat16QuantizedToFloat": 4,
}  # fmt: skip
"""Bytes of a result's element."""


@formula(*(f"fbgemm::{name}" for name in _QUANTIZED))
def quantized(call: Call) -> Cost:
    x = need(call, 0)
    size = _QUANTIZED[call.operator.split("::")[1]]
    return Cost(4 * x.numel, x.nbytes, x.numel * size, "float32", "vector", "elementwise")


_PERMUTE_BACKWARD = (
    "torch::autograd::CppNode<fbgemm_gpu::PermutePooledEmbsFunction<&fbgemm_gpu::permute_pooled_embs_gpu> >"
)


@formula(
    "fbgemm::permute_pooled_embs_auto_grad",
    "fbgemm::permute_pooled_embs",
    "fbgemm::recat_embedding_grad_output_mixed_D_batch",
    "fbgemm::recat_embedding_grad_output_mixed_D",
    _PERMUTE_BACKWARD,
)
def permute_pooled(call: Call) -> Cost:
    """Columns of a (batch, width) matrix in another order: all of it, once each way."""
    x = need(call, 0)
    return Cost(0, x.nbytes, x.logical_nbytes, x.dtype, "vector", "copy")


@formula("fbgemm::permute_2D_sparse_data", "fbgemm::permute_sparse_features", "fbgemm::permute_1D_sparse_data")
def permute_sparse(call: Call) -> Cost:
    """(order, lengths (features, batch), values, weights?): features in another order, some twice or not at all."""
    order, lengths, values = need(call, 0), need(call, 1), need(call, 2)
    weights = call.tensor(3)
    times = order.numel / max(lengths.shape[0], 1)
    bags = lengths.nbytes
    moved = values.nbytes + (weights.nbytes if weights is not None else 0)
    # Kept lengths are written, their running sum is read and written.
    read = bags * 2 + moved
    wrote = round(times * (2 * bags + moved))
    said = "" if order.numel == lengths.shape[0] else "repeated features are taken to be as long as the others"
    return Cost(0, read, wrote, values.dtype, "vector", "gather", 4, assumed=said)


@formula("fbgemm::bounds_check_indices")
def bounds_check(call: Call) -> Cost:
    """(rows of each table, indices, bags' bounds, ...): all are read, only bad ones are mended."""
    index, bounds = need(call, 1), need(call, 2)
    return Cost(2 * index.numel, index.nbytes + bounds.nbytes, 0, index.dtype, "vector", "gather")


_SUMS = ("asynchronous_complete_cumsum", "asynchronous_inclusive_cumsum", "asynchronous_exclusive_cumsum")


@formula(*(f"{space}::{name}" for space in ("fbgemm", "fb") for name in _SUMS))
def running_sum(call: Call) -> Cost:
    x = need(call, 0)
    more = dtypes.itemsize(x.dtype) if "complete" in call.operator else 0
    return Cost(x.numel, x.nbytes, x.nbytes + more, x.dtype, "vector", "scan", 2)


@formula("fbgemm::block_bucketize_sparse_features")
def bucketize(call: Call) -> Cost:
    """(lengths, indices, ..., block sizes, buckets, weights?): indices are read twice, to count and to place."""
    lengths, index = need(call, 0), need(call, 1)
    buckets = call.value(5)
    weights: Tensor | None = call.tensor(6)
    known = isinstance(buckets, int) and not isinstance(buckets, bool) and buckets > 0
    times = buckets if known and isinstance(buckets, int) else 1
    moved = index.nbytes + (weights.nbytes if weights is not None else 0)
    said = "" if known else "the number of buckets is not recorded: at least one"
    wrote = moved + times * lengths.nbytes * 2
    return Cost(index.numel, moved + lengths.nbytes, wrote, index.dtype, "vector", "gather", 5, assumed=said)


@formula("All2All_Pooled_Req", "All2All_Pooled_WaitBackward")
def all_to_all(call: Call) -> Cost:
    """TorchRec's exchange of pooled rows, forward and backward: the tensor is sent, about as much is received."""
    x = need(call, 0)
    if x.numel < 2:
        raise NotRecorded("message size not recorded")
    return Cost(0, x.nbytes, x.nbytes, x.dtype, "vector", "collective", assumed="as much is taken to come as goes")


@formula("SplitBackward0", "SplitWithSizesBackward0")
def split_backward(call: Call) -> Cost:
    """The gradients of the parts, put together: the concatenation inside does not record its list."""
    size = sum(t.nbytes for t in call.tensors)
    if not size:
        raise NotRecorded("gradients not recorded")
    return Cost(0, size, size, call.tensors[0].dtype, "vector", "copy")
