"""Finds the line of an error. In: an error, and the entry of a kustomization that was processed. Out: file and line.

Never: searches for a line unless there is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from argosy.errors import RenderError, UserError
from argosy.kube.objects.field_lines import FieldLines, LocatedNode

KustomizationPath = tuple[str | int, ...]
ReadFile = Callable[[str], bytes]
APPLICATION_LOCATION: Final = "source.kustomize"
"""Location of fields that an Application overrides."""
_DEPRECATED_FIELD_NAMES: Final = {
    "resources": "bases",
    "images": "imageTags",
    "helmCharts": "helmChartInflationGenerator",
}


class LocatedError(RenderError):
    """An error at a path in a file whose line is not known yet.

    `path` is below the current entry, or in the file's document with index `document_index`. `resource` is the kind and
    name of a manifest in the file. `text_line` is a line of a text that may be embedded in a kustomization.
    """

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        path: KustomizationPath = (),
        document_index: int | None = None,
        resource: tuple[str, str] | None = None,
        text_line: int = 0,
    ) -> None:
        super().__init__(message, where=where)
        self.path = path
        self.document_index = document_index
        self.resource = resource
        self.text_line = text_line


def prepend_path(error: UserError, *steps: str | int, document_index: int | None = None) -> UserError:
    """Return the error with these steps before its path, in the document with index `document_index`."""
    if error.line:
        return error
    if not isinstance(error, LocatedError):
        error = LocatedError(error.message, where=error.where)
    error.path = (*steps, *error.path)
    error.document_index = document_index if error.document_index is None else error.document_index
    return error


def set_line_from_text(error: UserError, text: bytes) -> UserError:
    """Return the error with its line in the text of its file."""
    if not error.line:
        documents = _read_lines(text).documents
        path = error.path if isinstance(error, LocatedError) else ()
        document_index = error.document_index or 0 if isinstance(error, LocatedError) else 0
        error.line = documents[document_index].find_deepest(path)[0].line if document_index < len(documents) else 1
    return error


def set_error_line(error: UserError, file: str, entry_path: KustomizationPath, read: ReadFile) -> None:
    """Set the line of an error that has none: the closest known location, else the entry of the kustomization."""
    error.where = error.where or file
    if error.line or error.where == APPLICATION_LOCATION:
        return
    try:
        text = read(error.where)
    except UserError:
        return
    if error.where == file:
        error.line = _find_line_in_kustomization(error, text, entry_path)
    elif isinstance(error, LocatedError) and error.text_line:
        error.line = error.text_line
    elif isinstance(error, LocatedError) and error.resource:
        error.line = _find_resource_line(error, text, error.resource)
    else:
        set_line_from_text(error, text)


def _find_line_in_kustomization(error: UserError, text: bytes, entry_path: KustomizationPath) -> int:
    lines = _read_lines(text)
    if not isinstance(error, LocatedError):
        return find_field_line(lines, entry_path)
    if error.path[:1] == ("vars",):  # vars are resolved after everything else
        return find_field_line(lines, error.path)
    text_path = (*entry_path, "patch") if entry_path[:1] in (("patches",), ("patchesJson6902",)) else entry_path
    if error.text_line:
        return lines.find_text_line(0, text_path, error.text_line)
    if error.document_index is not None:
        documents = lines.list_embedded_documents(text_path)
        if error.document_index < len(documents):
            return documents[error.document_index].find_deepest(error.path)[0].line
    return find_field_line(lines, (*entry_path, *error.path))


def find_field_line(lines: FieldLines, path: KustomizationPath) -> int:
    """Return the line of a field of a kustomization, also if the file uses a deprecated field name."""
    if not lines.documents:
        return 1
    return lines.documents[0].find_deepest(resolve_deprecated_path(lines.documents[0], path))[0].line


def resolve_deprecated_path(document: LocatedNode, path: KustomizationPath) -> KustomizationPath:
    """k8s: bases are appended to resources, imageTags to images."""
    if len(path) < 2 or path[0] not in _DEPRECATED_FIELD_NAMES or not isinstance(path[1], int):
        return path
    list_field = document.find_field(str(path[0]))
    count = len(list_field.children) if list_field and isinstance(list_field.children, list) else 0
    return path if path[1] < count else (_DEPRECATED_FIELD_NAMES[str(path[0])], path[1] - count, *path[2:])


def _find_resource_line(error: LocatedError, text: bytes, resource: tuple[str, str]) -> int:
    for document in list_documents_and_items(text):
        if (document.read_text("kind"), document.read_text("metadata", "name")) == resource:
            return document.find_deepest(error.path)[0].line
    return 1


def list_documents_and_items(text: bytes) -> list[LocatedNode]:
    """List documents in the order in which they are processed: items of Lists come last."""
    queue = list(_read_lines(text).documents)
    for document in queue:
        items = find_kind_list_items(document)
        if items is not None:
            queue.extend(items)
    return queue


def find_kind_list_items(marked: LocatedNode) -> Sequence[LocatedNode] | None:
    items = marked.find_field("items")
    is_list = marked.read_text("kind").endswith("List") and items is not None and isinstance(items.children, list)
    return items.children if is_list and items is not None and isinstance(items.children, list) else None


def _read_lines(text: bytes) -> FieldLines:
    return FieldLines(text.decode("utf-8", "replace"))
