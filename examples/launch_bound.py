"""A loop of tiny operations: the GPU finishes each before the CPU has issued the next.

python examples/launch_bound.py [STEPS]
ridgepole why examples/launch_bound.py
"""

from __future__ import annotations

import sys

import torch

import ridgepole


def step(x: torch.Tensor) -> torch.Tensor:
    """100 elementwise kernels over 4 kB."""
    for _ in range(50):
        x = x * 1.0001
        x = x + 0.5
    return x


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    x = torch.randn(1024, device="cuda" if torch.cuda.is_available() else "cpu")
    for _ in range(steps):
        with ridgepole.step():
            y = step(x)
    print(f"{steps} steps, mean {y.mean().item():.3f}")


if __name__ == "__main__":
    main()
