"""A machine as a machine file: the TOML that `catalog.read` gives the same machine back from."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ridgepole.errors import BadInput
from ridgepole.machine import catalog
from ridgepole.machine.model import Figure, Machine

_TEXTS = ("kind", "vendor", "architecture", "compute", "confidence", "memory_kind", "measured_of")


def text(machine: Machine) -> str:
    """The file's text: every figure with its own source."""
    return "\n".join(_lines(machine)) + "\n"


def write(machine: Machine, path: Path) -> None:
    """Write the file whole or not at all. Raises BadInput where it cannot be written, or would not load.

    A file in the user's folder that does not load stops every later command, so none such is left there.
    """
    whole = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole.write_text(text(machine), encoding="utf-8")
        catalog.read(whole)
        whole.replace(path)
    except OSError as error:
        raise BadInput(f"machine file {path} cannot be written: {error.strerror}") from None
    except UnicodeEncodeError:
        raise BadInput(f"machine file {path} cannot be written: a text of it is no Unicode") from None
    except BadInput as error:
        raise BadInput(f"not written: {str(error).replace(str(whole), str(path))}") from None
    finally:
        with contextlib.suppress(OSError):
            whole.unlink()


def _lines(machine: Machine) -> Iterator[str]:
    yield "[[machine]]"
    yield f"name = {_text(machine.name)}"
    yield f"aliases = {_texts(machine.aliases)}"
    yield 'source = "assumed: each figure has its own source"'
    for name in _TEXTS:
        yield f"{name} = {_text(getattr(machine, name))}"
    yield f"notes = {_texts(machine.notes)}"
    dram = machine.level("dram")
    if dram is not None and dram.bandwidth is not None:
        yield f"bandwidth = {_figure(dram.bandwidth)}"
    if machine.power is not None:
        yield f"power = {_figure(machine.power)}"
    limits = {name: getattr(machine.limits, name) for name in machine.limits.__dataclass_fields__}
    yield from _table("limits", {name: figure for name, figure in limits.items() if figure is not None})
    yield from _table("peaks", {f"{unit} {dtype}": figure for (unit, dtype), figure in machine.peaks.items()})
    if machine.links:
        yield from _table("links", machine.links)
    for level in machine.memory:
        # The device memory's bandwidth stands in the row itself: in two places, one could be changed and not the other.
        bandwidth = None if level is dram else level.bandwidth
        held = {"capacity": level.capacity, "bandwidth": bandwidth, "latency": level.latency}
        yield from _table(f"levels.{level.name}", {what: figure for what, figure in held.items() if figure is not None})
    overheads = {name: getattr(machine.overheads, name) for name in machine.overheads.__dataclass_fields__}
    yield from _table("overheads", overheads)
    if machine.tuning:
        yield ""
        yield "[machine.tuning]"
        for key, figure in machine.tuning.items():
            yield f"{_text(key)} = {_figure(figure, with_unit=True)}"


def _table(name: str, figures: Mapping[str, Figure]) -> Iterator[str]:
    yield ""
    yield f"[machine.{name}]"
    for key, figure in figures.items():
        yield f"{key if key.isidentifier() and key.isascii() else _text(key)} = {_figure(figure)}"


def _figure(figure: Figure, *, with_unit: bool = False) -> str:
    unit = f", unit = {_text(figure.unit)}" if with_unit else ""
    return f"{{ value = {float(figure.value)!r}{unit}, source = {_text(str(figure.source))} }}"


def _texts(texts: tuple[str, ...]) -> str:
    return "[" + ", ".join(_text(each) for each in texts) + "]"


def _text(text: str) -> str:
    """A TOML basic string. JSON's escapes are TOML's, but for DEL, which TOML wants escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
