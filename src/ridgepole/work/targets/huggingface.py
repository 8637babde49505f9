"""A Hugging Face config.json as a step to be priced: the library's own modelling code, no weights.

`decode`: one token for each sequence, over a cache of `context` tokens. `prefill`: `context` tokens at once (for
other models than language models: one forward pass). `train`: forward, backward and AdamW.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ridgepole import dtypes
from ridgepole.errors import BadInput, Missing
from ridgepole.work.target import Target
from ridgepole.work.targets import hf_inputs

DTYPE_ARGUMENT_SINCE = (4, 56)
"""The transformers release in which `torch_dtype` became `dtype`."""
CACHES = ("cache", "past_key_values", "cache_params")
LEARNING_RATE = 1e-4

Step = tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]


def target(config: Path, *, step: str | None = None, batch: int = 1, context: int = 128) -> Target:
    """The step of the model that the file `config` describes. Raises BadInput, Missing where transformers is not."""
    document = _read(config)
    transformers = _library()
    settings = _settings(transformers, document, config)
    kind = _model_class(transformers, settings)
    generates = _generates(transformers, settings, kind)
    notes = list(_remarks(document, settings, context))
    if step is None:
        step = "decode" if generates else "prefill"
        notes.append(f"step: {step}, as none was asked for")
    if step == "decode" and not generates:
        raise BadInput(f"{settings.model_type} generates no tokens: use --step prefill (one forward pass) or train")
    dtype = _dtype(document, notes)
    name = config.parent.resolve().name if config.name == "config.json" else config.stem

    def prepare() -> Step:
        with _quiet():
            model = _build(transformers, kind, settings, dtype)
            fn = _STEPS[step](model, batch, context)

        def run() -> Any:
            with _quiet():
                return fn()

        return run, (), {}

    sizes = f"batch {batch}, context {context}" if hf_inputs.reads_tokens(kind) else f"batch {batch}"
    return Target(name=f"{name} {step}, {sizes}", prepare=prepare, notes=tuple(notes))


def _read(config: Path) -> dict[str, Any]:
    try:
        document = json.loads(config.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{config}: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(f"{config} is not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("model_type"), str):
        raise BadInput(f"{config} is not a Hugging Face config.json: it names no model_type")
    return document


def _library() -> Any:
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            raise Missing(f"pricing a config.json needs {package}: pip install 'ridgepole[hf]'")
    import transformers

    return transformers


def _settings(transformers: Any, document: dict[str, Any], config: Path) -> Any:
    """The library's own configuration object."""
    mapping = importlib.import_module("transformers.models.auto.configuration_auto").CONFIG_MAPPING
    kind = document["model_type"]
    if kind not in mapping:
        raise BadInput(f"transformers {transformers.__version__} knows no model type {kind!r} ({config})")
    with _quiet():
        try:
            return mapping[kind].from_dict(document)
        except Exception as error:
            # A wrong value in the user's file, found by the library's own checks, of many types.
            text = " ".join(str(error).split())[:200]
            raise BadInput(f"{config} is refused by transformers: {type(error).__name__}: {text}") from error


def _model_class(transformers: Any, settings: Any) -> Any:
    """The class that the config names, else the language model of its type, else its plain model."""
    named = getattr(settings, "architectures", None)
    for name in named if isinstance(named, list) else ():
        found = getattr(transformers, name, None) if isinstance(name, str) else None
        if isinstance(found, type) and hasattr(found, "_from_config"):
            return found
    autos = importlib.import_module("transformers.models.auto.modeling_auto")
    for auto in (autos.AutoModelForCausalLM, autos.AutoModelForSeq2SeqLM, autos.AutoModel):
        if type(settings) in auto._model_mapping:
            found = auto._model_mapping[type(settings)]
            return found[0] if isinstance(found, (list, tuple)) else found
    raise BadInput(f"transformers {transformers.__version__} has no model for {settings.model_type!r}")


def _generates(transformers: Any, settings: Any, kind: Any) -> bool:
    """Whether the model makes one token after another over a cache."""
    if hf_inputs.main_input(kind) not in ("input_ids", "input_features"):
        return False
    if getattr(settings, "is_encoder_decoder", False):
        return True
    autos = importlib.import_module("transformers.models.auto.modeling_auto")
    if type(settings) not in autos.AutoModelForCausalLM._model_mapping:
        return False
    # Encoders have a causal variant of the same type; they are decoders only if they say so.
    takes = any(name in hf_inputs.parameters(kind) for name in CACHES)
    named = kind.__name__.endswith(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "Model"))
    encoder = hasattr(settings, "is_decoder") and not settings.is_decoder and "type_vocab_size" in settings.to_dict()
    return takes and named and not encoder


