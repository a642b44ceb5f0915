"""How answers look: tables, marks, colours. In, out: texts. Never: prints, or needs a colour to be understood."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final, TextIO

# health → mark, mark where the terminal has only ASCII, colour
MARKS: Final = {
    "Healthy": ("✔", "ok", "32"),
    "Progressing": ("●", "..", "34"),
    "Suspended": ("⏸", "||", "35"),
    "Missing": ("◌", "--", "33"),
    "Degraded": ("✖", "!!", "31"),
    "Unknown": ("?", "??", "33"),
    "failed": ("✖", "!!", "31"),
}


_STYLE: Final = re.compile("\x1b\\[[0-9]*m")


class Styled(str):
    """A text of ours, with its colour."""


class Screen:
    """What one stream can show."""

    def __init__(self, stream: TextIO) -> None:
        self.is_colourful = _is_colourful(stream)
        self._place = 0 if (stream.encoding or "").lower().replace("-", "") == "utf8" else 1

    def mark(self, word: str) -> str:
        """Mark, word and colour, so that any one of them is enough."""
        if word not in MARKS:
            return word
        mark = MARKS[word][self._place]
        return self.colour(f"{mark} {word}", MARKS[word][2])

    def bad(self, text: str) -> str:
        return self.colour(f"{MARKS['failed'][self._place]} {text}", MARKS["failed"][2])

    def colour(self, text: str, code: str) -> Styled:
        return Styled(f"\x1b[{code}m{text}\x1b[0m" if self.is_colourful else text)

    def difference(self, line: str) -> str:
        """A line of a unified difference."""
        codes = {"+": "32", "-": "31", "@": "36"}
        return self.colour(line, codes[line[0]]) if line[:1] in codes else line


def _is_colourful(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or os.environ.get("CLICOLOR") == "0":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as kubectl has them."""
    cells = [list(headings), *([cell if isinstance(cell, Styled) else plain(cell) for cell in row] for row in rows)]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        padded = (cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True))
        lines.append("   ".join(padded).rstrip())
    return lines


def plain(text: str) -> str:
    """On one line, and without what could move the cursor: messages come from strangers' scripts."""
    return "".join(character if character.isprintable() else " " for character in text)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _width(text: str) -> int:
    return len(_STYLE.sub("", text))
