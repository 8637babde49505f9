"""What a rule looks at: one ledger with the timeline and machine behind it, and the sums every rule needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ridgepole import units
from ridgepole.attribute.ledger import DeviceLedger, KernelWork, Ledger
from ridgepole.machine.model import Machine
from ridgepole.timeline.model import Span, Timeline
from ridgepole.work.op import Cost, Gemm, Op, Unpriced

GRAPH_GAP = 0.5e-6
"""Seconds between two kernels of a graph where the machine's figure is not known (assumed)."""


@dataclass(frozen=True)
class Case:
    """The evidence of one run. Everything is about the busiest device."""

    ledger: Ledger
    timeline: Timeline
    machine: Machine | None

    @property
    def device(self) -> DeviceLedger:
        return self.ledger.busiest

    @property
    def window(self) -> int:
        """Nanoseconds of the window."""
        return self.ledger.window_ns

    @property
    def on_cpu(self) -> bool:
        """Whether the CPU itself did the work: nothing is launched, and no GPU waits."""
        return self.device.device == "cpu"

    def ns(self, *causes: str) -> int:
        """Nanoseconds booked under any of `causes`."""
        return sum(entry.ns for entry in self.device.entries if entry.cause in causes)

    def share(self, ns: int) -> float:
        """`ns` as a share of the window."""
        return ns / self.window if self.window else 0.0

    def change(self, gain_ns: int) -> str:
        """The window before and after a gain, in words: "3.91 ms → 310 µs"."""
        return f"{units.nanoseconds(self.window)} → {units.nanoseconds(self.window - gain_ns)}"

    @cached_property
    def spans(self) -> tuple[tuple[Span, KernelWork], ...]:
        """Device spans of the busiest device that touch the window, with what each did."""
        return tuple(self._spans())

    def _spans(self) -> Iterator[tuple[Span, KernelWork]]:
        lanes = self.timeline.lanes
        window = self.timeline.window
        for index, work in self.ledger.work.items():
            span = self.timeline.spans[index]
            # A price on a CPU has no stream for it: its ops lie on the thread itself, whose lane names no device.
            device = lanes[span.lane].device or "cpu"
            if device != self.device.device or span.end < window.start or span.start > window.end:
                continue
            yield span, work

    def op(self, span: Span) -> Op | None:
        """The op that launched `span`."""
        return None if span.op is None else self.timeline.ops[span.op]

    def cost(self, span: Span) -> Cost | None:
        """What that op asks for, where a formula knows."""
        op = self.op(span)
        return None if op is None or isinstance(op.cost, Unpriced) else op.cost

    def small_product(self, span: Span, work: KernelWork) -> Gemm | None:
        """A matrix product's sizes, if its time is neither its arithmetic nor its bytes: it is too small for a GPU."""
        cost = self.cost(span)
        if cost is None or cost.family != "matmul" or work.cause != "kernel-floor" or self.on_cpu:
            return None
        return cost.detail if isinstance(cost.detail, Gemm) else None

    @cached_property
    def kernels(self) -> int:
        """Kernels, copies and sets in the window."""
        return len(self.spans)

    @cached_property
    def steps(self) -> int:
        """Profiler steps inside the window; 1 where none is marked."""
        window = self.timeline.window
        inside = [s for s in self.timeline.steps if s.start >= window.start and s.end <= window.end]
        return max(len(inside), 1)

    @property
    def graph_gap_ns(self) -> float:
        """Nanoseconds the GPU idles between two kernels of a graph."""
        return (GRAPH_GAP if self.machine is None else self.machine.overheads.graph_gap.value) * 1e9

    @property
    def from_trace_alone(self) -> bool:
        """Recording slowed the CPU, and nothing says by how much."""
        return self.ledger.kind == "measured" and not self.ledger.scaled
