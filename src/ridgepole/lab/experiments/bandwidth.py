"""How fast does memory move? Addition and copying, plain, wide and streaming, beside the framework's.

Floor: an addition moves 12 n bytes and does n FLOP, a copy moves 8 n. Past the caches expect nine tenths of the
datasheet from whatever keeps enough loads in flight: latency x bandwidth bytes of them at any time (Little's law).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ridgepole import units
from ridgepole.errors import Missing
from ridgepole.kernels.library.streams import BLOCK, ITEM, LOADS, STREAMED, WIDE
from ridgepole.kernels.prepare import Prepared
from ridgepole.lab import arrays
from ridgepole.lab.bench import Bench, gate
from ridgepole.lab.experiment import Axis, Column, Experiment, Picture, Row, Series, register
from ridgepole.lab.timing import Method, Timing
from ridgepole.lab.values import amount

ADDS, COPIES = ("add", "add_wide", "add_stream"), ("copy", "copy_wide", "copy_stream")
KERNELS = (*ADDS, *COPIES)
INPUTS = {**dict.fromkeys(ADDS, 2), **dict.fromkeys(COPIES, 1)}
AT_ONCE = {name: held for names in (ADDS, COPIES) for name, held in zip(names, (1, WIDE, WIDE * LOADS), strict=True)}
HELD = {name: INPUTS[name] * AT_ONCE[name] * ITEM for name in KERNELS}
"""Bytes of loads that one thread has in flight at once."""
CACHE, MEMORY = "in cache", "memory"
CACHE_SHARE = 2
"""All arrays of a kernel together take this part of the last-level cache: the rest is for whatever else runs."""
PAST_CACHE, QUICK_PAST_CACHE = 4, 2
"""One array holds so many last-level caches, all of a kernel's twice or thrice that."""
DOUBTED = 1.1
"""On a CPU, a share of what was measured before from which one of the two measurements was disturbed."""
LEAST, MOST = 1 << 22, 1 << 28
"""Elements of one array: at most 1 GiB, which is what a GPU gets."""
MEMORY_SHARE = 8
"""One array takes at most this part of the memory."""
SMALL = 10_007
"""A size that is no multiple of anything, at which each kernel is checked whole."""
NEAR = 0.97
"""Within this of the best, a variant has nothing left to win."""


def elements(bench: Bench) -> int:
    """Elements of one array past the caches: a power of two."""
    wanted = (QUICK_PAST_CACHE if bench.quick else PAST_CACHE) * bench.last_cache // ITEM
    if not bench.on_cpu and not bench.quick:
        wanted = MOST
    room = bench.device.limits.memory // MEMORY_SHARE // ITEM
    return _power(max(LEAST, min(wanted, MOST, room)))


