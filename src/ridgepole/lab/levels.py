"""Memory levels found from a latency curve: where it lies flat, and where it rises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

RISE = 1.35
"""A point this much above a level's median is on its way to the next one."""
LEAST_SPAN = 1.9
"""A level holds from some size to so many times it at least: what is narrower is on the way up, however many points."""


@dataclass(frozen=True, slots=True)
class Level:
    """One plateau: the working sets it was seen at, bytes, and its latency, in the curve's unit."""

    least: float
    most: float
    latency: float
    points: int


def find(curve: Sequence[tuple[float, float]]) -> tuple[Level, ...]:
    """The plateaus of (working set, latency), smallest first; points on the way up between two belong to none.

    What disturbs a chase only slows it, and a larger working set is never nearer: so a point counts as no slower than
    any to its right. A level ends where a point lies RISE above its median.
    """
    groups: list[list[tuple[float, float]]] = []
    for size, latency in _rising(curve):
        if groups and latency < RISE * median(value for _, value in groups[-1]):
            groups[-1].append((size, latency))
        else:
            groups.append([(size, latency)])
    # The last group is a level however short: nothing comes after it.
    flat = [group for i, group in enumerate(groups) if group[-1][0] >= LEAST_SPAN * group[0][0] or i == len(groups) - 1]
    return tuple(Level(group[0][0], group[-1][0], median(value for _, value in group), len(group)) for group in flat)


def _rising(curve: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    least, found = float("inf"), []
    for size, latency in sorted(curve, reverse=True):
        least = min(least, latency)
        found.append((size, least))
    return found[::-1]
