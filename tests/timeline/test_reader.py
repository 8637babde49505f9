from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepole.errors import BadInput
from ridgepole.timeline import reader
from ridgepole.timeline.model import Launch, Timeline
from ridgepole.work.op import Call, Tensor

from .written import HOPPER, Json, device_spans, event, kernel, launch, named, op, put, text


def read(folder: Path, *events: Json, steps: str | None = None, **around: object) -> Timeline:
    return reader.read(put(folder, text(*events, **around)), steps=steps)


def times(timeline: Timeline) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in device_spans(timeline)]


# Links


def test_a_kernel_belongs_to_the_innermost_op_around_its_launch(tmp_path: Path) -> None:
    timeline = read(
        tmp_path,
        op("aten::linear", 0, 100),
        op("aten::addmm", 10, 50),
        launch(5, 20),
        op("aten::relu", 70, 20),
        kernel(5, 200, 30),
    )
    gemm = named(timeline, "gemm")
    assert gemm.op is not None and gemm.launch is not None
    assert timeline.ops[gemm.op].operator == "aten::addmm"
    assert timeline.spans[gemm.launch].name == "cudaLaunchKernel"
    inner = named(timeline, "aten::addmm")
    assert inner.parent is not None
    assert timeline.spans[inner.parent].name == "aten::linear"
    assert inner.op == gemm.op


