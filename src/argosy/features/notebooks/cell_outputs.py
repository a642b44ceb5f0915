"""Notebook cells in a form that is safe to show in a page.

In: an untrusted notebook. Out: cells with texts, images and HTML, each within limits. Never: emits markup: text stays
text, images are checked by their bytes, and HTML is only referenced, to be loaded in a sandboxed frame.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from argosy.features.notebooks.runner.cells import outputs_of, source_of, text_of, type_of
from argosy.features.notebooks.runner.pictures import size_of

MOST_CELLS: Final = 500
MOST_OUTPUTS: Final = 50  # per cell
MOST_TEXT: Final = 20_000  # characters per output
MOST_SOURCE: Final = 40_000
MOST_PICTURE: Final = 2 << 20  # bytes
MOST_SIDE: Final = 8_000  # pixels
MOST_HTML: Final = 500_000
_COLOURS: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True)
class Output:
    """A text, an image as base64, HTML that needs a frame, or the MIME types that are not shown."""

    kind: str  # text, error, picture, html, other
    text: str = ""
    alt: str = ""


@dataclass(frozen=True)
class ShownCell:
    index: int
    type: str
    source: str
    count: int | None  # execution count
    outputs: tuple[Output, ...] = ()


def shown_cells(notebook: Mapping[str, Any]) -> tuple[ShownCell, ...]:
    found = notebook.get("cells")
    cells = [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
    return tuple(_cell(index, each) for index, each in enumerate(cells[:MOST_CELLS]))


def source_cells(notebook: Mapping[str, Any]) -> tuple[ShownCell, ...]:
    """Cells without saved outputs: outputs of another run must not be mistaken for those of this run."""
    return tuple(replace(cell, count=None, outputs=()) for cell in shown_cells(notebook))


def html_of(notebook: Mapping[str, Any], cell: int, output: int) -> str | None:
    """The HTML of one output; None if it has none."""
    cells = notebook.get("cells")
    if not isinstance(cells, list) or not 0 <= cell < len(cells) or not isinstance(cells[cell], Mapping):
        return None
    outputs = outputs_of(cells[cell])
    data = outputs[output].get("data") if 0 <= output < len(outputs) else None
    text = text_of(data.get("text/html")) if isinstance(data, Mapping) else ""
    return text[:MOST_HTML] or None


def _cell(index: int, cell: Mapping[str, Any]) -> ShownCell:
    count = cell.get("execution_count")
    kind = type_of(cell)
    outputs = tuple(_outputs(cell)) if kind == "code" else ()
    return ShownCell(index, kind, cut(source_of(cell), MOST_SOURCE), count if isinstance(count, int) else None, outputs)


def _outputs(cell: Mapping[str, Any]) -> Iterator[Output]:
    for output in outputs_of(cell)[:MOST_OUTPUTS]:
        kind = output.get("output_type")
        if kind == "stream":
            yield Output("error" if output.get("name") == "stderr" else "text", cut(text_of(output.get("text"))))
        elif kind == "error":
            lines = output.get("traceback")
            told = "\n".join(map(str, lines)) if isinstance(lines, list) and lines else ""
            yield Output("error", cut(told or f"{output.get('ename')}: {text_of(output.get('evalue'))}"))
        elif isinstance(data := output.get("data"), Mapping):
            yield _data(data)


def _data(data: Mapping[str, Any]) -> Output:
    said = text_of(data.get("text/plain"))
    if picture := png(data.get("image/png")):
        return Output("picture", picture, cut(said, 200) or "image")
    if text_of(data.get("text/html")):
        return Output("html", cut(said or text_of(data.get("text/html"))))
    text = said or text_of(data.get("text/markdown"))
    return Output("text", cut(text)) if text else Output("other", cut(", ".join(map(str, data)), 200))


def png(content: Any) -> str:
    """Re-encode a PNG as base64 after checking its signature and size; "" if it is not acceptable."""
    try:
        found = base64.b64decode("".join(text_of(content).split()), validate=True)
    except (binascii.Error, ValueError):
        return ""
    width, height = size_of(found)
    is_fit = 0 < width <= MOST_SIDE and 0 < height <= MOST_SIDE and len(found) <= MOST_PICTURE
    return base64.b64encode(found).decode() if is_fit else ""


def cut(text: str, most: int = MOST_TEXT) -> str:
    text = _COLOURS.sub("", text)
    return text if len(text) <= most else f"{text[:most]}\n… ({len(text) - most:,} more characters)"