def cached(bench: Bench) -> int:
    """Elements of one array of three that fit the last-level cache together."""
    return _power(bench.last_cache // CACHE_SHARE // 3 // ITEM)


def _power(most: int) -> int:
    return 1 << (max(1, most).bit_length() - 1)


def _rows(bench: Bench) -> Iterator[Row]:
    # A call within the cache is so short that launching would be what is timed.
    short: Method = "graph" if bench.device.backend == "cuda" else "queued"
    plan: tuple[tuple[str, int, Method], ...] = (
        (MEMORY, elements(bench), "queued"),
        (CACHE, cached(bench), short),
    )
    for where, n, method in plan:
        bench.note(f"{where}: {n:,} elements an array")
        shared = arrays.make(bench.device, n)
        for name in KERNELS:
            ready = arrays.ready(shared, name, (SMALL,), arrays.elementwise(name))
            threads = resident(bench, ready)
            yield {
                **_row(bench, name, where, ready.bytes, bench.time(ready.run, method)),
                "threads": threads,
                "in_flight": threads * HELD[name] if threads is not None else None,
            }
            del ready
        del shared
        try:
            for name, moved, act in _framework(bench, n):
                yield _row(bench, name, where, moved, bench.time(bench.framework(act), method))
        except Missing as error:
            bench.note(str(error))


def _framework(bench: Bench, n: int) -> Iterator[tuple[str, float, Callable[[], object]]]:
    torch = bench.torch
    x, z = (torch.randn(n, device=bench.device.torch) for _ in range(2))
    y = torch.empty_like(x)
    yield "torch add", 3.0 * ITEM * n, lambda: torch.add(x, z, out=y)
    yield "torch copy_", 2.0 * ITEM * n, lambda: y.copy_(x)
    yield "torch clone", 2.0 * ITEM * n, lambda: x.clone()


def resident(bench: Bench, ready: Prepared) -> int | None:
    """Threads of a kernel resident on one SM, by the driver; None where it does not say."""
    ask = getattr(bench.device, "occupancy", None)
    if ask is None:
        return None
    return int(ask(ready.program, ready.launch.threads, ready.launch.shared)) * ready.launch.threads


def known(bench: Bench, where: str) -> float | None:
    """Bandwidth that the machine is known to have: the datasheet's, or what torch reached on a CPU."""
    if bench.machine is None:
        return None
    if where == MEMORY:
        return bench.machine.bandwidth
    level = bench.machine.level("llc" if bench.on_cpu else "l2")
    return level.bandwidth.value if level is not None and level.bandwidth is not None else None


def _row(bench: Bench, name: str, where: str, moved: float, timing: Timing) -> Row:
    rate = moved / timing.seconds
    most = known(bench, where)
    return {
        "kernel": name,
        "where": where,
        "bytes": moved,
        "method": timing.method,
        "seconds": timing.seconds,
        "spread": timing.spread,
        "bandwidth": rate,
        "of_known": rate / most if most else None,
        "note": gate(rate, bench.most_bandwidth(), "bandwidth") if where == MEMORY else "",
    }


def best(rows: Sequence[Row], where: str, word: str) -> Row | None:
    """The quickest believable row of additions ("add") or of copies ("copy")."""
    mine = [r for r in rows if r["where"] == where and not r["note"] and word in _kind(str(r["kernel"]))]
    return max(mine, key=lambda row: amount(row, "bandwidth"), default=None)


def _kind(name: str) -> str:
    return "add" if "add" in name else "copy"


def _meaning(rows: Sequence[Row], bench: Bench) -> str:
    said = []
    for word in ("add", "copy"):
        top = best(rows, MEMORY, word)
        if top is not None:
            share = amount(top, "of_known")
            of = f", {units.percent(share)} of {_source(bench)}" if share else ""
            if bench.on_cpu and share > DOUBTED:
                of += " (another program ran then, or this CPU has more cache than it reports)"
            said.append(f"the best {word}, {top['kernel']}, moves {units.rate_bytes(amount(top, 'bandwidth'))}{of}")
    parts = ["Memory: " + "; ".join(said) + "."] if said else []
    doubted = [str(row["kernel"]) for row in rows if row["note"]]
    if doubted:
        parts.append(f"Not believed, as above the physical limit: {', '.join(doubted)}.")
    parts += [line for word in ("add", "copy") if (line := _plain(rows, bench, word))]
    inside = [row for word in ("add", "copy") if (row := best(rows, CACHE, word)) is not None]
    if inside:
        top = max(inside, key=lambda row: amount(row, "bandwidth"))
        outer = max((amount(row, "bandwidth") for row in rows if row["where"] == MEMORY and not row["note"]), default=0)
        ratio = f", {amount(top, 'bandwidth') / outer:.1f}x what memory gives" if outer else ""
        parts.append(
            f"Within the last-level cache {top['kernel']} moves {units.rate_bytes(amount(top, 'bandwidth'))}{ratio}, "
            f"in {units.seconds(amount(top, 'seconds'))} a call, its start included."
        )
    return " ".join(parts) or "Nothing was measured that can be believed."


def _source(bench: Bench) -> str:
    if bench.machine is None:
        return "what is known"
    said = "the {} that torch's own copy or sum reached" if bench.on_cpu else "the datasheet's {}"
    return said.format(units.rate_bytes(bench.machine.bandwidth))


def _plain(rows: Sequence[Row], bench: Bench, word: str) -> str:
    """Why one thread an element is slower than the best, by the bytes in flight; or that it is not."""
    plain = next((r for r in rows if r["kernel"] == word and r["where"] == MEMORY and not r["note"]), None)
    top = best(rows, MEMORY, word)
    if plain is None or top is None or not amount(top, "bandwidth"):
        return ""
    share = amount(plain, "bandwidth") / amount(top, "bandwidth")
    if share >= NEAR:
        return f"Plain {word}, one thread an element, is as good: {units.percent(share)} of the best."
    said = f"Plain {word} reaches {units.percent(share)} of the best"
    held, needed = amount(plain, "in_flight"), _needed(bench, word)
    if bench.on_cpu:
        return f"{said}: here a block is a loop on one core, and how the compiler vectorised and stores it decides."
    if not held or needed is None:
        return f"{said}: how much each keeps in flight is not known here."
    most = amount(top, "in_flight")
    beside = f", where {top['kernel']} keeps {units.nbytes(most)}" if most and top is not plain else ""
    law = (
        f"by Little's law {units.nbytes(needed)} of loads must be in flight on each SM "
        f"(latency x the loads' part of the bandwidth / {bench.device.limits.sms} SMs), and "
        f"{plain['threads']} resident threads of {INPUTS[word]} x {ITEM} bytes keep {units.nbytes(held)}{beside}"
    )
    if held < needed:
        return f"{said}: {law}: too few."
    blocks = round(amount(plain, "bytes") / ((INPUTS[word] + 1) * ITEM) / BLOCK)
    return (
        f"{said}: {law}: enough while all are waiting, but each of its {blocks:,} blocks lives for one load, and while "
        f"blocks end and start their threads ask for nothing; {STREAMED} elements a thread need {STREAMED} times fewer."
    )


def _needed(bench: Bench, word: str) -> float | None:
    """Bytes of loads that an SM must have in flight to draw the datasheet's bandwidth; None where it is not known."""
    dram = bench.machine.level("dram") if bench.machine is not None and not bench.on_cpu else None
    if dram is None or dram.latency is None or dram.bandwidth is None:
        return None
    loads = INPUTS[word] / (INPUTS[word] + 1)
    return dram.latency.value * dram.bandwidth.value * loads / bench.device.limits.sms


def _picture(rows: Sequence[Row], bench: Bench) -> Picture:
    series = []
    for where in dict.fromkeys(str(row["where"]) for row in rows):
        mine = [row for row in rows if row["where"] == where]
        names = tuple(str(row["kernel"]) for row in mine)
        series.append(Series(where, names, tuple(amount(row, "bandwidth") for row in mine), "bars"))
    return Picture("Bandwidth", Axis("", "text"), Axis("bandwidth", "B/s"), tuple(series))


register(
    Experiment(
        name="bandwidth",
        question="How fast does memory move?",
        columns=(
            Column("where", "where", "text"),
            Column("kernel", "kernel", "text"),
            Column("bytes", "moves", "B"),
            Column("method", "timed", "text"),
            Column("seconds", "time", "s"),
            Column("spread", "spread", "share", extra=True),
            Column("bandwidth", "bandwidth", "B/s", bar=True),
            Column("of_known", "of known", "share"),
            Column("threads", "threads an SM", "count", extra=True),
            Column("in_flight", "loads in flight an SM", "B"),
            Column("note", "note", "text"),
        ),
        rows=_rows,
        meaning=_meaning,
        picture=_picture,
        notes=(
            "bytes are read + written once; a CPU that reads a line before writing it moves a half or a third more",
            "torch clone takes new memory at each call; in cache: all arrays together take half of the last-level one",
        ),
    )
)