def test_the_message_of_a_collective_is_in_the_range_that_its_library_marks(tmp_path: Path) -> None:
    marked = {"Input Dims": [[447923396]], "Input type": ["float"]}
    timeline = read(
        tmp_path,
        op("record_param_comms", 0, 100, **{"Input Dims": [[], []], "Input type": ["TensorList", "Scalar"]}),
        event("user_annotation", "nccl:all_reduce", 10, 50, **marked),
        event("user_annotation", "gloo:all_reduce", 200, 50, **marked),
        launch(5, 20),
        kernel(5, 200, 30, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
    )
    (sent,) = device_spans(timeline)
    assert sent.kind == "collective" and sent.op is not None
    assert timeline.ops[sent.op].call == Call("nccl:all_reduce", (Tensor((447923396,), "float32"),))
    assert named(timeline, "gloo:all_reduce").kind == "annotation"


def test_an_op_that_launches_nothing_gets_no_cost(tmp_path: Path) -> None:
    timeline = read(tmp_path, op("aten::view", 0, 5), op("aten::mm", 10, 50), launch(5, 20), kernel(5, 200, 30))
    assert named(timeline, "aten::view").op is None
    assert [one.operator for one in timeline.ops] == ["aten::mm"]


def test_a_call_on_another_thread_is_not_inside_the_op(tmp_path: Path) -> None:
    timeline = read(tmp_path, op("aten::mm", 0, 100, tid=1), launch(5, 20, tid=2), kernel(5, 200, 30))
    assert named(timeline, "gemm").op is None


def test_without_a_launch_the_external_id_leads_to_the_op(tmp_path: Path) -> None:
    timeline = read(tmp_path, op("aten::mm", 0, 100, **{"External id": 42}), kernel(9, 200, 30, **{"External id": 42}))
    gemm = named(timeline, "gemm")
    assert gemm.op is not None and timeline.ops[gemm.op].operator == "aten::mm"


def test_an_external_id_that_repeats_the_correlation_leads_nowhere(tmp_path: Path) -> None:
    timeline = read(tmp_path, op("aten::mm", 0, 9, **{"External id": 42}), kernel(42, 200, 30, **{"External id": 42}))
    assert named(timeline, "gemm").op is None


def test_without_correlation_ids_the_flow_leads_to_the_launch(tmp_path: Path) -> None:
    for category in ("ac2g", "async", "async_cpu_to_gpu"):
        flow = {"id": 3, "cat": category, "name": "flow"}
        timeline = read(
            tmp_path,
            op("aten::mm", 0, 100),
            event("cuda_runtime", "cudaLaunchKernel", 20, 4),
            {"ph": "s", "pid": 1, "tid": 1, "ts": 20, **flow},
            event("kernel", "gemm", 200, 30, pid=0, tid="stream 7"),
            {"ph": "f", "pid": 0, "tid": "stream 7", "ts": 200, "bp": "e", **flow},
        )
        gemm = named(timeline, "gemm")
        assert gemm.launch is not None and gemm.op is not None
        assert timeline.lanes[gemm.lane].name == "stream 7"


def test_of_duplicate_correlation_ids_the_last_launch_before_the_kernel_counts(tmp_path: Path) -> None:
    timeline = read(
        tmp_path,
        op("aten::mm", 0, 50, pid=1),
        launch(5, 20, pid=1),
        op("aten::relu", 1000, 50, pid=2),
        launch(5, 1020, pid=2),
        kernel(5, 1100, 30, name="late"),
        kernel(5, 40, 30, name="early"),
    )
    ops = {span.name: timeline.ops[span.op].operator for span in device_spans(timeline) if span.op is not None}
    assert ops == {"early": "aten::mm", "late": "aten::relu"}


def test_order_in_the_file_does_not_matter(tmp_path: Path) -> None:
    events = [op("aten::mm", 0, 50), launch(5, 20), kernel(5, 100, 30), op("aten::relu", 60, 20), launch(6, 65)]
    events.append(kernel(6, 140, 5, name="relu"))
    forward, backward = read(tmp_path, *events), read(tmp_path, *reversed(events))
    assert forward.spans == backward.spans
    assert forward.window == backward.window


def test_zero_durations_and_time_zero_are_real(tmp_path: Path) -> None:
    timeline = read(tmp_path, kernel(1, 0, 10), kernel(2, 10, 0), kernel(3, 10, 5, name="last"))
    (device,) = timeline.devices
    assert (device.events, device.busy_ns, device.window_ns) == (3, 15_000, 15_000)
    assert not timeline.notes


def test_a_graph_launch_of_hundreds_of_kernels_links_each_and_flags_it(tmp_path: Path) -> None:
    kernels = [kernel(5, 100 + 10 * i, 8, name=f"k{i}") for i in range(300)]
    for call in ("cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch"):
        timeline = read(tmp_path, launch(5, 20, name=call), *kernels)
        assert all(span.graph and span.launch is not None for span in device_spans(timeline))
        assert not timeline.unrecorded


# Kinds


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cudaLaunchKernel", "launch"), ("cudaLaunchKernelExC", "launch"), ("cuLaunchKernelEx", "launch"),
        ("hipExtModuleLaunchKernel", "launch"), ("cudaGraphLaunch", "launch"), ("cudaMemcpyAsync", "launch"),
        ("cudaMemsetAsync", "launch"), ("hipMemcpyAsync", "launch"), ("urEnqueueKernelLaunch", "launch"),
        ("cudaDeviceSynchronize", "sync"), ("hipStreamSynchronize", "sync"), ("cudaEventSynchronize", "sync"),
        ("cudaMemcpy", "sync"), ("hipMemcpyWithStream", "sync"), ("cuMemcpyDtoH_v2", "sync"),
        ("cudaStreamWaitEvent", "overhead"), ("cudaMalloc", "overhead"), ("cudaFree", "overhead"),
        ("cudaStreamIsCapturing", "overhead"), ("cudaLaunchHostFunc", "overhead"),
        ("cudaGraphInstantiate", "overhead"), ("cudaGraphAddMemcpyNode", "overhead"), ("hipFree", "overhead"),
    ],
)  # fmt: skip
def test_runtime_calls_launch_or_wait_or_neither(tmp_path: Path, name: str, kind: str) -> None:
    assert named(read(tmp_path, launch(1, 0, name=name), kernel(2, 10, 5)), name).kind == kind


