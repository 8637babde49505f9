"""What PoCL needs of its host before it is asked anything, and what its compiler prints that nobody asked for."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ridgepole.errors import Missing
from ridgepole.kernels.opencl import host_cpu

PLATFORM = "Portable Computing Language"
CACHE = "POCL_CACHE_DIR"
COUNTED = re.compile(r"\d+ (warning|error)s?( and \d+ errors?)? generated\.\s*")


def give_a_cache() -> None:
    """Where the caches of PoCL or of pyopencl cannot be written, give both a folder that ends with the process.

    PoCL finds no device at all then, and pyopencl does not import. PoCL takes POCL_CACHE_DIR, else XDG_CACHE_HOME, else
    HOME's .cache, as pyopencl does. To be called before either is loaded.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME", "/nowhere")) / ".cache")
    if _writable(home) and _writable(Path(os.environ.get(CACHE) or home / "pocl" / "kcache")):
        return
    folder = tempfile.mkdtemp(prefix="ridgepole-pocl-")
    os.environ["XDG_CACHE_HOME"] = os.environ[CACHE] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def make_ready(device: Any) -> None:
    """Before the first kernel of a PoCL device. Raises Missing where kernels cannot be linked."""
    if shutil.which("ld") is None:
        raise Missing(
            "PoCL links each kernel with ld, which is not on the PATH, and aborts without it: "
            "install binutils (apt install binutils)"
        )
    host_cpu.name_it(device)


def version(platform_version: str) -> str:
    """`PoCL 3.0-rc2 (LLVM 14.0.6)` of what the platform calls its version."""
    own, llvm = re.search(r"PoCL (\S+)", platform_version), re.search(r"LLVM ([\w.]+)", platform_version)
    return f"PoCL {own.group(1) if own else 'of unknown version'}" + (f" (LLVM {llvm.group(1)})" if llvm else "")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Within this, what the compiler prints itself ("2 errors generated.") is held back; all else follows after."""
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:
        yield
        return
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            rest = COUNTED.sub("", file.read().decode(errors="replace"))
            if rest.strip():
                sys.stderr.write(rest)


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
