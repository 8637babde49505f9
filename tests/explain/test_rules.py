"""What a ledger points to: each rule on a timeline made by hand, gains worked out beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ridgepole.attribute.attribute import account
from ridgepole.attribute.ledger import KernelWork
from ridgepole.explain import findings
from ridgepole.explain.finding import Finding
from ridgepole.machine import catalog
from ridgepole.timeline.model import DeviceInfo, Lane, Span, Timeline, Window
from ridgepole.work.cost import assess
from ridgepole.work.op import Call, Op, Tensor

GPU, CPU = 0, 1
LANES = (Lane("gpu", "0", "stream 7"), Lane("cpu", "", "thread 1"))
MEMORY = KernelWork(
    "memory", "memory", "exact", flops=1000, bytes=100_000, dtype="float32", unit="vector", t_memory=1e-5
)
FLOOR = KernelWork("overhead", "kernel-floor", "exact", flops=10, bytes=100, dtype="float32", unit="vector", floor=1e-6)


def op(call: Call) -> Op:
    return Op(call, assess(call))


ADD = op(Call("aten::add", (Tensor((64,), "float32"), Tensor((64,), "float32"))))


def launched_one_by_one(kernels: int, apart: int, each: int) -> Timeline:
    """Every `apart` ns an op dispatches for most of it, launches at its end, and a kernel runs `each` ns."""
    spans: list[Span] = []
    for k in range(kernels):
        start = k * apart
        at = len(spans)
        spans.append(Span(CPU, start, start + apart - each - 100, "op", "aten::add", op=0))
        spans.append(
            Span(CPU, start + apart - each - 1100, start + apart - each - 100, "launch", "cudaLaunchKernel", parent=at)
        )
        spans.append(Span(GPU, start + apart - each, start + apart, "kernel", "add_kernel", op=0, launch=at + 1))
    end = kernels * apart
    return Timeline("measured", "made", tuple(spans), LANES, (ADD,), Window(0, end, "all"), (DeviceInfo("0"),))


def found(timeline: Timeline, work: KernelWork, machine: str | None = "h200") -> dict[str, Finding]:
    device = {i: work for i, span in enumerate(timeline.spans) if span.kind == "kernel"}
    known = catalog.find(machine) if machine else None
    ledger = account(timeline, known, device)
    assert sum(entry.ns for entry in ledger.busiest.entries) == ledger.window_ns
    return {f.id: f for f in findings.find(ledger, timeline, known)}


def test_small_kernels_launched_one_by_one_want_one_graph() -> None:
    timeline = launched_one_by_one(kernels=60, apart=50_000, each=5_000)
    finding = found(timeline, MEMORY)["launch-bound"]
    # 60 x 45,000 ns idle, less 60 graph gaps of 460 ns: 2,700,000 - 27,600.
    assert finding.gain_ns == 2_700_000 - 27_600
    assert finding.after_ns == 3_000_000 - finding.gain_ns
    assert finding.fix == "cuda-graph"
    assert finding.upper_bound
    assert "60 kernels, launched one by one" in finding.summary
    assert "90.0 %" in finding.summary


def test_a_gain_held_to_the_unprofiled_wall_is_no_upper_bound() -> None:
    timeline = replace(launched_one_by_one(60, 50_000, 5_000), scaled_ns=1_500_000, inflation=2.0)
    finding = found(timeline, MEMORY)["launch-bound"]
    assert not finding.upper_bound
    # 1,500,000 ns of wall, 300,000 of it busy.
    assert finding.gain_ns == 1_200_000 - 27_600


def test_a_busy_gpu_is_not_launch_bound() -> None:
    assert "launch-bound" not in found(launched_one_by_one(60, 50_000, 48_000), MEMORY)


def test_kernels_of_a_graph_are_not_asked_to_become_a_graph() -> None:
    timeline = launched_one_by_one(60, 50_000, 5_000)
    replayed = tuple(replace(span, graph=span.kind == "kernel") for span in timeline.spans)
    assert "launch-bound" not in found(replace(timeline, spans=replayed), MEMORY)


def test_tiny_kernels_back_to_back_want_fusing() -> None:
    finding = found(launched_one_by_one(100, 3_000, 1_500), FLOOR)["kernel-floor"]
    # Four neighbours into one: three quarters of 100 x 1,500 ns.
    assert finding.gain_ns == 112_500
    assert "aten::add" in finding.summary


def test_the_memory_bound_op_is_named_with_its_rate() -> None:
    finding = found(launched_one_by_one(60, 50_000, 48_000), MEMORY)["memory-bound"]
    assert "add (aten::add) is memory-bound" in finding.summary
    assert "60 calls" in finding.summary
    # 100,000 bytes in 48 µs.
    assert "2.08 GB/s" in finding.summary


def test_time_that_no_roof_explains_is_said_to_be_so_and_not_sent_to_fusion() -> None:
    # 10 µs of bytes in 900 µs.
    all_of_them = found(launched_one_by_one(60, 901_200, 900_000), MEMORY)
    assert "memory-bound" not in all_of_them
    finding = all_of_them["off-roof"]
    assert "reaches 1.1 % of its roof" in finding.summary
    # At 70 % of the roof each would take 14.3 µs.
    assert finding.gain_ns == pytest.approx(60 * (900_000 - 10_000 / 0.7), rel=1e-3)


@pytest.mark.parametrize(("name", "kernels"), [("aten::add", 1), ("fused::pointwise", 60)])
def test_what_has_nothing_left_to_fuse_with_is_promised_no_gain(name: str, kernels: int) -> None:
    timeline = launched_one_by_one(kernels, 15_000, 12_000)
    made = replace(ADD, call=replace(ADD.call, operator=name))
    finding = found(replace(timeline, ops=(made,)), MEMORY)["memory-bound"]
    assert (finding.fix, finding.gain_ns, finding.fix_summary) == ("none", 0, "")


def test_ops_that_fuse_with_one_another_are_one_finding() -> None:
    timeline = launched_one_by_one(60, 15_000, 12_000)
    mul = replace(ADD, call=replace(ADD.call, operator="aten::mul"))
    spans = tuple(replace(s, op=i % 2) if s.kind == "kernel" else s for i, s in enumerate(timeline.spans))
    finding = found(replace(timeline, spans=spans, ops=(ADD, mul)), MEMORY)["memory-bound"]
    assert finding.summary.startswith(("add and mul are memory-bound", "mul and add are memory-bound"))
    assert finding.gain_ns == 60 * 12_000 // 2


def test_the_softmax_of_a_loss_is_not_told_to_use_fused_attention() -> None:
    x = Tensor((4096, 32000), "float32")
    timeline = replace(launched_one_by_one(1, 15_000, 12_000), ops=(op(Call("aten::_log_softmax", (x, 1, False))),))
    assert found(timeline, MEMORY)["memory-bound"].fix == "fused-loss"


def product(n: int, dtype: str, seconds: float) -> Timeline:
    """One n x n x n product of `dtype` that ran `seconds`."""
    square = Tensor((n, n), dtype)
    timeline = launched_one_by_one(1, round(seconds * 1e9) + 5_000, round(seconds * 1e9))
    return replace(timeline, ops=(op(Call("aten::mm", (square, square))),))


def test_a_4097_product_is_explained_by_its_alignment() -> None:
    from ridgepole.attribute.work import kernel_work

    # 133 TFLOP/s, as measured on an H200; 4096 reaches 797.
    timeline = product(4097, "bfloat16", 2 * 4097**3 / 133e12)
    machine = catalog.find("h200")
    ledger = account(timeline, machine, kernel_work(timeline, machine))
    finding = {f.id: f for f in findings.find(ledger, timeline, machine)}["misaligned-matmul"]
    assert "multiple of 2 bytes only" in finding.summary
    assert "4097 x 4097 x 4097" in finding.summary
    assert finding.fix == "pad"
    # At 0.7 of 989 TFLOP/s it would take 199 µs of 1,034.
    assert finding.gain_ns == pytest.approx(835e3, rel=0.01)


def test_an_aligned_product_is_left_alone() -> None:
    from ridgepole.attribute.work import kernel_work

    timeline = product(4096, "bfloat16", 2 * 4096**3 / 797e12)
    machine = catalog.find("h200")
    ledger = account(timeline, machine, kernel_work(timeline, machine))
    ids = {f.id for f in findings.find(ledger, timeline, machine)}
    assert "misaligned-matmul" not in ids
    assert "compute-bound" in ids


def test_fp32_products_on_the_vector_units_want_the_tensor_cores() -> None:
    from ridgepole.attribute.work import kernel_work

    timeline = product(4096, "float32", 2 * 4096**3 / 50.8e12)
    machine = catalog.find("h200")
    ledger = account(timeline, machine, kernel_work(timeline, machine))
    finding = {f.id: f for f in findings.find(ledger, timeline, machine)}["tensor-cores-off"]
    assert finding.fix == "tf32"
    assert "67.0 TFLOP/s" in finding.summary and "495 TFLOP/s" in finding.summary


def test_a_64_product_has_too_few_tiles_for_the_machine() -> None:
    from ridgepole.attribute.work import kernel_work

    # 2.62 µs on an H200 (torch.mm, bf16, in a graph): 0.2 TFLOP/s of 989.
    timeline = product(64, "bfloat16", 2.62e-6)
    machine = catalog.find("h200")
    ledger = account(timeline, machine, kernel_work(timeline, machine))
    finding = {f.id: f for f in findings.find(ledger, timeline, machine)}["small-matmul"]
    assert "64 x 64 x 64 is 1 tile of 64x64 for 132 SMs and 200 GFLOP/s" in finding.summary
    assert (finding.fix, finding.gain_ns) == ("none", 0)


def test_equal_small_products_want_one_batched_product() -> None:
    from ridgepole.attribute.work import kernel_work

    square = Tensor((64, 64), "bfloat16")
    timeline = replace(launched_one_by_one(100, 10_000, 2_600), ops=(op(Call("aten::mm", (square, square))),))
    machine = catalog.find("h200")
    ledger = account(timeline, machine, kernel_work(timeline, machine))
    found = {f.id: f for f in findings.find(ledger, timeline, machine)}
    # 100 tiles fit the 132 SMs at once: 100 x 2.6 µs becomes one time 2.6 µs.
    assert found["small-matmul"].gain_ns == 99 * 2_600
    assert "kernel-floor" not in found


def synced() -> Timeline:
    """A kernel, `.item()` that waits for it, 400 µs of nothing queued, then the next kernel."""
    spans = (
        Span(CPU, 0, 10_000, "op", "aten::add", op=0),
        Span(CPU, 8_000, 10_000, "launch", "cudaLaunchKernel", parent=0),
        Span(GPU, 11_000, 100_000, "kernel", "add_kernel", op=0, launch=1),
        Span(CPU, 12_000, 150_000, "op", "aten::item"),
        Span(CPU, 20_000, 148_000, "sync", "cudaStreamSynchronize", parent=3),
        Span(CPU, 160_000, 170_000, "op", "aten::add", op=0),
        Span(CPU, 168_000, 170_000, "launch", "cudaLaunchKernel", parent=5),
        Span(GPU, 171_000, 200_000, "kernel", "add_kernel", op=0, launch=6),
    )
    return Timeline("measured", "made", spans, LANES, (ADD,), Window(0, 200_000, "all"), (DeviceInfo("0"),))


def test_a_queue_drained_by_item_names_item() -> None:
    finding = found(synced(), MEMORY)["sync-bound"]
    assert "aten::item" in finding.summary
    assert finding.fix == "remove-sync"
    assert finding.gain_ns == pytest.approx(48_000, abs=1_000)


def test_findings_come_largest_gain_first_and_small_ones_not_at_all() -> None:
    timeline = launched_one_by_one(60, 50_000, 5_000)
    machine = catalog.find("h200")
    work = {i: MEMORY for i, span in enumerate(timeline.spans) if span.kind == "kernel"}
    gains = [f.gain_ns for f in findings.find(account(timeline, machine, work), timeline, machine) if f.fix != "none"]
    assert gains == sorted(gains, reverse=True)
    assert all(gain >= 0.01 * timeline.window.ns for gain in gains)


def test_unknown_time_asks_for_the_machine_or_the_shapes() -> None:
    unknown = KernelWork("unknown", "unknown", "unknown", reason="no op")
    timeline = launched_one_by_one(20, 50_000, 40_000)
    assert "--on" in found(timeline, unknown, machine=None)["unknown-time"].how
    assert "--beside" in found(timeline, unknown)["unknown-time"].how


def test_what_takes_far_longer_than_its_floor_is_not_slow_for_being_small() -> None:
    # 100 floors each: something else holds them up.
    assert "kernel-floor" not in found(launched_one_by_one(100, 103_000, 100_000), FLOOR)


def test_an_op_priced_on_a_cpu_is_called_by_its_name() -> None:
    call = Call("aten::mul", (Tensor((4096, 4096), "float32"), 2))
    spans = (Span(0, 0, 6_000_000, "op", "aten::mul", op=0),)
    lanes, window = (Lane("cpu", "", "main thread"),), Window(0, 6_000_000, "all")
    timeline = Timeline("predicted", "made", spans, lanes, (op(call),), window, (DeviceInfo("cpu"),))
    ledger = account(timeline, None, {0: replace(MEMORY, t_memory=5e-3)})
    (finding,) = [f for f in findings.find(ledger, timeline, None) if f.id == "memory-bound"]
    assert finding.summary.startswith("mul (aten::mul) is memory-bound")
    assert finding.evidence["family"] == "elementwise"
