"""The stage on which a program is captured: fake tensors, a pretended GPU, a recorder, and everything put back."""

from __future__ import annotations

import contextlib
import importlib
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from ridgepole.work.capturing import pretend
from ridgepole.work.capturing.memory import Memory
from ridgepole.work.capturing.place import Places
from ridgepole.work.capturing.reals import Reals, found_in
from ridgepole.work.capturing.recorder import Recorder
from ridgepole.work.op import Program


class _Mode(FakeTensorMode):  # type: ignore[misc]
    """Fake tensors that never touch a device, whatever torch is told about one being there."""

    @property
    def avoid_device_init(self) -> bool:
        return True


class Stage(contextlib.AbstractContextManager["Stage"]):
    """Entered once, for one program."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.places = Places()
        self._mode = _Mode(allow_non_fake_inputs=True)
        self._reals = Reals(self._mode, self.memory)
        self.recorder = Recorder(self._reals.fake, self.memory, self.places)
        self._notes: dict[str, None] = {}
        self._stack = contextlib.ExitStack()

    def note(self, text: str) -> None:
        """Say `text` once in the program's notes."""
        self._notes.setdefault(text)

    def fake(self, tensor: Any) -> Any:
        """The fake tensor that stands for `tensor`."""
        return self._reals.fake(tensor)

    def __enter__(self) -> Stage:
        enter = self._stack.enter_context
        enter(_settings_kept())
        enter(_unlogged("torch._subclasses.fake_tensor"))  # repeats as a log what it raises
        enter(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # about fake tensors and missing GPUs: none of them the user's
        enter(pretend.answering(self.recorder, self.note))
        enter(self._mode)
        enter(self.recorder)
        self._stack.callback(self._hook_modules())
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def recording(self, fn: Any, *brought: Any) -> Iterator[None]:
        """Within: ops are the program's."""
        with self._reals.swapped(*found_in(fn, *brought)), pretend.libraries():
            self.memory.restart()
            self.recorder.recording = True
            try:
                yield
            finally:
                self.recorder.recording = False

    def end(self) -> None:
        """The program has returned: what runs from now on is ours."""
        self.recorder.recording = False

    def program(self, name: str, notes: tuple[str, ...]) -> Program:
        """What was recorded."""
        lines = (*notes, *self._notes, *self.recorder.assumed.notes())
        return Program(
            ops=tuple(self.recorder.ops),
            name=name,
            parameters=self._parameters(),
            peak_memory=self.memory.peak,
            notes=lines,
            returned=self.memory.alive(),
        )

    def _parameters(self) -> int:
        """Bytes of the parameters and buffers of every model that ran, tied ones once."""
        sizes: dict[int, int] = {}
        for root in self.places.roots:
            for tensor in (*root.parameters(), *root.buffers()):
                fake = self.fake(tensor)
                sizes[self.memory.value(fake)] = fake.untyped_storage().nbytes()
        return sum(sizes.values())

    def _hook_modules(self) -> Any:
        modules = torch.nn.modules.module
        optimizers = importlib.import_module("torch.optim.optimizer")  # torch.optim hides the module

        def stepping(by: int) -> Any:
            def hook(*args: Any) -> None:
                self.places.stepping += by

            return hook

        handles = [
            modules.register_module_forward_pre_hook(lambda module, args: self.places.enter(module)),
            modules.register_module_forward_hook(lambda module, args, out: self.places.leave(), always_call=True),
            optimizers.register_optimizer_step_pre_hook(stepping(1)),
            optimizers.register_optimizer_step_post_hook(stepping(-1)),
        ]

        def remove() -> None:
            for handle in handles:
                handle.remove()

        return remove


@contextlib.contextmanager
def _unlogged(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = disabled


@contextlib.contextmanager
def _settings_kept() -> Iterator[None]:
    """What a program may set for the whole process is as before afterwards."""
    grad, dtype, threads = torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads()
    tf32 = torch.backends.cuda.matmul.allow_tf32
    try:
        yield
    finally:
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        torch.backends.cuda.matmul.allow_tf32 = tf32
