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


def join_text(value: Any) -> str:
    """Join a multi-line string of a notebook, which is stored as one string or as a list of lines."""
    if isinstance(value, str):
        return value
    return "".join(map(str, value)) if isinstance(value, Sequence) else ""


def get_source(cell: Cell) -> str:
    return join_text(cell.get("source"))


def get_cell_type(cell: Cell) -> str:
    return str(cell.get("cell_type") or "")


def read_tags(cell: Cell) -> frozenset[str]:
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, Mapping) else None
    return frozenset(map(str, tags)) if isinstance(tags, Sequence) and not isinstance(tags, str) else frozenset()


def read_marks(cell: Cell) -> frozenset[str]:
    """Marks that the author set by nbclient tags, nbval tags or nbval comments."""
    marks = {_TAGS[tag] for tag in read_tags(cell) if tag in _TAGS}
    if get_cell_type(cell) == "code":
        marks |= {_COMMENTS[comment] for comment in _COMMENT.findall(get_source(cell))}
    return frozenset(marks)


def enumerate_cells(notebook: Notebook) -> Iterator[tuple[int, Cell]]:
    yield from enumerate(notebook.get("cells") or ())


def list_outputs(cell: Cell) -> list[Mapping[str, Any]]:
    return [output for output in cell.get("outputs") or () if isinstance(output, Mapping)]


def read_stream(cell: Cell, name: str) -> str:
    """All text that the cell wrote to `stdout` or `stderr`."""
    outputs = (
        output for output in list_outputs(cell) if output.get("output_type") == "stream" and output.get("name") == name
    )
    return "".join(join_text(output.get("text")) for output in outputs)
