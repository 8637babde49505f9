"""Recurrent layers: every step multiplies each weight once; cells alone are pointwise."""

from __future__ import annotations

from math import prod

from ridgepole import dtypes
from ridgepole.work.cost import NotRecorded, formula, listed, matrix_unit, need
from ridgepole.work.op import Call, Cost, Gemm, Tensor

_INPUTS_AT = {
    "aten::_cudnn_rnn": (4, 5, 6, 7, 13),
    "aten::_cudnn_rnn_backward": (4, 5, 10, 11, 17),
    "aten::miopen_rnn": (3, 4, 5, 6, 11),
    "aten::miopen_rnn_backward": (4, 5, 9, 10, 15),
}
"""Where the hidden state, the cell state, the mode, the hidden size and `bidirectional` are among the arguments."""
ASSUMED = "the weights are taken to be read once, and to stay on the chip between steps"


@formula(*_INPUTS_AT)
def layers(call: Call) -> Cost:
    """(input (steps, batch, size), weights, ...): a layer and direction multiply their weights by every step's rows.

    Backward multiplies twice as much: by the weights for the gradient that flows on, by the activations for theirs.
    """
    hidden_at, cell_at, _, size_at, both_at = _INPUTS_AT[call.operator]
    x, weights = need(call, 0), listed(call, 1)
    matrices = [w for w in weights if len(w.shape) == 2]
    if not matrices or len(x.shape) < 2:
        raise NotRecorded("weights of the recurrent layers not recorded")
    rows = prod(x.shape[:-1])
    back = call.operator.endswith("_backward")
    held = sum(w.nbytes for w in weights)
    states = sum(t.nbytes for t in (call.tensor(hidden_at), call.tensor(cell_at)) if t is not None)
    width = call.value(size_at)
    if not isinstance(width, int):
        raise NotRecorded("hidden size not recorded")
    out = rows * width * (2 if call.value(both_at) is True else 1) * dtypes.itemsize(x.dtype)
    one = matrices[-1]
    gemm = Gemm(1, rows, one.shape[0], one.shape[1])
    macs = rows * sum(w.numel for w in matrices)
    read, wrote = x.nbytes + held + states, out + states
    if back:
        read, wrote, macs = read + 2 * out, x.nbytes + held + states, 2 * macs
    kernels = max(1, x.shape[0]) * len(matrices) // 2
    return Cost(2 * macs, read, wrote, x.dtype, matrix_unit(x.dtype), "matmul", max(1, kernels), gemm, ASSUMED)


@formula("aten::mkldnn_rnn_layer")
def onednn(call: Call) -> Cost:
    """(input, weights of the input, of the state, biases, hidden, cell, ...): one layer, one direction."""
    x, first, second, hidden = need(call, 0), need(call, 1), need(call, 2), need(call, 5)
    rows = prod(x.shape[:-1])
    cell = call.tensor(6)
    states = hidden.nbytes + (cell.nbytes if cell is not None else 0)
    out = rows * second.shape[-1] * dtypes.itemsize(x.dtype)
    gemm = Gemm(1, rows, second.shape[0], second.shape[1])
    read = x.nbytes + first.nbytes + second.nbytes + states
    flops = 2 * rows * (first.numel + second.numel)
    return Cost(flops, read, out + states, x.dtype, matrix_unit(x.dtype), "matmul", 1, gemm, ASSUMED)


_CELLS = {"lstm": 50, "gru": 30}
"""FLOP a hidden element: five curves of LSTM, three of GRU, and what joins them."""


@formula(*(f"aten::_thnn_fused_{cell}_cell" for cell in _CELLS))
def cell(call: Call) -> Cost:
    """(gates of the input, gates of the state, cell or hidden state, biases): one pointwise kernel."""
    gates, more, state = need(call, 0), need(call, 1), need(call, 2)
    kind = "lstm" if "lstm" in call.operator else "gru"
    read = gates.nbytes + more.nbytes + state.nbytes + sum(t.nbytes for t in call.tensors[3:5])
    saved = Tensor(gates.shape, gates.dtype).nbytes * (1 if kind == "lstm" else 5) // (1 if kind == "lstm" else 3)
    wrote = state.logical_nbytes * (2 if kind == "lstm" else 1) + saved
    return Cost(_CELLS[kind] * state.numel, read, wrote, gates.dtype, "vector", "elementwise")
