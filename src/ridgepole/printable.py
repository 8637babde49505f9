"""Names from other people's files, as text that does nothing to a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""`text` with every character that does not print (escapes, line breaks, bells) written out.

    >>> printable("red \x1b[31m")
    'red \\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
