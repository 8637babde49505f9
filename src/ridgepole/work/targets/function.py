"""A function, a module class or a model of the user's own: file.py:name or package.module:name."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ridgepole.errors import BadInput
from ridgepole.work.target import Target
from ridgepole.work.targets import inputs as given

SHOWN = 12
"""Names listed where the one asked for is not there."""


def target(owner: str, name: str, inputs: Sequence[str]) -> Target:
    """`name` of the file or module `owner`, called with the inputs by name. Raises BadInput for a missing file."""
    named = given.parse(inputs)
    path = Path(owner)
    if owner.endswith(".py") and not path.is_file():
        raise BadInput(f"there is no file {owner}")

    values = {key: given.make(value) for key, value in named.items()}

    def prepare() -> tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]:
        with _own_output():
            module = _file(path) if owner.endswith(".py") else _module(owner)
            fn = _callable(module, owner, name, named)
        return _quiet(fn), (), values

    return Target(name=f"{path.name if owner.endswith('.py') else owner}:{name}", prepare=prepare)


@contextlib.contextmanager
def _own_output() -> Iterator[None]:
    """What the program prints goes to stderr: stdout is for the answer."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


def _quiet(fn: Callable[..., Any]) -> Callable[..., Any]:
    class Quiet:
        __wrapped__ = staticmethod(fn)

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            with _own_output():
                return fn(*args, **kwargs)

    return Quiet()


def _file(path: Path) -> ModuleType:
    """Import a file as `python` would find its neighbours, under its own name."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        where = path if error.lineno is None else f"{path}, line {error.lineno}"
        raise BadInput(f"{where}: {error.msg}") from error
    finally:
        if before is not None:
            sys.modules[path.stem] = before
    return module


def _module(owner: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(owner)
    except ModuleNotFoundError as error:
        if error.name is not None and (owner == error.name or owner.startswith(error.name + ".")):
            raise BadInput(f"there is no module {owner} here") from error
        raise


def _callable(module: ModuleType, owner: str, name: str, named: Mapping[str, given.Input]) -> Callable[..., Any]:
    import torch

    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, _ABSENT)
        if found is _ABSENT:
            raise BadInput(f"{owner} has no {name}: it has {_offers(module)}")
    if isinstance(found, type) and issubclass(found, torch.nn.Module):
        try:
            found = found()
        except TypeError as error:
            raise BadInput(f"{owner}:{name} cannot be built without arguments ({error}): name a function") from error
    if not callable(found):
        raise BadInput(f"{owner}:{name} is {type(found).__name__}, not a function or a model")
    _check(found, f"{owner}:{name}", named)
    return found  # type: ignore[no-any-return]


_ABSENT = object()


def _offers(module: ModuleType) -> str:
    import torch

    names = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (
            isinstance(value, torch.nn.Module)
            or ((inspect.isfunction(value) or inspect.isclass(value)) and value.__module__ == module.__name__)
        )
    ]
    if not names:
        return "no function"
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")


def _check(fn: Any, called: str, named: Mapping[str, given.Input]) -> None:
    """Whether the inputs fit the parameters."""
    import torch

    try:
        signature = inspect.signature(fn.forward if isinstance(fn, torch.nn.Module) else fn)
    except (TypeError, ValueError):
        return
    parameters = signature.parameters.values()
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters)
    taken = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    needed = [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in named
    ]
    if needed:
        how = " ".join(f"-i {name}=8x1024:f32" for name in needed)
        raise BadInput(f"{called} needs {', '.join(needed)}: give {how}")
    unknown = [name for name in named if name not in taken]
    if unknown and not anything:
        takes = f"it takes {', '.join(sorted(taken))}" if taken else "it takes none"
        raise BadInput(f"{called} has no parameter {', '.join(unknown)}: {takes}")