def test_a_call_from_which_device_work_came_is_a_launch_whatever_its_name(tmp_path: Path) -> None:
    assert named(read(tmp_path, launch(1, 0, name="newVendorGo"), kernel(1, 10, 5)), "newVendorGo").kind == "launch"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "collective"),
        ("rcclGenericKernel<1>", "collective"),
        ("hcclAllReduce", "collective"),
        ("void sglang::cross_device_reduce_1stage<__nv_bfloat16, 8>(...)", "collective"),
        ("void quick_reduce::allreduce_prototype_twoshot<...>", "collective"),
        ("one_shot_all_reduce_kernel", "collective"),
        ("void multimem_one_shot_all_reduce_kernel", "collective"),
        ("triton_poi_fused_add_all_gather_into_tensor_3", "kernel"),
        ("void at::native::reduce_kernel<512, 1>", "kernel"),
        ("sm90_xmma_gemm_bf16bf16", "kernel"),
    ],
)
def test_collectives_are_known_by_their_library_or_by_what_they_do(tmp_path: Path, name: str, kind: str) -> None:
    assert named(read(tmp_path, kernel(1, 10, 5, name=name)), name).kind == kind


def test_the_categories_of_2021_are_the_same_kinds(tmp_path: Path) -> None:
    timeline = read(
        tmp_path,
        event("Operator", "aten::mm", 0, 50, **{"Input dims": [[8, 4], [4, 2], []], "Input type": []}),
        event("Operator", "ProfilerStep#3", 0, 60),
        event("Runtime", "cudaLaunchKernel", 10, 5, correlation=1, **{"external id": 2}),
        kernel(1, 20, 10, cat="Kernel"),
        kernel(2, 40, 1, cat="Memset", name="Memset (Device)"),
        kernel(3, 45, 1, cat="Memcpy,extra", name="Memcpy HtoD"),
    )
    assert [span.kind for span in device_spans(timeline)] == ["kernel", "set", "copy"]
    assert timeline.ops[0].call == Call("aten::mm", (Tensor((8, 4), ""), Tensor((4, 2), "")))
    assert timeline.window.rule == "1 profiler step, #3"


def test_python_functions_are_skipped_but_for_the_modules_they_name(tmp_path: Path) -> None:
    timeline = read(
        tmp_path,
        event("python_function", "train.py(3): main", 0, 1000),
        event("python_function", "nn.Module: Net_0", 0, 500),
        event("python_function", "nn.Module: Linear_1", 100, 100),
        op("aten::mm", 120, 20),
        launch(1, 125),
        op("aten::relu", 300, 20),
        launch(2, 305),
        op("aten::sum", 600, 20),
        launch(3, 605),
        *(kernel(i, 1000 + 100 * i, 10, name=f"k{i}") for i in (1, 2, 3)),
    )
    assert not any("main" in span.name or "Module" in span.name for span in timeline.spans)
    where = {one.operator: one.where.module for one in timeline.ops}
    assert where == {"aten::mm": "Net_0.Linear_1", "aten::relu": "Net_0", "aten::sum": ""}


def test_a_backward_op_has_its_phase_and_the_module_of_its_forward_op(tmp_path: Path) -> None:
    node = "autograd::engine::evaluate_function"
    timeline = read(
        tmp_path,
        event("python_function", "nn.Module: Linear_1", 0, 100),
        op("aten::addmm", 10, 20, **{"Sequence number": 7, "Fwd thread id": 0}),
        launch(1, 15),
        op(f"{node}: AddmmBackward0", 200, 50, tid=2, **{"Sequence number": 7, "Fwd thread id": 1}),
        op("aten::mm", 210, 20, tid=2),
        launch(2, 215, tid=2),
        event("user_annotation", "Optimizer.step#SGD.step", 300, 50),
        op("aten::_foreach_add_", 310, 20),
        launch(3, 315),
        *(kernel(i, 1000 + 100 * i, 10, name=f"k{i}") for i in (1, 2, 3)),
    )  # fmt: skip
    where = {one.operator: (one.where.phase, one.where.module) for one in timeline.ops}
    assert where["aten::addmm"] == ("forward", "Linear_1")
    assert where["aten::mm"] == ("backward", "Linear_1")
    assert where["aten::_foreach_add_"] == ("optimizer", "")


def test_how_a_kernel_was_launched_and_what_a_copy_moved(tmp_path: Path) -> None:
    timeline = read(
        tmp_path,
        kernel(1, 0, 5, grid=[64, 2, 1], block=[256, 1, 1], **{"registers per thread": 90, "shared memory": 49152}),
        kernel(2, 10, 5, name="Memcpy HtoD (Pageable -> Device)", cat="gpu_memcpy", bytes=4096),
        kernel(3, 20, 5, name="odd", grid="wide", block=[1, 2], **{"registers per thread": -1}),
    )
    infos = [span.info for span in device_spans(timeline)]
    assert infos == [Launch((64, 2, 1), (256, 1, 1), 90, 49152), Launch(nbytes=4096), Launch()]


