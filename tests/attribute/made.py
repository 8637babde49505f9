"""Small timelines made by hand: times in nanoseconds, threads and streams by name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ridgepole.attribute.attribute import account
from ridgepole.attribute.ledger import Bucket, KernelWork, Ledger
from ridgepole.timeline.model import DeviceInfo, Kind, Lane, Span, Timeline, Window
from ridgepole.work.op import Op


def did(bucket: Bucket, **figures: object) -> KernelWork:
    """What a kernel did, bucket first."""
    cause = "kernel-floor" if bucket == "overhead" else bucket
    quality = "unknown" if bucket == "unknown" else "exact"
    return replace(KernelWork(bucket, cause, quality), **figures)


@dataclass
class Scene:
    """Spans added one by one; `ledger()` accounts for them over a window."""

    start: int = 0
    end: int = 100
    lanes: list[Lane] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    work: dict[int, KernelWork] = field(default_factory=dict)
    more: dict[str, object] = field(default_factory=dict)

    def lane(self, name: str) -> int:
        """Threads are called "main", "worker", …; streams "0/7": stream 7 of device 0."""
        device, slash, stream = name.partition("/")
        lane = Lane("gpu", device, stream) if slash else Lane("cpu", "", name)
        if lane not in self.lanes:
            self.lanes.append(lane)
        return self.lanes.index(lane)

    def add(self, lane: str, start: int, end: int, kind: Kind, name: str = "", **more: object) -> int:
        self.spans.append(Span(self.lane(lane), start, end, kind, name or kind, **more))
        return len(self.spans) - 1

    def cpu(self, start: int, end: int, kind: Kind, name: str = "", lane: str = "main", **more: object) -> int:
        return self.add(lane, start, end, kind, name, **more)

    def kernel(
        self, start: int, end: int, bucket: Bucket | None = "compute", launch: int | None = None, lane: str = "0/7",
        **more: object,
    ) -> int:  # fmt: skip
        index = self.add(lane, start, end, "kernel", launch=launch, **more)
        if bucket is not None:
            self.work[index] = did(bucket)
        return index

    def timeline(self) -> Timeline:
        """In order of start, as a reader leaves it; indices are mended."""
        order = sorted(range(len(self.spans)), key=lambda i: (self.spans[i].start, -self.spans[i].end))
        at = {old: new for new, old in enumerate(order)}
        self.place = at
        spans = tuple(
            replace(
                self.spans[i],
                launch=at.get(self.spans[i].launch),
                parent=at.get(self.spans[i].parent),
            )
            for i in order
        )
        more = dict(self.more)
        names = dict.fromkeys(lane.device for lane in self.lanes if lane.kind == "gpu")
        return Timeline(
            "measured", "made", spans, tuple(self.lanes), tuple(self.ops), Window(self.start, self.end, "made"),
            more.pop("devices", tuple(DeviceInfo(name) for name in names)), **more,
        )  # fmt: skip

    def ledger(self) -> Ledger:
        timeline = self.timeline()
        return account(timeline, None, {self.place[i]: work for i, work in self.work.items()})

    def causes(self, device: int = 0) -> dict[str, int]:
        """Nanoseconds by cause of one device, checked to add up to the window."""
        ledger = self.ledger()
        entries = ledger.devices[device].entries
        assert sum(entry.ns for entry in entries) == ledger.window_ns
        return {entry.cause: entry.ns for entry in entries}
