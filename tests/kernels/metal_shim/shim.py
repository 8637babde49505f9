"""A Device that runs .metal texts on the CPU: compiled by the C++ compiler, with sanitizers where it has them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from ridgepole.kernels.device import Buffer, Launch, Limits, Program, Refused, Run

from .signature import caller

HERE = Path(__file__).parent
PLAIN = ("-std=c++17", "-O1", "-fno-strict-aliasing", "-Wall", "-Werror", "-Wno-attributes", "-Wno-unknown-pragmas")
PATTERN = "-ftrivial-auto-var-init=pattern"
"""Gives what a thread leaves unset a value that no right result has."""
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0", "UBSAN_OPTIONS": "print_stacktrace=0"}
NO_COMPILER = "the shim for Metal needs Linux and a C++ compiler, and here is none"
_ASAN = re.compile(r"AddressSanitizer: ([\w-]+)")
_UBSAN = re.compile(r"runtime error: ([^\n]+)")
_NOISE = "ASan doesn't fully support makecontext"


def compiler() -> str | None:
    """The C++ compiler, on Linux: the driver takes its sections and fibers as ELF and glibc have them."""
    if sys.platform != "linux":
        return None
    return shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")


@dataclass(frozen=True, slots=True)
class Built:
    """A program for one text and its macros; `shared` is its threadgroup memory in bytes."""

    program: Path
    entry: str
    shared: int
    registers: int | None = None
    spilled: int | None = None


@dataclass(slots=True)
class Held:
    array: Any
    nbytes: int


class Shim:
    """See `ridgepole.kernels.device.Device`. `edit` changes a text before it is compiled, `seed` orders threads."""

    backend = "metal"
    name = "Metal shim"
    driver = "C++"
    torch: str | None = None
    limits = Limits(sms=1, warp=32, threads_per_block=1024, shared_per_block=32 << 10, memory=1 << 30)

    def __init__(self, folder: Path, *, seed: int = 1, edit: Callable[[str], str] = lambda text: text) -> None:
        self.folder = folder
        self.seed = seed
        self.edit = edit
        self.launched: list[Launch] = []
        self._runs = count()

    def compile(self, source: str, entry: str, defines: Mapping[str, int]) -> Program:
        program = self._built(self.edit(source), entry, tuple(f"-D{name}={value}" for name, value in defines.items()))
        said = subprocess.run([program, "threadgroup-memory"], capture_output=True, text=True, env=ENVIRONMENT)
        return Built(program, entry, int(said.stdout))

    def _built(self, source: str, entry: str, defines: Sequence[str]) -> Path:
        """The program, from the folder if this text was compiled with these macros before."""
        key = hashlib.sha256("\0".join((source, entry, *defines)).encode()).hexdigest()[:16]
        program = self.folder / f"{entry}-{key}"
        if program.exists():
            return program
        text, unit = self.folder / f"{entry}-{key}.metal", self.folder / f"{entry}-{key}.cpp"
        text.write_text(source, encoding="ascii")
        unit.write_text(caller(source, text.name, (entry,)))
        _compile(self.folder, unit, *defines, str(_driver(self.folder)), "-o", str(program))
        return program

    def upload(self, array: Any) -> Buffer:
        return Held(array.copy(), int(array.nbytes))

    def download(self, buffer: Buffer, dtype: str, many: int) -> Any:
        assert isinstance(buffer, Held)
        return buffer.array.reshape(-1).view("uint8").view(dtype)[:many]

    def bind(
        self, program: Program, launch: Launch, buffers: Sequence[Buffer], scalars: Sequence[int]
    ) -> Callable[[], None]:
        assert isinstance(program, Built)
        held = [buffer for buffer in buffers if isinstance(buffer, Held)]

        def call() -> None:
            self.launched.append(launch)
            run = next(self._runs)
            files = [self.folder / f"{program.program.name}.{run}.{i}" for i in range(len(held))]
            for file, buffer in zip(files, held, strict=True):
                file.write_bytes(buffer.array.tobytes())
            words = [*(f"b:{b.nbytes}:{f}" for f, b in zip(files, held, strict=True)), *(f"u:{s}" for s in scalars)]
            command = [program.program, program.entry, self.seed, *launch.grid, *launch.block, *words]
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=ENVIRONMENT)
            if done.returncode:
                raise Refused(f"{program.entry}: {_said(done.stderr) or f'ended with {done.returncode}'}")
            for file, buffer in zip(files, held, strict=True):
                buffer.array = _like(buffer.array, file.read_bytes())
                file.unlink()

        return call

    def synchronize(self) -> None:
        return

    def elapsed(self, run: Run, many: int) -> float:
        raise NotImplementedError("times on the shim mean nothing")

    def graph(self, run: Run, many: int) -> Callable[[], None] | None:
        return None


def _like(array: Any, raw: bytes) -> Any:
    import numpy

    return numpy.frombuffer(raw, array.dtype).reshape(array.shape).copy()


@cache
def options() -> tuple[str, ...]:
    """What this compiler takes of the sanitizers and of the pattern."""
    return tuple(option for group in ((PATTERN,), SANITIZED) if _takes(group) for option in group)


def sanitized() -> bool:
    return SANITIZED[0] in options()


def _takes(group: Sequence[str]) -> bool:
    command = [str(compiler()), "-x", "c++", "-", *group, "-o", "/dev/null"]
    return subprocess.run(command, input="int main() {}", capture_output=True, text=True).returncode == 0


def _driver(folder: Path) -> Path:
    """The driver's object, compiled once a folder."""
    made = folder / "driver.o"
    if not made.exists():
        _compile(folder, HERE / "driver.cpp", "-c", "-o", str(made))
    return made


def _compile(folder: Path, *words: str | Path) -> None:
    command = [str(compiler()), *PLAIN, *options(), f"-I{HERE}", f"-I{folder}", *(str(word) for word in words)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Refused("the shim's compiler says: " + next(line for line in done.stderr.splitlines() if "error" in line))


def _said(text: str) -> str:
    """What a sanitizer or the driver said, in one line."""
    for pattern in (_UBSAN, _ASAN):
        found = pattern.search(text)
        if found is not None:
            return found[1]
    return " ".join(line for line in text.splitlines() if _NOISE not in line)
