"""Which op's cost belongs to which kernel, on timelines made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepole.attribute.ledger import KernelWork
from ridgepole.attribute.work import kernel_work
from ridgepole.machine import catalog
from ridgepole.machine.model import Machine
from ridgepole.timeline.model import Launch
from ridgepole.work.cost import assess
from ridgepole.work.op import Call, Cost, Op, Tensor, Unpriced
from tests.attribute.made import Scene

H100 = catalog.find("h100")
BF16, F32 = "bfloat16", "float32"


def op(operator: str, *args: object, cost: Cost | Unpriced | None = None) -> Op:
    call = Call(operator, args)
    return Op(call, assess(call) if cost is None else cost)


def matrix(*shape: int, dtype: str = BF16) -> Tensor:
    return Tensor(shape, dtype)


class Program(Scene):
    """Ops on the CPU, each launching kernels that run one after another."""

    def __init__(self) -> None:
        super().__init__(end=10_000_000)
        self.cpu_at = 0
        self.gpu_at = 1_000

    def call(self, made: Op, parent: int | None = None) -> int:
        self.ops.append(made)
        index = self.cpu(self.cpu_at, self.cpu_at + 500, "op", made.operator, op=len(self.ops) - 1, parent=parent)
        self.cpu_at += 10
        return index

    def launched(self, at: int | None, name: str, ns: int, kind: str = "kernel", **info: object) -> int:
        launch = self.cpu(self.cpu_at, self.cpu_at + 5, "launch", "cudaLaunchKernel", parent=at)
        self.cpu_at += 10
        self.gpu_at += 100
        index = self.add(
            "0/7", self.gpu_at, self.gpu_at + ns, kind, name, launch=launch,
            op=None if at is None else self.spans[at].op, info=Launch(**info) if info else None,
        )  # fmt: skip
        self.gpu_at += ns
        return index

    def done(self, machine: Machine | None = H100) -> dict[int, KernelWork]:
        """What each span did, by the index that `launched` gave."""
        timeline = self.timeline()
        back = {new: old for old, new in self.place.items()}
        return {back[i]: work for i, work in kernel_work(timeline, machine).items()}


def test_an_ops_only_kernel_has_its_cost_exactly() -> None:
    program = Program()
    kernel = program.launched(program.call(op("aten::mm", matrix(1, 4096), matrix(4096, 6144))), "nvjet_tst", 20_000)
    work = program.done()[kernel]
    assert (work.bucket, work.quality) == ("memory", "exact")
    assert work.flops == 2 * 4096 * 6144
    assert work.bytes == 2 * (4096 + 4096 * 6144 + 6144)
    assert work.t_memory == pytest.approx(work.bytes / 3.35e12)


def test_a_kernel_under_an_op_without_cost_has_that_of_the_op_around_it() -> None:
    program = Program()
    outer = program.call(op("aten::add", matrix(4096, 4096), matrix(4096, 4096), 1))
    inner = program.call(op("aten::empty_like", matrix(4096, 4096), cost=Unpriced("no formula")), outer)
    kernel = program.launched(inner, "void at::native::vectorized_elementwise_kernel<4, add>", 40_000)
    assert program.done()[kernel].bytes == 3 * 4096 * 4096 * 2


def test_a_stray_kernel_has_no_claim_to_what_an_inner_op_did() -> None:
    program = Program()
    linear = program.call(op("aten::linear", matrix(512, 512), matrix(512, 512), None))
    mm = program.launched(program.call(op("aten::mm", matrix(512, 512), matrix(512, 512)), linear), "nvjet", 10_000)
    stray = program.call(op("aten::mystery_", matrix(512, 512), cost=Unpriced("no formula")), linear)
    fill = program.launched(stray, "void at::native::vectorized_elementwise_kernel<4, FillFunctor<float> >", 10_000)
    work = program.done()
    assert work[mm].flops == 2 * 512**3
    assert work[fill].flops is None and work[fill].bytes is None
    assert (work[fill].bucket, work[fill].quality) == ("memory", "inferred")


def test_a_split_products_flops_go_to_the_product_and_the_joining_kernel_moves_partial_results() -> None:
    program = Program()
    at = program.call(op("aten::mm", matrix(64, 4096, dtype=F32), matrix(4096, 100, dtype=F32)))
    product = program.launched(at, "cutlass_80_tensorop_s1688gemm_64x64_16x6_nn", 12_000, grid=(2, 1, 25))
    join = program.launched(at, "void splitKreduce_kernel<float, float>", 9_000, grid=(4, 4, 1))
    work = program.done()
    assert work[product].flops == 2 * 64 * 100 * 4096
    assert (work[product].unit, work[product].dtype) == ("tensor", "tf32")
    assert work[join].flops == 0
    assert work[join].bytes == 64 * 100 * 4 * 25 + 64 * 100 * 4
    assert "25 partial results" in work[join].reason


def test_layout_kernels_of_a_convolution_move_the_tensor_that_their_grid_fits() -> None:
    program = Program()
    x, w = matrix(2, 64, 28, 28, dtype=F32), matrix(512, 64, 3, 3, dtype=F32)
    one = (1, 1)
    at = program.call(op("aten::cudnn_convolution", x, w, one, one, one, 1, False, False, True))
    of_x = program.launched(at, "void cudnn::ops::nchwToNhwcKernel<float>", 5_000, grid=(25, 2, 2))
    of_w = program.launched(at, "void cudnn::ops::nchwToNhwcKernel<float>", 5_000, grid=(1, 2, 512))
    conv = program.launched(at, "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc", 60_000)
    back = program.launched(at, "void cudnn::ops::nhwcToNchwKernel<float>", 5_000, grid=(25, 16, 2))
    work = program.done()
    assert work[of_x].bytes == 2 * x.nbytes
    assert work[of_w].bytes == 2 * w.nbytes
    assert work[back].bytes == 2 * (2 * 512 * 28 * 28 * 4)
    assert work[conv].flops == 2 * 2 * 512 * 28 * 28 * 64 * 9
    assert all(work[i].quality == "inferred" for i in (of_x, of_w, back))


def test_two_main_kernels_share_a_cost_in_proportion_to_their_time() -> None:
    program = Program()
    cost = Cost(3000, 60_000_000, 30_000_000, BF16, "vector", "norm")
    at = program.call(op("aten::native_layer_norm_backward", cost=cost))
    long = program.launched(at, "GammaBetaBackwardCUDAKernel<c10::BFloat16>", 60_000)
    short = program.launched(at, "layer_norm_grad_input_kernel<c10::BFloat16>", 30_000)
    work = program.done()
    assert work[long].bytes == 60_000_000 and work[short].bytes == 30_000_000
    assert work[long].quality == "inferred"
    assert "in proportion to their time" in work[long].reason


def test_bytes_that_cannot_have_moved_are_not_the_kernels() -> None:
    program = Program()
    kernel = program.launched(
        program.call(op("aten::add", matrix(65536, 65536), matrix(65536, 65536), 1)), "elementwise_kernel<add>", 10_000
    )
    work = program.done()[kernel]
    assert work.bytes is None
    assert "cannot move" in work.reason
    assert (work.bucket, work.quality) == ("memory", "inferred")


def test_what_comes_from_cache_is_at_the_roof_and_says_so() -> None:
    program = Program()
    # 25 MB in 5 µs would be 5 TB/s, but it fits into 50 MB of L2.
    kernel = program.launched(
        program.call(op("aten::add", matrix(2048, 2048), matrix(2048, 2048), 1)), "elementwise_kernel<add>", 5_000
    )
    work = program.done()[kernel]
    assert work.bytes == 3 * 2048 * 2048 * 2
    assert work.t_memory == pytest.approx(5e-6)
    assert "came from a cache" in work.reason


def test_fp32_products_faster_than_fp32_ran_as_tf32() -> None:
    program = Program()
    square = matrix(4096, 4096, dtype=F32)
    named = program.launched(program.call(op("aten::mm", square, square)), "a_kernel_that_says_nothing_gemm", 500_000)
    slow = program.launched(program.call(op("aten::mm", square, square)), "a_kernel_that_says_nothing_gemm", 2_800_000)
    work = program.done()
    assert (work[named].dtype, work[named].quality) == ("tf32", "inferred")
    assert "TF32" in work[named].reason
    assert (work[slow].dtype, work[slow].unit, work[slow].quality) == (F32, "vector", "exact")


def test_a_concatenation_whose_list_has_no_dtype_takes_it_from_the_kernels_name() -> None:
    program = Program()
    parts = (Tensor((1024, 1024), ""), Tensor((1024, 1024), ""))
    name = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int, 2>"
    kernel = program.launched(program.call(op("aten::cat", parts, 0)), name, 20_000)
    work = program.done()[kernel]
    assert work.bytes == 2 * 2 * 1024 * 1024 * 2
    assert work.quality == "inferred"


def test_copies_and_sets_say_their_bytes_and_are_transfers() -> None:
    program = Program()
    at = program.call(op("aten::copy_", cost=Unpriced("not recorded")))
    inside = program.launched(at, "Memcpy DtoD (Device -> Device)", 9_000, "copy", nbytes=1_000_000)
    host = program.launched(at, "Memcpy HtoD (Pageable -> Device)", 90_000, "copy", nbytes=1_000_000)
    fill = program.launched(at, "Memset (Device)", 1_000, "set", nbytes=4096)
    silent = program.launched(at, "Memcpy DtoH (Device -> Pinned)", 1_000, "copy")
    work = program.done()
    assert {work[i].bucket for i in (inside, host, fill, silent)} == {"transfer"}
    assert (work[inside].bytes, work[host].bytes, work[fill].bytes) == (2_000_000, 1_000_000, 4096)
    assert work[host].cause == "htod-pageable" and work[host].t_memory is None
    assert (work[silent].bytes, work[silent].quality) == (None, "unknown")


def test_a_copy_that_the_cache_held_is_at_the_roof_and_says_so() -> None:
    program = Program()
    at = program.call(op("aten::copy_", cost=Unpriced("not recorded")))
    fast = program.launched(at, "Memcpy DtoD (Device -> Device)", 5_000, "copy", nbytes=12_000_000)
    work = program.done()
    assert work[fast].bytes == 24_000_000
    assert work[fast].attainable == pytest.approx(5e-6) and "cache" in work[fast].reason


def test_a_collective_has_the_message_of_the_op_around_it() -> None:
    program = Program()
    told = program.call(op("c10d::_allgather_base_", matrix(1 << 20, dtype=F32)))
    inner = program.call(op("record_param_comms"), told)
    known = program.launched(inner, "ncclKernel_AllGather_RING_LL", 50_000, "collective")
    alone = program.launched(program.call(op("record_param_comms")), "ncclKernel_SendRecv", 50_000, "collective")
    work = program.done()
    assert {work[known].bucket, work[alone].bucket} == {"communication"}
    assert work[known].bytes and work[alone].bytes is None
    assert work[alone].reason == "message size not recorded"


def test_a_kernel_without_op_has_the_work_of_its_twin_in_the_same_trace() -> None:
    program = Program()
    name, grid = "elementwise_kernel<add>", {"grid": (64, 1, 1), "block": (128, 1, 1)}
    program.launched(program.call(op("aten::add", matrix(512, 512), matrix(512, 512), 1)), name, 4_000, **grid)
    orphan = program.launched(None, name, 4_000, **grid)
    other = program.launched(None, name, 400_000, grid=(9999, 1, 1), block=(128, 1, 1))
    work = program.done()
    assert (work[orphan].bytes, work[orphan].quality) == (3 * 512 * 512 * 2, "inferred")
    assert "a call of aten::add in this trace" in work[orphan].reason
    assert work[other].bytes is None


def test_a_convolution_without_its_window_has_its_size_from_its_backward_pass() -> None:
    program = Program()
    x, w, y = Tensor((32, 64, 56, 56), ""), Tensor((128, 64, 3, 3), ""), Tensor((32, 128, 28, 28), "")
    forward = program.launched(program.call(op("aten::cudnn_convolution", x, w)), "volta_scudnn_128x64_relu", 900_000)
    program.launched(program.call(op("aten::cudnn_convolution_backward", x, y, w)), "volta_scudnn_128x64", 1_900_000)
    work = program.done(catalog.find("v100"))[forward]
    assert work.flops == 2 * 32 * 128 * 28 * 28 * 64 * 9
    assert (work.dtype, work.unit, work.quality) == (F32, "vector", "inferred")


def test_every_device_span_is_accounted_for_and_nothing_else() -> None:
    program = Program()
    at = program.call(op("aten::mm", matrix(8, 8), matrix(8, 8)))
    expected = {program.launched(at, "gemm", 0), program.launched(None, "nobody_knows", 9_000)}
    expected |= {program.launched(at, "Memset (Device)", 5, "set"), program.launched(at, "ncclX", 5, "collective")}
    assert set(program.done()) == expected
    assert set(program.done(None)) == expected


def test_where_the_cpu_is_the_machine_ops_are_its_kernels_and_an_allocation_moves_nothing() -> None:
    scene = Scene(end=1_000_000)
    scene.ops += [op("aten::add", matrix(512, 512, dtype=F32), matrix(512, 512, dtype=F32), 1)]
    scene.ops += [Op(Call("aten::empty", ()), Cost(0, 0, 0, F32, "vector", "view", 0))]
    add = scene.add("cpu/1", 0, 900_000, "kernel", "aten::add", op=0)
    empty = scene.add("cpu/1", 900_000, 901_000, "kernel", "aten::empty", op=1)
    work = kernel_work(scene.timeline(), None)
    assert (work[add].bucket, work[add].bytes) == ("memory", 3 * 512 * 512 * 4)
    assert (work[empty].bucket, work[empty].cause, work[empty].bytes) == ("overhead", "kernel-floor", 0)


@settings(max_examples=50)
@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=6), st.integers(0, 10**6), st.integers(0, 10**9))
def test_shares_add_up_to_the_cost_of_the_op(times: list[int], nbytes: int, flops: int) -> None:
    program = Program()
    at = program.call(op("aten::sort", cost=Cost(flops, nbytes, 0, F32, "vector", "sort")))
    kernels = [program.launched(at, f"radix_sort_{i}", ns) for i, ns in enumerate(times)]
    work = program.done(replace(H100, peaks={}))
    if nbytes or flops:
        assert sum(work[i].bytes or 0 for i in kernels) == pytest.approx(nbytes, abs=len(kernels))
        assert sum(work[i].flops or 0 for i in kernels) == pytest.approx(flops, abs=len(kernels))
