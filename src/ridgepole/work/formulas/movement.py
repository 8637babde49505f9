"""Data that moves and changes shape, and views that do not: copies, joins, fills, pads, resizes."""

from __future__ import annotations

from math import ceil, prod

from ridgepole import dtypes
from ridgepole.work.cost import NotRecorded, access, formula, in_place, ints, listed, need, written
from ridgepole.work.op import Call, Cost, Tensor

_VIEWS = (
    "view reshape _unsafe_view _reshape_alias alias as_strided t transpose permute numpy_T mT mH swapaxes "
    "swapdims movedim moveaxis expand expand_as broadcast_to unsqueeze squeeze flatten unflatten ravel narrow "
    "select slice split split_with_sizes chunk tensor_split unbind unfold diagonal detach lift lift_fresh "
    "view_as view_as_real view_as_complex real imag conj _conj resolve_conj resolve_neg positive size stride "
    "numel is_nonzero dim sym_size sym_stride sym_numel sym_storage_offset is_same_size set set_data "
    "requires_grad retain_grad result_type empty empty_like empty_strided new_empty new_empty_strided "
    "empty_permuted _efficientzerotensor resize resize_as can_cast is_pinned _nested_view_from_buffer "
    "output_nr _version _local_scalar_dense item record_stream _debug_has_internal_overlap _assert_async "
    "_assert_scalar _assert_tensor_metadata prim_layout unsafe_split unsafe_chunk hsplit vsplit dsplit "
    "_shape_as_tensor data is_floating_point is_complex align_as rename _linalg_check_errors is_coalesced "
)


@formula(
    *(f"aten::{name}" for name in _VIEWS.split()),
    "prim::layout",
    "prim::device",
    "profiler::_record_function_enter_new",
)
def view(call: Call) -> Cost:
    """Nothing moves and nothing is launched."""
    dtype = next((t.dtype for t in call.tensors if t.dtype), "float32")
    return Cost(0, 0, 0, dtype, "vector", "view", 0)


@formula("aten::clone", "aten::contiguous", "aten::_reshape_copy", "aten::_reshape_alias_copy")
def clone(call: Call) -> Cost:
    x = need(call, 0)
    out = call.outputs[0] if call.outputs else Tensor(x.shape, x.dtype)
    return Cost(0, x.nbytes, out.nbytes, x.dtype, "vector", access(x, out))


@formula("aten::copy", "aten::_copy_from", "aten::_copy_from_and_resize")
def copy(call: Call) -> Cost:
    """copy_(destination, source): a broadcast source is read once."""
    to, source = need(call, 0), need(call, 1)
    if "_copy_from" in call.operator:
        to, source = source, to
    return Cost(0, source.nbytes, to.logical_nbytes, to.dtype, "vector", access(to, source))


@formula("aten::repeat_interleave")
def repeat_interleave(call: Call) -> Cost:
    """(repeats, length of the result): each index as often as it is told; or (x, repeats, dim, ...)."""
    x = need(call, 0)
    times = call.value(1)
    if call.outputs:
        wrote = sum(t.nbytes for t in call.outputs)
    elif isinstance(times, int) and not isinstance(times, bool):
        each = 1 if len(call.args) == 2 and x.dtype in ("int64", "int32") else x.numel
        wrote = each * times * dtypes.itemsize(x.dtype)
    else:
        raise NotRecorded("repeats not recorded")
    return Cost(0, x.nbytes, wrote, x.dtype, "vector", "copy")


@formula("aten::repeat", "aten::tile")
def repeat(call: Call) -> Cost:
    x = need(call, 0)
    if call.outputs:
        wrote = call.outputs[0].nbytes
    else:
        times = ints(call, 1)
        if times is None:
            raise NotRecorded("repeats not recorded")
        wrote = x.logical_nbytes * prod(times)
    return Cost(0, x.nbytes, wrote, x.dtype, "vector", "copy")


@formula("aten::cat", "aten::stack", "aten::concat", "aten::hstack", "aten::vstack", "aten::_cat", "aten::dstack")
def cat(call: Call) -> Cost:
    tensors = listed(call, 0)
    if not tensors:
        raise NotRecorded("tensor list not recorded")
    moved = sum(t.nbytes for t in tensors)
    wrote = sum(t.logical_nbytes for t in tensors)
    return Cost(0, moved, wrote, tensors[0].dtype, "vector", access(*(t for t in tensors if t.numel)))


@formula("aten::block_diag", "aten::cartesian_prod", "aten::meshgrid", "aten::combinations")
def joined(call: Call) -> Cost:
    tensors = call.tensors
    if not call.outputs or not tensors:
        raise NotRecorded("result not recorded")
    wrote = sum(t.nbytes for t in call.outputs)
    return Cost(0, sum(t.nbytes for t in tensors), wrote, tensors[0].dtype, "vector", "copy")


_FILLS = (
    "fill zero zeros_like ones_like full_like new_zeros new_ones new_full zeros ones full eye arange linspace logspace "
)
_FILLS += "scalar_tensor fill_diagonal tril_indices triu_indices hann_window hamming_window ones_strided"


@formula(*(f"aten::{name}" for name in _FILLS.split()))
def fill(call: Call) -> Cost:
    """Written once, read never."""
    name = call.operator.split("::")[1]
    if call.outputs:
        out = call.outputs[0]
        return Cost(0, 0, out.nbytes, out.dtype, "vector", "fill")
    if in_place(call) or name.endswith("_like"):
        x = need(call, 0)
        return Cost(0, 0, x.logical_nbytes, x.dtype, "vector", "fill")
    if name.split(".")[0] == "arange" and len(call.args) == 4 and call.tensor(3) is not None:
        return _range(call, need(call, 3).dtype)
    raise NotRecorded("filled by an op of its own inside")


