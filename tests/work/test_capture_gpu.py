"""Programs that ask for a GPU, captured where there is none: what they would run there, and where they would wait."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from ridgepole.errors import BadInput  # noqa: E402
from ridgepole.work.capture import capture  # noqa: E402
from ridgepole.work.op import Program, Tensor  # noqa: E402

FLASH = "aten::_scaled_dot_product_flash_attention"
EFFICIENT = "aten::_scaled_dot_product_efficient_attention"


def names(program: Program) -> list[str]:
    return [op.operator for op in program.ops]


def tensor(*shape: int, dtype: Any = torch.float32, grad: bool = False) -> Any:
    return torch.empty(shape, dtype=dtype, device="meta", requires_grad=grad)


def attend(*args: Any, **kwargs: Any) -> Program:
    return capture(F.scaled_dot_product_attention, args, kwargs, name="attention")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_attention_is_flash(dtype: Any) -> None:
    q = tensor(2, 8, 128, 64, dtype=dtype)
    assert names(attend(q, q, q, is_causal=True)) == [FLASH]


def test_flash_takes_grouped_heads_as_they_are() -> None:
    q, k = tensor(2, 32, 1, 128, dtype=torch.bfloat16), tensor(2, 8, 256, 128, dtype=torch.bfloat16)
    program = attend(q, k, k, enable_gqa=True)
    assert names(program) == [FLASH]
    assert program.ops[0].call.tensor(1).shape == (2, 8, 256, 128)


def test_fp32_attention_is_the_memory_efficient_one() -> None:
    q = tensor(2, 8, 128, 64)
    assert names(attend(q, q, q)) == [EFFICIENT]


def test_attention_with_a_mask_is_the_memory_efficient_one() -> None:
    q, mask = tensor(2, 8, 128, 64, dtype=torch.bfloat16), tensor(2, 1, 128, 128, dtype=torch.bfloat16)
    program = attend(q, q, q, attn_mask=mask)
    assert names(program)[-1] == EFFICIENT
    assert program.ops[-1].call.tensor(3).shape == (2, 8, 128, 128)


def test_a_boolean_mask_becomes_a_bias_first() -> None:
    q, mask = tensor(2, 8, 128, 64, dtype=torch.bfloat16), tensor(2, 1, 128, 128, dtype=torch.bool)
    program = attend(q, q, q, attn_mask=mask)
    assert "aten::masked_fill_" in names(program)
    assert names(program)[-1] == EFFICIENT


def test_attention_of_other_dtypes_is_spelled_out() -> None:
    q = tensor(2, 8, 16, 64, dtype=torch.float64)
    counts = Counter(names(attend(q, q, q)))
    assert counts["aten::bmm"] == 2
    assert counts["aten::_softmax"] + counts["aten::_safe_softmax"] == 1


def test_attention_obeys_the_backends_allowed() -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = tensor(2, 8, 128, 64, dtype=torch.bfloat16)

    def run(q: Any) -> Any:
        with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION]):
            return F.scaled_dot_product_attention(q, q, q)

    assert names(capture(run, (q,), name="run")) == [EFFICIENT]


def test_attention_inside_torch_s_own_layers_is_the_gpu_s() -> None:
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dtype=torch.bfloat16).train()
    program = capture(lambda x: layer(x).sum().backward(), (tensor(2, 16, 64, dtype=torch.bfloat16),), name="layer")
    counts = Counter(names(program))
    assert counts[FLASH] == counts[FLASH + "_backward"] == 1
    assert counts["aten::native_dropout"] == counts["aten::native_dropout_backward"] == 3
    assert not any("cpu" in name for name in counts)


def test_flash_backward_reads_what_forward_made() -> None:
    q = tensor(2, 4, 32, 64, dtype=torch.bfloat16, grad=True)
    program = capture(lambda q: F.scaled_dot_product_attention(q, q, q).sum().backward(), (q,), name="f")
    forward = next(op for op in program.ops if op.operator == FLASH)
    backward = next(op for op in program.ops if op.operator == FLASH + "_backward")
    assert backward.inputs[1:4] == forward.inputs[:3]
    assert backward.inputs[4] == forward.results[0]


def test_rms_norm_is_one_kernel_forward_and_one_call_backward() -> None:
    norm = nn.RMSNorm(64)
    program = capture(lambda x: norm(x).sum().backward(), (tensor(4, 64),), name="f")
    counts = Counter(names(program))
    assert counts["aten::_fused_rms_norm"] == counts["aten::_fused_rms_norm_backward"] == 1
    assert "aten::pow" not in counts
    backward = next(op for op in program.ops if op.operator.endswith("norm_backward"))
    assert backward.call.args[0] == Tensor((4, 64), "float32", (0, 0))
    assert backward.where.phase == "backward"
    assert norm.weight.grad is None


def test_batch_norm_is_cudnn_s() -> None:
    norm = nn.BatchNorm2d(8)
    program = capture(lambda x: norm(x).sum().backward(), (tensor(4, 8, 5, 5, grad=True),), name="f")
    forward = next(op for op in program.ops if op.operator == "aten::cudnn_batch_norm")
    backward = next(op for op in program.ops if op.operator == "aten::cudnn_batch_norm_backward")
    assert backward.inputs[0] == forward.inputs[0]


def test_autocast_on_the_gpu_keeps_its_own_lists() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8), nn.Softmax(-1))

    def run(x: Any) -> Any:
        with torch.autocast("cuda"):
            return model(x).exp()

    program = capture(run, (tensor(4, 8),), name="run")
    dtypes = {op.operator: op.call.tensors[0].dtype for op in program.ops}
    assert dtypes["aten::addmm"] == "float16"
    assert dtypes["aten::native_layer_norm"] == dtypes["aten::_softmax"] == dtypes["aten::exp"] == "float32"


@pytest.mark.parametrize("autocast", [torch.amp.autocast, torch.autocast])
def test_autocast_takes_the_dtype_it_is_given(autocast: Any) -> None:
    def run(x: Any) -> Any:
        with autocast("cuda", dtype=torch.bfloat16):
            return x @ x

    assert capture(run, (tensor(4, 4),), name="run").ops[-1].call.tensors[0].dtype == "bfloat16"


def test_a_program_that_asks_for_a_gpu_finds_one() -> None:
    def run() -> Any:
        assert torch.cuda.is_available()
        assert torch.cuda.device_count() == 1
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.cuda.set_device(0)
        torch.randn(2, generator=torch.Generator(device).manual_seed(0), device=device)
        torch.cuda.empty_cache()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = torch.ones(4, 4, device=device)
        start = torch.cuda.Event(enable_timing=True)
        start.record()
        assert start.elapsed_time(start) > 0
        assert x.is_cuda
        return x.cuda().to("cuda:0") + torch.zeros(4, 4).to(device, torch.float16)

    assert Counter(names(capture(run, name="run"))) == Counter(
        ["aten::randn", "aten::ones", "aten::zeros", "aten::_to_copy", "aten::add"]
    )


def test_waits_are_marked() -> None:
    def run(x: Any) -> None:
        torch.cuda.synchronize()
        total = x.sum()
        total.item()
        x.cpu()
        x.nonzero()
        x[x > 0]
        x.tolist()

    program = capture(run, (tensor(4),), name="run")
    waits = [op.operator for op in program.ops if op.syncs]
    assert waits == [
        "cuda::synchronize", "aten::_local_scalar_dense", "aten::_to_copy", "aten::nonzero", "aten::index",
        "aten::_to_copy",
    ]  # fmt: skip
    assert not program.ops[1].syncs


def test_work_on_the_host_is_not_the_gpu_s() -> None:
    def run(x: Any) -> Any:
        host = x.cpu()
        host = host * 2 + 1
        return host.sum().item()

    assert names(capture(run, (tensor(4),), name="run")) == ["aten::_to_copy"]


def test_a_copy_back_to_the_gpu_waits_unless_told_not_to() -> None:
    def run(x: Any) -> Any:
        host = x.cpu()
        return host.to("cuda"), host.to("cuda", non_blocking=True)

    assert [op.syncs for op in capture(run, (tensor(4),), name="run").ops] == [True, True, False]


def test_a_scalar_of_the_host_costs_no_wait() -> None:
    def run(x: Any) -> Any:
        return x * torch.tensor(2.0).item()

    program = capture(run, (tensor(4),), name="run")
    assert names(program) == ["aten::mul"]
    assert program.ops[0].call.args[1] == 2.0
    assert not program.notes


def test_values_read_are_said_to_be_assumed() -> None:
    def run(x: Any) -> Any:
        loss = x.sum()
        return f"{loss.item():.3f}"

    note = capture(run, (tensor(4),), name="run").notes[0]
    line = run.__code__.co_firstlineno + 2
    assert note == f"assumed: 1 value read from the GPU (test_capture_gpu.py:{line}) taken for 1.0"


def test_flags_are_taken_for_all_going_well() -> None:
    def run(x: Any) -> Any:
        if torch.isnan(x).any() or not torch.isfinite(x).all():
            raise RuntimeError("diverged")
        while not (x > 0).all():
            x = x + 1
        return x

    assert "aten::add" not in names(capture(run, (tensor(4),), name="run"))


def test_a_stopping_flag_set_by_the_program_s_own_constants_is_followed() -> None:
    def run(x: Any) -> Any:
        going = torch.ones(2, dtype=torch.int64, device="cuda")
        length = 0
        while not going.max() == 0:  # noqa: SIM201  (as generation loops write it)
            x = x * 2
            length += 1
            done = torch.full((2,), length >= 3, dtype=torch.bool, device="cuda") | (x.sum(-1) > 5)
            going = going & ~done
        return x

    program = capture(run, (tensor(2, 4),), name="run")
    assert Counter(names(program))["aten::mul"] == 3


def test_a_value_the_program_set_itself_needs_no_assumption() -> None:
    def run(x: Any) -> Any:
        return x * (torch.full((), 2.0, device="cuda") * 3 + torch.ones((), device="cuda")).item()

    program = capture(run, (tensor(4),), name="run")
    assert program.ops[-1].call.args[1] == 7.0
    assert not program.notes


def test_flex_attention_is_the_one_kernel_it_compiles_to() -> None:
    from torch.nn.attention import flex_attention as flex

    q = tensor(2, 4, 128, 64, dtype=torch.bfloat16, grad=True)
    program = capture(lambda q: flex.flex_attention(q, q, q).sum().backward(), (q,), name="run")
    assert [name for name in names(program) if "flex" in name] == [
        "higher_order::flex_attention", "higher_order::flex_attention_backward",
    ]  # fmt: skip


def test_a_program_s_own_cuda_graph_is_told_to_be_priced_as_its_step() -> None:
    with pytest.raises(BadInput, match="price the step that the graph holds"):
        capture(lambda x: torch.cuda.CUDAGraph(), (tensor(1),), name="run")


def test_a_loop_that_no_assumption_ends_is_refused() -> None:
    def run(x: Any) -> None:
        while x.max().item() > 0.5:
            x.mul_(0.9)

    with pytest.raises(BadInput, match=r"values read from the GPU at test_capture_gpu\.py:\d+: if a loop"):
        capture(run, (tensor(1),), name="run")


def test_sizes_that_depend_on_values_are_bounded_and_said() -> None:
    program = capture(lambda x: x[x > 0] * 2, (tensor(4, 5),), name="run")
    assert program.ops[-1].call.outputs[0].shape == (20,)
    assert any("the mask selects every element, an upper bound" in note for note in program.notes)


def test_a_scaled_training_step_is_captured_whole() -> None:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(model.parameters())

    def step(x: Any) -> float:
        scaler = torch.amp.GradScaler("cuda")
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x.cuda()).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        return loss.item()

    program = capture(step, (tensor(2, 4),), name="step")
    counts = Counter(names(program))
    assert counts["aten::_foreach_addcdiv_"] == 1
    assert counts["aten::_foreach_norm"] == 1
    assert {op.where.phase for op in program.ops} == {"forward", "backward", "optimizer"}


def test_a_compiled_function_is_captured_as_it_was_written() -> None:
    def run(x: Any) -> Any:
        fast = torch.compile(lambda x: x * 2 + 1)
        return fast(x)

    program = capture(run, (tensor(4),), name="run")
    assert names(program) == ["aten::mul", "aten::add"]
    assert any("torch.compile" in note for note in program.notes)


def test_recurrent_layers_are_priced_as_an_upper_bound() -> None:
    model = nn.LSTM(8, 16)
    program = capture(lambda x: model(x)[0], (tensor(5, 2, 8),), name="run")
    assert not any("mkldnn" in name for name in names(program))
    assert any("recurrent" in note for note in program.notes)


def test_afterwards_there_is_no_gpu_again() -> None:
    before = torch.cuda.is_available(), torch.cuda.synchronize, torch.compile, F.scaled_dot_product_attention
    capture(lambda: torch.ones(2).cuda(), name="run")
    assert before == (torch.cuda.is_available(), torch.cuda.synchronize, torch.compile, F.scaled_dot_product_attention)
    assert torch.backends.mkldnn.enabled
