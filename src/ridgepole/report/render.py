"""From the ending of a file's name to the renderer that writes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ridgepole.errors import BadInput
from ridgepole.session import PriceRun, Run

ENDINGS = (".html", ".json", ".csv", ".md", ".trace.json", ".txt")


ONE_PRICE = (".html", ".trace.json")
"""Endings that show one timeline, and so one price."""


def check(path: Path, prices: int = 1) -> None:
    """Raises BadInput for an ending that no renderer writes (of `prices` prices), or a folder that is not there."""
    if _ending(path) is None:
        raise BadInput(f"{path.name}: its ending names no format; use one of {', '.join(ENDINGS)}")
    if not path.absolute().parent.is_dir():
        raise BadInput(f"{path}: there is no folder {path.parent} to write it in")
    if prices > 1 and _ending(path) in ONE_PRICE:
        raise BadInput(f"{path.name}: {_ending(path)} shows one price; name one machine and one mode for it")


def write(run: Run | PriceRun, path: Path) -> None:
    """Render `run` in the format that `path` ends with, and write it. Raises BadInput."""
    check(path, len(run.prices) if isinstance(run, PriceRun) else 1)
    text = _priced(run, path) if isinstance(run, PriceRun) else _explained(run, path)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from None


def _ending(path: Path) -> str | None:
    name = path.name.lower()
    return max((e for e in ENDINGS if name.endswith(e)), key=len, default=None)


def _explained(run: Run, path: Path) -> str:
    from ridgepole.report import chrome, csvdoc, html, jsondoc, markdown, text

    renderers: dict[str, Callable[[Run], str]] = {
        ".html": html.render,
        ".json": jsondoc.render,
        ".csv": csvdoc.render,
        ".md": markdown.render,
        ".trace.json": chrome.render,
        ".txt": text.render,
    }
    return renderers[_ending(path) or ".txt"](run)


def _priced(run: PriceRun, path: Path) -> str:
    from ridgepole.report import chrome, csvdoc, html, jsondoc, markdown, price_text

    ending = _ending(path)
    if ending in ONE_PRICE:
        return html.render(run.runs[0]) if ending == ".html" else chrome.render(run.runs[0])
    renderers: dict[str | None, Callable[[PriceRun], str]] = {
        ".json": jsondoc.render_price,
        ".csv": csvdoc.render_price,
        ".md": markdown.render_price,
    }
    return renderers.get(ending, price_text.render)(run)
