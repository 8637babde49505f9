"""Idle time by cause: hand-worked, one statement a cause."""

from __future__ import annotations

import pytest

from ridgepole.attribute.causes import CAUSES, cause_of_call, cause_of_transfer
from ridgepole.timeline.model import DeviceInfo

from .made import Scene, did


def before_next(scene: Scene, *, launch: tuple[int, int] = (80, 84), ops: bool = True) -> Scene:
    """A first kernel over 0 to 10 and a next one over 90 to 100, launched as told; idle is 10 to 90."""
    if ops:
        scene.cpu(-9, -1, "op", "aten::relu")
    first = scene.cpu(-5, -2, "launch", "cudaLaunchKernel")
    scene.kernel(0, 10, launch=first)
    call = scene.cpu(*launch, "launch", "cudaLaunchKernel")
    scene.kernel(90, 100, launch=call)
    return scene


def test_a_gap_is_split_by_what_the_launching_thread_did_at_each_nanosecond() -> None:
    scene = Scene()
    scene.cpu(40, 85, "op", "aten::add")
    assert before_next(scene).causes() == {"compute": 20, "python": 30, "dispatch": 40, "launch": 4, "gap": 6}


def test_work_launched_long_before_waits_on_the_device_not_on_the_cpu() -> None:
    scene = Scene()
    scene.cpu(20, 80, "op", "aten::something_else")
    assert before_next(scene, launch=(0, 4)).causes() == {"compute": 20, "gap": 80}


def test_launched_work_that_waits_far_longer_than_any_latency_is_stalled() -> None:
    scene = Scene(end=500_000)
    scene.kernel(0, 100, launch=scene.cpu(-9, -5, "launch", "cudaLaunchKernel"))
    scene.kernel(100_000, 200_000, launch=scene.cpu(0, 50, "launch", "cudaLaunchKernel"))
    scene.kernel(400_000, 500_000, launch=scene.cpu(50, 60, "launch", "cudaLaunchKernel"))
    assert scene.causes() == {"compute": 200_100, "stall": 200_000, "gap": 99_900}


def test_the_first_launch_of_a_kernel_that_takes_milliseconds_is_loading_its_code() -> None:
    scene = Scene(end=6_000_000)
    for at in (0, 3_000_000):
        call = scene.cpu(at, at + 2_000_000, "launch", "cudaLaunchKernel")
        scene.kernel(at + 2_000_000, at + 3_000_000, launch=call, name="one and the same")
    assert scene.causes() == {"compute": 2_000_000, "compilation": 2_000_000, "launch": 2_000_000}


def test_between_two_kernels_of_one_replay_the_idle_is_the_graphs() -> None:
    scene = Scene(end=60)
    replay = scene.cpu(-20, 30, "launch", "cudaGraphLaunch")
    scene.kernel(0, 20, launch=replay, graph=True)
    scene.kernel(25, 60, launch=replay, graph=True)
    assert scene.causes() == {"compute": 55, "graph-gap": 5}


def test_before_a_replay_the_idle_is_its_launch() -> None:
    scene = Scene(end=60)
    scene.cpu(-30, -25, "op", "aten::copy_")
    one = scene.cpu(-20, -10, "launch", "cudaGraphLaunch")
    two = scene.cpu(22, 28, "launch", "cudaGraphLaunch")
    scene.kernel(0, 20, launch=one, graph=True)
    scene.kernel(30, 60, launch=two, graph=True)
    assert scene.causes() == {"compute": 50, "python": 2, "launch": 6, "gap": 2}


def test_a_wait_that_drained_the_queue_has_the_time_until_it_returns() -> None:
    scene = Scene()
    scene.cpu(-1, 50, "op", "aten::item")
    scene.cpu(0, 45, "sync", "cudaStreamSynchronize")
    assert before_next(scene).causes() == {
        "compute": 20,
        "sync": 35,
        "dispatch": 5,
        "python": 30,
        "launch": 4,
        "gap": 6,
    }


