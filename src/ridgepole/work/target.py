"""What a user names to be priced, as something that can be captured: an expression, a function, a model's config."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ridgepole import collecting
from ridgepole.errors import BadInput
from ridgepole.work.op import Program

STEPS = ("decode", "prefill", "train")


@dataclass(frozen=True, slots=True)
class Target:
    """A name and what to capture under it: `fn(*args, **kwargs)`, or what `prepare` makes on fake tensors first."""

    name: str
    fn: Callable[..., Any] | None = None
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[], tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]] | None = None
    notes: tuple[str, ...] = ()

    def capture(self) -> Program:
        """Run it on fake tensors. Raises BadInput, Missing."""
        from ridgepole.work.capture import capture

        return capture(self.fn, self.args, self.kwargs, name=self.name, prepare=self.prepare, notes=self.notes)


def load(
    text: str, inputs: Sequence[str] = (), *, step: str | None = None, batch: int = 1, context: int = 128
) -> Target:
    """The target that `text` names: config.json or its directory, file.py:function, module:function, an expression.

    `step` ("decode", "prefill", "train"), `batch` (sequences) and `context` (tokens) are for a config. Raises
    BadInput where it names nothing that can be captured.
    """
    if batch < 1 or context < 1:
        raise BadInput(f"batch {batch} and context {context}: both must be at least 1")
    if step is not None and step not in STEPS:
        raise BadInput(f"step {step!r} is none of {', '.join(STEPS)}")
    if not text.strip():
        raise BadInput("the target is empty: name an expression, file.py:function or a config.json")
    config = _config(text)
    if config is not None:
        if inputs:
            raise BadInput("a config.json takes no inputs: use --step, --batch and --context")
        from ridgepole.work.targets import huggingface

        with collecting.held():
            return huggingface.target(config, step=step, batch=batch, context=context)
    if step is not None:
        raise BadInput(f"--step is for a Hugging Face config.json, and {text} is none")
    owner, colon, name = text.rpartition(":")
    if colon and re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*", name) and _is_program(owner):
        from ridgepole.work.targets import function

        return function.target(owner, name, inputs)
    _refuse_files(text)
    from ridgepole.work.targets import expression

    return expression.parse(text, inputs)


def _config(text: str) -> Path | None:
    """The config.json that `text` names, by itself or by its directory."""
    path = Path(text)
    try:
        if path.is_dir():
            inside = path / "config.json"
            if not inside.is_file():
                raise BadInput(f"{text} is a directory without a config.json")
            return inside
        if path.suffix == ".json":
            if not path.is_file():
                raise BadInput(f"there is no file {text}")
            return path
    except OSError:  # an expression too long for a file's name
        return None
    return None


def _is_program(owner: str) -> bool:
    if owner.endswith(".py"):
        return True
    return re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", owner) is not None


def _refuse_files(text: str) -> None:
    if text.endswith(".py"):
        there = Path(text).is_file()
        raise BadInput(f"name the function too: {text}:FUNCTION" if there else f"there is no file {text}")
    if text.endswith((".gz", ".safetensors", ".bin", ".pt", ".pth", ".gguf")):
        raise BadInput(f"{text} cannot be priced: name an expression, file.py:function or a config.json")
