"""Public configs, priced without weights."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from ridgepole.errors import BadInput  # noqa: E402
from ridgepole.work import target  # noqa: E402
from ridgepole.work.op import Program, Unpriced  # noqa: E402

CONFIGS = Path(__file__).resolve().parents[2] / "examples/configs"
FLASH = "aten::_scaled_dot_product_flash_attention"

SMALL_LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256, "torch_dtype": "bfloat16",
}  # fmt: skip


def capture(tmp_path: Path, document: dict[str, Any], **options: Any) -> Program:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(document))
    return target.load(str(path), **options).capture()


def counts(program: Program) -> Counter[str]:
    return Counter(op.operator for op in program.ops)


def test_llama_3_8b_decodes_over_its_cache_reading_its_weights_once() -> None:
    program = target.load(str(CONFIGS / "llama-3-8b.json"), step="decode", batch=1, context=128).capture()
    assert program.parameters == pytest.approx(16.06e9, rel=1e-3)
    found = counts(program)
    assert found["aten::mm"] == 32 * 7 + 1
    assert found[FLASH] == 32
    attention = next(op for op in program.ops if op.operator == FLASH)
    assert attention.call.tensors[0].shape == (1, 32, 1, 128)
    assert attention.call.tensors[1].shape == (1, 8, 129, 128)
    # Everything but the embedding table, of which one row is read.
    weights = sum(op.call.tensors[1].nbytes for op in program.ops if op.operator == "aten::mm")
    assert weights == program.parameters - 128256 * 4096 * 2 - 65 * 4096 * 2 - (128 // 2) * 4 * 2
    assert any(op.where.module == "model.layers.31.mlp.down_proj" for op in program.ops)
    assert not any(isinstance(op.cost, Unpriced) for op in program.ops)
    assert not any(op.syncs for op in program.ops)


def test_prefill_takes_the_context_at_once_and_asks_for_the_last_token_only(tmp_path: Path) -> None:
    program = capture(tmp_path, SMALL_LLAMA, step="prefill", batch=2, context=32)
    products = [op.call.outputs[0].shape for op in program.ops if op.operator == "aten::mm"]
    assert products[0] == (64, 64)
    assert products[-1] == (2, 256)
    attention = next(op for op in program.ops if op.operator == FLASH)
    assert attention.call.args[4] is True  # causal


def test_training_goes_forward_backward_and_steps(tmp_path: Path) -> None:
    program = capture(tmp_path, SMALL_LLAMA, step="train", batch=2, context=32)
    phases = Counter(op.where.phase for op in program.ops)
    assert phases["forward"] and phases["backward"] and phases["optimizer"]
    found = counts(program)
    assert found["aten::nll_loss_forward"] == 1
    assert found[FLASH + "_backward"] == 2
    assert program.peak_memory > 4 * program.parameters  # weights, gradients, two moments
    assert "aten::zeros_like" not in {op.operator for op in program.ops if op.where.phase == "optimizer"}


def test_backward_products_cost_twice_the_forward_ones(tmp_path: Path) -> None:
    program = capture(tmp_path, SMALL_LLAMA, step="train", batch=2, context=32)
    flops: Counter[str] = Counter()
    for op in program.ops:
        if op.operator == "aten::mm" and not isinstance(op.cost, Unpriced):
            flops[op.where.phase] += op.cost.flops
    assert flops["backward"] == 2 * flops["forward"]


@pytest.mark.parametrize(
    ("name", "step", "parameters"),
    [
        ("gpt2", "decode", 124.4e6 * 4),
        ("bert-base", "prefill", 109.5e6 * 4),
        ("resnet-50", "prefill", 25.6e6 * 4),
        ("vit-base", "train", 86.6e6 * 2),
    ],
)
def test_models_of_every_kind_have_their_public_size(name: str, step: str, parameters: float) -> None:
    program = target.load(str(CONFIGS / f"{name}.json"), step=step, batch=2, context=16).capture()
    assert program.parameters == pytest.approx(parameters, rel=0.01)
    assert program.name.startswith(f"{name} {step}, batch 2")


SMALL: list[tuple[dict[str, Any], str]] = [
    ({"model_type": "t5", "d_model": 32, "d_ff": 64, "d_kv": 8, "num_layers": 2, "num_heads": 4}, "decode"),
    ({"model_type": "t5", "d_model": 32, "d_ff": 64, "d_kv": 8, "num_layers": 2, "num_heads": 4}, "train"),
    ({"model_type": "mistral", **{k: v for k, v in SMALL_LLAMA.items() if k != "model_type"}}, "decode"),
    ({"model_type": "qwen2", **{k: v for k, v in SMALL_LLAMA.items() if k != "model_type"}}, "train"),
    (
        {
            "model_type": "mixtral", **{k: v for k, v in SMALL_LLAMA.items() if k != "model_type"},
            "num_local_experts": 4,
        },
        "decode",
    ),
    (
        {"model_type": "mamba", "hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 64, "state_size": 4},
        "decode",
    ),
    (
        {
            "model_type": "whisper", "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 64,
            "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
            "max_source_positions": 50, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
            "decoder_start_token_id": 1,
        },
        "decode",
    ),
    (
        {
            "model_type": "clip", "projection_dim": 16,
            "text_config": {
                "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
            },
            "vision_config": {
                "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
                "image_size": 32, "patch_size": 16,
            },
        },
        "prefill",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("document", "step"), SMALL, ids=[f"{d['model_type']}-{s}" for d, s in SMALL])
def test_many_kinds_of_model_are_captured(tmp_path: Path, document: dict[str, Any], step: str) -> None:
    program = capture(tmp_path, document, step=step, batch=1, context=16)
    assert any(op.operator in ("aten::mm", "aten::addmm", "aten::bmm") for op in program.ops)
    assert program.parameters > 0


def test_decode_is_the_step_where_none_is_asked_for(tmp_path: Path) -> None:
    program = capture(tmp_path, SMALL_LLAMA, context=8)
    assert " decode, " in program.name
    assert any("as none was asked for" in note for note in program.notes)


def test_a_directory_with_a_config_is_a_target(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SMALL_LLAMA))
    assert target.load(str(tmp_path), step="prefill").name.startswith(tmp_path.name)


def test_a_context_beyond_the_config_s_positions_is_said(tmp_path: Path) -> None:
    program = capture(tmp_path, {**SMALL_LLAMA, "max_position_embeddings": 16}, step="prefill", context=32)
    assert any("beyond the 16 positions" in note for note in program.notes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "names no model_type"),
        ('{"hidden_size": 4}', "names no model_type"),
        ('{"model_type": "nosuchmodel"}', "knows no model type 'nosuchmodel'"),
        ('{"model_type": "llama", "hidden_size": "big"}', "refused by transformers"),
        ('{"model_type": "llama", "torch_dtype": "float31"}', "float31"),
    ],
)
def test_a_config_that_is_none_is_told_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        target.load(str(path), step="decode").capture()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_encoder_decodes_nothing() -> None:
    with pytest.raises(BadInput, match="bert generates no tokens"):
        target.load(str(CONFIGS / "bert-base.json"), step="decode")


def test_a_directory_without_a_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"without a config.json"):
        target.load(str(tmp_path))
