"""What a price comes to in tokens and money."""

from __future__ import annotations

from math import inf

from ridgepole.errors import BadInput

HOUR = 3600.0


def per_second(count: float, seconds: float) -> float:
    """`count` things (tokens, images) a second, if each run of `seconds` makes so many."""
    if seconds <= 0:
        raise BadInput("a rate needs a time above zero")
    return count / seconds


def cost(seconds: float, per_hour: float) -> float:
    """Money for `seconds` of a machine that costs `per_hour`, in the same currency."""
    if not 0 <= per_hour < inf:
        raise BadInput(f"a price of {per_hour} an hour is none: give a number from zero up")
    return seconds * per_hour / HOUR


def cost_per_million(count: float, seconds: float, per_hour: float) -> float:
    """Money for a million things, if each run of `seconds` makes `count` of them."""
    return cost(1e6 / per_second(count, seconds), per_hour)