def _dtype(document: Mapping[str, Any], notes: list[str]) -> str:
    inner = document.get("text_config") or {}
    named = document.get("dtype") or document.get("torch_dtype") or inner.get("dtype") or inner.get("torch_dtype")
    if named is None or named == "auto":
        notes.append("dtype: float32, as the config names none")
        return "float32"
    return dtypes.parse(str(named))


def _remarks(document: Mapping[str, Any], settings: Any, context: int) -> Iterator[str]:
    if document.get("quantization_config"):
        yield "its quantization_config is left out: weights are priced in the config's dtype"
    longest = getattr(settings, "max_position_embeddings", None) or getattr(settings, "n_positions", None)
    if isinstance(longest, int) and 0 < longest < context:
        yield f"context {context:,} is beyond the {longest:,} positions that the config allows"


def _build(transformers: Any, kind: Any, settings: Any, dtype: str) -> Any:
    import torch

    release = tuple(int(part) for part in transformers.__version__.split(".")[:2])
    argument = "dtype" if release >= DTYPE_ARGUMENT_SINCE else "torch_dtype"
    options: dict[str, Any] = {argument: getattr(torch, dtype)}
    with _no_weights():
        try:
            model = kind._from_config(settings, attn_implementation="sdpa", **options)
        except ValueError as error:
            if "attention" not in str(error).lower() and "sdpa" not in str(error).lower():
                raise
            model = kind._from_config(settings, attn_implementation="eager", **options)
    model.tie_weights()  # which filling the weights would have done
    return model


@contextlib.contextmanager
def _no_weights() -> Iterator[None]:
    """Models are built without filling their weights."""
    for place in ("transformers.initialization", "transformers.modeling_utils"):
        with contextlib.suppress(ImportError):
            none = getattr(importlib.import_module(place), "no_init_weights", None)
            if none is not None:
                with none():
                    yield
                return
    yield


def _decode(model: Any, batch: int, context: int) -> Callable[[], Any]:
    import torch

    model.eval()
    takes = hf_inputs.parameters(type(model))
    given = hf_inputs.inputs(model, batch, context)
    with torch.no_grad():
        before = model(**given, **_if_taken(takes, use_cache=True))
    cache = next((before[name] for name in CACHES if before.get(name) is not None), None)
    if cache is None:
        raise BadInput(f"{model.config.model_type} returns no cache: use --step prefill")
    argument = next(name for name in CACHES if name in takes)
    if getattr(model.config, "is_encoder_decoder", False):
        outputs = importlib.import_module("transformers.modeling_outputs")
        encoded = outputs.BaseModelOutput(last_hidden_state=before["encoder_last_hidden_state"])
        given = {"encoder_outputs": encoded, "decoder_input_ids": torch.zeros(batch, 1, dtype=torch.int64)}
    else:
        given = {"input_ids": torch.zeros(batch, 1, dtype=torch.int64)}
    del before
    # Mamba-like caches want to be told that the prompt is past.
    place = torch.full((1,), context, dtype=torch.int64)
    more = _if_taken(takes, use_cache=True, cache_position=place) if argument == "cache_params" else {"use_cache": True}

    def decode() -> Any:
        with torch.no_grad():
            return model(**given, **{argument: cache}, **more)

    return decode


def _prefill(model: Any, batch: int, context: int) -> Callable[[], Any]:
    import torch

    model.eval()
    takes = hf_inputs.parameters(type(model))
    given = hf_inputs.inputs(model, batch, context)
    more = _if_taken(takes, logits_to_keep=1, num_logits_to_keep=1)
    if any(name in takes for name in CACHES):
        more |= _if_taken(takes, use_cache=True)

    def prefill() -> Any:
        with torch.no_grad():
            return model(**given, **more)

    return prefill


def _train(model: Any, batch: int, context: int) -> Callable[[], Any]:
    import torch

    model.train()
    takes = hf_inputs.parameters(type(model))
    given = {**hf_inputs.inputs(model, batch, context), **_if_taken(takes, use_cache=False)}
    if "labels" in takes:
        given["labels"] = hf_inputs.labels(model, batch, given)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=LEARNING_RATE)
    # The state that the first step makes is there in every later one.
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad()

    def train() -> Any:
        out = model(**given)
        loss = out["loss"] if "labels" in given and out.get("loss") is not None else out[0].float().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return train


_STEPS = {"decode": _decode, "prefill": _prefill, "train": _train}


def _if_taken(takes: Mapping[str, inspect.Parameter], **options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name in takes}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The library's advice to those who would run the model is none to those who price it."""
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
