"""What was found, what it rests on, and what it would win."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding in plain words.

    `id`: stable ("launch-bound"). `fix`: stable id of the fix ("cuda-graph"). `gain_ns`: predicted gain over the
    window, its arithmetic in `arithmetic`, an upper bound if `upper_bound`. `after_ns`: window after the fix.
    `how`: what to type or change. `evidence`: figures by name, plain JSON values.
    """

    id: str
    fix: str
    summary: str
    fix_summary: str
    how: str
    gain_ns: int
    after_ns: int
    arithmetic: str
    upper_bound: bool
    evidence: Mapping[str, object]
