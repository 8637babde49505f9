"""Kernels' names, as libraries of several vendors and years write them."""

from __future__ import annotations

import pytest

from ridgepole.attribute.names import dtype_of, named

FAMILIES = {
    # NVIDIA: cuBLAS, CUTLASS, cuDNN
    "nvjet_sm90_tst_64x8_64x16_2x1_v_bz_TNT": ("matmul", "main"),
    "ampere_sgemm_128x64_nn": ("matmul", "main"),
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>(X)": ("matmul", "main"),
    "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float>": ("matmul", "main"),
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize64x32x64_stage5": ("conv", "main"),
    "volta_scudnn_128x64_relu_interior_nn_v1": ("conv", "main"),
    "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4>": ("conv", "main"),
    "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_3_64x64x128": ("attention", "main"),
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128>": ("attention", "main"),
    "void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float>": ("transpose", "layout"),
    "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>": ("reduction", "combine"),
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>": ("norm", "main"),
    "void fft2d_r2c_32x32<float, false, 5u, true>(float2*, float const*)": ("transpose", "transform"),
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": ("collective", "main"),
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>": ("collective", "main"),
    # ATen
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float>": ("softmax", "main"),
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, X>": ("elementwise", "main"),
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, X>": ("fill", "main"),
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2>": ("copy", "main"),
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>": (
        "reduction",
        "main",
    ),
    "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<index_put_kernel_impl>>": (
        "scatter",
        "main",
    ),
    "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long>": ("gather", "main"),
    "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>": ("optimizer", "main"),
    # AMD: Tensile, Composable Kernel, MIOpen, AITER
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x32x64_MI16x16x1_SN": ("matmul", "main"),
    "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassE": ("norm", "main"),
    "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1ELb0ELb1ELi1EEEv": ("norm", "main"),
    "igemm_wrw_gtcx2_nhwc_bf16_bx0_ex1_bt256x128x16_wt32x32x8_ws2x1": ("conv", "main"),
    "batched_transpose_16x64_pack_1x4_ediv_1x2_half": ("transpose", "layout"),
    "attn_fwd": ("attention", "main"),
    # serving and compilers
    "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char>": ("scatter", "main"),
    "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16>": ("attention", "main"),
    "void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, 128>": ("reduction", "combine"),
    "void vllm::rotary_embedding_kernel<c10::BFloat16, true>": ("elementwise", "main"),
    "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16": ("elementwise", "main"),
    "triton_poi_fused_add_mul_0": ("elementwise", "main"),
    "triton_red_fused_add_mean_mul_pow_rsqrt_1": ("reduction", "main"),
    "triton_tem_fused_mm_3": ("matmul", "main"),
    "fbgemm_gpu::_float_to_hfp8_gpu": ("elementwise", "main"),
    "something_nobody_has_seen": ("other", "main"),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_name_tells_what_its_kernel_does(name: str) -> None:
    found = named(name)
    assert (found.family, found.role) == FAMILIES[name]


@pytest.mark.parametrize(
    ("name", "tile"),
    [
        ("nvjet_sm90_tst_64x8_64x16_2x1_v_bz_TNT", (64, 8)),
        ("nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_TNT", (192, 128)),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align1>", (256, 64)),
        ("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8", (64, 64)),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", (128, 128)),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT448x32x64_MI16x16x1", (448, 32)),
        ("igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt32x256x32_wt16x64x4", (32, 256)),
        ("cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1", (128, 64)),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", (16, 128)),
        ("ampere_sgemm_32x32_sliced1x4_tn", (32, 32)),
    ],
)
def test_a_products_name_gives_its_output_tile(name: str, tile: tuple[int, int]) -> None:
    assert named(name).tile == tile


@pytest.mark.parametrize(
    ("name", "unit", "math"),
    [
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_32x6_nn_align4>", "tensor", "tf32"),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize32x32x64_stage3", "tensor", "tf32"),
        ("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nn_align1>", "tensor", ""),
        ("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize32x32x8", "vector", ""),
        ("volta_sgemm_64x64_tn", "vector", ""),
        ("cutlass_80_simt_sgemm_128x32_8x5_nn_align1", "vector", ""),
        ("void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16>", "vector", ""),
    ],
)
def test_names_tell_tf32_from_fp32(name: str, unit: str, math: str) -> None:
    found = named(name)
    assert (found.unit, found.math) == (unit, math)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("void at::native::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, int, 4>", "int16"),
        ("void at::native::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)", "float32"),
        ("void vllm::reshape_and_cache_kernel<__hip_bfloat16, (vllm::Fp8KVCacheDataType)0>", "bfloat16"),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "float16"),
        ("attn_fwd", ""),
    ],
)
def test_a_name_gives_the_dtype_of_what_moves(name: str, dtype: str) -> None:
    assert dtype_of(name) == dtype
