"""Formats tables, status marks and colours. In, out: text. Never: prints, or depends on colour to be understood."""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Sequence
from typing import Final, TextIO

# status → mark, ASCII mark, colour
STATUS_MARKS: Final = {
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
MESSAGE_COLUMN: Final = "MESSAGE"
WHY_COLUMN: Final = "WHY"
CAUSE_COLUMN: Final = "CAUSE"
_GAP: Final = "   "
_MIN_COLUMN_WIDTH: Final = 20
_MIN_TEXT_WIDTH: Final = 60  # minimum width of a text column; narrower, the text goes below its row
_HANGING_INDENT: Final = 4
_COLOUR_CODE: Final = re.compile("\x1b\\[[0-9]*m")


class StyledText(str):
    """Text produced by argosy, including colour codes; not escaped again."""


class TerminalOutput:
    """Capabilities of an output stream: colour, width, encoding."""

    def __init__(self, stream: TextIO) -> None:
        self.has_colour = _supports_colour(stream)
        self.width = shutil.get_terminal_size().columns if stream.isatty() else None
        self._mark_index = 0 if (stream.encoding or "").lower().replace("-", "") == "utf8" else 1

    def format_status(self, word: str) -> str:
        """Return mark and word in colour, so that each of them is enough."""
        if word not in STATUS_MARKS:
            return word
        mark = STATUS_MARKS[word][self._mark_index]
        return self.add_colour(f"{mark} {word}", STATUS_MARKS[word][2])

    def format_with_mark(self, text: str, word: str) -> StyledText:
        """Return any text with the mark and the colour of a status; unchanged if the status has none."""
        if word not in STATUS_MARKS:
            return StyledText(drop_control_characters(text))
        return self.add_colour(
            f"{STATUS_MARKS[word][self._mark_index]} {drop_control_characters(text)}", STATUS_MARKS[word][2]
        )

    @property
    def has_unicode(self) -> bool:
        """True if the stream supports more than ASCII."""
        return self._mark_index == 0

    def format_mark(self, word: str) -> str:
        """Return only the mark of a status."""
        return self.add_colour(STATUS_MARKS[word][self._mark_index], STATUS_MARKS[word][2])

    def format_failure(self, text: str) -> str:
        return self.add_colour(f"{STATUS_MARKS['failed'][self._mark_index]} {text}", STATUS_MARKS["failed"][2])

    def add_colour(self, text: str, code: str) -> StyledText:
        return StyledText(f"\x1b[{code}m{text}\x1b[0m" if self.has_colour else text)

    def format_table(
        self, headings: Sequence[str], rows: Sequence[Sequence[str]], *, uncut_column: str = ""
    ) -> list[str]:
        """Format a table. On a terminal, long messages are cut except in `uncut_column`; in a pipe nothing is cut."""
        return format_table(headings, rows, self.width, uncut_column)

    def wrap_text(self, text: str, indent: int = _HANGING_INDENT) -> list[str]:
        """Wrap text to the terminal with a hanging indent; one line in a pipe."""
        return [text] if self.width is None else wrap_text(text, self.width, indent)

    def format_diff_line(self, line: str) -> str:
        """Colour a line of a unified diff."""
        codes = {"+": "32", "-": "31", "@": "36"}
        return self.add_colour(line, codes[line[0]]) if line[:1] in codes else line


def _supports_colour(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or os.environ.get("CLICOLOR") == "0":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def format_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None, uncut_column: str = ""
) -> list[str]:
    """Format columns like kubectl; with a width, the columns MESSAGE, WHY and CAUSE are cut to fit.

    The column `uncut_column` is never cut: it wraps, or goes below its row.
    """
    cells = [
        list(headings),
        *([cell if isinstance(cell, StyledText) else drop_control_characters(cell) for cell in row] for row in rows),
    ]
    widths = _measure_columns(cells)
    excess = 0 if width is None else max(0, sum(widths) + len(_GAP) * (len(widths) - 1) - width)
    if width is not None and excess and uncut_column in headings:
        return _format_uncut(cells, widths, list(headings).index(uncut_column), width)
    message_columns = [
        index for index, heading in enumerate(headings) if heading in (MESSAGE_COLUMN, WHY_COLUMN, CAUSE_COLUMN)
    ]
    for index in message_columns:
        widths[index] = min(
            widths[index], max(_MIN_COLUMN_WIDTH, widths[index] - math.ceil(excess / len(message_columns)))
        )
    return [
        _join_cells([truncate(cell, column_width) for cell, column_width in zip(row, widths, strict=True)], widths)
        for row in cells
    ]


def _measure_columns(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(measure_width, column)) for column in zip(*cells, strict=True)]


