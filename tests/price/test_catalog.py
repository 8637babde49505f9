"""Prices on every machine of the catalog, through real capture."""

from __future__ import annotations

import pytest

from ridgepole.machine import catalog
from ridgepole.price.price import price
from ridgepole.work.op import Program

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def step() -> Program:
    from ridgepole.work.targets import expression

    text = "F.softmax(F.layer_norm(F.gelu(F.linear(x, w)), (512,)), -1).sort(-1)[0].cumsum(0).t().contiguous().sum()"
    return expression.parse(text, ["x=1024x256:bf16", "w=512x256:bf16"]).capture()


@pytest.mark.parametrize("name", sorted(catalog.load()))
def test_every_machine_prices_every_mode_within_its_range(step: Program, name: str) -> None:
    machine = catalog.load()[name]
    for mode in ("eager", "graph", "compiled"):
        result = price(step, machine, mode)  # type: ignore[arg-type]
        assert 0 < result.low <= result.seconds <= result.high
        assert not result.unpriced
        assert result.gpu_seconds > result.bytes / machine.bandwidth * 0.5


def test_a_compiled_program_launches_less_and_moves_less(step: Program) -> None:
    machine = catalog.find("h100")
    eager, compiled = price(step, machine), price(step, machine, "compiled")
    assert compiled.launches < eager.launches
    assert compiled.bytes < eager.bytes
    assert compiled.flops == eager.flops
    assert any(op.operator.startswith("fused::") for op in compiled.ops)