def test_a_copy_to_the_host_that_is_done_while_its_call_runs_is_a_wait() -> None:
    scene = Scene()
    call = scene.cpu(0, 60, "launch", "cudaMemcpyAsync")
    scene.add("0/7", 10, 20, "copy", "Memcpy DtoH (Device -> Pageable)", launch=call)
    causes = before_next(scene).causes()
    assert causes == {"compute": 20, "dtoh-pageable": 10, "sync": 40, "python": 20, "launch": 4, "gap": 6}


def test_loading_the_next_batch_has_the_ops_inside_it() -> None:
    scene = Scene()
    scene.cpu(20, 70, "annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    scene.cpu(30, 60, "op", "aten::stack")
    assert before_next(scene).causes() == {"compute": 20, "data-loading": 50, "python": 20, "launch": 4, "gap": 6}


@pytest.mark.parametrize("name", ["cudaMalloc", "cudaFree", "hipMalloc", "hipFree", "cuMemCreate", "cudaHostAlloc"])
def test_allocating_is_its_own_cause_even_inside_an_op(name: str) -> None:
    scene = Scene()
    scene.cpu(20, 70, "op", "aten::empty")
    scene.cpu(30, 50, "overhead", name)
    causes = before_next(scene).causes()
    assert causes["allocator"] == 20
    assert causes["dispatch"] == 30


@pytest.mark.parametrize("name", ["cuModuleLoadData", "cuModuleLoadDataEx", "hipModuleLoadData", "nvrtcCompileProgram"])
def test_loading_or_compiling_code_is_its_own_cause(name: str) -> None:
    scene = Scene()
    scene.cpu(20, 70, "overhead", name)
    assert before_next(scene).causes()["compilation"] == 50


def test_compilation_has_all_that_runs_inside_it() -> None:
    scene = Scene()
    scene.cpu(20, 85, "annotation", "compile_fx_inner")
    scene.cpu(30, 60, "sync", "cudaDeviceSynchronize")
    assert before_next(scene).causes() == {"compute": 20, "python": 10, "compilation": 64, "gap": 6}


@pytest.mark.parametrize("name", ["## Call CompiledFxGraph fal4xp ##", "Torch-Compiled Region: 0/0"])
def test_running_compiled_code_is_not_compilation(name: str) -> None:
    scene = Scene()
    scene.cpu(20, 70, "annotation", name)
    assert "compilation" not in before_next(scene).causes()


def test_a_runtime_query_belongs_to_the_op_that_asks() -> None:
    scene = Scene()
    scene.cpu(20, 70, "op", "aten::convolution")
    scene.cpu(30, 40, "overhead", "cudaFuncGetAttributes")
    assert before_next(scene).causes()["dispatch"] == 50


def test_another_threads_ops_say_nothing_about_this_ones_launches() -> None:
    scene = Scene()
    scene.cpu(20, 80, "op", "aten::stack", lane="loader")
    assert before_next(scene).causes() == {"compute": 20, "python": 70, "launch": 4, "gap": 6}


def test_where_the_autograd_thread_takes_over_the_forward_thread_says_what_it_did() -> None:
    scene = Scene()
    first = scene.cpu(-5, -2, "launch", "cudaLaunchKernel")
    scene.kernel(0, 10, launch=first)
    scene.cpu(-6, 30, "op", "aten::loss")
    scene.cpu(50, 85, "op", "autograd::engine::evaluate_function: MseLossBackward0", lane="autograd")
    call = scene.cpu(80, 84, "launch", "cudaLaunchKernel", lane="autograd")
    scene.kernel(90, 100, launch=call)
    assert scene.causes() == {"compute": 20, "dispatch": 20 + 30, "python": 20, "launch": 4, "gap": 6}


def test_before_the_first_launch_and_after_the_last_work_have_their_own_names() -> None:
    scene = Scene()
    scene.cpu(0, 60, "op", "aten::mm")
    call = scene.cpu(30, 38, "launch", "cudaLaunchKernel")
    scene.kernel(40, 70, launch=call)
    assert scene.causes() == {"before-first": 30, "launch": 8, "gap": 2, "compute": 30, "after-last": 30}
    [first] = [note for note in scene.ledger().notes if "before the first launch" in note]
    assert "framework ops" in first


def test_loading_before_the_first_launch_keeps_its_name() -> None:
    scene = Scene()
    scene.cpu(5, 25, "annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
    call = scene.cpu(30, 40, "launch", "cudaLaunchKernel")
    scene.kernel(40, 100, launch=call)
    scene.cpu(41, 42, "op", "aten::mm")
    assert scene.causes() == {"before-first": 10, "data-loading": 20, "launch": 10, "compute": 60}


def test_a_window_that_starts_between_two_kernels_is_not_before_the_first_launch() -> None:
    scene = Scene(start=20, end=100)
    scene.cpu(10, 85, "op", "aten::mm")
    assert before_next(scene).causes() == {"compute": 10, "dispatch": 60, "launch": 4, "gap": 6}


def test_without_any_cpu_events_the_idle_is_called_unrecorded() -> None:
    scene = Scene()
    scene.kernel(0, 30)
    scene.kernel(70, 100)
    assert scene.causes() == {"compute": 60, "idle-unrecorded-cpu": 40}


def test_with_launches_but_no_ops_recorded_silence_is_not_called_python() -> None:
    assert before_next(Scene(), ops=False).causes() == {"compute": 20, "idle-unrecorded-cpu": 70, "launch": 4, "gap": 6}


def test_a_graph_that_was_not_recorded_is_unknown_time_not_idle() -> None:
    scene = Scene(more={"unrecorded": ((30, 60), (85, 95))})
    scene.cpu(0, 1, "op", "aten::mm")
    assert before_next(scene).causes() == {
        "compute": 20, "unrecorded-graph": 35, "python": 40, "launch": 4, "gap": 1,
    }  # fmt: skip


def test_a_device_that_did_nothing_is_idle_all_along() -> None:
    scene = Scene()
    scene.lane("3/0")
    assert scene.causes() == {"before-first": 100}


def test_on_a_cpu_the_time_between_its_ops_is_python_and_around_them_dispatch() -> None:
    scene = Scene()
    scene.cpu(10, 50, "op", "aten::linear")
    scene.cpu(15, 45, "op", "aten::addmm")
    scene.kernel(15, 45, "compute", lane="cpu/main")
    scene.cpu(60, 90, "annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    assert scene.causes() == {"compute": 30, "dispatch": 10, "python": 30, "data-loading": 30}


def test_where_no_stream_stands_for_the_cpu_its_innermost_ops_are_the_work() -> None:
    scene = Scene(more={"devices": (DeviceInfo("cpu"),)})
    outer = scene.cpu(10, 50, "op", "aten::linear")
    scene.work[scene.cpu(15, 45, "op", "aten::addmm", parent=outer)] = did("compute")
    assert scene.causes() == {"compute": 30, "dispatch": 10, "python": 60}
    assert scene.ledger().busiest.resident_ns == 30


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "htod-pageable"),
        ("Memcpy HtoD (Pinned -> Device)", "htod-pinned"),
        ("Memcpy HtoD (Host -> Device)", "htod"),
        ("Memcpy DtoH (Device -> Pageable)", "dtoh-pageable"),
        ("Memcpy DtoH (Device -> Pinned)", "dtoh-pinned"),
        ("Memcpy DtoD (Device -> Device)", "dtod"),
        ("Memcpy PtoP (Device -> Device)", "ptop"),
        ("CopyHostToDevice", "htod"),
        ("CopyDeviceToHost", "dtoh"),
        ("Memcpy Unknown (Unknown -> Unknown)", "copy"),
    ],
)
def test_a_copy_is_booked_by_its_direction_and_its_host_memory(name: str, cause: str) -> None:
    assert cause_of_transfer("copy", name) == cause


def test_every_cause_that_a_name_can_give_is_in_the_table() -> None:
    names = ["Memset (Device)", "cudaMalloc", "cudaLaunchKernel", "Activity Buffer Request", "compile_fx", "load_batch"]
    for kind in ("op", "annotation", "launch", "sync", "overhead"):
        for name in names:
            cause = cause_of_call(kind, name)
            assert cause is None or cause in CAUSES
    assert cause_of_transfer("set", names[0]) in CAUSES
