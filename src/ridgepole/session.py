"""What one run of the tool produced: saved first, rendered after.

A Run is plain data, complete by itself: a report needs nothing else. Runs are numbered files in
`$RIDGEPOLE_HOME/runs` (default: `$XDG_STATE_HOME/ridgepole/runs`, `~/.local/state/ridgepole/runs`).
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

import msgspec

from ridgepole.attribute.ledger import BUCKETS, Bucket, DeviceLedger, Ledger
from ridgepole.attribute.rows import place_in_program
from ridgepole.errors import BadInput
from ridgepole.explain.finding import Finding
from ridgepole.machine.model import Machine
from ridgepole.price.money import cost
from ridgepole.price.price import Price, PricedOp
from ridgepole.printable import printable
from ridgepole.timeline.model import DEVICE_KINDS, Timeline
from ridgepole.work.op import Unpriced

SCHEMA = 1
LARGEST = 256 << 20
"""Bytes of a saved run's text past which it is none: a trace of 132,152 events makes 0.7 MB."""


@dataclass(frozen=True, slots=True)
class MachineUsed:
    """The machine whose figures a run used. `peaks`: "tensor bfloat16" to FLOP/s. Empty name: none was known."""

    name: str
    source: str
    bandwidth: float | None = None
    l2_bandwidth: float | None = None
    floor: float | None = None
    peaks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Track:
    """The spans worth drawing, as columns of equal length: device spans, and CPU spans that led to them.

    `lane` indexes `lanes`; times are nanoseconds since the window's start (negative before it); `name` indexes
    `names`; `bucket` indexes BUCKETS, -1 for CPU spans; `link` is the row of the launch that issued it, or -1.
    """

    lanes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    lane: tuple[int, ...] = ()
    start: tuple[int, ...] = ()
    ns: tuple[int, ...] = ()
    kind: tuple[str, ...] = ()
    name: tuple[int, ...] = ()
    bucket: tuple[int, ...] = ()
    link: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One explained timeline. Devices have the busiest first."""

    schema: int
    version: str
    created: str
    kind: Literal["measured", "priced"]
    target: str
    machine: MachineUsed
    window_ns: int
    window_rule: str
    devices: tuple[DeviceLedger, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    track: Track
    inflation: float | None = None
    scaled: bool = False

    @property
    def busiest(self) -> DeviceLedger:
        return self.devices[0]

    @property
    def buckets(self) -> dict[Bucket, int]:
        return self.busiest.buckets


@dataclass(frozen=True, slots=True)
class Geometry:
    """How one kind of launch spreads over the machine. `wave`: blocks resident at once on all SMs."""

    op: str
    elements: int
    grid: int
    block: int
    blocks_per_sm: int
    wave: int
    waves: float


@dataclass(frozen=True, slots=True)
class OpPrice:
    """One operator (at one place) of a priced program; seconds are device time of all its calls."""

    op: str
    where: str
    count: int
    seconds: float
    bucket: str
    flops: int
    bytes: int
    limit: str
    why: str


@dataclass(frozen=True, slots=True)
class UnpricedOp:
    """An operator with no formula: listed, never 0. `share`: of the program's launches."""

    op: str
    count: int
    reason: str
    share: float


@dataclass(frozen=True, slots=True)
class Fused:
    """The same program compiled: pointwise chains and reductions fused."""

    seconds: float
    travel_seconds: float
    launches: int


@dataclass(frozen=True, slots=True)
class Priced:
    """One program on one machine in one mode. Seconds, bytes, FLOP.

    `launch_seconds`: launches times their cost on the CPU; `travel_seconds`: bytes over the bandwidth;
    `math_seconds`: FLOPs over the rates. Each by itself, unoverlapped: the three costs. `parameter_bytes` and
    `peak_memory_bytes` are the program's. `bandwidth`, `launch_cost` and `sources` say what they were divided by.
    """

    machine: str
    mode: str
    seconds: float
    low: float
    high: float
    gpu_seconds: float
    launches: int
    bytes: int
    flops: int
    buckets: Mapping[str, float]
    geometry: tuple[Geometry, ...]
    ops: tuple[OpPrice, ...]
    unpriced: tuple[UnpricedOp, ...]
    launch_seconds: float
    travel_seconds: float
    math_seconds: float
    bandwidth: float
    launch_cost: float
    math_rate: float
    parameter_bytes: int = 0
    peak_memory_bytes: int = 0
    sources: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    range_source: str = ""
    fused: Fused | None = None


@dataclass(frozen=True, slots=True)
class PriceRun:
    """One target priced on machines and in modes; `runs` are the predicted timelines, explained, in the same order."""

    schema: int
    version: str
    created: str
    target: str
    prices: tuple[Priced, ...]
    runs: tuple[Run, ...]


