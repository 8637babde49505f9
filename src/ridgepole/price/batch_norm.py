"""Batch norms: two passes with the batch's own statistics; with stored ones a pointwise scale and shift."""

from __future__ import annotations

from ridgepole.work.op import Op

_TRAINING = 5
"""Where `training` stands in the forward operators: (x, weight, bias, mean, variance, training, ...)."""


def among(op: Op) -> bool:
    """Whether `op` is a batch norm, or holds one, whose statistics have to be found first."""
    return any("batch_norm" in one.operator and not stored(one) for one in op.inner or (op,))


def stored(op: Op) -> bool:
    """Whether `op` is a batch norm of an evaluated model: it applies the running statistics and reduces nothing."""
    name = op.operator
    if "batch_norm" not in name or "backward" in name:
        return False
    return name.endswith(("_no_training", "_no_update")) or op.call.value(_TRAINING) is False
