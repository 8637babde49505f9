"""Kernels without an op: what tile, grid and time allow to be said, and what they do not."""

from __future__ import annotations

from ridgepole.attribute.inference import infer
from ridgepole.attribute.shares import Piece
from ridgepole.machine import catalog

H100, A100, RTX, MI300X = (catalog.find(name) for name in ("h100", "a100 80gb", "rtx 2080 ti", "mi300x"))
Grid = tuple[int, int, int]


def piece(name: str, ns: int = 100_000, grid: Grid | None = None, block: Grid | None = None) -> Piece:
    return Piece(0, name, grid, block, ns, None)


def test_a_softmax_is_memory_bound_whatever_its_shape() -> None:
    found = infer(piece("cunn_SoftMaxForward<8, float>"), H100)
    assert (found.bucket, found.bytes) == ("memory", None)
    assert "by its name" in found.reason


def test_a_kernel_as_short_as_the_smallest_is_its_floor() -> None:
    found = infer(piece("cunn_SoftMaxForward<8, float>", ns=1_500), H100)
    assert (found.bucket, found.cause) == ("overhead", "kernel-floor")
    assert infer(piece("nobody_knows", ns=1_500), H100).cause == "kernel-floor"


def test_a_kernel_of_no_known_name_stays_unknown() -> None:
    found = infer(piece("nobody_knows"), H100)
    assert found.bucket == "unknown" and found.reason


def test_a_tile_eight_wide_streams_weights() -> None:
    found = infer(piece("nvjet_sm90_tst_64x8_64x16_2x1_v_bz_TNT", grid=(2, 66, 1), block=(384, 1, 1)), H100)
    assert found.bucket == "memory"
    assert "tile 64x8" in found.reason and "32 FLOP/B" in found.reason


def test_a_plain_grid_of_fp32_tiles_is_arithmetic() -> None:
    # 1024 x 512 by 64x64 tiles in 131 µs: at least 92 FLOP/B at a quarter of 13.4 TFLOP/s; the ridge is 22.
    found = infer(piece("volta_sgemm_64x64_tn", 131_000, (16, 8, 1), (64, 1, 1)), RTX)
    assert found.bucket == "compute"


def test_a_folded_cutlass_grid_is_read_as_all_shapes_it_allows() -> None:
    name = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x128_32x3_nn_align1>"
    assert infer(piece(name, 1_594_000, (256, 2, 1), (256, 1, 1)), A100).bucket == "compute"
    # One row of tiles may be one column of 64 row tiles, 128 wide, or 8 by 8 of them.
    assert infer(piece(name, 322_000, (64, 1, 1), (256, 1, 1)), A100).bucket == "unknown"


def test_a_persistent_grid_does_not_tell_the_shape() -> None:
    found = infer(piece("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", grid=(2, 66, 1), block=(384, 1, 1)), H100)
    assert found.bucket == "unknown"


def test_decode_attention_is_memory_bound_and_prefill_is_not_guessed() -> None:
    assert infer(piece("void paged_attention_ll4mi_QKV_mfma16_kernel<0>"), MI300X).bucket == "memory"
    prefill = "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext"
    assert infer(piece(prefill), H100).bucket == "unknown"


def test_a_vectorized_kernels_grid_gives_its_bytes() -> None:
    name = "void at::native::vectorized_elementwise_kernel<8, CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >"
    found = infer(piece(name, grid=(1024, 1, 1), block=(128, 1, 1)), H100)
    # 1024 blocks x 128 threads x 8 elements x 2 bytes, two operands and a result.
    assert found.bytes == 1024 * 128 * 8 * 2 * 3
    # Four elements a thread or eight: it depends on the version, so nothing is said.
    assert infer(piece(name.replace("<8", "<4"), grid=(1024, 1, 1), block=(128, 1, 1)), H100).bytes is None


def test_collectives_are_told_by_name_whatever_made_them() -> None:
    for name in ("ncclKernel_AllReduce_RING_LL_Sum_float", "rcclGenericKernel", "vllm::cross_device_reduce_2stage"):
        assert infer(piece(name), H100).bucket == "communication"


def test_without_a_machine_a_softmax_is_still_memory_bound() -> None:
    assert infer(piece("cunn_SoftMaxForward<8, float>"), None).bucket == "memory"
    assert infer(piece("nvjet_sm90_tst_64x8_64x16_2x1_v_bz_TNT"), None).bucket == "memory"
