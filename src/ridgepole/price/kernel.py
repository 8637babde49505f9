"""The time of one op's kernels on one machine: a model's estimate, held to the physical bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ridgepole import dtypes
from ridgepole.machine.model import Machine
from ridgepole.price import tuning
from ridgepole.price.bound import Bound, physical, rate
from ridgepole.price.flags import Flags, compute_dtype
from ridgepole.price.spread import Spread, spread
from ridgepole.registry import Registry
from ridgepole.work.op import Cost, Op, Rows, Unpriced


@dataclass(frozen=True, slots=True)
class Estimate:
    """A model's answer. `limit`: what binds; `why`: one clause with the numbers; `grid`, `block`: its launch.

    `per_sm`: blocks resident on an SM, where the model knows (big tiles fill one alone).
    """

    seconds: float
    limit: str
    why: str
    grid: int = 0
    block: int = 0
    per_sm: int = 0
    whole: bool = False
    """All the op's kernels are in `seconds`; else a floor is added for each beyond the first."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One op put to a model: what it costs, where, and how PyTorch is set."""

    op: Op
    cost: Cost
    machine: Machine
    flags: Flags

    def constant(self, key: str) -> float:
        return tuning.constant(self.machine, key).value

    def share(self, key: str) -> float:
        """constant(key), a share of the peak that does this op's arithmetic; its own where that peak was measured."""
        dtype = dtypes.peak_key(self.dtype)
        if self.machine.peak("tensor", dtype) is None and self.machine.peak("vector", dtype) is None:
            dtype = "float32"  # whose rate it runs at
        own = f"{key} {dtype}"
        return self.constant(own if tuning.known(self.machine, own) else key)

    @property
    def sms(self) -> int:
        return max(1, int(self.machine.limits.sms.value))

    @property
    def floor(self) -> float:
        """Seconds of the smallest kernel."""
        return self.machine.overheads.floor.value

    @property
    def bandwidth(self) -> float:
        """Device-memory bandwidth that a plain streaming kernel reaches, B/s."""
        return self.machine.bandwidth * self.constant("achieved.dram")

    @property
    def dtype(self) -> str:
        return compute_dtype(self.cost, self.machine, self.flags)

    @property
    def peak(self) -> float | None:
        """Peak FLOP/s of the unit that does this op's arithmetic."""
        return rate(self.cost, self.machine, self.flags)

    @property
    def lanes(self) -> float:
        """Instructions a second, over all lanes of the vector units: one FMA a lane and cycle is 2 FLOP."""
        figure = self.machine.rate("vector", "float32")
        return figure.value / 2 if figure else float("inf")

    @property
    def elements(self) -> int:
        """Elements gone through: of the largest tensor in or out; of what is picked, not the table picked from."""
        sizes = [t.numel for inner in self.op.inner for t in inner.call.outputs]
        if not sizes and self.cost.family in ("gather", "scatter"):
            return self.written_elements
        if not sizes:
            sizes = [t.numel for t in (*self.op.call.tensors, *self.op.call.outputs)]
        if sizes:
            return max(sizes)
        if isinstance(self.cost.detail, Rows):
            return self.cost.detail.rows * self.cost.detail.length
        return self.cost.bytes // dtypes.itemsize(self.cost.dtype)

    @property
    def written_elements(self) -> int:
        """Elements of the largest output; where outputs were not recorded, by the bytes written."""
        sizes = [t.numel for t in self.op.call.outputs]
        return max(sizes) if sizes else max(1, self.cost.written // dtypes.itemsize(self.cost.dtype))

    def ramp(self, nbytes: float, latency: float | None = None) -> float:
        """Seconds until memory runs at full rate, for a kernel that moves `nbytes`.

        Little's law: full bandwidth needs bandwidth x latency bytes in flight; a kernel that moves less than a
        quarter of that sees little of the latency, one that moves much more sees all of it.
        """
        wait = self.constant("ramp.latency") if latency is None else latency
        quarter = self.machine.bandwidth * wait / 4
        return wait * nbytes / (nbytes + quarter) if nbytes else 0.0

    def travel(self, nbytes: float, fraction: float = 1.0) -> float:
        """Seconds to stream `nbytes` at `fraction` of the achieved bandwidth, ramp included."""
        return self.ramp(nbytes) + nbytes / (self.bandwidth * fraction)

    def issue(self, key: str, elements: float) -> float:
        """Seconds in which the lanes issue constant(key) instructions for each of `elements`."""
        return elements * self.constant(key) / self.lanes


OVERLAP = 3
"""How far parts of a kernel hide each other: 1 adds them up, infinity takes the largest. Of 3, 5 and 50, products on
Hopper lie nearest with 3 or 5, some of the rows looked at being held out from the other constants."""


def overlapped(*parts: float) -> float:
    """Seconds of parts that hide each other in part: no less than the largest, no more than their sum."""
    most = max(parts)
    return most * sum((part / most) ** OVERLAP for part in parts) ** (1 / OVERLAP) if most else 0.0


Model = Callable[[Ask], Estimate]

model: Registry[Model] = Registry("kernel model", "ridgepole.price.models")


@dataclass(frozen=True, slots=True)
class KernelTime:
    """Device time of one op, all its kernels together, in seconds, and what decides it.

    `seconds` is from one kernel's start to the next one's, back to back: the short gap behind it is in it.
    `compute`, `memory`: the two roofs (peak rate; bytes through device memory). `floor`: of its kernels.
    `limit`: "launch floor", "dram", "l2 sectors", "tensor", "vector", "issue", "alignment", "waves", "rows", …
    `low` to `high` holds about nine in ten measured calls of its family (`error.*` in tuning.toml).
    """

    seconds: float
    low: float
    high: float
    compute: float
    memory: float
    floor: float
    limit: str
    why: str
    kernels: int
    spread: Spread | None = None
    bound: float = 0.0
    """The physical bound, caches warm."""


FREE = KernelTime(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "free", "a view moves nothing and launches nothing", 0)

EMPTY = replace(FREE, why="a result of no elements: PyTorch launches nothing for it")


def kernel_time(op: Op, machine: Machine, flags: Flags | None = None) -> KernelTime | Unpriced:
    """What `op` takes on `machine`. Unpriced passes through: what has no cost has no price."""
    cost = op.cost
    if isinstance(cost, Unpriced):
        return cost
    if cost.family == "view" or cost.kernels == 0:
        return FREE
    if op.call.outputs and not any(t.numel for t in op.call.outputs):
        return EMPTY
    ask = Ask(op, cost, machine, flags or Flags())
    find = model.find(cost.family) or model.find("other")
    assert find is not None  # models/other.py registers it
    return _settle(ask, find(ask))


def _settle(ask: Ask, estimate: Estimate) -> KernelTime:
    bound = physical(ask.cost, ask.machine, ask.flags)
    extra = 0.0 if estimate.whole else (ask.cost.kernels - 1) * ask.floor
    seconds, limit, why = estimate.seconds + extra, estimate.limit, estimate.why
    floor = ask.floor * ask.cost.kernels
    if seconds < bound.seconds:
        seconds, limit, why = bound.seconds, _bound_limit(bound, ask), "held to the physical bound"
    elif floor > max(bound.compute, ask.cost.bytes / ask.machine.bandwidth) and seconds < 2 * floor:
        limit = "launch floor"
    key = f"error.{ask.cost.family}"
    error = ask.constant(key if tuning.known(ask.machine, key) else "error.other")
    shape = None
    if estimate.grid and ask.machine.kind == "gpu":
        shape = spread(ask.machine, ask.written_elements, estimate.grid, estimate.block, estimate.per_sm)
    return KernelTime(
        seconds=seconds,
        low=max(seconds / (1 + error), bound.seconds),
        high=seconds * (1 + error),
        compute=bound.compute,
        memory=ask.cost.bytes / ask.machine.bandwidth,
        floor=floor,
        limit=limit,
        why=why,
        kernels=ask.cost.kernels,
        spread=shape,
        bound=bound.seconds,
    )


def _bound_limit(bound: Bound, ask: Ask) -> str:
    if bound.memory >= bound.compute:
        return bound.level
    return "tensor" if ask.machine.peak("tensor", ask.dtype) else "vector"