def test_waits_that_only_the_device_recorded_are_waits(tmp_path: Path) -> None:
    timeline = read(
        tmp_path,
        kernel(1, 0, 50),
        launch(8, 10, name="cudaStreamSynchronize"),
        event("cuda_sync", "Stream Sync", 10, 40, pid=0, tid=7, correlation=8),
        event("cuda_sync", "Event Sync", 60, 10, pid=0, tid=7, correlation=9),
        event("cuda_sync", "Stream Wait Event", 60, 10, pid=0, tid=7, correlation=10),
    )
    assert [span.name for span in timeline.spans if span.kind == "sync"] == ["cudaStreamSynchronize", "Event Sync"]


# Devices, streams and ranks


def test_a_device_is_described_by_the_files_own_properties(tmp_path: Path) -> None:
    said = {**HOPPER, "totalGlobalMem": 85018279936, "warpSize": 32, "maxSharedMemoryPerMultiProcessor": 65536}
    (device,) = read(tmp_path, kernel(1, 0, 5), deviceProperties=[said, {"id": 1, "name": "other"}]).devices
    assert (device.id, device.name, device.sms, device.compute) == ("0", "NVIDIA H100 80GB HBM3", 132, "9.0")
    assert (device.memory, device.warp, device.shared_per_sm) == (85018279936, 32, 65536)
    assert device.registers_per_sm is None


def test_a_device_with_another_number_is_described_only_if_all_are_alike(tmp_path: Path) -> None:
    one, other = dict(HOPPER), {**HOPPER, "id": 1}
    alike = read(tmp_path, kernel(1, 0, 5, device=9), deviceProperties=[one, other])
    assert alike.devices[0].name == HOPPER["name"]
    mixed = read(tmp_path, kernel(1, 0, 5, device=9), deviceProperties=[one, {**other, "name": "another"}])
    assert mixed.devices[0].name == ""


def test_several_devices_share_the_window_and_unused_ones_are_left_out(tmp_path: Path) -> None:
    timeline = read(
        tmp_path, kernel(1, 0, 5), kernel(2, 100, 5, device=1), deviceProperties=[{**HOPPER, "id": i} for i in range(4)]
    )
    assert [device.id for device in timeline.devices] == ["0", "1"]
    assert (timeline.window.start, timeline.window.end) == (0, 105_000)


def test_ranks_merged_into_one_file_are_devices_of_their_own(tmp_path: Path) -> None:
    timeline = read(tmp_path, kernel(1, 0, 5, pid="rank 0"), kernel(1, 0, 7, pid="rank 1"))
    assert {device.id: device.busy_ns for device in timeline.devices} == {"0 of rank 0": 5000, "0 of rank 1": 7000}


def test_streams_that_run_at_once_are_busy_once(tmp_path: Path) -> None:
    timeline = read(tmp_path, kernel(1, 0, 10, stream=7), kernel(2, 5, 10, stream=20))
    assert timeline.devices[0].busy_ns == 15_000
    assert [lane.name for lane in timeline.lanes if lane.kind == "gpu"] == ["stream 7", "stream 20"]


# Time


