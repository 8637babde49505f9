"""What is in a trace's text: an object with `traceEvents` among its keys, or a bare list of events."""

from __future__ import annotations

from collections.abc import Iterator

from ridgepole.errors import BadInput
from ridgepole.timeline.reading import elements
from ridgepole.timeline.reading.events import Event
from ridgepole.timeline.reading.repair import Losses
from ridgepole.timeline.reading.source import Source
from ridgepole.timeline.reading.text import Text

KEPT = frozenset({"deviceProperties", "baseTimeNanoseconds", "distributedInfo", "traceName"})
"""Keys beside `traceEvents` whose values are kept."""

_FOREIGN = (
    ({"nodes", "schema"}, "a PyTorch execution trace (ExecutionTraceObserver): give the profiler's own trace"),
    ({"profiles", "shared"}, "a speedscope profile: ridgepole reads torch.profiler traces"),
    ({"segments", "device_traces"}, "a CUDA memory snapshot: ridgepole reads torch.profiler traces"),
    ({"resourceSpans"}, "an OpenTelemetry trace: ridgepole reads torch.profiler traces"),
)


class Document:
    """One trace being read: its events as they come; then its metadata, and what was lost."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.metadata: dict[str, bytes] = {}
        self.losses = Losses()
        self._text = Text(source)
        self._keys: list[str] = []
        self._listed = False
        """Whether the end of the list of events was found."""
        self._ended = False

    def batches(self) -> Iterator[list[Event]]:
        """Every event, some thousand at a time. Raises BadInput for a file that holds none."""
        text = self._text
        text.skip_mark()
        first = text.next()
        if first == b"[":
            text.drop(1)
            yield from self._list(text)
            self._ended = self._listed
        elif first == b"{":
            text.drop(1)
            yield from self._object()
        else:
            raise self._refuse(_why_not_json(first))
        if not text.productive and first == b"{":
            yield from self._search()
        if self.source.damage or not (self._listed or self._ended):
            self.losses.cut = True
        elif not self._ended:
            self.losses.around = True
        if not self._text.productive:
            raise self._refuse(self._why_empty())

    def _list(self, text: Text) -> Iterator[list[Event]]:
        """The events of the list whose `[` was just dropped, past any `]` that was not its own."""
        self._listed = yield from elements.batches(text, self.losses)
        while self._listed and elements.resumes(text, self.losses):
            self._listed = yield from elements.batches(text, self.losses)

    def _object(self) -> Iterator[list[Event]]:
        text = self._text
        while True:
            first = text.next()
            if not first or first == b"}":
                self._ended = first == b"}"
                return
            key = text.key()
            if key is None:
                return
            self._note(key)
            if key == "traceEvents" and text.next() == b"[":
                text.drop(1)
                yield from self._list(text)
                if not self._listed:
                    return
                continue
            value = text.value(keep=key in KEPT)
            if value is None:
                return
            if value:
                self.metadata[key] = value

    def _search(self) -> Iterator[list[Event]]:
        """Looks for the events again from the start of the file: what stands before them is no JSON."""
        again = Text(self.source)
        if again.events_key() is not None:
            again.drop(1)
            yield from self._list(again)
            self._text = again

    def _note(self, key: str) -> None:
        if len(self._keys) < 64:
            self._keys.append(key)
        for keys, what in _FOREIGN:
            if not self._text.productive and key in keys and keys.issubset(self._keys):
                raise self._refuse(f"is {what}")

    def _refuse(self, why: str) -> BadInput:
        return self.source.refuse(why)

    def _why_empty(self) -> str:
        if self.losses.lost:
            return "none of its events can be read: export the trace again"
        if self.losses.cut:
            return "is cut off before its first event: copy or export the trace again"
        if "traceEvents" in self._keys or not self._keys:
            return "has no events: nothing was recorded"
        return f"is JSON but no profiler trace: it has {', '.join(self._keys[:6])}, not traceEvents"


def _why_not_json(first: bytes) -> str:
    if not first:
        return "holds only blanks"
    return "is not JSON: give a trace that torch.profiler exported (.json or .json.gz)"
