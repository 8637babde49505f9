"""Inputs that a Hugging Face model takes, of the sizes its config says."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

IMAGE = 224
"""Pixels a side where a config does not say."""
CHANNELS = 3
BY_TOKEN = ("ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForConditionalGeneration", "ForTokenClassification")
"""Endings of the classes whose loss has a target for each token."""
SAMPLES = 16000
"""One second of sound at 16 kHz."""


def parameters(kind: Any) -> Mapping[str, inspect.Parameter]:
    """The parameters of a model class's forward pass."""
    return inspect.signature(kind.forward).parameters


def main_input(kind: Any) -> str:
    """What the model mainly reads: "input_ids", "pixel_values", …"""
    return str(getattr(kind, "main_input_name", "input_ids"))


def reads_tokens(kind: Any) -> bool:
    """Whether a context in tokens means anything to the model."""
    return main_input(kind) == "input_ids"


def inputs(model: Any, batch: int, context: int) -> dict[str, Any]:
    """What to call the model with: `batch` sequences of `context` tokens, or as many images or sounds."""
    import torch

    config = model.config
    name = main_input(type(model))
    takes = parameters(type(model))
    given: dict[str, Any] = {}
    if name == "input_ids":
        given["input_ids"] = torch.zeros(batch, context, dtype=torch.int64)
        if "pixel_values" in takes and _two_towers(config):
            given["pixel_values"] = _images(model, batch)
    elif name == "pixel_values":
        given["pixel_values"] = _images(model, batch)
    elif name == "input_features":
        frames = 2 * int(getattr(config, "max_source_positions", 1500))
        given[name] = torch.zeros(batch, int(getattr(config, "num_mel_bins", 80)), frames, dtype=model.dtype)
    else:
        given[name] = torch.zeros(batch, SAMPLES, dtype=model.dtype)
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in takes:
        given["decoder_input_ids"] = torch.zeros(batch, 1, dtype=torch.int64)
    return given


def labels(model: Any, batch: int, given: Mapping[str, Any]) -> Any:
    """Targets of the model's loss: a token for each token, or a class for each sequence or image."""
    import torch

    name = type(model).__name__
    tokens = given.get("decoder_input_ids", given.get("input_ids"))
    if tokens is not None and name.endswith(BY_TOKEN):
        return torch.zeros_like(tokens)
    return torch.zeros(batch, dtype=torch.int64)


def _two_towers(config: Any) -> bool:
    """A model of text beside images (CLIP), which wants both; one that reads images among its tokens does not."""
    return getattr(config, "vision_config", None) is not None and hasattr(config, "projection_dim")


def _images(model: Any, batch: int) -> Any:
    import torch

    config = getattr(model.config, "vision_config", None) or model.config
    size = getattr(config, "image_size", None) or IMAGE
    height, width = (size, size) if isinstance(size, int) else tuple(size)[:2]
    channels = int(getattr(config, "num_channels", None) or CHANNELS)
    return torch.zeros(batch, channels, height, width, dtype=model.dtype)
