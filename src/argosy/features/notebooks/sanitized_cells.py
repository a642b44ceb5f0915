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

from argosy.features.notebooks.runner.cell_source_and_tags import get_cell_type, get_source, join_text, list_outputs
from argosy.features.notebooks.runner.png_size_and_pixels import read_size

MAX_CELLS: Final = 500
MAX_OUTPUTS_PER_CELL: Final = 50  # per cell
MAX_TEXT_CHARACTERS: Final = 20_000  # characters per output
MAX_SOURCE_CHARACTERS: Final = 40_000
MAX_IMAGE_BYTES: Final = 2 << 20  # bytes
MAX_IMAGE_SIDE_PIXELS: Final = 8_000  # pixels
MAX_HTML_CHARACTERS: Final = 500_000
_ANSI_CODES: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True)
class DisplayOutput:
    """A text, an image as base64, HTML that needs a frame, or the MIME types that are not shown."""

    kind: str  # text, error, picture, html, other
    text: str = ""
    alt: str = ""


@dataclass(frozen=True)
class DisplayCell:
    index: int
    type: str
    source: str
    count: int | None  # execution count
    outputs: tuple[DisplayOutput, ...] = ()


def list_display_cells(notebook: Mapping[str, Any]) -> tuple[DisplayCell, ...]:
    raw_cells = notebook.get("cells")
    cells = [cell for cell in raw_cells if isinstance(cell, Mapping)] if isinstance(raw_cells, list) else []
    return tuple(_build_cell(index, cell) for index, cell in enumerate(cells[:MAX_CELLS]))


def list_cells_without_outputs(notebook: Mapping[str, Any]) -> tuple[DisplayCell, ...]:
    """Cells without saved outputs: outputs of another run must not be mistaken for those of this run."""
    return tuple(replace(cell, count=None, outputs=()) for cell in list_display_cells(notebook))


def find_html(notebook: Mapping[str, Any], cell: int, output: int) -> str | None:
    """The HTML of one output; None if it has none."""
    cells = notebook.get("cells")
    if not isinstance(cells, list) or not 0 <= cell < len(cells) or not isinstance(cells[cell], Mapping):
        return None
    outputs = list_outputs(cells[cell])
    data = outputs[output].get("data") if 0 <= output < len(outputs) else None
    text = join_text(data.get("text/html")) if isinstance(data, Mapping) else ""
    return text[:MAX_HTML_CHARACTERS] or None


def _build_cell(index: int, cell: Mapping[str, Any]) -> DisplayCell:
    count = cell.get("execution_count")
    kind = get_cell_type(cell)
    outputs = tuple(_build_outputs(cell)) if kind == "code" else ()
    return DisplayCell(
        index,
        kind,
        truncate(get_source(cell), MAX_SOURCE_CHARACTERS),
        count if isinstance(count, int) else None,
        outputs,
    )


def _build_outputs(cell: Mapping[str, Any]) -> Iterator[DisplayOutput]:
    for output in list_outputs(cell)[:MAX_OUTPUTS_PER_CELL]:
        kind = output.get("output_type")
        if kind == "stream":
            yield DisplayOutput(
                "error" if output.get("name") == "stderr" else "text", truncate(join_text(output.get("text")))
            )
        elif kind == "error":
            lines = output.get("traceback")
            traceback = "\n".join(map(str, lines)) if isinstance(lines, list) and lines else ""
            yield DisplayOutput(
                "error", truncate(traceback or f"{output.get('ename')}: {join_text(output.get('evalue'))}")
            )
        elif isinstance(data := output.get("data"), Mapping):
            yield _build_data_output(data)


def _build_data_output(data: Mapping[str, Any]) -> DisplayOutput:
    plain_text = join_text(data.get("text/plain"))
    if picture := normalize_png_base64(data.get("image/png")):
        return DisplayOutput("picture", picture, truncate(plain_text, 200) or "image")
    if join_text(data.get("text/html")):
        return DisplayOutput("html", truncate(plain_text or join_text(data.get("text/html"))))
    text = plain_text or join_text(data.get("text/markdown"))
    return (
        DisplayOutput("text", truncate(text))
        if text
        else DisplayOutput("other", truncate(", ".join(map(str, data)), 200))
    )


def normalize_png_base64(content: Any) -> str:
    """Re-encode a PNG as base64 after checking its signature and size; "" if it is not acceptable."""
    try:
        image = base64.b64decode("".join(join_text(content).split()), validate=True)
    except (binascii.Error, ValueError):
        return ""
    width, height = read_size(image)
    is_acceptable = (
        0 < width <= MAX_IMAGE_SIDE_PIXELS and 0 < height <= MAX_IMAGE_SIDE_PIXELS and len(image) <= MAX_IMAGE_BYTES
    )
    return base64.b64encode(image).decode() if is_acceptable else ""


def truncate(text: str, max_characters: int = MAX_TEXT_CHARACTERS) -> str:
    text = _ANSI_CODES.sub("", text)
    return (
        text
        if len(text) <= max_characters
        else f"{text[:max_characters]}\n… ({len(text) - max_characters:,} more characters)"
    )