def test_time_is_counted_from_the_first_event_and_stays_exact(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(
        '{"baseTimeNanoseconds": 1790857026000000000, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", '
        '"pid": 0, "tid": 7, "ts": 5251265997829.197, "dur": 0.0019, "args": {"device": 0, "stream": 7}}]}'
    )
    timeline = reader.read(path)
    assert times(timeline) == [(0, 2)]
    assert timeline.origin == 1790857026000000000 + 5251265997829197


def test_the_same_trace_later_is_the_same_timeline(tmp_path: Path) -> None:
    def shifted(by: int) -> Timeline:
        return read(tmp_path, op("aten::mm", 3 + by, 50), launch(5, 20 + by), kernel(5, 200 + by, 30))

    early, late = shifted(0), shifted(10**15)
    assert early.spans == late.spans
    assert early.window == late.window
    assert late.origin - early.origin == 10**18


def test_events_without_a_usable_time_are_left_out_and_counted(tmp_path: Path) -> None:
    timeline = read(tmp_path, kernel(1, 0, 5), kernel(2, "soon", 5), kernel(3, 1e300, 5), kernel(4, 10, -3))
    assert timeline.devices[0].events == 2
    assert any("2 events without a usable start" in note for note in timeline.notes)
    assert any("1 event of negative duration" in note for note in timeline.notes)


# Windows


def steps_of(*numbers: int) -> list[Json]:
    found = []
    for number in numbers:
        at = 1000 * number
        found.append(event("user_annotation", f"ProfilerStep#{number}", at, 900))
        found += [launch(number, at + 10), kernel(number, at + 100, 50, name=f"k{number}")]
    return found


@pytest.mark.parametrize(
    ("asked", "start", "end", "rule"),
    [
        (None, 0, 2900, "3 profiler steps, #1 to #3"),
        ("all", 0, 2900, "3 profiler steps, #1 to #3"),
        ("2", 1000, 1900, "1 profiler step, #2"),
        ("2-3", 1000, 2900, "2 profiler steps, #2 to #3"),
    ],
)
def test_the_steps_asked_for_are_the_window(tmp_path: Path, asked: str | None, start: int, end: int, rule: str) -> None:
    window = read(tmp_path, *steps_of(1, 2, 3), steps=asked).window
    assert (window.start, window.end, window.rule) == (start * 1000, end * 1000, rule)


@pytest.mark.parametrize("asked", ["4", "0-2", "x", "1,3", "-1", ""])
def test_steps_that_are_not_there_are_refused(tmp_path: Path, asked: str) -> None:
    with pytest.raises(BadInput, match="profiler step"):
        read(tmp_path, *steps_of(1, 2, 3), steps=asked)
    with pytest.raises(BadInput):
        read(tmp_path, kernel(1, 0, 5), steps=asked)


def test_without_steps_the_window_holds_the_device_and_what_drives_it(tmp_path: Path) -> None:
    timeline = read(
        tmp_path,
        op("aten::empty", 0, 10),
        op("aten::linear", 100, 100),
        op("aten::mm", 110, 20),
        launch(5, 115),
        kernel(5, 300, 50),
        op("aten::view", 900, 10),
    )
    assert (timeline.window.start, timeline.window.end) == (100_000, 350_000)
    assert timeline.window.rule.startswith("first to last event")


# Clipping (case 1)


def test_a_kernel_that_runs_past_the_start_of_the_next_on_its_stream_is_clipped(tmp_path: Path) -> None:
    timeline = read(tmp_path, kernel(1, 0, 10_000.5, name="long"), kernel(2, 100, 50), kernel(3, 100, 500, stream=9))
    long = named(timeline, "long")
    assert (long.end, long.raw_end) == (100_000, 10_000_500)
    assert timeline.devices[0].busy_ns == 10_000_500
    assert any(note.startswith("clipped 1 event") for note in timeline.notes)


def test_overlap_asked_for_by_the_launch_is_kept(tmp_path: Path) -> None:
    def overlapping(call: str) -> Timeline:
        return read(
            tmp_path, launch(1, 0), launch(2, 5, name=call), kernel(1, 100, 50.5, name="first"), kernel(2, 149, 50)
        )

    assert named(overlapping("cudaLaunchKernelExC"), "first").raw_end is None
    assert named(overlapping("cudaLaunchKernel"), "first").raw_end is not None


def test_even_so_no_kernel_outlasts_the_next_on_its_stream(tmp_path: Path) -> None:
    timeline = read(
        tmp_path,
        launch(1, 0),
        launch(2, 5, name="cuLaunchKernelEx"),
        kernel(1, 100, 9000, name="first"),
        kernel(2, 149, 50),
    )
    assert named(timeline, "first").end - named(timeline, "first").start == 49_000


def test_kernels_of_one_graph_may_overlap_but_not_run_into_the_next_launch(tmp_path: Path) -> None:
    timeline = read(
        tmp_path,
        launch(1, 0, name="cudaGraphLaunch"),
        launch(2, 5, name="cudaGraphLaunch"),
        kernel(1, 100, 300, name="a"),
        kernel(1, 120, 50, name="b"),
        kernel(2, 300.5, 50, name="c"),
    )
    assert named(timeline, "a").end == 300_500
    assert named(timeline, "b").raw_end is None


def test_a_duration_that_overflowed_ends_with_the_recording(tmp_path: Path) -> None:
    over = 2**64 // 1000
    recording = event("Trace", "PyTorch Profiler (0)", 0, 1000, pid="Spans", tid="PyTorch Profiler")
    for others in ([recording], [launch(2, 0, 1000, name="cudaDeviceSynchronize")]):
        timeline = read(tmp_path, kernel(1, 100, over, name="over"), *others)
        assert named(timeline, "over").end == 1_000_000 - (100_000 if others[0] is recording else 0)
        assert timeline.window.end <= 1_000_000
        assert any("clipped 1 event" in note for note in timeline.notes)


def test_a_recording_by_another_clock_clips_nothing(tmp_path: Path) -> None:
    recording = event("Trace", "PyTorch Profiler (0)", 0, 50, pid="Spans", tid="PyTorch Profiler")
    timeline = read(tmp_path, kernel(1, 20, 100), kernel(2, 200, 100), recording)
    assert times(timeline) == [(0, 100_000), (180_000, 280_000)]


def test_a_long_kernel_behind_a_short_launch_is_not_clipped(tmp_path: Path) -> None:
    timeline = read(tmp_path, launch(1, 0), kernel(1, 10, 5_000_000))
    assert times(timeline) == [(10_000, 5_000_010_000)]


# Graphs without kernel records (case 2)


def test_a_graph_launch_without_kernels_hides_time_until_the_next_wait(tmp_path: Path) -> None:
    timeline = read(
        tmp_path,
        launch(1, 0),
        kernel(1, 10, 90),
        launch(2, 100, name="cudaGraphLaunch"),
        launch(3, 110, 390, name="cudaStreamSynchronize"),
        launch(4, 600),
        kernel(4, 900, 100, name="last"),
    )
    assert timeline.unrecorded == ((100_000, 500_000),)
    assert any("1 graph launch without kernel records" in note and "40.0 %" in note for note in timeline.notes)


def test_a_device_event_launched_later_shows_that_the_graph_is_over(tmp_path: Path) -> None:
    timeline = read(
        tmp_path,
        launch(1, 0),
        launch(2, 100, name="hipGraphLaunch"),
        kernel(1, 150, 20),
        launch(4, 200),
        kernel(4, 400, 100, name="last"),
    )
    assert timeline.unrecorded == ((100_000, 400_000),)


# The CPU as the machine


def test_on_a_cpu_each_op_that_works_itself_is_a_kernel(tmp_path: Path) -> None:
    timeline = read(
        tmp_path,
        op("aten::linear", 0, 110),
        op("aten::addmm", 5, 100),
        op("aten::expand", 10, 5),
        op("aten::relu", 120, 30, tid=2),
    )
    spans = {span.name: (span.start, span.end) for span in device_spans(timeline)}
    assert spans == {
        "aten::addmm": (15_000, 105_000),
        "aten::expand": (10_000, 15_000),
        "aten::relu": (120_000, 150_000),
    }
    (device,) = timeline.devices
    assert (device.id, device.events, device.busy_ns) == ("cpu", 3, 125_000)
    for span in device_spans(timeline):
        assert span.op is not None
        assert timeline.ops[span.op].operator == span.name


def test_on_a_cpu_a_training_step_has_its_phases_too(tmp_path: Path) -> None:
    timeline = read(
        tmp_path,
        event("python_function", "nn.Module: Linear_1", 0, 100),
        op("aten::addmm", 10, 20, **{"Sequence number": 7, "Fwd thread id": 0}),
        op("AddmmBackward0", 200, 50, tid=2, **{"Sequence number": 7, "Fwd thread id": 1}),
        op("aten::mm", 205, 40, tid=2),
    )
    where = {one.operator: (one.where.phase, one.where.module) for one in timeline.ops}
    assert where == {"aten::addmm": ("forward", "Linear_1"), "aten::mm": ("backward", "Linear_1")}


def test_launches_without_any_device_event_are_said(tmp_path: Path) -> None:
    timeline = read(tmp_path, op("aten::mm", 0, 100), launch(1, 10))
    assert any("1 launch but no device event" in note for note in timeline.notes)


def test_neither_ops_nor_device_events_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="neither device events nor CPU ops"):
        read(tmp_path, event("python_function", "f", 0, 5), {"ph": "M", "name": "process_name", "args": {"name": "x"}})


