"""A run inside a notebook: the page in a frame of its own, text where HTML is not shown."""

from __future__ import annotations

from html import escape

from ridgepole.report import html, text
from ridgepole.session import Run

HEIGHT = 640


def mimebundle(run: Run) -> dict[str, str]:
    """What IPython shows: an inline frame (no script runs in it), or the text report."""
    page = escape(html.render(run), quote=True)
    style = f"width:100%;height:{HEIGHT}px;border:0"
    frame = f'<iframe sandbox srcdoc="{page}" style="{style}" title="Ridgepole report"></iframe>'
    return {"text/plain": text.render(run), "text/html": frame}