def _range(call: Call, dtype: str) -> Cost:
    """arange(start, end, step, out): `out` is recorded before it has its size."""
    start, end, step = (call.value(i) for i in range(3))
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in (start, end, step)):
        raise NotRecorded("bounds not recorded")
    assert isinstance(start, int | float) and isinstance(end, int | float) and isinstance(step, int | float)
    count = max(0, ceil((end - start) / step))
    return Cost(0, 0, count * dtypes.itemsize(dtype), dtype, "vector", "fill")


@formula("aten::tril", "aten::triu", "aten::flip", "aten::roll", "aten::rot90", "aten::fliplr", "aten::flipud")
def rearrange(call: Call) -> Cost:
    x = need(call, 0)
    return Cost(0, x.nbytes, written(call, x.shape, x.dtype), x.dtype, "vector", "copy")


_PADS = "constant_pad_nd pad reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d "
_PADS += "replication_pad3d"


@formula(*(f"aten::{name}" for name in _PADS.split()))
def pad(call: Call) -> Cost:
    x = need(call, 0)
    if call.outputs:
        wrote = call.outputs[0].nbytes
    else:
        edges = ints(call, 1)
        if edges is None:
            raise NotRecorded("padding not recorded")
        shape = list(x.shape)
        for axis in range(len(edges) // 2):
            shape[-1 - axis] += edges[2 * axis] + edges[2 * axis + 1]
        wrote = prod(shape) * dtypes.itemsize(x.dtype)
    return Cost(0, x.nbytes, wrote, x.dtype, "vector", "copy")


@formula(
    "aten::im2col",
    "aten::col2im",
    "aten::unfold_backward",
    "aten::pixel_shuffle",
    "aten::pixel_unshuffle",
    "aten::channel_shuffle",
)
def windows(call: Call) -> Cost:
    x = need(call, 0)
    if not call.outputs and "pixel" not in call.operator and "channel" not in call.operator:
        raise NotRecorded("result not recorded")
    return Cost(0, x.nbytes, written(call, x.shape, x.dtype), x.dtype, "vector", "transpose")


@formula(
    "aten::slice_backward",
    "aten::select_backward",
    "aten::diagonal_backward",
    "aten::slice_scatter",
    "aten::select_scatter",
    "aten::diagonal_scatter",
    "aten::as_strided_scatter",
    "aten::embedding_renorm",
)
def into_zeros(call: Call) -> Cost:
    """A small gradient placed into a tensor of the input's size."""
    x = need(call, 0)
    sizes = ints(call, 1)
    if call.outputs:
        wrote = call.outputs[0].nbytes
    elif "scatter" in call.operator:
        wrote = x.logical_nbytes
    elif sizes is not None:
        wrote = prod(sizes) * dtypes.itemsize(x.dtype)
    else:
        raise NotRecorded("input sizes not recorded")
    read = sum(t.nbytes for t in call.tensors)
    return Cost(0, read, wrote, x.dtype, "vector", "copy", 2)


@formula(
    "aten::reflection_pad1d_backward",
    "aten::reflection_pad2d_backward",
    "aten::reflection_pad3d_backward",
    "aten::replication_pad1d_backward",
    "aten::replication_pad2d_backward",
    "aten::replication_pad3d_backward",
)
def pad_backward(call: Call) -> Cost:
    """(gradient, x, padding): the gradient added into zeros of x's shape."""
    grad, x = need(call, 0), need(call, 1)
    return Cost(grad.numel, grad.nbytes, x.logical_nbytes, x.dtype, "vector", "scatter", 2)


@formula("aten::diag_embed")
def diag_embed(call: Call) -> Cost:
    """A square of zeros with the last dimension along its diagonal."""
    x = need(call, 0)
    off = call.value(1, 0)
    side = (x.shape[-1] if x.shape else 1) + (abs(off) if isinstance(off, int) else 0)
    wrote = written(call, (*x.shape[:-1], side, side), x.dtype)
    return Cost(0, x.nbytes, wrote + x.nbytes, x.dtype, "vector", "fill", 2)


_COPIES = "split_with_sizes split chunk unbind view permute alias as_strided diagonal narrow squeeze unsqueeze t "
_COPIES += "transpose unfold select slice detach expand view_as_complex view_as_real"


_PARTIAL = ("as_strided", "diagonal", "narrow", "unfold", "select", "slice", "expand")
"""Views that may have fewer or more elements than their base."""


@formula(*(f"aten::{name}_copy" for name in _COPIES.split()), "aten::chunk_cat", "aten::_chunk_cat")
def view_copy(call: Call) -> Cost:
    """A view, copied: as much is read as is written."""
    if not call.tensors:
        raise NotRecorded("tensors not recorded")
    x = call.tensors[0]
    whole = sum(t.nbytes for t in call.tensors)
    wrote = sum(t.logical_nbytes for t in call.outputs)
    if not call.outputs:
        if call.operator.split("::")[1].removesuffix("_copy") in _PARTIAL:
            raise NotRecorded("result not recorded")
        wrote = whole
    return Cost(0, min(whole, wrote), wrote, x.dtype, "vector", "copy")
