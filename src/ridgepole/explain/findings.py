"""The findings of a run: every rule asked, the largest gain first."""

from __future__ import annotations

from collections.abc import Callable

from ridgepole.attribute.ledger import Ledger
from ridgepole.explain.case import Case
from ridgepole.explain.finding import Finding
from ridgepole.machine.model import Machine
from ridgepole.registry import Registry
from ridgepole.timeline.model import Timeline

Rule = Callable[[Case], "Finding | None"]

rule: Registry[Rule] = Registry("rule", "ridgepole.explain.rules")

WORTH_SAYING = 0.01
"""Share of the window below which a finding is not worth a reader's time."""


def find(ledger: Ledger, timeline: Timeline, machine: Machine | None) -> tuple[Finding, ...]:
    """What the ledger points to, largest predicted gain first.

    A finding that wins less than 1 % of the window is left out, unless it has no gain to name (a statement).
    """
    if ledger.window_ns <= 0 or not ledger.devices:
        return ()
    case = Case(ledger, timeline, machine)
    found = [finding for check in rule.all().values() if (finding := check(case)) is not None]
    kept = [f for f in found if f.gain_ns >= WORTH_SAYING * ledger.window_ns or f.fix == "none"]
    return tuple(sorted(kept, key=lambda f: -f.gain_ns))
