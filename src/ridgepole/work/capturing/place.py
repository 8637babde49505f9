"""Where in the user's program an op was called: module path, source line, phase.

A backward op is where the forward op was whose gradient it computes: autograd numbers its nodes in the order of
the forward calls, and the node that runs says its number.
"""

from __future__ import annotations

import os
import sys
from types import CodeType
from typing import Any

from ridgepole.work.op import Phase, Where

_HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep

BOUNDARY = "_call_the_users_function"
"""Name of the function that calls the user's: frames above it are not the program's."""


class Places:
    """Follows the program: which module is running, which phase it is in."""

    def __init__(self) -> None:
        self.stepping = 0
        """Optimizers whose `step` is running."""
        self.went_backward = False
        self.roots: list[Any] = []
        self._stack: list[str] = []
        self._depth = 0
        """Modules running when the last op outside backward was called."""
        self._names: dict[int, str] = {}
        self._parameters: dict[int, str] = {}
        self._forward: dict[int, Where] = {}
        self._kinds: dict[CodeType, _Kind] = {}

    def enter(self, module: Any) -> None:
        """A module's forward begins."""
        name = self._names.get(id(module))
        if name is None or (not self._stack and not any(root is module for root in self.roots)):
            if self._stack:
                name = self._stack[-1]  # not registered with its parent: its ops are its parent's
            else:
                self._adopt(module)
                name = self._names[id(module)]
        self._stack.append(name)

    def leave(self) -> None:
        """The innermost running module's forward ends."""
        if self._stack:
            self._stack.pop()

    def _adopt(self, root: Any) -> None:
        """Name the modules and parameters of a model by its own paths."""
        self.roots.append(root)
        for name, module in root.named_modules():
            self._names[id(module)] = name
            for parameter in module._parameters.values():
                if parameter is not None:
                    self._parameters[id(parameter)] = name

    def here(self) -> tuple[Where, bool]:
        """The place of the op being called, and whether it only sets up what later steps have ready.

        Setting up is building modules, moving or casting them, and creating an optimizer's state.
        """
        import torch

        source, setup = self._source()
        node = torch._C._current_autograd_node()
        if node is None:
            self._depth = len(self._stack)
        else:
            self.went_backward = True
            return self._backward(node, source), setup
        phase: Phase = "forward"
        if self.stepping or (self.went_backward and not self._stack and not torch.is_grad_enabled()):
            phase = "optimizer"
        where = Where(self._stack[-1] if self._stack else "", source, phase)
        if phase == "forward":
            self._remember(where)
        return where, setup

    def _remember(self, where: Where) -> None:
        import torch

        # The node of this op was made just before it is called. Ops that need no gradient make none: the first
        # op after a node was made is the node's own.
        self._forward.setdefault(torch._C._autograd._get_sequence_nr() - 1, where)

    def _backward(self, node: Any, source: str) -> Where:
        if len(self._stack) > self._depth:  # an activation is computed again, with nodes of its own
            where = Where(self._stack[-1], source, "backward")
            self._remember(where)
            return where
        forward = self._forward.get(node._sequence_nr()) if hasattr(node, "_sequence_nr") else None
        if forward is not None:
            return Where(forward.module, forward.source, "backward")
        variable = getattr(node, "variable", None)
        return Where(self._parameters.get(id(variable), ""), source, "backward")

    def _source(self) -> tuple[str, bool]:
        """The innermost line of the user's own, else of the model library's, and whether setting up is under way."""
        frame: Any = sys._getframe(2)
        users = library = ""
        setup = False
        while frame is not None:
            code = frame.f_code
            kind = self._kinds.get(code)
            if kind is None:
                kind = self._kinds[code] = _Kind(code)
            if kind.boundary:
                break
            if kind.setup or (kind.init and _is_module(frame)):
                setup = True
            if kind.user and not users:
                users = f"{kind.name}:{frame.f_lineno}"
            elif kind.library and not library:
                library = f"{kind.name}:{frame.f_lineno}"
            frame = frame.f_back
        return users or library, setup


def accumulating() -> bool:
    """Whether autograd is adding to the gradient of a leaf."""
    import torch

    node = torch._C._current_autograd_node()
    return node is not None and hasattr(node, "variable")


def _is_module(frame: Any) -> bool:
    import torch

    code = frame.f_code
    return bool(code.co_argcount) and isinstance(frame.f_locals.get(code.co_varnames[0]), torch.nn.Module)


def is_users(code: CodeType) -> bool:
    """Whether `code` is of a file of the user's own."""
    return _Kind(code).user


def is_ours(code: CodeType) -> bool:
    """Whether `code` is Ridgepole's."""
    return code.co_filename.startswith(_HERE)


class _Kind:
    """What a frame of some code object is to us."""

    __slots__ = ("boundary", "init", "library", "name", "setup", "user")

    def __init__(self, code: CodeType) -> None:
        path = code.co_filename.replace(os.sep, "/")
        torchs = "/torch/" in path and "/site-packages/" in path
        packages = "/site-packages/" in path or "/dist-packages/" in path or path.startswith(sys.base_prefix + "/lib/")
        self.name = path.rpartition("/")[2]
        self.boundary = code.co_name == BOUNDARY and code.co_filename.startswith(_HERE)
        self.init = code.co_name == "__init__"
        self.setup = torchs and (
            ("/torch/optim/" in path and code.co_name == "_init_group") or (path.endswith("/torch/nn/init.py"))
        )
        ours = code.co_filename.startswith(_HERE)
        written = not path.startswith("<")
        self.user = written and not packages and not ours
        self.library = written and packages and not torchs
