"""What a kernel's name and grid give away where nothing else is recorded. All of it is inference, and marked so."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from ridgepole import dtypes
from ridgepole.timeline.model import Launch

Kind = Literal[
    "matmul", "conv", "attention", "layout", "join", "norm", "softmax", "reduction", "scan", "sort", "gather",
    "scatter", "pool", "random", "optimizer", "copy", "fill", "elementwise", "moe", "unknown",
]  # fmt: skip

STREAMING: frozenset[Kind] = frozenset(
    {"layout", "join", "norm", "softmax", "reduction", "scan", "sort", "gather", "scatter", "pool", "random"}
    | {"optimizer", "copy", "fill", "elementwise"}
)
"""Kinds whose intensity is below the ridge of every machine: what they do an element is a few dozen FLOP at most."""

_RULES: tuple[tuple[Kind, str], ...] = (
    # The first that fits wins, so helpers of a library come before the library's products.
    ("layout",
        r"nchwtonhwc|nhwctonchw|tensortransform|nchw2nhwc|nhwc2nchw|permute_kernel|transpose|"
        r"batched_transpose|im2col|vol2col"),
    ("join",
        r"splitkreduce|split_k_reduce|splitk_reduce|reduce_segments|_reduce_kernel.*paged|"
        r"paged_attention.*reduce|combine"),
    ("join", r"globalkernel.*epilogue|epilogue::impl|computeoffsets|postgsu"),
    ("attention",
        r"flash_|fmha|attn_fwd|attn_bwd|_attention|attention_|sdpa|mha_|flashattn|flash::|\bfmha|"
        r"mla_decode"),
    ("moe", r"moe::dev::routing|routing|bitmatrix|topk_softmax|topkgating"),
    ("conv",
        r"conv|wgrad|dgrad|fprop|winograd|implicit_gemm|scudnn|hcudnn|fft2d|gcgemm|"
        r"miopen.*(?:conv|gemm)|igemm|xdlops"),
    ("matmul",
        r"gemm|gemv|cutlass.*kernel|nvjet|cijk_|_matmul|matmul_|\bmm_|wvsplitk|xmma|s16816|s1688|"
        r"h884|bmm_|dot_kernel|triton_tem|cublas.*dot"),
    ("optimizer", r"adam|sgd_|lamb|rowwise_adagrad|adagrad"),
    ("norm", r"norm(?!al)|welford"),
    ("softmax", r"softmax"),
    ("scan", r"scan|cumsum|prefix"),
    ("sort", r"sort|topk|radix|bitonic|histogram|unique|reducebykey"),
    ("scatter",
        r"scatter|index_put|indexadd|index_add|embedding.*(?:backward|grad)|bucketize|kvcache|"
        r"reshape_and_cache|store_kv"),
    ("gather",
        r"gather|index_?select|embedding|index_elementwise|index_kernel|indexfunc|lookup|permute_|"
        r"bounds_check|kv_indices|take_"),
    ("pool", r"pool|upsample|interp|bilinear|bicubic|grid_sampl"),
    ("random", r"dropout|distribution|philox|bernoulli|random|curand"),
    ("copy", r"catarray|copy|memcpy|cast|convert|quant|pad_|_pad|fp8|dequant|cat_"),
    ("fill", r"fill|memset|arange|eye|triu_tril|zero"),
    ("reduction",
        r"reduce|triton_red|triton_per|argmax|argmin|amax|_sum|sum_|mean|nll_loss|cross_entropy|"
        r"lp_norm|aminmax"),
    ("elementwise",
        r"elementwise|triton_poi|multi_tensor_apply|pointwise|functor|act_and_mul|silu|gelu|relu|"
        r"rotary|rope|swiglu|add_|mul_|_kernel_with_index|clamp|where"),
)  # fmt: skip
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _RULES)

_DTYPES: tuple[tuple[str, str], ...] = (
    ("float8_e4m3fn", r"e4m3|e2m1|fp8|f8f8|_f8_|mxfp4|fp4|qkve4"),
    ("bfloat16", r"bfloat16|bf16|bbs_|_bbs|f16b|\btst_|_tst_|bfloat"),
    ("float16", r"c10::half|__half|f16|hgemm|h884|hcudnn|_hhs_|_hss_|_hsh_|\bhalf\b|s884|fp16"),
    ("tf32", r"tf32|s1688gemm|s161616|s16816gemm_tf"),
    ("float64", r"\bdouble\b|dgemm|f64"),
    ("float32", r"\bfloat\b|sgemm|scudnn|f32|fp32|_sss_|_sb_|s_nn|s_tn"),
    ("int64", r"\blong\b"),
    ("int32", r"\bint\b"),
    ("bool", r"\bbool\b"),
)
_COMPILED_DTYPES = tuple((dtype, re.compile(pattern)) for dtype, pattern in _DTYPES)

_OPAQUE = re.compile(r"opaquetype<(\d+)")
_SIZED = {1: "int8", 2: "float16", 4: "float32", 8: "int64"}
"""A dtype of the size that an opaque copy names; only its size is used."""

_TILE = re.compile(
    r"(?:_mt|tilesize|tile|_t|_|\bmt)(\d{1,3})x(\d{1,3})(?:x\d+)?(?=_|x|$|\b)"  # nvjet, cutlass, Tensile, triton
)


@dataclass(frozen=True, slots=True)
class Named:
    """What a name says: kind of kernel, dtype ("" if it does not say) and output tile (rows, columns)."""

    kind: Kind
    dtype: str
    tile: tuple[int, int] | None


@lru_cache(maxsize=16384)
def read(name: str) -> Named:
    """What `name` gives away, mangled or not."""
    low = name.lower()
    kind: Kind = next((kind for kind, pattern in _COMPILED if pattern.search(low)), "unknown")
    return Named(kind, _dtype(low), _tile(low) if kind in ("matmul", "conv") else None)


def _dtype(low: str) -> str:
    opaque = _OPAQUE.search(low)
    if opaque is not None:
        return _SIZED.get(int(opaque[1]), "")
    return next((dtype for dtype, pattern in _COMPILED_DTYPES if pattern.search(low)), "")


def _tile(low: str) -> tuple[int, int] | None:
    for found in _TILE.finditer(low):
        rows, columns = int(found[1]), int(found[2])
        if rows >= 8 and columns >= 8 and rows * columns >= 256:
            return rows, columns
    return None


_VECTORIZED = re.compile(r"(?:vectorized|unrolled)_elementwise_kernel<(\d+)|elementwise_kernel<\d+, *(\d+)")
_ARRAY = re.compile(r"array<char ?\*, *(\d+)")
_LEAST_PER_THREAD = 4
"""Elements a thread of PyTorch's elementwise kernels takes at least (thread_work_size, aten/src/ATen/native/cuda)."""


def elementwise_bytes(name: str, launch: Launch | None) -> int | None:
    """Bytes of a PyTorch elementwise kernel: blocks x threads x elements each, for each tensor it is given.

    Right to within its last block. None where the name or the grid does not say.
    """
    per_thread, tensors = _VECTORIZED.search(name), _ARRAY.search(name)
    dtype = read(name).dtype
    if (
        per_thread is None
        or tensors is None
        or launch is None
        or launch.grid is None
        or launch.block is None
        or not dtype
    ):
        return None
    each = max(int(per_thread[1] or per_thread[2]), _LEAST_PER_THREAD)
    threads = launch.grid[0] * launch.grid[1] * launch.grid[2] * launch.block[0] * launch.block[1] * launch.block[2]
    size = dtypes.itemsize(dtype) if dtype in dtypes.BITS else 4
    return threads * each * size * int(tensors[1])
