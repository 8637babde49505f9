"""What an event is, by its category and its name, in every spelling that profilers have used since 2021."""

from __future__ import annotations

import re
from typing import Literal

from ridgepole.timeline.model import Kind

Role = Literal[
    "op", "runtime", "kernel", "copy", "set", "mark", "annotation", "overhead", "python", "trace", "flow", "ignored",
    "unknown",
]  # fmt: skip
"""What is done with a category: "mark" is the device's own record of a wait, "flow" an arrow from launch to kernel."""

_ROLES: dict[str, Role] = {
    "cpu_op": "op", "operator": "op", "cpu op": "op", "async_task": "op",
    "user_annotation": "annotation", "python_function": "python",
    "runtime": "runtime", "driver": "runtime", "cuda_runtime": "runtime", "cuda_driver": "runtime",
    "hip_runtime": "runtime", "hip_driver": "runtime", "xpu_runtime": "runtime", "xpu_driver": "runtime",
    "mtia_runtime": "runtime", "glow_runtime": "runtime", "privateuse1_runtime": "runtime",
    "privateuse1_driver": "runtime", "hpu_op": "runtime",
    "kernel": "kernel", "concurrent_kernel": "kernel", "mtia_ccp_events": "kernel",
    "gpu_memcpy": "copy", "memcpy": "copy", "gpu_memset": "set", "memset": "set",
    "cuda_sync": "mark", "overhead": "overhead", "trace": "trace",
    "ac2g": "flow", "async": "flow", "async_cpu_to_gpu": "flow", "async_gpu": "flow", "async_npu": "flow",
    "cpu_to_cuda": "flow",
    "gpu_user_annotation": "ignored", "cpu_instant_event": "ignored", "fwdbwd": "ignored",
    "forward_backward": "ignored", "external_correlation": "ignored", "cuda_event": "ignored",
    "cuda_profiler_range": "ignored", "mtia_insight": "ignored", "mtia_counters": "ignored",
    "mtia_workloadd": "ignored", "gpu_pm_counter": "ignored", "enqueue": "ignored", "dequeue": "ignored",
    "user_defined": "annotation",
}  # fmt: skip


def role(category: object) -> Role:
    """The role of a `cat`, whatever its case; of a list "a,b" the first that is known."""
    if not isinstance(category, str):
        return "unknown"
    for name in category.lower().split(","):
        found = _ROLES.get(name.strip())
        if found is not None:
            return found
    return "unknown"


_LAUNCH = re.compile(
    r"Launch(?!HostFunc)|Memcpy\w*Async|Memset|Enqueue\w*(?:Mem|USM|Buffer)|AppendMemory|SubmitTask|Prefetch\w*Async"
)
_WAIT = re.compile(r"Synchronize|Memcpy|Memory_?Copy|EventWait(?!.*With)|QueueFinish|EventQuery.*Wait|Finish$")


def runtime_kind(name: str) -> Kind:
    """Whether a runtime or driver call launches work, waits for the device, or does something else (overhead).

    A memcpy that is not asynchronous waits; StreamWaitEvent makes the device wait, not the CPU.
    """
    if "Graph" in name:
        return "launch" if is_graph_launch(name) else "overhead"
    if _LAUNCH.search(name) is not None:
        return "launch"
    if _WAIT.search(name) is not None:
        return "sync"
    return "overhead"


_COLLECTIVE = re.compile(
    r"nccl|rccl|hccl|oneccl|msccl|cross_device_reduce|quick_?reduce|(?:one|two)_?shot|multimem|nvshmem"
    r"|all_?reduce|reduce_?scatter|all_?gather|all_?to_?all|lamport|deep_ep::|userbuffers|symm_mem",
    re.IGNORECASE,
)
_NOT_COLLECTIVE = re.compile(r"^triton_(?:poi|red|per|tem|mm|for)_|^Cijk_|at::native::")


def kernel_kind(name: str) -> Kind:
    """ "collective" for a library's or a custom collective kernel, else "kernel".

    Inductor names a kernel after every op fused in it, so that its names prove nothing.
    """
    if _COLLECTIVE.search(name) is None or _NOT_COLLECTIVE.search(name) is not None:
        return "kernel"
    return "collective"


_TASKS: tuple[tuple[str, Role], ...] = (
    ("AI_", "kernel"), ("AIV", "kernel"), ("MIX_", "kernel"),
    ("MEMCPY", "copy"), ("SDMA", "copy"), ("PCIE_DMA", "copy"),
)  # fmt: skip


def task_role(task: object) -> Role:
    """The role of an Ascend device event, which has no category but a task type ("AI_CORE", "SDMA_SQE")."""
    if isinstance(task, str):
        for prefix, found in _TASKS:
            if task.startswith(prefix):
                return found
    return "ignored"


_ANNOTATION = ("ProfilerStep", "Optimizer.", "enumerate(DataLoader)")


def is_annotation(name: str) -> bool:
    """Whether an op's name is a range that torch itself marks: 2021's traces put these among the operators."""
    return name.startswith(_ANNOTATION)


_COMMUNICATION = re.compile(r"^(?:nccl|rccl|xccl|hccl|cncl|mccl):")


def is_collective_range(name: str) -> bool:
    """Whether a range is a collective call as its library marks it, with the message among its arguments."""
    return _COMMUNICATION.search(name) is not None


_GRADIENT = re.compile(r"^(?:autograd::engine::evaluate_function|torch::autograd::)|Backward\d*$")


def is_backward(name: str) -> bool:
    """Whether an op is a node of the backward graph ("MulBackward0", "torch::autograd::AccumulateGrad")."""
    return _GRADIENT.search(name) is not None


def is_graph_launch(name: str) -> bool:
    """Whether a runtime call replays a graph (cudaGraphLaunch, hipGraphLaunch)."""
    return "GraphLaunch" in name


def may_overlap_next(name: str) -> bool:
    """Whether a kernel launched by this call may start before the one ahead of it on its stream ends.

    Programmatic dependent launch is asked for by attributes, which only the extensible launch calls take.
    """
    return "LaunchKernelEx" in name