def used(machine: Machine | None) -> MachineUsed:
    """The figures of `machine` that a report draws with."""
    if machine is None:
        return MachineUsed(name="", source="no machine known")
    l2 = machine.level("l2")
    dram = machine.level("dram")
    bandwidth = dram.bandwidth if dram is not None else None
    return MachineUsed(
        name=machine.name,
        source="" if bandwidth is None else str(bandwidth.source),
        bandwidth=None if bandwidth is None else bandwidth.value,
        l2_bandwidth=l2.bandwidth.value if l2 is not None and l2.bandwidth is not None else None,
        floor=machine.overheads.floor.value,
        peaks={f"{unit} {dtype}": figure.value for (unit, dtype), figure in machine.peaks.items()},
    )


def run_from(ledger: Ledger, timeline: Timeline, findings: tuple[Finding, ...], machine: Machine | None) -> Run:
    """A Run of what was found, ready to be saved."""
    return Run(
        schema=SCHEMA,
        version=_version(),
        created=now(),
        kind=ledger.kind,
        target=printable(ledger.target),
        machine=used(machine),
        window_ns=ledger.window_ns,
        window_rule=ledger.window_rule,
        devices=ledger.devices,
        findings=findings,
        notes=tuple(map(printable, ledger.notes)),
        track=_track(ledger, timeline),
        inflation=ledger.inflation,
        scaled=ledger.scaled,
    )


def price_run(target: str, prices: Sequence[Priced], runs: Sequence[Run]) -> PriceRun:
    """A PriceRun of what was predicted, ready to be saved."""
    return PriceRun(SCHEMA, _version(), now(), target, tuple(prices), tuple(runs))


def priced(price: Price, run: Run, cost_per_hour: float | None = None, compiled: Price | None = None) -> Priced:
    """`price` as plain data; `run` is its timeline explained, whose buckets it takes. Money only if asked.

    `compiled`: the same program priced as compiled, to set beside an eager one.
    """
    notes = list(price.notes)
    if cost_per_hour is not None:
        each = cost(price.seconds, cost_per_hour)
        notes.append(f"at {cost_per_hour:g} an hour one run costs {each:.3g}, a million {each * 1e6:.4g}")
    launches = max(price.launches, 1)
    window = run.window_ns * 1e-9
    return Priced(
        machine=price.machine.name,
        mode=price.mode,
        seconds=price.seconds,
        low=price.low,
        high=price.high,
        range_source=price.range_source,
        gpu_seconds=price.gpu_seconds,
        launches=price.launches,
        bytes=price.bytes,
        flops=price.flops,
        buckets={bucket: price.seconds * ns * 1e-9 / window if window else 0.0 for bucket, ns in run.buckets.items()},
        geometry=tuple(
            Geometry(
                f"{g.count} x {g.operator}",
                g.spread.elements,
                g.spread.grid,
                g.spread.block,
                g.spread.blocks_per_sm,
                g.spread.wave,
                g.spread.waves,
            )
            for g in sorted(price.geometry, key=lambda g: -g.count * g.spread.elements)
        ),
        ops=tuple(_op_price(row) for row in price.ops),
        unpriced=tuple(UnpricedOp(u.operator, u.count, u.why, u.count / (launches + u.count)) for u in price.unpriced),
        launch_seconds=price.launch,
        travel_seconds=price.travel,
        math_seconds=price.math,
        bandwidth=price.machine.bandwidth,
        launch_cost=price.launch_each,
        math_rate=price.math_rate,
        parameter_bytes=price.parameters,
        peak_memory_bytes=price.peak_memory,
        sources={"launch": price.launch_source},
        notes=tuple(notes),
        fused=None if compiled is None else Fused(compiled.seconds, compiled.travel, compiled.launches),
    )


def _op_price(row: PricedOp) -> OpPrice:
    cost_of = row.op.cost
    flops, moved = (0, 0) if isinstance(cost_of, Unpriced) else (cost_of.flops, cost_of.bytes)
    times = {"compute": row.each.compute, "memory": row.each.memory, "overhead": row.each.floor}
    return OpPrice(
        op=row.operator,
        where=place_in_program(row.op.where),
        count=row.count,
        seconds=row.seconds,
        bucket=max(times, key=lambda name: times[name]),
        flops=flops * row.count,
        bytes=moved * row.count,
        limit=row.each.limit,
        why=row.each.why,
    )


