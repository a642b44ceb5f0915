"""How answers look: tables, marks, colours. In, out: texts. Never: prints, or needs a colour to be understood."""

from __future__ import annotations

import math
import os
import re
import shutil
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
    "Synced": ("✔", "ok", "32"),
    "OutOfSync": ("▲", "<>", "33"),
    "failed": ("✖", "!!", "31"),
}
MESSAGE: Final = "MESSAGE"
WHY: Final = "WHY"
CAUSE: Final = "CAUSE"
_GAP: Final = "   "
_SHORTEST: Final = 20
_STYLE: Final = re.compile("\x1b\\[[0-9]*m")


class Styled(str):
    """A text of ours, with its colour."""


class Screen:
    """What one stream can show."""

    def __init__(self, stream: TextIO) -> None:
        self.is_colourful = _is_colourful(stream)
        self.width = shutil.get_terminal_size().columns if stream.isatty() else None
        self._place = 0 if (stream.encoding or "").lower().replace("-", "") == "utf8" else 1

    def mark(self, word: str) -> str:
        """Mark, word and colour, so that any one of them is enough."""
        if word not in MARKS:
            return word
        mark = MARKS[word][self._place]
        return self.colour(f"{mark} {word}", MARKS[word][2])

    def mark_as(self, text: str, word: str) -> Styled:
        """Any text, with the mark and the colour of a word; as it is where the word has none."""
        if word not in MARKS:
            return Styled(plain(text))
        return self.colour(f"{MARKS[word][self._place]} {plain(text)}", MARKS[word][2])

    @property
    def has_signs(self) -> bool:
        """Whether it shows more than ASCII."""
        return self._place == 0

    def sign(self, word: str) -> str:
        """The mark alone, for what says the rest in words."""
        return self.colour(MARKS[word][self._place], MARKS[word][2])

    def bad(self, text: str) -> str:
        return self.colour(f"{MARKS['failed'][self._place]} {text}", MARKS["failed"][2])

    def colour(self, text: str, code: str) -> Styled:
        return Styled(f"\x1b[{code}m{text}\x1b[0m" if self.is_colourful else text)

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
        """On a terminal no wider than that: messages are cut. In a pipe they are whole."""
        return table(headings, rows, self.width)

    def difference(self, line: str) -> str:
        """A line of a unified difference."""
        codes = {"+": "32", "-": "31", "@": "36"}
        return self.colour(line, codes[line[0]]) if line[:1] in codes else line


def _is_colourful(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or os.environ.get("CLICOLOR") == "0":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Columns as kubectl has them; with a width, those that are called MESSAGE, WHY or CAUSE are cut to fit it."""
    cells = [list(headings), *([cell if isinstance(cell, Styled) else plain(cell) for cell in row] for row in rows)]
    widths = [max(map(shown_width, column)) for column in zip(*cells, strict=True)]
    messages = [place for place, heading in enumerate(headings) if heading in (MESSAGE, WHY, CAUSE)]
    if width is not None and messages:
        over = max(0, sum(widths) + len(_GAP) * (len(widths) - 1) - width)
        for place in messages:
            widths[place] = min(widths[place], max(_SHORTEST, widths[place] - math.ceil(over / len(messages))))
    lines = []
    for row in cells:
        fitted = (_cut(cell, room) for cell, room in zip(row, widths, strict=True))
        padded = (cell + " " * (room - shown_width(cell)) for cell, room in zip(fitted, widths, strict=True))
        lines.append(_GAP.join(padded).rstrip())
    return lines


def _cut(cell: str, room: int) -> str:
    return cell if shown_width(cell) <= room else f"{cell[: room - 1]}…"


def plain(text: str) -> str:
    """On one line, and without what could move the cursor: messages come from strangers' scripts."""
    return "".join(character if character.isprintable() else " " for character in text)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shown_width(text: str) -> int:
    """Without what only colours."""
    return len(_STYLE.sub("", text))
