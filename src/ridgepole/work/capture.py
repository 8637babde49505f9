"""A function of the user's, run on fake tensors: what it asks for, op by op. No memory, no GPU, no weights.

program = capture(step, (batch,), name="step")
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ridgepole import collecting
from ridgepole.errors import BadInput, Missing, RidgepoleError
from ridgepole.work.op import Program

if TYPE_CHECKING:
    from ridgepole.work.capturing.stage import Stage

Prepared = tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]
LONGEST = 200
"""Characters of an error of the user's that are shown."""
PASSED_ON = frozenset({"__torch_function__", "__torch_dispatch__", "_call_the_users_function"})
"""Our functions that call the program, or pass its own calls on to torch."""


def capture(
    fn: Callable[..., Any] | None,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str,
    prepare: Callable[[], Prepared] | None = None,
    notes: tuple[str, ...] = (),
) -> Program:
    """What `fn(*args, **kwargs)` asks for: forward, backward and optimizer, as it calls them.

    Tensors among the arguments lend shape, dtype and strides only; models and optimizers that the function brings
    along are left as they were. `prepare`, where given, makes function and arguments inside the capture, on fake
    tensors, unrecorded. Raises BadInput with the user's error in one line, Missing where torch is not installed.
    """
    with collecting.held(), _stage() as stage:
        import torch
        from torch.utils._pytree import tree_map_only

        if prepare is not None:
            with users_errors():
                fn, args, kwargs = prepare()
        assert fn is not None
        fake_args, fake_kwargs = tree_map_only(torch.Tensor, stage.fake, (tuple(args), dict(kwargs or {})))
        with stage.recording(fn, args, kwargs):
            with users_errors():
                result = _call_the_users_function(fn, fake_args, fake_kwargs)
            stage.end()
            program = stage.program(name, notes)
            del result
    return program


def _stage() -> Stage:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise Missing("pricing a program needs PyTorch: pip install torch") from error
    from ridgepole.work.capturing.stage import Stage

    return Stage()


def _call_the_users_function(fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    # Known by this name in `place`: frames above are ours.
    return fn(*args, **kwargs)


def guarded(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, the user's, whose errors become BadInput."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        with users_errors():
            return _call_the_users_function(fn, args, kwargs)

    return call


@contextlib.contextmanager
def users_errors() -> Iterator[None]:
    """An error of the user's program as one line: what, and where. Raises BadInput."""
    try:
        yield
    except (RidgepoleError, KeyboardInterrupt):
        raise
    except (Exception, SystemExit) as error:
        if _is_our_own(error):
            raise
        raise BadInput(told(error)) from error


def told(error: BaseException) -> str:
    """Type, message and the innermost line of the user's own, on one line."""
    text = " ".join(str(error).split())
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    where = _where(error)
    return f"{type(error).__name__}{': ' + text if text else ''}{' at ' + where if where else ''}"


def _is_our_own(error: BaseException) -> bool:
    """Whether the error was raised by a line of Ridgepole's: a fault of ours, no fault of the program's.

    torch's compiled code leaves no frame of its own: what it raises (RuntimeError, TypeError, an index out of range)
    seems to come from the line of ours that passed the program's call on.
    """
    from ridgepole.work.capturing.place import is_ours

    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not is_ours(trace.tb_frame.f_code) or isinstance(error, TypeError | RuntimeError):
        return False
    return not (isinstance(error, IndexError | ValueError) and trace.tb_frame.f_code.co_name in PASSED_ON)


def _where(error: BaseException) -> str:
    from ridgepole.work.capturing.place import is_users

    where = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if is_users(code):
            where = f"{code.co_filename.replace(chr(92), '/').rpartition('/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return where
