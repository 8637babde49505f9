"""From CUDA C++ to a cubin, with or without a GPU, and what the assembler says the kernel takes."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ridgepole.errors import Missing
from ridgepole.kernels.device import Refused

INSTALL = "pip install 'ridgepole[cuda]' (cuda-core, beside a torch built for CUDA)"
_USED = re.compile(
    r"Compiling entry function '(?P<entry>\w+)'.*?(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
    r".*?Used (?P<registers>\d+) registers(?:[^\n]*?(?P<shared>\d+) bytes smem)?",
    re.DOTALL,
)
_ERROR = re.compile(r"\((?P<line>\d+)\): (?:catastrophic )?error:? *(?P<what>[^\n]+)")


@dataclass(frozen=True, slots=True)
class Resources:
    """What a kernel takes on `arch`: a thread's registers, a block's static shared bytes, bytes of spill loads and
    stores in its code."""

    arch: str
    registers: int
    shared: int
    spilled: int


def core() -> Any:
    """The cuda.core module, which older releases call cuda.core.experimental. Raises Missing without it."""
    try:
        import cuda.core as found

        if not hasattr(found, "Program"):
            import cuda.core.experimental as found
    except ImportError as error:
        raise Missing(f"CUDA kernels need cuda-core, which does not import here ({error}): {INSTALL}") from None
    return found


def build(source: str, entry: str, defines: Mapping[str, int], arch: str) -> Any:
    """`entry` of `source` for `arch` ("sm_90a") as cuda-core's ObjectCode, by NVRTC. Needs no GPU.

    Raises Refused with the compiler's first error and its line, Missing without cuda-core or NVRTC.
    """
    return _compiled(source, entry, defines, arch)


def resources(source: str, entry: str, defines: Mapping[str, int], arch: str) -> Resources:
    """What the assembler reports of `entry`. Needs no GPU; raises as `build` does."""
    log = io.StringIO()
    # A program from NVRTC's cache comes without a report.
    _compiled(source, entry, defines, arch, log, ptxas_options=["-v"], no_cache=True)
    used = next((found for found in _USED.finditer(log.getvalue()) if found["entry"] == entry), None)
    if used is None:
        raise Refused(f"{entry} for {arch}: the assembler reported no kernel of this name")
    spilled = int(used["stores"]) + int(used["loads"])
    return Resources(arch, int(used["registers"]), int(used["shared"] or 0), spilled)


def _compiled(
    source: str, entry: str, defines: Mapping[str, int], arch: str, log: io.StringIO | None = None, **options: Any
) -> Any:
    module = core()
    # `#line` keeps the compiler's line numbers those of the file.
    text = "".join(f"#define {name} {value}\n" for name, value in defines.items()) + f'#line 1 "{entry}.cu"\n' + source
    known = {name: value for name, value in options.items() if name in module.ProgramOptions.__dataclass_fields__}
    try:
        program = module.Program(text, "c++", module.ProgramOptions(arch=arch, std="c++17", **known))
        return program.compile("cubin", logs=log)
    except Exception as error:
        raise _refused(entry, arch, error) from None


def _refused(entry: str, arch: str, error: Exception) -> Exception:
    said = str(error)
    found = _ERROR.search(said)
    if found is not None:
        return Refused(f"{entry} does not compile for {arch}: line {found['line']}: {found['what'].strip()}")
    if isinstance(error, ImportError | OSError) or ("nvrtc" in said.lower() and "NVRTC_ERROR" not in said):
        return Missing(f"CUDA kernels need NVRTC, which does not load here ({_first(said)}): {INSTALL}")
    return Refused(f"{entry} does not compile for {arch}: {_first(said)}")


def _first(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
