"""Running the user's program in this process as `python script.py args` would, down to its exit code.

What it prints, reads and raises goes where it always does; a traceback shows the program's frames and none of ours.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import runpy
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, TracebackType

from ridgepole.errors import BadInput

INTERRUPTED = 130
"""Exit code of an interrupted program, as a shell sees it."""

_OURS = os.path.abspath(__file__)


def check(script: str) -> None:
    """BadInput where `script` is no file that Python could run."""
    path = Path(script)
    if not path.exists():
        raise BadInput(f"{script}: no such file; give a Python script, module:function or file.py:function")
    if path.is_dir() and not (path / "__main__.py").is_file():
        raise BadInput(f"{script} is a folder without a __main__.py: give a Python script")


def run(script: str, argv: Sequence[str]) -> int:
    """Runs `script` as `__main__` and returns its exit code. sys.argv and sys.path are put back afterwards.

    `__main__` stays the program's: what it registered to run at exit may still look itself up there.
    """
    check(script)
    with _arguments([script, *argv], os.path.dirname(os.path.realpath(script))):
        return _exit_code(lambda: _run_file(script))


def run_module(name: str, argv: Sequence[str]) -> int:
    """As `run`, for `python -m name args`."""
    with _arguments([name, *argv], os.getcwd()):
        return _exit_code(lambda: runpy.run_module(name, run_name="__main__", alter_sys=True))


def load_function(text: str) -> Callable[..., object]:
    """The function that `module:function` or `file.py:function` names; the module is imported, not run as main."""
    home, _, name = text.rpartition(":")
    if not home or not name:
        raise BadInput(f"{text!r} names no function: write module:function or file.py:function")
    module = _load_file(home) if home.endswith(".py") else _load_module(home)
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise BadInput(f"{home} has no function {name!r}")
    return found


def _load_file(path: str) -> types.ModuleType:
    if not Path(path).is_file():
        raise BadInput(f"{path}: no such file")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = Path(path).stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)  # so that it can be pickled to worker processes
    spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> types.ModuleType:
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise BadInput(f"no module named {name!r} is here: write module:function or file.py:function") from error
        raise


@contextmanager
def _arguments(argv: list[str], folder: str) -> Iterator[None]:
    old_argv, old_path = sys.argv, sys.path
    sys.argv = argv
    sys.path = old_path[:]
    if not getattr(sys.flags, "safe_path", False):
        # Python put our own command's folder first, where it would have put the script's.
        started = os.path.dirname(os.path.realpath(old_argv[0])) if old_argv and old_argv[0] else ""
        if sys.path and sys.path[0] in ("", started, os.getcwd()):
            sys.path[0] = folder
        else:
            sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.argv, sys.path = old_argv, old_path


def _run_file(script: str) -> None:
    if os.path.isdir(script) or not _is_source(script):
        runpy.run_path(script, run_name="__main__")
        return
    path = os.path.abspath(script)
    with io.open_code(path) as source:
        code: CodeType = compile(source.read(), path, "exec", dont_inherit=True)
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__loader__ = SourceFileLoader("__main__", path)
    main.__dict__.update(__builtins__=sys.modules["builtins"], __cached__=None)
    if sys.version_info < (3, 14):
        main.__dict__.update(__annotations__={})
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _is_source(path: str) -> bool:
    """Whether it is text to compile, rather than byte code or a zip with a `__main__`."""
    with open(path, "rb") as file:
        head = file.read(4)
    return head != b"PK\x03\x04" and head[2:] != b"\r\n" and not path.endswith(".pyc")


def _exit_code(act: Callable[[], object]) -> int:
    try:
        act()
    except SystemExit as stop:
        return _from_stop(stop)
    except KeyboardInterrupt as error:
        _show(error)
        return INTERRUPTED
    except BaseException as error:
        _show(error)
        return 1
    return 0


def _from_stop(stop: SystemExit) -> int:
    code = stop.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    """Prints the traceback as Python would, through the program's own excepthook if it set one."""
    with suppress(ValueError, AttributeError):  # closed, or not there
        sys.stdout.flush()
    error.__traceback__ = _stripped(error.__traceback__)
    sys.excepthook(type(error), error, error.__traceback__)


def _stripped(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _is_ours(filename: str) -> bool:
    return os.path.abspath(filename) == _OURS or filename in ("<frozen runpy>", runpy.__file__)
