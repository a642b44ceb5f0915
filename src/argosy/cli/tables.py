"""Formats tables, status marks and colours. In, out: text. Never: prints, or depends on colour to be understood."""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Sequence
from typing import Final, TextIO

# status → mark, ASCII mark, colour
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
_READABLE: Final = 60  # minimum width of a text column; narrower, the text goes below its row
_HANG: Final = 4
_STYLE: Final = re.compile("\x1b\\[[0-9]*m")


class Styled(str):
    """Text produced by argosy, including colour codes; not escaped again."""


class Screen:
    """Capabilities of an output stream: colour, width, encoding."""

    def __init__(self, stream: TextIO) -> None:
        self.is_colourful = _is_colourful(stream)
        self.width = shutil.get_terminal_size().columns if stream.isatty() else None
        self._place = 0 if (stream.encoding or "").lower().replace("-", "") == "utf8" else 1

    def mark(self, word: str) -> str:
        """Return mark and word in colour, so that each of them is enough."""
        if word not in MARKS:
            return word
        mark = MARKS[word][self._place]
        return self.colour(f"{mark} {word}", MARKS[word][2])

    def mark_as(self, text: str, word: str) -> Styled:
        """Return any text with the mark and the colour of a status; unchanged if the status has none."""
        if word not in MARKS:
            return Styled(plain(text))
        return self.colour(f"{MARKS[word][self._place]} {plain(text)}", MARKS[word][2])

    @property
    def has_signs(self) -> bool:
        """True if the stream supports more than ASCII."""
        return self._place == 0

    def sign(self, word: str) -> str:
        """Return only the mark of a status."""
        return self.colour(MARKS[word][self._place], MARKS[word][2])

    def bad(self, text: str) -> str:
        return self.colour(f"{MARKS['failed'][self._place]} {text}", MARKS["failed"][2])

    def colour(self, text: str, code: str) -> Styled:
        return Styled(f"\x1b[{code}m{text}\x1b[0m" if self.is_colourful else text)

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]], *, whole: str = "") -> list[str]:
        """Format a table. On a terminal, long messages are cut except in `uncut_column`; in a pipe nothing is cut."""
        return table(headings, rows, self.width, whole)

    def folded(self, text: str, hang: int = _HANG) -> list[str]:
        """Wrap text to the terminal with a hanging indent; one line in a pipe."""
        return [text] if self.width is None else fold(text, self.width, hang)

    def difference(self, line: str) -> str:
        """Colour a line of a unified diff."""
        codes = {"+": "32", "-": "31", "@": "36"}
        return self.colour(line, codes[line[0]]) if line[:1] in codes else line


def _is_colourful(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or os.environ.get("CLICOLOR") == "0":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None, whole: str = ""
) -> list[str]:
    """Format columns like kubectl; with a width, the columns MESSAGE, WHY and CAUSE are cut to fit.

    The column `uncut_column` is never cut: it wraps, or goes below its row.
    """
    cells = [list(headings), *([cell if isinstance(cell, Styled) else plain(cell) for cell in row] for row in rows)]
    widths = _widths(cells)
    over = 0 if width is None else max(0, sum(widths) + len(_GAP) * (len(widths) - 1) - width)
    if width is not None and over and whole in headings:
        return _uncut(cells, widths, list(headings).index(whole), width)
    messages = [place for place, heading in enumerate(headings) if heading in (MESSAGE, WHY, CAUSE)]
    for place in messages:
        widths[place] = min(widths[place], max(_SHORTEST, widths[place] - math.ceil(over / len(messages))))
    return [_joined([cut(cell, room) for cell, room in zip(row, widths, strict=True)], widths) for row in cells]


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(shown_width, column)) for column in zip(*cells, strict=True)]


def _joined(row: Sequence[str], widths: Sequence[int], gap: str = _GAP) -> str:
    padded = (cell + " " * (room - shown_width(cell)) for cell, room in zip(row, widths, strict=True))
    return gap.join(padded).rstrip()


def _uncut(cells: Sequence[Sequence[str]], widths: list[int], place: int, width: int) -> list[str]:
    room = width - sum(widths) + widths[place] - len(_GAP) * (len(widths) - 1)
    if room >= _READABLE:
        widths[place] = room
        return [line for row in cells for line in _stacked(row, widths, _GAP)]
    slim = [[cell for at, cell in enumerate(row) if at != place] for row in cells]
    gap, widths = _GAP[:2], _widths(slim)
    while sum(widths) + len(gap) * (len(widths) - 1) > width and max(widths) > _HANG:
        widths[widths.index(max(widths))] -= 1
    lines = _stacked(slim[0], widths, gap)
    for row, rest in zip(cells[1:], slim[1:], strict=True):
        lines += [*_stacked(rest, widths, gap), *fold(" " * _HANG + row[place], width, _HANG)]
    return [line for line in lines if line.strip()]


def _stacked(row: Sequence[str], widths: Sequence[int], gap: str) -> list[str]:
    """Wrap cells that are too wide."""
    piles = [fold(cell, room, 0, is_strict=True) for cell, room in zip(row, widths, strict=True)]
    height = max(map(len, piles))
    return [_joined([pile[at] if at < len(pile) else "" for pile in piles], widths, gap) for at in range(height)]


def fold(text: str, width: int, hang: int = _HANG, *, is_strict: bool = False) -> list[str]:
    """Wrap at spaces. A word longer than a line is left to the terminal, so that it can be copied; with `is_strict` it
    is broken."""
    if shown_width(text) <= width:
        return [text]
    lead = text[: len(text) - len(text.lstrip(" "))]
    lines, here = [], lead
    for word in re.split(r"(?<=\S) ", text[len(lead) :]):
        if here.strip() and shown_width(here) + 1 + shown_width(word.rstrip()) > width:
            lines.append(here.rstrip())
            here, word = " " * hang, word.lstrip(" ")
        here += f" {word}" if here.strip() else word
        while is_strict and len(here) > width and not _STYLE.search(here):
            lines.append(here[:width])
            here = here[width:]
    return [*lines, here.rstrip()]


def cut(cell: str, room: int) -> str:
    """Cut text to a number of columns, with … at the end."""
    return cell if shown_width(cell) <= room else f"{cell[: room - 1]}…"


def plain(text: str) -> str:
    """Put text on one line without control characters: messages may come from untrusted scripts."""
    return "".join(character if character.isprintable() else " " for character in text)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shown_width(text: str) -> int:
    """Return the width without colour codes."""
    return len(_STYLE.sub("", text))


_ALIGNED_GAP: Final = "  "  # argo


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """argo: columns two spaces apart, the last one unpadded."""
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        padded = (cell.ljust(width) + _ALIGNED_GAP for cell, width in zip(row[:-1], widths))
        lines.append("".join(padded) + row[-1])
    return lines
