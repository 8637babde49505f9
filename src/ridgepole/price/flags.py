"""How the user's PyTorch is set, where that changes which kernel runs."""

from __future__ import annotations

from dataclasses import dataclass

from ridgepole.machine.model import Machine
from ridgepole.work.op import Cost

MATRIX_FAMILIES = frozenset({"matmul", "conv", "attention"})


@dataclass(frozen=True, slots=True)
class Flags:
    """`tf32`: fp32 matrix products may use TF32 (`torch.backends.cuda.matmul.allow_tf32`, off by default).

    `conv_tf32`: fp32 convolutions may (`torch.backends.cudnn.allow_tf32`, on by default).
    """

    tf32: bool = False
    conv_tf32: bool = True


def compute_dtype(cost: Cost, machine: Machine, flags: Flags) -> str:
    """The dtype whose rate the arithmetic of `cost` runs at: "tf32" where it is allowed and there is any."""
    if cost.dtype != "float32" or cost.family not in MATRIX_FAMILIES:
        return cost.dtype
    allowed = flags.conv_tf32 or flags.tf32 if cost.family == "conv" else flags.tf32
    return "tf32" if allowed and machine.peak("tensor", "tf32") is not None else "float32"
