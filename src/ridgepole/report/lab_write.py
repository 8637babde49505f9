"""From the ending of a file's name to the renderer of an experiment that writes it."""

from __future__ import annotations

import json
from pathlib import Path

from ridgepole.errors import BadInput
from ridgepole.lab.experiment import Result
from ridgepole.report import lab_text, picture

ENDINGS = (*picture.ENDINGS, ".json", ".md", ".txt")


def check(path: Path) -> None:
    """Before any long work: raises BadInput for what cannot be written after it, Missing for a picture that cannot."""
    if path.suffix.lower() not in ENDINGS:
        raise BadInput(f"{str(path)!r}: its ending names no format; use one of {', '.join(ENDINGS)}")
    if not path.absolute().parent.is_dir():
        raise BadInput(f"{path}: there is no folder {path.parent} to write it in")
    if path.is_dir():
        raise BadInput(f"{path} cannot be written: it is a folder")
    if path.suffix.lower() in picture.ENDINGS:
        picture.check()


def write(result: Result, path: Path) -> None:
    """Write `result` as `path` ends. Raises BadInput where it cannot, or has no picture, Missing without matplotlib."""
    check(path)
    ending = path.suffix.lower()
    if ending in picture.ENDINGS:
        if result.picture is None:
            raise BadInput(f"{path.name}: {result.experiment} has no picture of this; use .json, .md or .txt")
        picture.draw(result.picture, path)
        return
    text = {
        ".json": lambda: json.dumps(lab_text.document(result), indent=1, allow_nan=False) + "\n",
        ".md": lambda: lab_text.render_markdown(result),
        ".txt": lambda: lab_text.render(result),
    }[ending]()
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from None
