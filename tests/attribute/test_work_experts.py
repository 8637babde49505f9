"""A mixture of experts behind one opaque op: its kernels' names and grids tell its size."""

from __future__ import annotations

import pytest

from ridgepole.attribute.experts import Routing, experts
from ridgepole.attribute.shares import Piece
from ridgepole.work.op import Call, Op, Tensor, Unpriced

FIRST = "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu"
SECOND = "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1"
Grid = tuple[int, int, int]


def piece(span: int, name: str, grid: Grid | None, tokens: int = 32, width: int = 3072, count: int = 32) -> Piece:
    hidden, scores = Tensor((tokens, width), "bfloat16"), Tensor((tokens, count), "bfloat16")
    op = Op(Call("vllm::moe_forward", (hidden, scores)), Unpriced("weights not recorded"))
    return Piece(span, name, grid, (256, 1, 1), 140_000, op)


def test_a_triton_pair_tells_columns_and_experts_a_token() -> None:
    # gpt-oss-20b's decode, 32 tokens: 1748 = 38 x 46 and 912 = 38 x 24, and only 4 experts a token need 38 row tiles.
    found = experts([piece(0, FIRST, (1748, 1, 1)), piece(1, SECOND, (912, 1, 1))])
    reached = 32 * (1 - (1 - 4 / 32) ** 32)
    weights = reached * 3072 * (46 * 128) * 4.25 / 8
    assert found[0].flops == 2 * 128 * (46 * 128) * 3072
    assert found[0].bytes == pytest.approx(weights, rel=0.01)
    assert found[1].flops == 2 * 128 * (24 * 128) * (23 * 128)
    assert all(share.quality == "inferred" and "estimated" in share.reason for share in found.values())


def test_a_tensorrt_grid_has_its_row_tiles_beside_its_columns() -> None:
    # gpt-oss-120b's prefill of 888 tokens on one of 8 ranks: 342 = 128 + (888 x 4 - 128) / 16.
    name = "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16"
    (share,) = experts([piece(0, name, (8, 342, 1), 888, 3072, 128)]).values()
    assert share.flops == 2 * 888 * 4 * 1024 * 3072
    assert share.dtype == "float8_e4m3fn"


def test_what_the_grid_leaves_open_is_left_open() -> None:
    assert experts([piece(0, FIRST, None)]) == {}
    # 38 x 46 row and column tiles, or 46 x 38: the first product alone does not say which.
    assert experts([piece(0, FIRST, (1748, 1, 1))]) == {}


def test_routes_and_sums_are_known_once_the_products_are() -> None:
    found = experts([
        piece(0, "_sum_bitmatrix_rows", (1, 1, 1)), piece(1, FIRST, (1748, 1, 1)), piece(2, SECOND, (912, 1, 1)),
        piece(3, "_finalize_matmul_scatter_bf16", (32, 2, 1)),
    ])  # fmt: skip
    assert found[3].bytes == (32 * 4 * 3072 + 32 * 3072) * 2
    assert found[0].bytes == 32 * 32 * 2 + 2 * 128 * 4


def test_experts_reached_lie_between_those_of_one_token_and_all() -> None:
    assert Routing(1, 8, 64).reached(4) == pytest.approx(4)
    assert Routing(32, 8, 32).reached(4) == pytest.approx(31.55, abs=0.01)
    assert Routing(10_000, 8, 64).reached(4) == pytest.approx(64)