def _join_cells(row: Sequence[str], widths: Sequence[int], gap: str = _GAP) -> str:
    padded = (cell + " " * (column_width - measure_width(cell)) for cell, column_width in zip(row, widths, strict=True))
    return gap.join(padded).rstrip()


def _format_uncut(cells: Sequence[Sequence[str]], widths: list[int], column: int, width: int) -> list[str]:
    available = width - sum(widths) + widths[column] - len(_GAP) * (len(widths) - 1)
    if available >= _MIN_TEXT_WIDTH:
        widths[column] = available
        return [line for row in cells for line in _wrap_cells(row, widths, _GAP)]
    other_cells = [[cell for index, cell in enumerate(row) if index != column] for row in cells]
    gap, widths = _GAP[:2], _measure_columns(other_cells)
    while sum(widths) + len(gap) * (len(widths) - 1) > width and max(widths) > _HANGING_INDENT:
        widths[widths.index(max(widths))] -= 1
    lines = _wrap_cells(other_cells[0], widths, gap)
    for row, other_row in zip(cells[1:], other_cells[1:], strict=True):
        lines += [
            *_wrap_cells(other_row, widths, gap),
            *wrap_text(" " * _HANGING_INDENT + row[column], width, _HANGING_INDENT),
        ]
    return [line for line in lines if line.strip()]


def _wrap_cells(row: Sequence[str], widths: Sequence[int], gap: str) -> list[str]:
    """Wrap cells that are too wide."""
    columns = [wrap_text(cell, column_width, 0, is_strict=True) for cell, column_width in zip(row, widths, strict=True)]
    height = max(map(len, columns))
    return [
        _join_cells([column[index] if index < len(column) else "" for column in columns], widths, gap)
        for index in range(height)
    ]


def wrap_text(text: str, width: int, indent: int = _HANGING_INDENT, *, is_strict: bool = False) -> list[str]:
    """Wrap at spaces. A word longer than a line is left to the terminal, so that it can be copied; with `is_strict` it
    is broken."""
    if measure_width(text) <= width:
        return [text]
    leading_spaces = text[: len(text) - len(text.lstrip(" "))]
    lines, current = [], leading_spaces
    for word in re.split(r"(?<=\S) ", text[len(leading_spaces) :]):
        if current.strip() and measure_width(current) + 1 + measure_width(word.rstrip()) > width:
            lines.append(current.rstrip())
            current, word = " " * indent, word.lstrip(" ")
        current += f" {word}" if current.strip() else word
        while is_strict and len(current) > width and not _COLOUR_CODE.search(current):
            lines.append(current[:width])
            current = current[width:]
    return [*lines, current.rstrip()]


def truncate(cell: str, max_width: int) -> str:
    """Cut text to a number of columns, with … at the end."""
    return cell if measure_width(cell) <= max_width else f"{cell[: max_width - 1]}…"


def drop_control_characters(text: str) -> str:
    """Put text on one line without control characters: messages may come from untrusted scripts."""
    return "".join(character if character.isprintable() else " " for character in text)


def format_count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def measure_width(text: str) -> int:
    """Return the width without colour codes."""
    return len(_COLOUR_CODE.sub("", text))


_ALIGNED_GAP: Final = "  "  # argo


def format_aligned_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """argo: columns two spaces apart, the last one unpadded."""
    cells = [[drop_control_characters(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        padded = (cell.ljust(width) + _ALIGNED_GAP for cell, width in zip(row[:-1], widths))
        lines.append("".join(padded) + row[-1])
    return lines
