"""Finds the line of an error. In: an error, and the entry of a kustomization that was processed. Out: file and line.

Never: searches for a line unless there is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from argosy.errors import RenderError, UserError
from argosy.kube.objects.field_lines import Lines, Marked

Path = tuple[str | int, ...]
Read = Callable[[str], bytes]
APPLICATION: Final = "source.kustomize"
"""Location of fields that an Application overrides."""
_YESTERDAY: Final = {"resources": "bases", "images": "imageTags", "helmCharts": "helmChartInflationGenerator"}


class Fault(RenderError):
    """An error at a path in a file whose line is not known yet.

    `path` is below the current entry, or in the file's document with index `document_index`. `resource` is the kind and
    name of a manifest in the file. `text_line` is a line of a text that may be embedded in a kustomization.
    """

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        inside: Path = (),
        number: int | None = None,
        about: tuple[str, str] | None = None,
        said_at: int = 0,
    ) -> None:
        super().__init__(message, where=where)
        self.inside = inside
        self.number = number
        self.about = about
        self.said_at = said_at


def within(error: UserError, *steps: str | int, number: int | None = None) -> UserError:
    """Return the error with these steps before its path, in the document with index `document_index`."""
    if error.line:
        return error
    if not isinstance(error, Fault):
        error = Fault(error.message, where=error.where)
    error.inside = (*steps, *error.inside)
    error.number = number if error.number is None else error.number
    return error


def placed(error: UserError, text: bytes) -> UserError:
    """Return the error with its line in the text of its file."""
    if not error.line:
        documents = _lines(text).documents
        inside = error.inside if isinstance(error, Fault) else ()
        number = error.number or 0 if isinstance(error, Fault) else 0
        error.line = documents[number].at(inside)[0].line if number < len(documents) else 1
    return error


def locate(error: UserError, file: str, at: Path, read: Read) -> None:
    """Set the line of an error that has none: the closest known location, else the entry of the kustomization."""
    error.where = error.where or file
    if error.line or error.where == APPLICATION:
        return
    try:
        text = read(error.where)
    except UserError:
        return
    if error.where == file:
        error.line = _line_here(error, text, at)
    elif isinstance(error, Fault) and error.said_at:
        error.line = error.said_at
    elif isinstance(error, Fault) and error.about:
        error.line = _line_of(error, text, error.about)
    else:
        placed(error, text)


def _line_here(error: UserError, text: bytes, at: Path) -> int:
    lines = _lines(text)
    if not isinstance(error, Fault):
        return line_in(lines, at)
    if error.inside[:1] == ("vars",):  # vars are resolved after everything else
        return line_in(lines, error.inside)
    held = (*at, "patch") if at[:1] in (("patches",), ("patchesJson6902",)) else at
    if error.said_at:
        return lines.of_text(0, held, error.said_at)
    if error.number is not None:
        documents = lines.inside(held)
        if error.number < len(documents):
            return documents[error.number].at(error.inside)[0].line
    return line_in(lines, (*at, *error.inside))


def line_in(lines: Lines, path: Path) -> int:
    """Return the line of a field of a kustomization, also if the file uses a deprecated field name."""
    if not lines.documents:
        return 1
    return lines.documents[0].at(spelled(lines.documents[0], path))[0].line


def spelled(top: Marked, path: Path) -> Path:
    """k8s: bases are appended to resources, imageTags to images."""
    if len(path) < 2 or path[0] not in _YESTERDAY or not isinstance(path[1], int):
        return path
    listed = top.field(str(path[0]))
    count = len(listed.below) if listed and isinstance(listed.below, list) else 0
    return path if path[1] < count else (_YESTERDAY[str(path[0])], path[1] - count, *path[2:])


def _line_of(error: Fault, text: bytes, about: tuple[str, str]) -> int:
    for each in marked_queue(text):
        if (each.said("kind"), each.said("metadata", "name")) == about:
            return each.at(error.inside)[0].line
    return 1


def marked_queue(text: bytes) -> list[Marked]:
    """List documents in the order in which they are processed: items of Lists come last."""
    queue = list(_lines(text).documents)
    for each in queue:
        items = listed_items(each)
        if items is not None:
            queue.extend(items)
    return queue


def listed_items(marked: Marked) -> Sequence[Marked] | None:
    items = marked.field("items")
    is_list = marked.said("kind").endswith("List") and items is not None and isinstance(items.below, list)
    return items.below if is_list and items is not None and isinstance(items.below, list) else None


def _lines(text: bytes) -> Lines:
    return Lines(text.decode("utf-8", "replace"))
