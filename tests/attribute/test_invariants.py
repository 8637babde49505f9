"""What holds of any timeline, however its spans overlap."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepole.attribute.attribute import account
from ridgepole.attribute.ledger import BUCKETS, DeviceLedger, KernelWork, Ledger
from ridgepole.attribute.sweep import union
from ridgepole.timeline.model import DeviceInfo, Lane, Span, Timeline, Window

from .made import did

LANES = (
    Lane("cpu", "", "main"), Lane("cpu", "", "autograd"),
    Lane("gpu", "0", "7"), Lane("gpu", "0", "8"), Lane("gpu", "0", "9"), Lane("gpu", "1", "7"),
)  # fmt: skip
CPU_NAMES = {
    "op": ["aten::mm", "aten::item", "load_batch"],
    "launch": ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaGraphLaunch"],
    "sync": ["cudaDeviceSynchronize", "cudaFree"],
    "overhead": ["cudaMalloc", "cudaEventQuery", "cuModuleLoadData", "Buffer Flush"],
    "annotation": ["ProfilerStep#1", "enumerate(DataLoader)#_X.__next__", "compile_fx"],
}
GPU_NAMES = {
    "kernel": ["k", "gemm"],
    "copy": ["Memcpy DtoH (Device -> Pinned)", "Memcpy HtoD (Pageable -> Device)", "Memcpy DtoD (Device -> Device)"],
    "set": ["Memset (Device)"],
    "collective": ["ncclKernel"],
}
TIMES = st.integers(-50, 200)


@st.composite
def timelines(draw: st.DrawFn) -> tuple[Timeline, dict[int, KernelWork]]:
    """Any spans on any lanes: overlapping, empty, outside the window, linked to anything."""
    made = []
    for _ in range(draw(st.integers(0, 25))):
        lane = draw(st.integers(0, len(LANES) - 1))
        names = CPU_NAMES if LANES[lane].kind == "cpu" else GPU_NAMES
        kind = draw(st.sampled_from(sorted(names)))
        start = draw(TIMES)
        end = start + draw(st.integers(0, 80))
        made.append(Span(lane, start, end, kind, draw(st.sampled_from(names[kind])), graph=draw(st.booleans())))
    made.sort(key=lambda span: (span.start, -span.end))
    calls = [i for i, span in enumerate(made) if span.kind == "launch"]
    ops = [i for i, span in enumerate(made) if span.kind == "op"]
    spans, work = [], {}
    for i, span in enumerate(made):
        if LANES[span.lane].kind == "gpu":
            launch = draw(st.sampled_from(calls)) if calls and draw(st.booleans()) else None
            spans.append(replace(span, launch=launch))
            if draw(st.booleans()):
                seconds = draw(st.floats(0, 1e-6))
                work[i] = did(draw(st.sampled_from(BUCKETS)), flops=3, bytes=7, t_compute=seconds, t_memory=1e-9)
        else:
            inside = [o for o in ops if o < i]
            spans.append(replace(span, parent=inside[-1] if inside and draw(st.booleans()) else None))
    start = draw(TIMES)
    window = Window(start, start + draw(st.integers(0, 150)), "drawn")
    hidden = draw(st.lists(st.tuples(st.integers(-50, 80), st.integers(81, 200)), max_size=2))
    scaled = draw(st.none() | st.integers(0, 400))
    devices = (DeviceInfo("0"), DeviceInfo("1"))
    timeline = Timeline(
        "measured", "drawn", tuple(spans), LANES, (), window, devices, unrecorded=tuple(hidden), scaled_ns=scaled
    )
    return timeline, work


def of(ledger: Ledger) -> list[tuple[DeviceLedger, ...]]:
    """Entries by device, in a fixed order."""
    return [(d.device, d.entries, d.resident_ns, d.coverage) for d in sorted(ledger.devices, key=lambda d: d.device)]


@settings(max_examples=300, deadline=None)
@given(timelines())
def test_the_buckets_add_up_to_the_window_exactly(drawn: tuple[Timeline, dict[int, KernelWork]]) -> None:
    timeline, work = drawn
    ledger = account(timeline, None, work)
    wall = timeline.window.ns if timeline.scaled_ns is None else timeline.scaled_ns
    assert ledger.window_ns == wall
    for device in ledger.devices:
        assert all(entry.ns > 0 for entry in device.entries)
        assert sum(device.buckets.values()) == sum(entry.ns for entry in device.entries)
        assert sum(entry.ns for entry in device.entries) == wall
        assert 0 <= device.roof_ns <= wall
        assert 0 <= device.resident_ns <= wall


@settings(max_examples=150, deadline=None)
@given(timelines(), st.integers(-(10**15), 10**15))
def test_shifting_time_changes_nothing(drawn: tuple[Timeline, dict[int, KernelWork]], by: int) -> None:
    timeline, work = drawn
    moved = replace(
        timeline,
        spans=tuple(replace(span, start=span.start + by, end=span.end + by) for span in timeline.spans),
        window=Window(timeline.window.start + by, timeline.window.end + by, "drawn"),
        unrecorded=tuple((a + by, b + by) for a, b in timeline.unrecorded),
    )
    before, after = account(timeline, None, work), account(moved, None, work)
    assert of(before) == of(after)
    assert [d.ops for d in before.devices] == [d.ops for d in after.devices]


@settings(max_examples=150, deadline=None)
@given(timelines(), st.data())
def test_the_stream_a_kernel_runs_on_makes_no_difference(
    drawn: tuple[Timeline, dict[int, KernelWork]], data: st.DataObject
) -> None:
    timeline, work = drawn
    spans = tuple(
        replace(span, lane=data.draw(st.integers(2, 4))) if LANES[span.lane].device == "0" else span
        for span in timeline.spans
    )
    assert of(account(timeline, None, work)) == of(account(replace(timeline, spans=spans), None, work))


@settings(max_examples=150, deadline=None)
@given(timelines())
def test_busy_time_is_the_union_so_never_more_than_the_sum(drawn: tuple[Timeline, dict[int, KernelWork]]) -> None:
    timeline, work = drawn
    timeline = replace(timeline, scaled_ns=None, unrecorded=())
    window = timeline.window
    for device in account(timeline, None, work).devices:
        spans = [s for s in timeline.spans if LANES[s.lane].device == device.device]
        idle = {"idle-unrecorded-cpu", "before-first", "after-last", "gap", "graph-gap", "launch", "dispatch", "python",
                "sync", "data-loading", "allocator", "compilation", "profiler"}  # fmt: skip
        busy = window.ns - sum(entry.ns for entry in device.entries if entry.cause in idle)
        assert busy == union(((s.start, s.end) for s in spans), window.start, window.end)
        assert busy <= sum(max(min(s.end, window.end) - max(s.start, window.start), 0) for s in spans)


@settings(max_examples=150, deadline=None)
@given(timelines(), st.data())
def test_a_kernel_cut_in_two_is_the_same_time(
    drawn: tuple[Timeline, dict[int, KernelWork]], data: st.DataObject
) -> None:
    timeline, work = drawn
    long = [i for i, s in enumerate(timeline.spans) if s.kind in GPU_NAMES and s.ns > 1 and s.kind != "copy"]
    if not long:
        return
    index = data.draw(st.sampled_from(long))
    span = timeline.spans[index]
    at = data.draw(st.integers(span.start + 1, span.end - 1))
    spans = list(timeline.spans)
    spans[index] = replace(span, end=at)
    spans.append(replace(span, start=at))
    more = {**work, len(spans) - 1: work[index]} if index in work else work
    cut = account(replace(timeline, spans=tuple(spans)), None, more)
    whole = account(timeline, None, work)
    assert [d[:3] for d in of(cut)] == [d[:3] for d in of(whole)]


@settings(max_examples=100, deadline=None)
@given(timelines())
def test_one_more_kernel_never_shortens_busy_time(drawn: tuple[Timeline, dict[int, KernelWork]]) -> None:
    timeline, work = drawn
    timeline = replace(timeline, scaled_ns=None)
    more = replace(timeline, spans=(*timeline.spans, Span(2, 20, 60, "kernel", "more")))
    before = next(d for d in account(timeline, None, work).devices if d.device == "0")
    after = next(d for d in account(more, None, work).devices if d.device == "0")
    assert before.resident_ns <= after.resident_ns <= before.resident_ns + 40
