"""Products of a mixture of experts: what their kernels read, from the routing's shapes and the kernels' grids.

Frameworks call these through one opaque op whose arguments are the tokens and the router's scores, without the
weights. A kernel's name gives its tile and the weights' format; its grid the number of output columns, and how many
experts each token goes to; every expert that some token chose has its weights read once. What comes out is an
estimate, and said to be one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ridgepole.attribute.names import named
from ridgepole.attribute.shares import Piece, Share
from ridgepole.work.op import Op

MX_SCALE = 8 / 32
"""Bits of scale for each element of a microscaling format: 32 share a byte (OCP MX specification 1.0, 2023)."""
BF16, INDEX = 2, 4
MOST_CHOSEN = 16
"""Experts a token may go to: no model known goes further."""

_TRITON = re.compile(
    r"_matmul_ogs_[NT]+_(bf16|fp16|fp8|mxfp8)x(\w+?)x(bf16|fp16|fp8|mxfp4|mxfp8)_(\d+)x(\d+)x\d+x1(_swiglu)?$"
)
_TRTLLM = re.compile(r"^bmm_(MxE4m3|E4m3|Bfloat16|E2m1|MxE2m1)_(MxE2m1|E4m3|Bfloat16)(MxE4m3|E4m3|Bfloat16)_Fp32_"
                     r"t(\d+)x(\d+)x\d+")  # fmt: skip
_BITS = {"mxfp4": 4 + MX_SCALE, "mxe2m1": 4 + MX_SCALE, "bf16": 16, "fp16": 16, "bfloat16": 16, "fp8": 8, "e4m3": 8,
         "mxe4m3": 8 + MX_SCALE, "mxfp8": 8 + MX_SCALE}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Routing:
    """What the opaque op's arguments say: `tokens` of `width` elements, `experts` to choose from."""

    tokens: int
    width: int
    experts: int

    def tiles(self, each: int, rows: int) -> int:
        """The most tiles of `rows` rows that hold a token, `each` experts a token: grids are made for it."""
        pairs = self.tokens * each
        return pairs if pairs <= self.experts else self.experts + (pairs - self.experts) // rows

    def reached(self, each: int) -> float:
        """How many experts some token chooses, if they are chosen evenly at random."""
        return self.experts * float((1.0 - each / self.experts) ** self.tokens * -1.0 + 1.0)


@dataclass(frozen=True, slots=True)
class _Product:
    """Output columns by how many experts each token may go to, bits of a weight, dtype of the arithmetic."""

    columns: dict[int, int]
    bits: float
    element: float
    dtype: str
    gated: bool


def routing(op: Op) -> Routing | None:
    """The routing of an op that takes tokens (t, width) and scores (t, experts); None if it is none such."""
    name = op.operator.lower()
    if "moe" not in name and "expert" not in name:
        return None
    hidden, scores = op.call.tensor(0), op.call.tensor(1)
    if hidden is None or scores is None or len(hidden.shape) != 2 or len(scores.shape) != 2:
        return None
    if hidden.shape[0] != scores.shape[0] or not hidden.shape[0] or not scores.shape[1]:
        return None
    return Routing(hidden.shape[0], hidden.shape[1], scores.shape[1])


def experts(pieces: Sequence[Piece]) -> dict[int, Share]:
    """Shares of the expert products among `pieces`, which are in order of launch.

    The first product of a call goes from the tokens' width to a gated width, the second from half of that back. How
    many experts each token goes to is the one number that the grids of all calls with one routing allow.
    """
    products: list[tuple[Piece, Routing, _Product | None]] = []
    allowed: dict[Routing, set[int]] = {}
    for piece in pieces:
        shape = routing(piece.op) if piece.op is not None else None
        if shape is None:
            continue
        product = _product(piece, shape)
        products.append((piece, shape, product))
        if product is not None:
            allowed[shape] = allowed.get(shape, set(product.columns)) & set(product.columns)
    found: dict[int, Share] = {}
    wide = 0
    for piece, shape, product in products:
        if len(allowed.get(shape, ())) != 1:
            continue
        (each,) = allowed[shape]
        if product is None:
            if (helper := _helper(piece, shape, each)) is not None:
                found[piece.span] = helper
            continue
        columns = product.columns[each]
        depth = shape.width if product.gated else wide // 2
        wide = columns if product.gated else 0
        if not depth:
            continue
        found[piece.span] = _share(piece, shape, product, each, columns, depth)
    return found


