"""Reads a notebook cell: source, type, tags, and nbval comments.

In: a cell as plain data. Out: text and marks. Never: changes a cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Cell = Mapping[str, Any]
Notebook = Mapping[str, Any]

INJECTED: Final = "injected-parameters"
SKIP, IGNORE, CHECK, RAISES = "skip", "ignore-output", "check-output", "raises-exception"
_TAGS: Final = {
    "skip-execution": SKIP,
    "nbval-skip": SKIP,
    "nbval-ignore-output": IGNORE,
    "nbval-check-output": CHECK,
    "nbval-raises-exception": RAISES,
    "raises-exception": RAISES,
}
_COMMENTS: Final = {
    "NBVAL_SKIP": SKIP,
    "NBVAL_IGNORE_OUTPUT": IGNORE,
    "PYTEST_VALIDATE_IGNORE_OUTPUT": IGNORE,
    "NBVAL_CHECK_OUTPUT": CHECK,
    "NBVAL_RAISES_EXCEPTION": RAISES,
}
_COMMENT: Final = re.compile(rf"^[ \t]*#[ \t]*({'|'.join(_COMMENTS)})\b", re.MULTILINE)


def text_of(written: Any) -> str:
    """Join a multi-line string of a notebook, which is stored as one string or as a list of lines."""
    if isinstance(written, str):
        return written
    return "".join(map(str, written)) if isinstance(written, Sequence) else ""


def source_of(cell: Cell) -> str:
    return text_of(cell.get("source"))


def type_of(cell: Cell) -> str:
    return str(cell.get("cell_type") or "")


def tags_of(cell: Cell) -> frozenset[str]:
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, Mapping) else None
    return frozenset(map(str, tags)) if isinstance(tags, Sequence) and not isinstance(tags, str) else frozenset()


def marks_of(cell: Cell) -> frozenset[str]:
    """Marks that the author set by nbclient tags, nbval tags or nbval comments."""
    marks = {_TAGS[tag] for tag in tags_of(cell) if tag in _TAGS}
    if type_of(cell) == "code":
        marks |= {_COMMENTS[found] for found in _COMMENT.findall(source_of(cell))}
    return frozenset(marks)


def numbered(notebook: Notebook) -> Iterator[tuple[int, Cell]]:
    yield from enumerate(notebook.get("cells") or ())


def outputs_of(cell: Cell) -> list[Mapping[str, Any]]:
    return [each for each in cell.get("outputs") or () if isinstance(each, Mapping)]


def stream_of(cell: Cell, name: str) -> str:
    """All text that the cell wrote to `stdout` or `stderr`."""
    written = (each for each in outputs_of(cell) if each.get("output_type") == "stream" and each.get("name") == name)
    return "".join(text_of(each.get("text")) for each in written)
