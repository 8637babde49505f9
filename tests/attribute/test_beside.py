"""Kernels without an op, told apart by the company they keep."""

from __future__ import annotations

from ridgepole.attribute.beside import Matched, Reference, match
from ridgepole.attribute.shares import Piece, Share
from ridgepole.work.op import Call, Op, Unpriced

GRID, BLOCK = (64, 1, 1), (128, 1, 1)


def share(nbytes: int) -> Share:
    return Share(0, nbytes, "bfloat16", "vector", "elementwise", "exact")


def reference(*kernels: tuple[str, int, int | None]) -> Reference:
    """(name, ns, bytes or None) in order of launch."""
    op = Op(Call("aten::add", ()), Unpriced("made"))
    pieces = tuple(Piece(i, name, GRID, BLOCK, ns, op) for i, (name, ns, _) in enumerate(kernels))
    return Reference("eager.json", pieces, {i: share(n) for i, (_, _, n) in enumerate(kernels) if n is not None})


def matched(names: list[str], ns: int, against: Reference, *, grid: bool = True) -> dict[int, Matched]:
    pieces = [Piece(i, name, GRID if grid else None, BLOCK if grid else None, ns, None) for i, name in enumerate(names)]
    return match(pieces, pieces, [against])


def known_bytes(found: dict[int, Matched], index: int) -> int | None:
    one = found.get(index)
    return None if one is None or one.share is None else one.share.bytes


def test_one_candidate_is_the_one() -> None:
    found = matched(["add"], 5_000, reference(("add", 4_000, 100), ("add", 4_100, 100), ("mul", 9, 7)))
    assert known_bytes(found, 0) == 100
    assert found[0].share is not None and found[0].share.quality == "inferred"
    assert found[0].reason == "matched by name and grid to 2 calls of aten::add in eager.json"


def test_another_grid_is_another_kernel() -> None:
    against = reference(("add", 4_000, 100))
    piece = Piece(0, "add", (65, 1, 1), BLOCK, 4_000, None)
    assert match([piece], [piece], [against]) == {}


def test_an_only_candidate_of_another_length_is_not_the_one() -> None:
    # A persistent kernel's grid is the number of SMs whatever it multiplies.
    assert matched(["nvjet"], 400_000, reference(("nvjet", 40_000, 100))) == {}
    assert known_bytes(matched(["nvjet"], 60_000, reference(("nvjet", 40_000, 100))), 0) == 100


def test_neighbours_tell_kernels_of_one_name_and_grid_apart() -> None:
    layer = [("norm", 900, 1), ("add", 1_000, 100), ("gemm", 9_000, 2), ("add", 1_000, 300), ("silu", 900, 3)]
    found = matched([name for name, _, _ in layer * 2], 1_000, reference(*layer, *layer))
    assert [known_bytes(found, i) for i in (1, 3, 6, 8)] == [100, 300, 100, 300]
    assert "by its neighbours" in found[1].reason


def test_neighbours_on_one_side_do_at_the_edge_of_a_recording() -> None:
    layer = [("norm", 900, 1), ("add", 1_000, 100), ("gemm", 9_000, 2), ("add", 1_000, 300), ("silu", 900, 3)]
    found = matched(["gemm", "add"], 1_000, reference(*layer))
    assert known_bytes(found, 1) == 300


def test_time_decides_only_where_it_leaves_no_doubt() -> None:
    against = reference(("add", 1_000, 100), ("x", 1, 1), ("y", 1, 1), ("add", 9_000, 900))
    assert known_bytes(matched(["add"], 1_050, against), 0) == 100
    assert known_bytes(matched(["add"], 3_000, against), 0) is None
    close = reference(("add", 1_000, 100), ("x", 1, 1), ("y", 1, 1), ("add", 1_100, 900))
    assert known_bytes(matched(["add"], 1_050, close), 0) is None


def test_without_grids_names_and_order_still_match() -> None:
    layer = [("norm", 900, 1), ("add", 1_000, 100), ("gemm", 9_000, 2), ("add", 1_000, 300), ("silu", 900, 3)]
    found = matched([name for name, _, _ in layer], 1_000, reference(*layer), grid=False)
    assert [known_bytes(found, i) for i in range(5)] == [1, 100, 2, 300, 3]
    assert "grids are not recorded" in found[0].reason


def test_the_first_reference_that_knows_the_work_is_used() -> None:
    piece = Piece(0, "add", GRID, BLOCK, 1_000, None)
    found = match([piece], [piece], [reference(("add", 1_000, None)), reference(("add", 1_000, 100))])
    assert known_bytes(found, 0) == 100