# Whatever else


def test_a_bare_list_is_a_trace(tmp_path: Path) -> None:
    path = put(tmp_path, json.dumps([kernel(1, 0, 5)]).encode(), "list.json.gz")
    assert reader.read(path).devices[0].events == 1


def test_unknown_categories_are_named(tmp_path: Path) -> None:
    timeline = read(tmp_path, kernel(1, 0, 5), event("mystery", "x", 0, 5), event("mystery", "y", 0, 5))
    assert any("2 events of unknown category (mystery)" in note for note in timeline.notes)


def test_odd_types_in_every_field_do_no_harm(tmp_path: Path) -> None:
    odd: list[object] = [None, [], {}, "", "x", -1, 1.5, True, [[]], {"a": 1}, 10**30]
    events = [kernel(1, 0, 5)]
    for value in odd:
        for field in ("name", "pid", "tid", "ts", "dur", "cat", "ph", "id"):
            events += [{**op("aten::mm", 1, 2), field: value}, {**kernel(2, 10, 1), field: value}]
        for field in ("Input Dims", "Input type", "Input Strides", "Concrete Inputs", "External id", "Sequence number"):
            events.append(op("aten::mm", 1, 2, **{field: value}))
        for field in ("correlation", "stream", "device", "grid", "bytes", "External id", "graph node id"):
            events.append({**kernel(2, 10, 1), "args": {"device": 0, "stream": 7, field: value}})
    timeline = read(tmp_path, *events, deviceProperties=odd, baseTimeNanoseconds="x", distributedInfo=[])
    assert timeline.devices