def now() -> str:
    """The time in UTC, to the second, as ISO 8601."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("ridgepole")
    except PackageNotFoundError:
        return "source"


def _track(ledger: Ledger, timeline: Timeline) -> Track:
    spans = timeline.spans
    device = [i for i, span in enumerate(spans) if span.kind in DEVICE_KINDS]
    wanted = set(device)
    for i in device:
        launch = spans[i].launch
        while launch is not None and launch not in wanted:
            wanted.add(launch)
            launch = spans[launch].parent
    wanted.update(i for i, span in enumerate(spans) if span.kind in ("sync", "annotation"))
    order = sorted(wanted)
    row = {index: position for position, index in enumerate(order)}
    names: dict[str, int] = {}
    origin = timeline.window.start
    bucket_at = {bucket: i for i, bucket in enumerate(BUCKETS)}
    work = ledger.work
    chosen = [spans[i] for i in order]
    return Track(
        lanes=tuple(f"GPU {x.device} {x.name}" if x.kind == "gpu" else f"CPU {x.name}" for x in timeline.lanes),
        lane=tuple(span.lane for span in chosen),
        start=tuple(span.start - origin for span in chosen),
        ns=tuple(span.end - span.start for span in chosen),
        kind=tuple(span.kind for span in chosen),
        name=tuple(names.setdefault(span.name, len(names)) for span in chosen),
        bucket=tuple(bucket_at[work[i].bucket] if i in work else -1 for i in order),
        link=tuple(-1 if span.launch is None else row.get(span.launch, -1) for span in chosen),
        names=tuple(names),
    )


def home() -> Path:
    """Where runs are kept."""
    if own := os.environ.get("RIDGEPOLE_HOME"):
        return Path(os.path.expanduser(own)) / "runs"
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(os.path.expanduser(state)) / "ridgepole" / "runs"


def save(run: Run | PriceRun) -> int:
    """Keep `run` and return its number. Numbers count up; two tools saving at once never share one.

    Raises OSError where the folder cannot be written.
    """
    folder = home()
    folder.mkdir(parents=True, exist_ok=True)
    kind = "price" if isinstance(run, PriceRun) else "run"
    packed = gzip.compress(msgspec.json.encode({"of": kind, kind: run}), compresslevel=1)
    number = max((_number(path) for path in folder.iterdir()), default=0) + 1
    while True:
        try:
            # Exclusive creation is what keeps two tools from taking one number.
            with open(folder / f"{number}.json.gz", "xb") as file:
                file.write(packed)
            return number
        except FileExistsError:
            number += 1


def _number(path: Path) -> int:
    stem = path.name.removesuffix(".json.gz")
    return int(stem) if stem.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class _Saved:
    of: str
    run: Run | None = None
    price: PriceRun | None = None


def load(ref: str) -> Run | PriceRun:
    """A saved run by number, by path, or "last". Raises BadInput where there is none or it cannot be read."""
    path = _find(ref)
    try:
        saved = msgspec.json.decode(_unpacked(path), type=_Saved)
    except FileNotFoundError:
        raise BadInput(f"there is no run {ref}: {_listing()}") from None
    except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
        raise BadInput(f"{path.name} is not a run that this version can read ({error})") from None
    found = saved.run or saved.price
    if found is None or found.schema != SCHEMA:
        raise BadInput(f"{path.name} is not a run that this version can read (schema)")
    if not _whole(found):
        raise BadInput(f"{path.name} is not a run that this version can read (parts of it are missing)")
    return found


def _unpacked(path: Path) -> bytes:
    """The text of a saved run, never more than one can hold. Raises OSError, EOFError."""
    with gzip.open(path) as file:
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise OSError(f"more than {LARGEST >> 20} MB")
    return text


def _whole(run: Run | PriceRun) -> bool:
    """Whether `run` holds what every report takes for granted."""
    if isinstance(run, PriceRun):
        return bool(run.prices) and len(run.prices) == len(run.runs) and all(map(_whole, run.runs))
    track = run.track
    columns = (track.start, track.ns, track.kind, track.name, track.bucket, track.link)
    return (
        bool(run.devices)
        and all(len(column) == len(track.lane) for column in columns)
        and all(0 <= lane < len(track.lanes) for lane in track.lane)
        and all(0 <= name < len(track.names) for name in track.name)
        and all(-1 <= bucket < len(BUCKETS) for bucket in track.bucket)
        and all(-1 <= link < len(track.lane) for link in track.link)
    )


def _find(ref: str) -> Path:
    if ref == "last":
        numbers = _numbers()
        if not numbers:
            raise BadInput("no run is saved yet: `ridgepole why TRACE` or `ridgepole price TARGET` makes one")
        return home() / f"{numbers[-1]}.json.gz"
    if ref.isdecimal():
        return home() / f"{ref}.json.gz"
    path = Path(ref)
    if not path.is_file():
        raise BadInput(f"there is no run {ref}: {_listing()}")
    return path


def _numbers() -> list[int]:
    folder = home()
    return sorted(n for n in map(_number, folder.iterdir()) if n) if folder.is_dir() else []


def _listing() -> str:
    numbers = _numbers()
    if not numbers:
        return "none is saved yet"
    return f"runs {numbers[0]} to {numbers[-1]} are saved" if len(numbers) > 1 else f"only run {numbers[0]} is saved"
