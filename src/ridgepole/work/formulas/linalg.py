"""Fourier transforms and dense linear algebra, by their textbook operation counts (Golub and Van Loan)."""

from __future__ import annotations

from math import ceil, log2, prod

from ridgepole import dtypes
from ridgepole.work.cost import NotRecorded, broadcast, formula, ints, need, real_dtype, written
from ridgepole.work.op import Call, Cost, Tensor


@formula("aten::_fft_c2c", "aten::_fft_r2c", "aten::_fft_c2r")
def fft(call: Call) -> Cost:
    """5 n log2 n FLOP a complex transform, half for a real one; one read and write a transformed dimension."""
    x = need(call, 0)
    dims = ints(call, 1) or (-1,)
    shape, dtype = _spectrum(call, x, dims)
    # The longer of signal and spectrum, of which a real one's has only half
    size = max(x.numel, prod(shape))
    length = prod((shape if "c2r" in call.operator else x.shape)[d] for d in dims)
    flops = size * (5.0 if "c2c" in call.operator else 2.5) * max(1, ceil(log2(max(length, 2))))
    wrote = written(call, shape, dtype)
    return Cost(round(flops), x.nbytes, wrote, real_dtype(x.dtype), "vector", "other", len(dims))


_COMPLEX = {"float16": "complex32", "float32": "complex64", "float64": "complex128"}


def _spectrum(call: Call, x: Tensor, dims: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    """Shape and dtype of the result: of a real signal only half the frequencies are kept."""
    shape = list(x.shape)
    if "r2c" in call.operator:
        if call.value(3, True) is True:
            shape[dims[-1]] = shape[dims[-1]] // 2 + 1
        return tuple(shape), _COMPLEX.get(x.dtype, x.dtype)
    if "c2r" in call.operator:
        last = call.value(3)
        if not isinstance(last, int):
            raise NotRecorded("length of the result not recorded")
        shape[dims[-1]] = last
        return tuple(shape), real_dtype(x.dtype)
    return tuple(shape), x.dtype


_CUBIC = {
    "linalg_cholesky_ex": 1 / 3, "cholesky": 1 / 3, "linalg_lu_factor_ex": 2 / 3, "linalg_inv_ex": 2.0,
    "linalg_qr": 4 / 3, "linalg_solve_ex": 2 / 3, "_linalg_solve_ex": 2 / 3, "_linalg_det": 2 / 3, "_linalg_eigh": 9.0,
    "_linalg_svd": 21.0, "linalg_lu": 2 / 3, "_linalg_slogdet": 2 / 3, "cholesky_inverse": 1.0, "geqrf": 4 / 3,
    "linalg_eig": 25.0, "linalg_lstsq": 4 / 3, "linalg_householder_product": 4 / 3, "linalg_ldl_factor_ex": 1 / 3,
    "linalg_matrix_exp": 30.0, "linalg_pinv": 23.0, "lu_unpack": 0.0,
}  # fmt: skip
"""FLOP over m n min(m, n)."""


@formula(*(f"aten::{name}" for name in _CUBIC))
def cubic(call: Call) -> Cost:
    x = need(call, 0)
    m, n = x.shape[-2:]
    batch = prod(x.shape[:-2])
    parts = 4 if x.dtype.startswith("complex") else 1
    flops = round(_CUBIC[call.operator.split("::")[1]] * parts * batch * m * n * min(m, n))
    read = x.nbytes + sum(t.nbytes for t in call.tensors[1:2])
    return Cost(flops, read, written(call, x.shape, x.dtype), real_dtype(x.dtype), "vector", "other", 8)


@formula("aten::linalg_lu_solve", "aten::linalg_ldl_solve", "aten::ormqr")
def factored(call: Call) -> Cost:
    """(factors (..., n, n), pivots or scales, right-hand sides (..., n, k)): two triangles' worth of products."""
    matrix, pivots, rhs = need(call, 0), need(call, 1), need(call, 2)
    n = matrix.shape[-1]
    flops = 2 * prod(rhs.shape[:-2]) * n * rhs.shape[-2] * rhs.shape[-1]
    read = matrix.nbytes + pivots.nbytes + rhs.nbytes
    return Cost(flops, read, rhs.logical_nbytes, real_dtype(rhs.dtype), "vector", "other", 3)


@formula("aten::linalg_cross")
def cross(call: Call) -> Cost:
    """Three components of three FLOP each."""
    a, b = need(call, 0), need(call, 1)
    shape = broadcast((a.shape, b.shape))
    wrote = written(call, shape, a.dtype)
    return Cost(3 * prod(shape), a.nbytes + b.nbytes, wrote, a.dtype, "vector", "elementwise")


@formula("aten::linalg_solve_triangular", "aten::triangular_solve", "aten::cholesky_solve")
def triangular(call: Call) -> Cost:
    first, second = need(call, 0), need(call, 1)
    matrix, rhs = (first, second) if "linalg" in call.operator else (second, first)
    n = matrix.shape[-1]
    size = dtypes.itemsize(matrix.dtype) * matrix.numel
    flops = prod(matrix.shape[:-2]) * n * n * rhs.shape[-1]
    return Cost(flops, size + rhs.nbytes, rhs.logical_nbytes, rhs.dtype, "vector", "other", 2)


@formula("aten::_cdist_backward")
def cdist_backward(call: Call) -> Cost:
    """(gradient (..., m, n), a (..., m, k), b (..., n, k), p, distances)"""
    grad, a, b, distances = need(call, 0), need(call, 1), need(call, 2), need(call, 4)
    read = grad.nbytes + a.nbytes + b.nbytes + distances.nbytes
    flops = 5 * grad.numel * a.shape[-1]
    return Cost(flops, read, written(call, a.shape, a.dtype), a.dtype, "vector", "other", 2)


@formula("aten::_pdist_forward", "aten::_pdist_backward")
def pdist(call: Call) -> Cost:
    """(x (n, k), p), or (gradient of the n (n - 1) / 2 distances, x, p, distances)"""
    back = "backward" in call.operator
    x = need(call, 1 if back else 0)
    pairs = x.shape[0] * (x.shape[0] - 1) // 2
    wrote = written(call, x.shape if back else (pairs,), x.dtype)
    read = sum(t.nbytes for t in call.tensors)
    return Cost((5 if back else 3) * pairs * x.shape[1], read, wrote, x.dtype, "vector", "other")


@formula("aten::_cdist_forward", "aten::cdist", "aten::_euclidean_dist")
def cdist(call: Call) -> Cost:
    a, b = need(call, 0), need(call, 1)
    pairs = prod(a.shape[:-1]) * b.shape[-2]
    flops = 3 * pairs * a.shape[-1]
    return Cost(flops, a.nbytes + b.nbytes, written(call, (pairs,), a.dtype), a.dtype, "vector", "other", 2)