def test_an_ascend_trace_is_read_by_its_task_types(tmp_path: Path) -> None:
    flow = {"cat": "async_npu", "name": "async_npu", "id": "7"}
    task = {"ph": "X", "pid": 9, "tid": 2}
    timeline = read(
        tmp_path,
        op("aten::mm", "0.5", "100.250"),
        {"ph": "s", "pid": 1, "tid": 1, "ts": "0.500", **flow},
        {**task, "name": "MatMulV2", "ts": "200.000", "dur": 30.5, "args": {"Task Type": "AI_CORE"}},
        {"ph": "f", "pid": 9, "tid": 2, "ts": "200.000", "bp": "e", **flow},
        {**task, "name": "EVENT_WAIT", "ts": "300", "dur": 3, "args": {"Task Type": "EVENT_WAIT"}},
    )
    (span,) = device_spans(timeline)
    assert (span.name, span.ns) == ("MatMulV2", 30_500)
    assert span.op is not None and timeline.ops[span.op].operator == "aten::mm"


OWN = Path(__file__).resolve().parents[2] / "examples/traces"


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_whatever_is_left_of_a_trace_is_a_timeline_or_a_refusal(data: st.DataObject) -> None:
    packed = data.draw(st.sampled_from(sorted(OWN.glob("*.json.gz")))).read_bytes()
    content = bytearray(packed if data.draw(st.booleans()) else gzip.decompress(packed))
    del content[data.draw(st.integers(0, len(content))) :]
    for place in data.draw(st.lists(st.integers(0, max(len(content) - 1, 0)), max_size=4)):
        content[place : place + 1] = data.draw(st.binary(max_size=3))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "left"
        path.write_bytes(content)
        try:
            timeline = reader.read(path)
        except BadInput as error:
            assert "\n" not in str(error)
            return
    assert timeline.window.ns >= 0
    assert timeline.devices
