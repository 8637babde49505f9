"""How a live program is recorded, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

from ridgepole.errors import BadInput, RidgepoleError
from ridgepole.timeline.model import Timeline


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps of each kind, in order: `warmup` untimed, `bare` timed without the profiler, `settle` recorded but not
    explained (the first recorded steps are far slower: up to four times as many, while they still get faster),
    `steps` recorded and explained, then bare ones again.

    A bare batch has at least `bare` steps and lasts 50 ms, by a first one's measure; 0 times nothing, and inflation
    is unknown then.
    """

    warmup: int = 3
    bare: int = 5
    settle: int = 2
    steps: int = 3

    def __post_init__(self) -> None:
        if min(self.warmup, self.bare, self.settle) < 0 or self.steps < 1:
            raise BadInput("a plan needs at least 1 recorded step, and no negative count of others")

    @property
    def least(self) -> int:
        """Steps of 5 ms or more that must be marked for the plan to complete; one's end is the next one's start."""
        return self.warmup + 2 * self.bare + self.settle + self.steps + 1


@dataclass(frozen=True, slots=True)
class Recording:
    """What one live run gave.

    `timeline`: None where nothing could be recorded; `error` then says why in one line. `exit_code`: what the
    program's process would have ended with. `result`: what the function returned, last call. `bare_ns`:
    nanoseconds a step without the profiler, one for each batch timed; `recorded_ns`: a recorded step's.
    """

    timeline: Timeline | None
    exit_code: int = 0
    result: object = None
    error: RidgepoleError | None = None
    notes: tuple[str, ...] = ()
    bare_ns: tuple[int, ...] = ()
    recorded_ns: int | None = None
