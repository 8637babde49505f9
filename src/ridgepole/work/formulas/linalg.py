"""Fourier transforms and dense linear algebra, by their textbook operation counts (Golub and Van Loan)."""

from __future__ import annotations

from math import ceil, log2, prod

from ridgepole import dtypes
from ridgepole.work.cost import formula, ints, need, written
from ridgepole.work.op import Call, Cost


@formula("aten::_fft_c2c", "aten::_fft_r2c", "aten::_fft_c2r")
def fft(call: Call) -> Cost:
    """5 n log2 n FLOP a complex transform, half for a real one; one read and write a transformed dimension."""
    x = need(call, 0)
    dims = ints(call, 1) or (-1,)
    length = prod(x.shape[d] for d in dims)
    size = x.numel * (5.0 if "c2c" in call.operator else 2.5) * max(1, ceil(log2(max(length, 2))))
    wrote = written(call, x.shape, x.dtype)
    return Cost(round(size), x.nbytes, wrote, x.dtype, "vector", "other", len(dims))


_CUBIC = {
    "linalg_cholesky_ex": 1 / 3, "cholesky": 1 / 3, "linalg_lu_factor_ex": 2 / 3, "linalg_inv_ex": 2.0,
    "linalg_qr": 4 / 3,
    "linalg_solve_ex": 2 / 3, "_linalg_solve_ex": 2 / 3, "_linalg_det": 2 / 3, "_linalg_eigh": 9.0, "_linalg_svd": 21.0,
    "linalg_lu": 2 / 3, "_linalg_slogdet": 2 / 3, "cholesky_inverse": 1.0, "geqrf": 4 / 3,
}  # fmt: skip


@formula(*(f"aten::{name}" for name in _CUBIC))
def cubic(call: Call) -> Cost:
    x = need(call, 0)
    m, n = x.shape[-2:]
    batch = prod(x.shape[:-2])
    flops = round(_CUBIC[call.operator.split("::")[1]] * batch * m * n * min(m, n))
    return Cost(flops, x.nbytes, written(call, x.shape, x.dtype), x.dtype, "vector", "other", 8)


@formula("aten::linalg_solve_triangular", "aten::triangular_solve", "aten::cholesky_solve")
def triangular(call: Call) -> Cost:
    first, second = need(call, 0), need(call, 1)
    matrix, rhs = (first, second) if "linalg" in call.operator else (second, first)
    n = matrix.shape[-1]
    size = dtypes.itemsize(matrix.dtype) * matrix.numel
    flops = prod(matrix.shape[:-2]) * n * n * rhs.shape[-1]
    return Cost(flops, size + rhs.nbytes, rhs.logical_nbytes, rhs.dtype, "vector", "other", 2)


@formula("aten::_cdist_forward", "aten::cdist", "aten::_euclidean_dist")
def cdist(call: Call) -> Cost:
    a, b = need(call, 0), need(call, 1)
    pairs = prod(a.shape[:-1]) * b.shape[-2]
    flops = 3 * pairs * a.shape[-1]
    return Cost(flops, a.nbytes + b.nbytes, written(call, (pairs,), a.dtype), a.dtype, "vector", "other", 2)
