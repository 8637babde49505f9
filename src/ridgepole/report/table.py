"""Tables whose figures stay whole: only the columns named as giving way are cut to the width there is."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich import box
from rich.table import Table
from rich.text import Text


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
