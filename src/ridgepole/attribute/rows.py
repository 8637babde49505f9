"""The operators of a device over the window, one row an operator, place and shapes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from ridgepole.attribute.ledger import Bucket, Coverage, KernelWork, OpRow, Quality
from ridgepole.attribute.sweep import Place
from ridgepole.timeline.model import Span, Timeline
from ridgepole.work.op import Cost, Gemm, Op, Tensor, Where

MOST_NAMES = 8
"""Kernel names kept in a row."""

SHOWN_TENSORS = 3

WHOLE = 0.5
"""Share of a row's time whose work must be known before its efficiency says something of the row."""

_INSTANCE = re.compile(r"(?:^|(?<=\.))([A-Z]\w*?)_\d+(?=\.|$)")
"""The profiler calls a module without a known attribute path by class and number: "BertLayer_0"."""
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.)")


@dataclass(slots=True)
class _Sums:
    """A row being added up, in nanoseconds of device time, FLOPs and bytes."""

    op: str
    where: str
    shapes: str
    calls: set[int] = field(default_factory=set)
    kernels: int = 0
    ns: int = 0
    flops: float | None = None
    bytes: float | None = None
    known_ns: int = 0
    attainable: float = 0.0
    places: Counter[Bucket] = field(default_factory=Counter)
    qualities: Counter[Quality] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)

    def row(self) -> OpRow:
        return OpRow(
            op=self.op,
            where=self.where,
            count=len(self.calls),
            kernels=self.kernels,
            ns=self.ns,
            bucket=max(self.places, key=lambda bucket: (self.places[bucket], bucket)),
            flops=None if self.flops is None else round(self.flops),
            bytes=None if self.bytes is None else round(self.bytes),
            known_ns=self.known_ns,
            efficiency=self.attainable * 1e9 / self.known_ns if self.known_ns > self.ns * WHOLE else None,
            quality=self._quality(),
            shapes=self.shapes,
            names=tuple(name for name, _ in self.names.most_common(MOST_NAMES)),
        )

    def _quality(self) -> Quality:
        """Exact only if all that is known is exact; unknown only if nothing is known."""
        if self.qualities["inferred"]:
            return "inferred"
        return "exact" if self.qualities["exact"] else "unknown"


def op_rows(
    timeline: Timeline, indices: Sequence[int], work: Mapping[int, KernelWork], places: Mapping[int, Place]
) -> tuple[OpRow, ...]:
    """Rows of the device spans at `indices`, longest-running first.

    A row's time is the sum over its kernels, clipped to the window: kernels that overlap count twice here, as in
    any profiler's table, and once in the ledger. Work of a kernel that the window cuts counts in proportion.
    """
    window, spans = timeline.window, timeline.spans
    sums: dict[tuple[int, str], _Sums] = {}
    for index in indices:
        span = spans[index]
        ns = min(span.end, window.end) - max(span.start, window.start)
        if ns < 0 or (ns == 0 and span.ns):
            continue
        known = work.get(index)
        key = (-1, span.name) if span.op is None else (span.op, "")
        row = sums.get(key)
        if row is None:
            row = sums[key] = _open(span, None if span.op is None else timeline.ops[span.op])
        row.calls.add(_call(spans, span, index))
        row.kernels += 1
        row.ns += ns
        row.places[places[index][0]] += ns
        row.names[span.name] += ns
        if known is not None:
            row.qualities[known.quality] += 1
            _add(row, known, ns, ns / span.ns if span.ns else 1.0)
    merged: dict[tuple[str, str, str], _Sums] = {}
    for row in sums.values():
        _merge(merged, row)
    return tuple(sorted((row.row() for row in merged.values()), key=lambda row: (-row.ns, row.op, row.where)))


def _open(span: Span, op: Op | None) -> _Sums:
    if op is None:
        return _Sums(span.name, "", "")
    return _Sums(op.operator, place_in_program(op.where), shapes(op))


def _call(spans: Sequence[Span], span: Span, index: int) -> int:
    """The op span that launched a device span, which tells calls of one op apart; else the device span itself."""
    at = None if span.launch is None or span.op is None else spans[span.launch].parent
    while at is not None and spans[at].op != span.op:
        at = spans[at].parent
    return index if at is None else at


