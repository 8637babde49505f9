"""What a captured program holds in memory: storages by number, counted from first sight to their end."""

from __future__ import annotations

import weakref
from typing import Any


class Memory:
    """Numbers the storages of fake tensors and counts their bytes while they live.

    A storage's number is the value id of every tensor that looks into it. `live` and `peak` are bytes.
    """

    def __init__(self) -> None:
        self.live = 0
        self.peak = 0
        self._ids: dict[int, int] = {}
        self._watch: dict[int, Any] = {}
        self._next = 0

    def value(self, tensor: Any) -> int:
        """The value id of `tensor`; its storage is counted from now on, if it was not yet."""
        try:
            storage = tensor.untyped_storage()
            key = storage._cdata
        except (NotImplementedError, RuntimeError):
            return self._without_storage(tensor)
        known = self._ids.get(key)
        if known is not None:
            return known
        number = self._ids[key] = self._next
        self._next += 1
        nbytes = storage.nbytes()
        self.live += nbytes
        self.peak = max(self.peak, self.live)
        self._watch[key] = weakref.ref(storage, lambda _: self._end(key, nbytes))
        return number

    def _without_storage(self, tensor: Any) -> int:
        """Sparse tensors have no one storage: each is a value by itself, of bytes that are not counted."""
        key = -id(tensor)
        if key not in self._ids:
            self._ids[key] = self._next
            self._next += 1
            self._watch[key] = weakref.ref(tensor, lambda _: self._end(key, 0))
        return self._ids[key]

    def was_there(self, tensor: Any) -> int:
        """As `value`, for a tensor that existed before the program began: it counts in the peak whenever that was."""
        before, peak = self.live, self.peak
        number = self.value(tensor)
        self.peak = max(self.peak, peak + self.live - before)
        return number

    def restart(self) -> None:
        """The program begins: what lives now is its baseline."""
        self.peak = self.live

    def alive(self) -> tuple[int, ...]:
        """The value ids of the storages that live now."""
        return tuple(sorted(self._ids.values()))

    def _end(self, key: int, nbytes: int) -> None:
        self.live -= nbytes
        self._ids.pop(key, None)
        self._watch.pop(key, None)
