"""The program's own use of torch.profiler: it goes first, and what it exports is kept.

Two profilers cannot run at once in one process; the second to start fails. So ours steps aside when the program
starts its own, and takes a copy of the trace that the program exports. Nor may it start again later: that would
crash a program that exports its stopped profile afterwards.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from ridgepole.timeline.recording import profiler


class Watcher(Protocol):
    """Who is told of the program's own profiler."""

    def theirs_starts(self) -> None: ...

    def theirs_exports(self, trace: Path) -> None: ...


class Watch:
    """Watches `torch.autograd.profiler.profile`, on which every Python-level profiler of torch is built."""

    def __init__(self, watcher: Watcher, folder: Path) -> None:
        self._watcher = watcher
        self._folder = folder
        self._original: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}
        self._exports = 0
        self._last: Any = None

    def install(self) -> None:
        from torch.autograd.profiler import profile

        for name in ("_prepare_trace", "__exit__", "export_chrome_trace"):
            method = getattr(profile, name, None)
            if method is not None:
                watched = self._around(name, method)
                self._original[name] = method, watched
                setattr(profile, name, watched)

    def remove(self) -> None:
        """Watches no more. A watch that was installed later over this one stays whole; this one is inert then."""
        from torch.autograd.profiler import profile

        for name, (method, watched) in self._original.items():
            if getattr(profile, name) is watched:
                setattr(profile, name, method)
        self._original.clear()

    def last_unexported(self) -> Path | None:
        """The trace of the program's last profile, where the program itself never exported one."""
        profile, self._last = self._last, None
        if profile is None or self._exports or "export_chrome_trace" not in self._original:
            return None
        path = self._folder / "theirs.json"
        try:
            self._original["export_chrome_trace"][0](profile, str(path))
        except (RuntimeError, OSError, AssertionError, AttributeError):
            return None
        return path if path.is_file() else None

    def _around(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def watched(self_: Any, *args: Any, **kwargs: Any) -> Any:
            owner = profiler.owner()
            if name == "_prepare_trace" and owner is not self._watcher and self._original:
                self._watcher.theirs_starts()
            result = method(self_, *args, **kwargs)
            if owner is not None or not self._original:
                return result
            if name == "__exit__":
                self._last = self_
            if name == "export_chrome_trace":
                self._copy(args[0] if args else kwargs.get("path"))
            return result

        return watched

    def _copy(self, path: object) -> None:
        if not isinstance(path, (str, Path)) or not Path(path).is_file():
            return
        self._exports += 1
        copy = self._folder / f"theirs-{self._exports}.json"
        try:
            shutil.copyfile(path, copy)
        except OSError:
            return  # a full disk is no reason to disturb the program
        self._watcher.theirs_exports(copy)