def _add(row: _Sums, work: KernelWork, ns: int, share: float) -> None:
    if work.flops is not None:
        row.flops = (row.flops or 0.0) + work.flops * share
    if work.bytes is not None:
        row.bytes = (row.bytes or 0.0) + work.bytes * share
    if work.attainable is not None:
        row.known_ns += ns
        row.attainable += work.attainable * share


def _merge(merged: dict[tuple[str, str, str], _Sums], row: _Sums) -> None:
    """Ops that read alike to a person (the same layer, repeated) become one row."""
    first = merged.setdefault((row.op, row.where, row.shapes), row)
    if first is row:
        return
    first.calls |= row.calls
    first.kernels += row.kernels
    first.ns += row.ns
    first.known_ns += row.known_ns
    first.attainable += row.attainable
    if row.flops is not None:
        first.flops = (first.flops or 0.0) + row.flops
    if row.bytes is not None:
        first.bytes = (first.bytes or 0.0) + row.bytes
    first.places.update(row.places)
    first.qualities.update(row.qualities)
    first.names.update(row.names)


@cache
def place_in_program(where: Where) -> str:
    """Where an op is called, with numbered repeats as one: "encoder.layer.*.output.dense (backward)"."""
    place = _INSTANCE.sub(r"\1", _NUMBER.sub("*", where.module)) or where.source
    if where.phase in ("", "forward"):
        return place
    return f"{place} ({where.phase})" if place else where.phase


def shapes(op: Op) -> str:
    """An op's operands in short: "25088x768 @ 768x2304 bf16", or its first tensors' shapes and dtype."""
    detail = op.cost.detail if isinstance(op.cost, Cost) else None
    tensors = op.call.tensors
    dtype = short_dtype(tensors[0].dtype) if tensors else ""
    if isinstance(detail, Gemm):
        text = f"{detail.m}x{detail.k} @ {detail.k}x{detail.n}"
        return f"{detail.batch} of {text} {dtype}".rstrip() if detail.batch > 1 else f"{text} {dtype}".rstrip()
    shown = ", ".join(_shape(tensor) for tensor in tensors[:SHOWN_TENSORS])
    more = ", …" if len(tensors) > SHOWN_TENSORS else ""
    return f"{shown}{more} {dtype}".strip()


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "scalar"


@cache
def short_dtype(dtype: str) -> str:
    """A dtype as the field writes it.

    >>> short_dtype("bfloat16"), short_dtype("float8_e4m3fn"), short_dtype("int64")
    ('bf16', 'f8_e4m3fn', 'i64')
    """
    return dtype.replace("bfloat", "bf").replace("float", "f").replace("uint", "u").replace("int", "i")


def coverage(
    timeline: Timeline, owned: Mapping[int, int], work: Mapping[int, KernelWork], places: Mapping[int, Place]
) -> Coverage:
    """Shares of the device's busy time in the window, each nanosecond counted once (`owned`); 0 where it is idle."""
    busy = sum(owned.values())
    if busy == 0:
        return Coverage(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    bucket = op = nbytes = flops = graph = inferred = 0
    for index, ns in owned.items():
        span, known = timeline.spans[index], work.get(index)
        bucket += ns if places[index][0] != "unknown" else 0
        op += ns if span.op is not None else 0
        graph += ns if span.graph else 0
        if known is not None:
            nbytes += ns if known.bytes is not None else 0
            flops += ns if known.flops is not None else 0
            inferred += ns if known.quality == "inferred" else 0
    return Coverage(bucket / busy, op / busy, nbytes / busy, flops / busy, graph / busy, inferred / busy)


def roof_ns(timeline: Timeline, owned: Mapping[int, int], work: Mapping[int, KernelWork]) -> int:
    """Nanoseconds the roofs alone would have needed for the work done in owned time.

    Each span's owned time x attainable / measured, at most all of it: overlapping kernels are not counted twice, so
    this never exceeds busy time. Kernels of unknown work add nothing.
    """
    total = 0.0
    for index, ns in owned.items():
        known = work.get(index)
        if known is None or known.attainable is None:
            continue
        total += ns * min(1.0, known.attainable * 1e9 / timeline.spans[index].ns)
    return round(total)
