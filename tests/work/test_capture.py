"""What a captured program says: its ops as they would run, where they are, what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from ridgepole.errors import BadInput  # noqa: E402
from ridgepole.work.capture import capture  # noqa: E402
from ridgepole.work.op import Program, Tensor, Unpriced  # noqa: E402


class Block(nn.Module):
    """A small transformer block, without dropout: CPU and GPU run the same ops of it."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        seen = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(seen)
        return x + self.mlp(x)


class Pictures(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.down = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False)
        self.head = nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        return self.head(F.relu(self.down(F.relu(self.conv(x)))).mean((2, 3)))


def names(program: Program) -> list[str]:
    return [op.operator for op in program.ops]


def flops(program: Program, *operators: str) -> int:
    return sum(op.cost.flops for op in program.ops if op.operator in operators and not isinstance(op.cost, Unpriced))


class Real(TorchDispatchMode):  # type: ignore[misc]
    """The ops of a real run on the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func._schema.name)
        return func(*args, **(kwargs or {}))


CPU_ONLY = {"aten::_scaled_dot_product_flash_attention_for_cpu": "aten::_scaled_dot_product_efficient_attention"}
CPU_ONLY |= {f"{cpu}_backward": f"{gpu}_backward" for cpu, gpu in CPU_ONLY.items()}


@pytest.mark.parametrize(("model", "shape"), [(Block(), (2, 16, 64)), (Pictures(), (2, 3, 16, 16))])
def test_a_training_step_is_the_ops_of_a_real_run_in_order(model: Any, shape: tuple[int, ...]) -> None:
    def step(x: Any) -> Any:
        loss = model(x).square().mean()
        loss.backward()
        return loss

    x = torch.randn(shape)
    with Real() as real:
        step(x)
    model.zero_grad()
    program = capture(step, (x,), name="step")
    wanted = [CPU_ONLY.get(name, name) for name in real.names if name != "aten::detach"]
    assert [name for name in names(program) if name != "aten::detach"] == wanted


@pytest.mark.parametrize(("model", "shape"), [(Block(), (2, 16, 64)), (Pictures(), (2, 3, 16, 16))])
def test_matrix_flops_are_those_of_torch_s_own_counter(model: Any, shape: tuple[int, ...]) -> None:
    def step(x: Any) -> None:
        model(x).sum().backward()

    x = torch.randn(shape, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        step(x)
    model.zero_grad()
    theirs = {str(name).replace(".", "::"): count for name, count in counter.get_flop_counts()["Global"].items()}
    program = capture(step, (x,), name="step")
    for name, count in theirs.items():
        assert flops(program, CPU_ONLY.get(name, name)) == count, name


def test_an_op_is_where_its_module_is_and_backward_where_its_forward_was() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 2)))
    program = capture(lambda x: model(x).sum().backward(), (torch.randn(3, 4),), name="step")
    places = {(op.operator, op.where.phase, op.where.module) for op in program.ops}
    assert ("aten::addmm", "forward", "0") in places
    assert ("aten::addmm", "forward", "2.0") in places
    assert ("aten::relu", "forward", "1") in places
    assert ("aten::mm", "backward", "2.0") in places
    assert ("aten::mm", "backward", "0") in places
    assert ("aten::threshold_backward", "backward", "1") in places


def test_an_op_names_the_user_s_line() -> None:
    def double(x: Any) -> Any:
        return x * 2

    line = double.__code__.co_firstlineno + 1
    program = capture(double, (torch.randn(3),), name="double")
    assert [op.where.source for op in program.ops] == [f"test_capture.py:{line}"]


def test_a_view_has_its_base_s_id_and_an_in_place_result_its_input_s() -> None:
    program = capture(lambda x: x.t().add_(1), (torch.empty(2, 3),), name="f")
    view, add = program.ops
    assert view.inputs == view.results == add.inputs == add.results
    assert program.returned == add.results


def test_value_ids_say_who_feeds_whom() -> None:
    def diamond(x: Any) -> Any:
        y = x.exp()
        return y.sin() + y.cos()

    exp, sin, cos, add = capture(diamond, (torch.empty(4),), name="diamond").ops
    assert sin.inputs == cos.inputs == exp.results
    assert add.inputs == sin.results + cos.results


def test_strides_are_kept() -> None:
    program = capture(lambda x: x.t().contiguous(), (torch.empty(4, 8),), name="f")
    clone = program.ops[-1].call
    assert clone.args[0] == Tensor((8, 4), "float32", (1, 8))
    assert clone.outputs == (Tensor((8, 4), "float32", (4, 1)),)


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD])
def test_an_optimizer_steps_over_lists_of_tensors_as_on_a_gpu(kind: Any) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    optimizer = kind(model.parameters(), lr=0.1)

    def step(x: Any) -> None:
        model(x).sum().backward()
        optimizer.step()

    steps = [op for op in capture(step, (torch.randn(2, 4),), name="step").ops if op.where.phase == "optimizer"]
    assert steps
    assert all(op.operator.startswith("aten::_foreach_") for op in steps)
    assert not any(op.syncs for op in steps)
    assert all(len(op.call.outputs) == 4 for op in steps)


def test_a_fused_optimizer_is_one_call() -> None:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step(x: Any) -> None:
        model(x).sum().backward()
        optimizer.step()

    program = capture(step, (torch.randn(2, 4),), name="step")
    counts = Counter(op.operator for op in program.ops if op.where.phase == "optimizer")
    assert counts["aten::_fused_adamw_"] == 1


def test_models_and_optimizers_are_left_as_they_were() -> None:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(model.parameters())
    weight, values = model.weight, model.weight.detach().clone()

    def step(x: Any) -> None:
        model(x).sum().backward()
        optimizer.step()

    capture(step, (torch.randn(2, 4),), name="step")
    assert model.weight is weight
    assert torch.equal(weight, values)
    assert weight.grad is None
    assert not optimizer.state
    assert optimizer.param_groups[0]["params"][0] is weight
    assert torch.is_grad_enabled()
    assert not torch.cuda.is_available() or torch.cuda.device_count() > 0


def test_a_weight_of_a_terabyte_takes_no_memory() -> None:
    huge = torch.empty(1 << 20, 1 << 19, dtype=torch.bfloat16, device="meta")
    program = capture(lambda w, x: F.linear(x, w), (huge, torch.empty(1, 1 << 19, dtype=torch.bfloat16)), name="f")
    assert program.peak_memory > 1 << 40


def test_parameters_are_counted_once_though_tied() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(100, 8)
            self.head = nn.Linear(8, 100, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids: Any) -> Any:
            return self.head(self.embed(ids))

    program = capture(Tied(), (torch.zeros(2, 3, dtype=torch.int64),), name="tied")
    assert program.parameters == 100 * 8 * 4


MIB = 1 << 20


def test_peak_memory_is_what_lives_at_once() -> None:
    x = torch.empty(MIB // 4, device="meta")

    def chain(x: Any) -> Any:
        for _ in range(5):
            x = x * 2
        return x

    # The input, what is read and what is written.
    assert capture(chain, (x,), name="chain").peak_memory == 3 * MIB


def test_activations_kept_for_backward_count_in_the_peak() -> None:
    x = torch.empty(MIB // 4, device="meta", requires_grad=True)

    def chain(x: Any) -> Any:
        for _ in range(5):
            x = x.sin()
        return x

    assert capture(chain, (x,), name="chain").peak_memory == 6 * MIB


def test_gradients_and_optimizer_state_count_in_the_peak() -> None:
    model = nn.Linear(512, 512, bias=False)  # 1 MiB
    optimizer = torch.optim.Adam(model.parameters())

    def step(x: Any) -> None:
        model(x).sum().backward()
        optimizer.step()

    program = capture(step, (torch.empty(1, 512),), name="step")
    assert program.parameters == MIB
    assert 4 * MIB <= program.peak_memory < 6 * MIB  # weight, gradient, two moments, temporaries of one step


def test_recomputed_activations_are_found_in_backward() -> None:
    from torch.utils.checkpoint import checkpoint

    model = nn.Sequential(nn.Linear(4, 4), nn.GELU())
    program = capture(
        lambda x: checkpoint(model, x, use_reentrant=False).sum().backward(), (torch.randn(2, 4),), name="step"
    )
    phases = Counter(op.where.phase for op in program.ops if op.operator == "aten::addmm")
    assert phases == {"forward": 1, "backward": 1}


def test_the_user_s_error_is_one_line_with_its_place() -> None:
    def wrong(x: Any) -> Any:
        return x @ x

    with pytest.raises(BadInput) as caught:
        capture(wrong, (torch.randn(2, 3),), name="wrong")
    assert "\n" not in str(caught.value)
    assert f"test_capture.py:{wrong.__code__.co_firstlineno + 1}" in str(caught.value)


def test_a_program_can_be_captured_again_after_an_error() -> None:
    def fails(x: Any) -> Any:
        raise ValueError("no\nway")

    with pytest.raises(BadInput, match=r"ValueError: no way at test_capture\.py"):
        capture(fails, (torch.randn(2),), name="fails")
    assert names(capture(lambda x: x + 1, (torch.randn(2),), name="f")) == ["aten::add"]
    assert type(torch.randn(1)) is torch.Tensor


def building(x: Any) -> Any:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).cuda().half()
    return model(x.half())


def test_building_a_model_inside_is_not_priced() -> None:
    program = capture(building, (torch.randn(2, 4),), name="building")
    worked = [op.operator for op in program.ops if isinstance(op.cost, Unpriced) or op.cost.kernels]
    assert worked[0] == "aten::_to_copy"
    assert worked[1] == "aten::addmm"
    assert not [name for name in worked if "uniform" in name or "fill" in name]


class Held:
    """A program that keeps its model in an object of its own."""

    def __init__(self) -> None:
        self.model = nn.Linear(4, 4)

    def step(self, x: Any) -> Any:
        return self.model(x)


def test_a_method_brings_its_object_s_model_along() -> None:
    held = Held()
    program = capture(held.step, (torch.randn(2, 4),), name="step")
    assert program.parameters == 20 * 4
    assert isinstance(held.model.weight, nn.Parameter)


@pytest.mark.parametrize("fn", [lambda x: x.softmax(-1), lambda x: F.layer_norm(x, (8,)), lambda x: x.sort()[0]])
def test_a_call_is_one_op(fn: Callable[[Any], Any]) -> None:
    assert len(capture(fn, (torch.randn(4, 8),), name="f").ops) == 1
