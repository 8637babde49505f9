"""How reports are laid out: lines without trailing blanks, tables whose figures stay whole."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text


def render(parts: Iterable[RenderableType], *, width: int, color: bool) -> str:
    """`parts` as text of `width` columns; names are never taken for markup."""
    out = io.StringIO()
    # rich would read COLUMNS, TERM and more for itself: what it needs of them is in the arguments.
    console = Console(
        file=out, width=width, force_terminal=color, no_color=not color, highlight=False, markup=False, emoji=False,
        legacy_windows=False, _environ={"TERM": "xterm"} if color else {},
    )  # fmt: skip
    for part in parts:
        console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def fitted(
    names: Sequence[str], rows: Sequence[Sequence[Text]], *, left: Collection[str] = (), giving: Collection[str] = ()
) -> Table:
    """A table of `rows` under `names`. Columns in `left` align left, others right; only those in `giving` are cut."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for name in names:
        table.add_column(
            name, justify="left" if name in left or name in giving else "right", no_wrap=name not in giving
        )
    for row in rows:
        table.add_row(*(cut(cell) if name in giving else cell for name, cell in zip(names, row, strict=False)))
    return table


def cut(text: Text) -> Text:
    """`text` on one line, ending in … where there is no room. rich takes width from columns that may wrap first."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text
