"""What a kernel's name says: its family, its role, the unit and dtype of its arithmetic, its tile.

Names come from cuBLAS, cuDNN, CUTLASS, ATen, Triton, Tensile, MIOpen, Composable Kernel, vLLM, SGLang and others,
mangled or not: they are searched for what those libraries write into them, without regard to case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ridgepole.machine.model import Unit
from ridgepole.work.op import Family

Role = Literal["main", "layout", "combine", "cast", "transform", "index"]
"""What a kernel does for its op: the op itself, or a help to it: changing layout, joining partial results (split-K,
split keys), changing dtype, transforming data (FFT, Winograd), working out indices or routes."""

MATRIX: frozenset[Family] = frozenset({"matmul", "conv", "attention"})
"""Families whose intensity depends on their shapes; all others lie below every ridge."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a name says. `family` "other" and "" elsewhere: nothing.

    `dtype` is the element type in memory that the name gives, `math` that of the arithmetic where it differs ("tf32").
    `tile` is the output tile of one block of a matrix product.
    """

    family: Family
    role: Role = "main"
    unit: Unit | Literal[""] = ""
    dtype: str = ""
    math: str = ""
    tile: tuple[int, int] | None = None


_RULES: tuple[tuple[str, Family, Role], ...] = (
    # collectives: by library, then the custom ones of serving frameworks
    (
        r"nccl|rccl|hccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|sendrecv|cross_device_reduce"
        r"|one_?shot_|two_?shot_|nvshmem|symm_mem|multimem|mscclpp|quickreduce",
        "collective",
        "main",
    ),
    # helps to a matrix product, convolution or attention
    (r"nchwtonhwc|nhwctonchw|tensortransform|batched_transpose_\d|transpose_nchw|im2col|col2im", "transpose", "layout"),
    (
        r"split_?k_?reduce|splitkreduce|reduce_segments|attention\w*_reduce|splitkv_combine|_combine_kernel|postgsu"
        r"|merge_attn_states|mergestates|fwd_combine|finalize_matmul|finalizekernel|reducepartials",
        "reduction",
        "combine",
    ),
    (r"dot_do_o", "reduction", "transform"),
    (r"convert_dq|convertkernel|subtensorop\w*cast|castkernel", "copy", "cast"),
    (r"subtensorop\w*scalar|setbufzero|zerofill", "fill", "transform"),
    (r"fft[12]d|_fft_|winograd(?:forward|wgrad|data|filter|output)|xform_(?:data|filter|out)", "transpose",
     "transform"),
    (r"epilogue::|scalepackedtensor", "elementwise", "transform"),
    (r"rotary|\brope|_rope|quantize_|scaled_\w*quant|qparam|hfp8|fp8rowwise", "elementwise", "main"),
    # writing keys and values into a cache, before anything called attention
    (r"reshape_and_cache|store_?kv_?cache|concat_and_cache|set_kv_buffer|kv_?cache_(?:update|write|store)|append_paged_kv",
     "scatter", "main"),
    (r"kv_indices|page_indices|resolve_future_token|clamp_position|routing|moe_align|sum_bitmatrix|topk_softmax"
     r"|topkgating|moesum|moe_sum|count_and_sort|prepare_moe|expert_(?:offset|count)", "gather", "index"),
    (r"multi_?head|flash|fmha|sdpa|attn|attention|\bmla_|decode_?with_?(?:paged)?_?kv|prefill_?with|flex_decoding|"
     r"mha_(?:fwd|bwd|varlen)", "attention", "main"),
    # norms, softmax, pooling and the rest before matmul and conv, whose marks are short
    (r"layer_?norm|rms_?norm|rmsnorm|batch_?norm|group_?norm|bn_fw|bn_bw|bnfwd|bnbwd|batchnorm|gammabeta|rowwisemoments"
     r"|welford|norm2d|instance_?norm|miopenbatch", "norm", "main"),
    (r"softmax|cross_entropy|nll_loss", "softmax", "main"),
    (r"max_?pool|avg_?pool|average_?pool|adaptive_?(?:max|avg|average)|pooling|poolfw|poolbw", "pool", "main"),
    (r"adamfunctor|adam_|adamw|fusedadam|fusedoptim|lambfunctor|sgdfunctor|lamb_|fusedsgd|optimizer|adagrad",
     "optimizer", "main"),
    (r"radixsort|radix_sort|mergesort|sort_|bitonic|sort(?:kv|keys|pairs)|topk|gathertopk|segmented_?sort",
     "sort", "main"),
    (r"devicescan|scan_kernel|wrapped_scan|cumsum|cumprod|tensor_kernel_scan|_scan_|inclusivescan|exclusivescan",
     "scan", "main"),
    (r"distribution_|dropout|philox|curand|hiprand|randperm|multinomial|bernoulli", "random", "main"),
    (r"index_put|indexput|scatter|index_add|indexadd|index_copy|indexcopy|embedding_backward|compute_grad_weight"
     r"|embedding_grad|sum_and_scatter|indexing_backward|grad_indice|indexfunc", "scatter", "main"),
    (r"index_?select|indexselect|gather|embedding|index_elementwise|gpu_index|index_kernel|lookup|permute_(?:2d|indices|"
     r"pooled|sparse)|bounds_check|bucketize|jagged|nonzero|masked_select|take_kernel|searchsorted|upsample", "gather",
     "main"),
    (r"cijk_|nvjet|(?<!fb)gemm|gemv|wvsplitk|llmm1|bmm_|matmul|splitk|fused_moe|moe_wna|marlin|gemvx|dot_kernel|s\d*gemm"
     r"|tensorop|_mm\d|triton_tem|machete|cutlass_moe|xmma_(?!fprop|dgrad|wgrad)|s884|s1688|s16816|hmma_|imma_|mmvq"
     r"|grouped_mm", "matmul", "main"),
    (r"fprop|dgrad|wgrad|convolve|conv_?\dd|conv_?depthwise|depthwise|scudnn|igemm|winograd|wrw_|naive_conv|miopen\w*conv"
     r"|cudnn\w*conv|gcnasmconv|convolution|_conv_|conv(?:fwd|bwd|wrw)|causal_conv", "conv", "main"),
    (r"triton_poi_", "elementwise", "main"),
    (r"fillfunctor|memset|fill_kernel|fillbuffer", "fill", "main"),
    (r"catarray|direct_copy|copy_kernel|memcpy|copybuffer|copy_page|tensorlist\w*copy|slice_copy|contiguous", "copy",
     "main"),
    (r"transpose|permute_kernel", "transpose", "main"),
    (r"elementwise|act_and_mul|silu|gelu|swiglu|rotary|rope|quant|axpby|pointwise|mul_kernel|add_kernel|cast_kernel"
     r"|activation|multi_tensor_apply|fp8rowwise|hfp8", "elementwise", "main"),
    (r"reduce_kernel|devicereduce|reduce_\dd|triton_(?:red|per)_|argmax|argmin|segment_reduce|norm_kernel|finalize|"
     r"reduction|dot_product", "reduction", "main"),
    (r"triton_|triton__", "elementwise", "main"),
)  # fmt: skip

_COMPILED: tuple[tuple[re.Pattern[str], Family, Role], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), family, role) for pattern, family, role in _RULES
)

_SPECIAL_FIRST: tuple[tuple[re.Pattern[str], Family, Role], ...] = (
    # Convolutions that call their products gemm, and products inside cuDNN's own names.
    (re.compile(r"implicit_gemm|implicit_convolve|igemm_(?:fwd|bwd|wrw)|scudnn|conv\w*_sgemm", re.I), "conv", "main"),
    (re.compile(r"_optimized_\w*nhwc|(?:xmma_|s\d+)(?:fprop|dgrad|wgrad)", re.I), "conv", "main"),
    (re.compile(r"multi_tensor_apply_kernel.*(?:adam|sgd|lamb|optimizer)", re.I), "optimizer", "main"),
)

_TILES = (
    re.compile(r"tilesize(\d+)x(\d+)x\d+"),
    re.compile(r"_?MT(\d+)x(\d+)x\d+"),
    re.compile(r"nvjet_\w*?_(\d+)x(\d+)_\d+x\d+"),
    re.compile(r"_bt(\d+)x(\d+)x\d+"),
    re.compile(r"(?:gemm|fprop\w*?|dgrad\w*?|wgrad\w*?|scudnn|cudnn)_(?:[a-z]\w*?_)??(\d+)x(\d+)(?:_|\b)"),
    re.compile(r"_t(\d+)x(\d+)x\d+"),
    re.compile(r"_(\d+)x(\d+)x\d+x\d+(?:_|$)"),
)
_TF32 = re.compile(r"tf32|(?<!f16_)(?<!bf16_)(?<!h)s1688gemm(?!_bf16|_f16)|s1688(?:fprop|dgrad|wgrad)", re.I)
_VECTOR = re.compile(
    r"simt|ffma|gemv|sgemm(?!\w*tensorop)|dgemm|cgemm|scudnn|f32f32_f32f32_f32|implicit_convolve_sgemm"
    r"|(?:dgrad|wgrad)_(?:alg\d_)?engine|llmm1|gemmk1|dot_kernel|wvsplitk",
    re.I,
)
_TENSOR = re.compile(
    r"tensorop|nvjet|xmma|s\d*16816|s\d*1688|s884|hmma|imma|wgmma|_mfma|cijk_\w*_mi\d|tcgen|warpgroup|h884|igemm_\w*gtc"
    r"|matmul_ogs|bmm_\w*e4m3",
    re.I,
)
_DTYPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"e4m3|fp8(?!kvcache)|float8|_f8", re.I), "float8_e4m3fn"),
    (re.compile(r"bfloat16|bf16|\bbhalf|DF16b|nvjet_\w*tst_|Bljk_B?B[SB]?_BH|Bljk_B_BS", re.I), "bfloat16"),
    (re.compile(r"\bhalf\b|__half|c10::half|fp16|_f16|h884|h16816|h1688|nvjet_\w*hsh_|hgemm|DF16_|Bljk_HB?_|_half\b",
                re.I), "float16"),
    (re.compile(r"\bdouble\b|dgemm|_f64", re.I), "float64"),
    (re.compile(r"\bfloat\b|sgemm|scudnn|tf32|f32|s1688gemm|Bljk_S_", re.I), "float32"),
    (re.compile(r"\blong\b|int64", re.I), "int64"),
    (re.compile(r"\bint\b|int32", re.I), "int32"),
    (re.compile(r"\bbool\b", re.I), "bool"),
)  # fmt: skip
_OPAQUE = re.compile(r"OpaqueType<(\d+)u?>")
_BY_SIZE = {1: "uint8", 2: "int16", 4: "int32", 8: "int64", 16: "complex128"}
_FIRST_TYPE = re.compile(r"CatArrayBatchedCopy\w*<(\w+)")


@cache
def named(name: str) -> Named:
    """What `name` says.

    >>> named("ampere_sgemm_128x64_nn")
    Named(family='matmul', role='main', unit='vector', dtype='float32', math='', tile=(128, 64))
    """
    family, role = _family(name)
    unit: Unit | Literal[""] = ""
    tile = None
    math = ""
    if family in MATRIX:
        unit = "vector" if _VECTOR.search(name) and not _TF32.search(name) else "tensor" if _TENSOR.search(name) else ""
        tile = _tile(name) if family != "attention" else None
        math = "tf32" if _TF32.search(name) else ""
    return Named(family, role, unit, dtype_of(name), math, tile)


def _family(name: str) -> tuple[Family, Role]:
    for rules in (_SPECIAL_FIRST, _COMPILED):
        for pattern, family, role in rules:
            if pattern.search(name):
                return family, role
    return "other", "main"


def _tile(name: str) -> tuple[int, int] | None:
    for pattern in _TILES:
        found = pattern.search(name)
        if found:
            return int(found[1]), int(found[2])
    return None


@cache
def dtype_of(name: str) -> str:
    """The dtype of the elements a kernel moves, as its name says it; "" where it does not."""
    opaque = _OPAQUE.search(name)
    if opaque:
        return _BY_SIZE.get(int(opaque[1]), "")
    first = _FIRST_TYPE.search(name)
    text = first[1] if first else name
    for pattern, dtype in _DTYPES:
        if pattern.search(text):
            return dtype
    return ""