def _share(piece: Piece, shape: Routing, product: _Product, each: int, columns: int, depth: int) -> Share:
    reached = shape.reached(each)
    pairs = shape.tokens * each
    rows_in = shape.tokens if product.gated else pairs
    out = columns // 2 if product.gated else columns
    moved = reached * columns * depth * product.bits / 8 + (rows_in * depth + pairs * out) * product.element
    reason = (
        f"estimated: {reached:.3g} of {shape.experts} experts' weights, {depth} x {columns} at {product.bits:.3g} "
        f"bits, read once; {each} experts a token and the columns from the grid {_text(piece.grid)}, "
        "formats from the name"
    )
    return Share(2 * pairs * columns * depth, round(moved), product.dtype, "tensor", "matmul", "inferred", reason)


def _helper(piece: Piece, shape: Routing, each: int) -> Share | None:
    """Kernels around the products: quantising the tokens, working out routes, summing the experts' results."""
    name = named(piece.name)
    pairs, tokens = shape.tokens * each, shape.tokens * shape.width
    if name.role == "combine":
        nbytes, flops = (pairs * shape.width + tokens) * BF16, 2 * pairs * shape.width
        what = f"sums {each} experts' rows of {shape.width} bf16 a token"
    elif name.role == "index":
        nbytes, flops = shape.tokens * shape.experts * BF16 + 2 * pairs * INDEX, 0
        what = f"reads {shape.experts} scores a token, or the choices made of them; writes {each} indices a token"
    elif name.family == "elementwise" and "quant" in piece.name.lower():
        nbytes, flops = tokens * (BF16 + 1) + tokens // 32, 2 * tokens
        what = f"reads {shape.tokens} x {shape.width} bf16, writes as many fp8 and their scales"
    else:
        return None
    return Share(flops, nbytes, "bfloat16", "vector", name.family, "inferred", f"estimated by its name and op: {what}")


def _text(grid: tuple[int, int, int] | None) -> str:
    return "x".join(map(str, grid)) if grid is not None else ""


def _product(piece: Piece, shape: Routing) -> _Product | None:
    if piece.grid is None:
        return None
    chosen = range(1, min(MOST_CHOSEN, shape.experts) + 1)
    triton = _TRITON.search(piece.name)
    if triton:
        rows, width, blocks = int(triton[4]), int(triton[5]), piece.grid[0]
        tiles = {each: shape.tiles(each, rows) for each in chosen}
        columns = {each: blocks // t * width for each, t in tiles.items() if blocks % t == 0}
        bits, element = _BITS.get(triton[3]), _BITS.get(triton[1])
        if bits is None or element is None or not columns:
            return None
        return _Product(columns, bits, element / 8, "bfloat16", bool(triton[6]))
    trtllm = _TRTLLM.search(piece.name)
    if trtllm:
        width, rows = int(trtllm[4]), int(trtllm[5])
        columns = {each: piece.grid[0] * width for each in chosen if shape.tiles(each, rows) == piece.grid[1]}
        if not columns:
            return None
        element = _BITS[trtllm[3].lower()] / 8
        # The second product's result is summed over experts in bf16; the first one's is quantised for the second.
        dtype = "bfloat16" if trtllm[3] == "Bfloat16" else "float8_e4m3fn"
        return _Product(columns, _BITS[trtllm[2].lower()], element, dtype, trtllm[1] != "Bfloat16")
    return None
