"""Machines made by hand, from the datasheets, so that this room is tested by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ridgepole.machine.model import Figure, Limits, Machine, MemoryLevel, Overheads, Source, Unit
from ridgepole.work.op import Call, Cost, Family, Gemm, Op, Tensor

SHEET = Source("datasheet", "for the test")
GUESS = Source("assumed", "for the test")


def figure(value: float, unit: str = "1", source: Source = SHEET) -> Figure:
    return Figure(value, unit, source)


def _hopper(name: str, bandwidth: float, capacity: float, l2: float) -> Machine:
    peaks: dict[tuple[Unit, str], Figure] = {
        ("tensor", "bfloat16"): figure(989e12),
        ("tensor", "float16"): figure(989e12),
        ("tensor", "float8"): figure(1979e12),
        ("tensor", "tf32"): figure(494e12),
        ("vector", "float32"): figure(67e12),
    }
    memory = (
        MemoryLevel("l2", "device", figure(l2), figure(16.7e12), figure(1.5e-7)),
        MemoryLevel("dram", "device", figure(capacity), figure(bandwidth), figure(5e-7)),
    )
    limits = Limits(
        sms=figure(132), warp=figure(32), clock=figure(1.98e9), threads_per_block=figure(1024),
        threads_per_sm=figure(2048), blocks_per_sm=figure(32), registers_per_sm=figure(65536),
        shared_per_sm=figure(228 * 1024), shared_per_block=figure(227 * 1024),
    )  # fmt: skip
    overheads = Overheads(
        dispatch=figure(2.5e-6, "s", GUESS), launch=figure(2.5e-6, "s", GUESS), floor=figure(1.1e-6, "s"),
        graph_gap=figure(1e-7, "s"), round_trip=figure(1e-5, "s"), queue_depth=figure(1024),
    )  # fmt: skip
    return Machine(
        name, "gpu", "NVIDIA", "Hopper", "9.0", peaks, memory, limits, overheads, {"nvlink": figure(450e9, "B/s")}
    )


@pytest.fixture(scope="session")
def h100() -> Machine:
    return _hopper("H100 SXM", 3.35e12, 80e9, 50e6)


@pytest.fixture(scope="session")
def h200() -> Machine:
    return _hopper("H200 SXM", 4.8e12, 141e9, 60e6)


Pointwise = Callable[..., Op]


@pytest.fixture(scope="session")
def pointwise() -> Pointwise:
    def make(
        name: str,
        shape: tuple[int, ...],
        dtype: str = "bfloat16",
        *,
        reads: tuple[int, ...] = (),
        makes: int | None = None,
        family: Family = "elementwise",
    ) -> Op:
        tensor = Tensor(shape, dtype)
        count = max(1, len(reads))
        cost = Cost(tensor.numel, count * tensor.nbytes, tensor.nbytes, dtype, "vector", family)
        call = Call(name, (tensor,) * count, (tensor,))
        return Op(call, cost, inputs=reads, results=() if makes is None else (makes,))

    return make


@pytest.fixture(scope="session")
def product() -> Callable[..., Op]:
    def make(
        m: int,
        n: int,
        k: int,
        dtype: str = "bfloat16",
        *,
        aligned: int = 16,
        reads: tuple[int, ...] = (),
        makes: int = -1,
    ) -> Op:
        a, b, c = Tensor((m, k), dtype), Tensor((k, n), dtype), Tensor((m, n), dtype)
        detail = Gemm(1, m, n, k, aligned)
        cost = Cost(2 * m * n * k, a.nbytes + b.nbytes, c.nbytes, dtype, "tensor", "matmul", 1, detail)
        return Op(Call("aten::mm", (a, b), (c,)), cost, inputs=reads, results=() if makes < 0 else (makes,))

    return make
