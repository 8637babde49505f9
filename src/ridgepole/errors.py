"""What can go wrong, and the exit code each kind gives.

    RidgepoleError
    ├── BadInput      exit 2   the user's file, name or argument; says what is wrong and what to do
    └── Missing       exit 3   something this needs is not here; says how to get it

Each message is one line, complete by itself: it is printed as it stands.
"""

from __future__ import annotations


class RidgepoleError(Exception):
    """An error whose message is one clear line for the user."""

    exit_code = 1


def bug(error: BaseException) -> str:
    """The one line for an error that no input should have caused."""
    return f"a bug in ridgepole: {type(error).__name__}: {error} (RIDGEPOLE_TRACEBACK=1 shows where)"


class BadInput(RidgepoleError):
    """The user's input cannot be used as it is."""

    exit_code = 2


class Missing(RidgepoleError):
    """A package, device or permission that this needs is not here."""

    exit_code = 3
