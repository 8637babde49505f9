"""Clocks and power at this moment, as nvidia-smi reads them."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

QUERY = ("driver_version", "clocks.sm", "clocks.mem", "power.draw")
PATIENCE = 10
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """The driver's version, SM and memory clock in Hz, power in watts; "" and None where nvidia-smi does not say."""

    driver: str = ""
    sm: float | None = None
    memory: float | None = None
    power: float | None = None

    def __str__(self) -> str:
        if self.sm is None or self.memory is None:
            return "not known (no nvidia-smi)"
        said = f"SM {self.sm / 1e6:,.0f} MHz, memory {self.memory / 1e6:,.0f} MHz"
        return said + (f", {self.power:.0f} W" if self.power is not None else "")


def clocks(index: int = 0) -> Clocks:
    """Read now. Without nvidia-smi nothing is known."""
    query = f"--query-gpu={','.join(QUERY)}"
    try:
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader,nounits", "-i", str(index)],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.SubprocessError):
        return Clocks()
    return parse(done.stdout)


def parse(text: str) -> Clocks:
    """The first line of nvidia-smi's answer: version, MHz, MHz, W; "[N/A]" for what it does not know."""
    cells = [cell.strip() for cell in text.partition("\n")[0].split(",")]
    if len(cells) != len(QUERY):
        return Clocks()
    driver, *rest = cells
    sm, memory, power = (_number(cell) for cell in rest)
    return Clocks(driver, sm * 1e6 if sm else None, memory * 1e6 if memory else None, power)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
