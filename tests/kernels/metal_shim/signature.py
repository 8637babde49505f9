"""The kernels of a .metal text: what each takes and where from, and the C++ that calls them so."""

from __future__ import annotations

import re
from dataclasses import dataclass

_KERNEL = re.compile(r"\bkernel\s+void\s+(?P<name>\w+)\s*\((?P<parameters>[^{]*)\)\s*\{")
_PARAMETER = re.compile(
    r"^(?P<type>.+?)\s*(?P<mark>[*&]?)\s*\b(?P<name>\w+)\s*\[\[\s*(?P<attribute>\w+)(?:\((?P<index>\d+)\))?\s*\]\]$"
)
_POSITION = re.compile(r"^uint[23]?$")


@dataclass(frozen=True, slots=True)
class Parameter:
    """`kind`: "buffer" (a device pointer), "size" (a constant reference) or "position". `type` without the address
    space; `index` of the buffer, None for a position, whose attribute is `attribute`."""

    name: str
    kind: str
    type: str
    attribute: str
    index: int | None


@dataclass(frozen=True, slots=True)
class Signature:
    """A kernel, its parameters in order, and whether there is a barrier in it."""

    name: str
    parameters: tuple[Parameter, ...]
    waits: bool

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        return tuple(parameter for parameter in self.parameters if parameter.index is not None)

    @property
    def positions(self) -> tuple[Parameter, ...]:
        return tuple(parameter for parameter in self.parameters if parameter.index is None)


def bare(text: str) -> str:
    """The text without comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def signatures(text: str) -> tuple[Signature, ...]:
    """Every kernel of a text. Raises ValueError for a parameter that is none of the kinds Ridgepole uses."""
    code = bare(text)
    found = list(_KERNEL.finditer(code))
    ends = [*(match.start() for match in found[1:]), len(code)]
    return tuple(
        Signature(
            match["name"],
            tuple(_parameter(part.strip()) for part in match["parameters"].split(",") if part.strip()),
            "threadgroup_barrier" in code[match.end() : end],
        )
        for match, end in zip(found, ends, strict=True)
    )


def _parameter(said: str) -> Parameter:
    match = _PARAMETER.match(" ".join(said.split()))
    if match is None:
        raise ValueError(f"not understood: {said!r}")
    words, mark = match["type"].split(), match["mark"]
    index = int(match["index"]) if match["attribute"] == "buffer" and match["index"] else None
    if index is not None and words[0] == "device" and mark == "*":
        return Parameter(match["name"], "buffer", " ".join(words[1:]), "buffer", index)
    if index is not None and words[0] == "constant" and mark == "&":
        return Parameter(match["name"], "size", " ".join(words[1:]), "buffer", index)
    if index is None and not mark and _POSITION.match(match["type"]):
        return Parameter(match["name"], "position", match["type"], match["attribute"], None)
    raise ValueError(f"neither a device pointer, a constant reference nor a position: {said!r}")


def caller(text: str, file: str, entries: tuple[str, ...]) -> str:
    """A C++ unit that includes the text's file and lists those of its kernels that are in `entries`."""
    chosen = [signature for signature in signatures(text) if signature.name in entries]
    rows = ", ".join(f'{{"{s.name}", call_{s.name}, {str(s.waits).lower()}, {len(s.arguments)}}}' for s in chosen)
    return "\n".join(
        [
            f'#include "{file}"',
            *(_call(signature) for signature in chosen),
            f"const shim::Entry shim::entries[] = {{{rows}}};",
            f"const int shim::entry_count = {len(chosen)};",
            "",
        ]
    )


def _call(signature: Signature) -> str:
    passed = ", ".join(_passed(parameter) for parameter in signature.parameters)
    return (
        f"static void call_{signature.name}(const shim::Arguments &given, const shim::Place &place) "
        f"{{ (void)given; (void)place; {signature.name}({passed}); }}"
    )


def _passed(parameter: Parameter) -> str:
    if parameter.kind == "buffer":
        return f"given.buffer<{parameter.type}>({parameter.index})"
    if parameter.kind == "size":
        return f"given.value<{parameter.type}>({parameter.index})"
    return f"shim::narrow<{parameter.type}>(place.{parameter.attribute})"
