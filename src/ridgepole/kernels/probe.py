"""The largest shared memory a block gets, tried for real: each size in a process of its own, for it may be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ridgepole.errors import BadInput, RidgepoleError

WORD = 4
ROUNDS = 4
TIMEOUT = 60.0
"""Seconds for one size, with opening the device and compiling."""


def largest_shared(
    device_name: str, sizes: Sequence[int], *, timeout: float = TIMEOUT
) -> tuple[tuple[int, bool, str], ...]:
    """For each size in bytes: the size, whether a kernel that used all of it ran and was right, and what happened.

    Any backend, by the name that `open_device` takes. Raises BadInput for a size that is no multiple of 4 above 0.
    """
    for size in sizes:
        if size < WORD or size % WORD:
            raise BadInput(f"{size} B of shared memory cannot be probed: give a multiple of {WORD} above 0")
    return tuple((size, *_tried(device_name, size, timeout)) for size in sizes)


def _tried(device_name: str, size: int, timeout: float) -> tuple[bool, str]:
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH", ""))))
    try:
        done = subprocess.run(
            [sys.executable, "-m", __spec__.name if __spec__ else __name__, device_name, str(size)],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return False, f"did not finish within {timeout:g} s"
    if done.returncode == 0:
        return True, "accepted"
    if done.returncode < 0:
        return False, f"killed the process ({_called(-done.returncode)})"
    said = done.stderr.strip().splitlines()
    return False, f"refused: {said[-1] if said else f'exit code {done.returncode}'}"


def _called(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def main(device_name: str, size: int) -> int:
    """In the child: run the probe at one size."""
    from ridgepole.kernels.device import open_device
    from ridgepole.kernels.prepare import prepare

    try:
        prepare(open_device(device_name), "shared_probe", size // WORD, ROUNDS, defines={"BYTES": size})
    except RidgepoleError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
