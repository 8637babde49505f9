"""An expression over torch and named inputs: `x * 2 + 1` with `x=4096x4096:bf16`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence
from typing import Any

from ridgepole.errors import BadInput, Missing
from ridgepole.work.target import Target
from ridgepole.work.targets import inputs as given

FILE = "<expression>"


def parse(text: str, inputs: Sequence[str] = ()) -> Target:
    """The expression `text` over the inputs, each written as `given.parse` reads it.

    It may use torch, F (torch.nn.functional), nn, math, Python's builtins and the inputs. Raises BadInput where it
    is none, or uses a name that is not given, or not a name that is.
    """
    return _target(text, given.parse(inputs))


def from_row(row: Mapping[str, Any]) -> Target:
    """The target of one row of measured calls: {"call": expression, "inputs": {name: {"shape", "dtype", ...}}}."""
    try:
        text, described = str(row["call"]), row["inputs"].items()
    except (KeyError, TypeError, AttributeError) as error:
        raise BadInput('a row needs "call" and "inputs"') from error
    return _target(text, {name: given.from_row(name, spec) for name, spec in described})


def _target(text: str, named: Mapping[str, given.Input]) -> Target:
    tree = _tree(text)
    spaces = _spaces()
    used = _free(tree)
    missing = sorted(used - named.keys() - spaces.keys() - vars(builtins).keys())
    if missing:
        several = "input is" if len(missing) == 1 else "inputs are"
        how = " ".join(f"-i {name}=4096x4096:bf16" for name in missing)
        raise BadInput(f"{text!r}: {several} missing: {', '.join(missing)}; give {how}")
    unused = sorted(named.keys() - used)
    if unused:
        raise BadInput(f"{text!r} does not use the input {', '.join(unused)}")
    code = compile(tree, FILE, "eval")
    names = list(named)

    def evaluate(**values: Any) -> Any:
        return eval(code, {**spaces, **values})  # the user's own expression

    values = {name: given.make(named[name]) for name in names}
    return Target(name=text, fn=evaluate, kwargs=values)


def _tree(text: str) -> ast.Expression:
    try:
        return ast.parse(text.strip(), FILE, "eval")
    except SyntaxError as error:
        where = f" at column {error.offset}" if error.offset else ""
        raise BadInput(f"{text!r} is no expression: {error.msg}{where}") from error
    except (ValueError, MemoryError, RecursionError) as error:
        raise BadInput(f"{text[:60]!r} is no expression: {error}") from error


def _spaces() -> dict[str, Any]:
    try:
        import torch
    except ImportError as error:
        raise Missing("pricing an expression needs PyTorch: pip install torch") from error
    import math

    return {"torch": torch, "F": torch.nn.functional, "nn": torch.nn, "math": math}


def _free(tree: ast.AST) -> set[str]:
    """Names that are read and never bound inside."""
    read: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    return read - bound
