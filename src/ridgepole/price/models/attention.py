"""Fused attention: prefill by query tiles in waves, decode by its cache's bytes split over the SMs."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from ridgepole.price.kernel import Ask, Estimate, model, overlapped
from ridgepole.price.models.matmul import plain, unit
from ridgepole.work.op import Attention

Q_TILE = 128
KV_TILE = 128
DECODE = 16
"""Query positions up to which the kernel is a decode: it splits the keys, not the queries."""


@model("attention")
def attention(ask: Ask) -> Estimate:
    detail = ask.cost.detail
    if not isinstance(detail, Attention) or not ask.peak:
        return plain(ask)
    # The constants were fitted to whole calls, the pass that joins the splits among them.
    one = decode(ask, detail) if detail.q <= DECODE else prefill(ask, detail)
    return replace(one, whole=True)


def decode(ask: Ask, a: Attention) -> Estimate:
    """start + the keys and values from memory, their products and the blocks' own starts, partly at the same time."""
    assert ask.peak
    heads = a.batch * a.kv_heads
    splits = max(1, min(ceil(ask.sms / heads), ceil(a.kv / KV_TILE)))
    grid = heads * splits
    travel = ask.travel(ask.cost.bytes, ask.constant("attention.dram"))
    # Grouped queries share their keys' tile, padded to its 64 rows.
    group = max(1, a.q_heads // max(1, a.kv_heads)) * a.q
    padded = ceil(group / 64) * 64 * 2.0 * a.kv * (a.d + a.d_v) * heads
    math = padded / (ask.peak * ask.share("attention.rate"))
    block = ask.constant("attention.block")
    blocks = max(0.0, grid / ask.sms - 1) * block
    walk = a.kv / splits * ask.constant("attention.pace")
    start = ask.floor + ask.constant("attention.decode") + (ask.constant("attention.join") if splits > 1 else 0.0)
    seconds = start + block + overlapped(blocks, math, max(travel, walk))
    most = max(blocks, math, travel, walk)
    if most == blocks:
        why = f"{grid:,} blocks of {a.kv / splits:,.0f} keys: starting them takes longer than reading their keys"
        return Estimate(seconds, "rows", why, grid, 128)
    if most == math:
        return Estimate(seconds, unit(ask), "few queries fill a tile of 64", grid, 128)
    if most == walk:
        return Estimate(seconds, "rows", f"each block walks {a.kv / splits:,.0f} keys alone", grid, 128)
    return Estimate(seconds, "dram", f"keys and values once, {splits} splits", grid, 128)


def prefill(ask: Ask, a: Attention) -> Estimate:
    """Query tiles over the SMs; each walks its keys (half of them, if causal), and loads and stores its own rows.

    A tile's first loads and last stores hide behind nothing, so the bytes come on top of the products.
    """
    assert ask.peak
    tiles = ceil(a.q / Q_TILE)
    columns = a.batch * a.q_heads
    if a.q < Q_TILE and a.q_heads > a.kv_heads > 0:
        # Grouped heads share a tile of short queries.
        columns = a.batch * a.kv_heads * ceil(a.q * (a.q_heads // a.kv_heads) / Q_TILE)
    blocks = tiles * columns
    steps = sum(_steps(a, tile) for tile in range(tiles)) * columns
    factor = 2.5 if a.backward else 1.0
    per_sm = ask.peak / ask.sms * ask.share("attention.rate")
    step = factor * 2.0 * Q_TILE * min(KV_TILE, a.kv) * (a.d + a.d_v) / per_sm
    block = ask.constant("attention.block") * factor
    longest = _steps(a, tiles - 1) * step + block
    spread = (steps * step + blocks * block) / ask.sms
    # Causal tiles differ in length, so SMs share them out; equal tiles come in whole waves.
    waves = ceil(blocks / ask.sms)
    math = max(longest, spread if a.causal else waves * longest)
    travel = ask.travel(ask.cost.bytes, ask.constant("attention.edges"))
    seconds = ask.floor + ask.constant("attention.start") + math + travel
    if travel > math:
        return Estimate(seconds, "dram", "bytes at achieved bandwidth", blocks, 128, 1)
    ideal = ask.cost.flops / ask.peak
    if ideal < 0.3 * math:
        why = f"{blocks:,} query tiles of {Q_TILE} on {ask.sms} SMs, {_steps(a, tiles - 1)} key steps each"
        return Estimate(seconds, "waves", why, blocks, 128, 1)
    return Estimate(seconds, unit(ask), f"{blocks:,} query tiles, {waves} waves", blocks, 128, 1)


def _steps(a: Attention, tile: int) -> int:
    """Key tiles that query tile `tile` walks; causal with the queries at the top left, as PyTorch masks them."""
    whole = ceil(a.kv / KV_TILE)
    if not a.causal:
        return whole
    return max(1, min(whole, ceil(min(a.q, (tile + 1) * Q_TILE) / KV_TILE)))
