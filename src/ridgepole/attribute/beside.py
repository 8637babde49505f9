"""Kernels of unknown work, matched to kernels whose work is known: by name and grid, then by their place in line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from ridgepole.attribute.ledger import KernelWork
from ridgepole.timeline.model import DEVICE_KINDS, Launch, Span, Timeline

Key = tuple[str, "tuple[int, int, int] | None", "tuple[int, int, int] | None"]
LONGEST = 4000
"""Kernels a side past which sequences are not aligned (it takes time of the square): names and grids must do."""


@dataclass(frozen=True, slots=True)
class Known:
    """One kernel whose work is known, in launch order."""

    key: Key
    work: KernelWork
    ns: int
    op: str


def key(name: str, launch: Launch | None) -> Key:
    """What tells a kernel from others without its op."""
    return (name, None, None) if launch is None else (name, launch.grid, launch.block)


def known_kernels(timeline: Timeline, work: Mapping[int, KernelWork]) -> list[Known]:
    """Kernels of `timeline` whose bytes are known from an op."""
    found = []
    for index, span in enumerate(timeline.spans):
        done = work.get(index)
        if span.kind in DEVICE_KINDS and done is not None and done.bytes is not None and done.quality == "exact":
            op = timeline.ops[span.op].operator if span.op is not None else ""
            found.append(Known(key(span.name, span.info), done, span.ns, op))
    return found


class Matcher:
    """Looks kernels up among known ones. `source` names where these were seen."""

    def __init__(self, known: Sequence[Known], source: str) -> None:
        self.source = source
        self._known = known
        self._exact: dict[Key, list[Known]] = {}
        self._named: dict[str, list[Known]] = {}
        for one in known:
            self._exact.setdefault(one.key, []).append(one)
            self._named.setdefault(one.key[0], []).append(one)

    def __bool__(self) -> bool:
        return bool(self._known)

    def find(self, span: Span, aligned: Known | None = None) -> tuple[KernelWork, str] | None:
        """The work of the known kernel that `span` is, and how that was told; None where none is or several differ."""
        wanted = key(span.name, span.info)
        same = self._exact.get(wanted) or (self._named.get(span.name) if wanted[1] is None else None)
        if not same:
            return None
        works = {(one.work.flops, one.work.bytes) for one in same}
        if len(works) == 1:
            return same[0].work, f"matched by name and grid to {len(same)} calls of {same[0].op} in {self.source}"
        if aligned is not None and aligned.key[0] == span.name:
            return aligned.work, f"matched by name and place in line to {aligned.op} in {self.source}"
        nearest = min(same, key=lambda one: abs(one.ns - span.ns))
        rival = [one for one in same if (one.work.flops, one.work.bytes) != (nearest.work.flops, nearest.work.bytes)]
        apart = min(abs(one.ns - span.ns) for one in rival) if rival else 0
        if abs(nearest.ns - span.ns) * 2 < apart:
            return nearest.work, f"matched by name, grid and duration to {nearest.op} in {self.source}"
        return None

    def align(self, spans: Sequence[Span]) -> dict[int, Known]:
        """Positions in `spans` (in launch order) to known kernels, by the longest common runs of names and grids.

        A long recording repeats one program: the known sequence is laid against each stretch as it comes.
        """
        known = [one.key[:2] for one in self._known]
        wanted = [key(span.name, span.info)[:2] for span in spans]
        if not known or not wanted:
            return {}
        found: dict[int, Known] = {}
        period = len(known)
        for start in range(0, len(wanted), period):
            part = wanted[start : start + period]
            if max(len(part), period) > LONGEST:
                break
            for block in SequenceMatcher(None, known, part, autojunk=False).get_matching_blocks():
                for offset in range(block.size):
                    found[start + block.b + offset] = self._known[block.a + offset]
        return found
