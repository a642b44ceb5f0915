"""Reads resources from a file. In: text. Out: resources. Never: a document without a kind or a name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import orjson

from argosy.errors import ManifestError, RenderError
from argosy.gitops.render.kustomize.error_lines import marked_queue
from argosy.gitops.render.kustomize.resource import Nulls, Resource
from argosy.gitops.render.kustomize.yaml_marks import Marks, is_odd, may_be_lost
from argosy.kube.objects import Profile, load_all

_KEPT_BYTES: Final = 64 * 1024 * 1024
_LARGEST: Final = 4 * 1024 * 1024


class _Read(NamedTuple):
    """Manifests as JSON, and for each the source text of its annotations that are not strings."""

    data: bytes
    written: list[dict[str, str]]


class _Kept:
    """Caches recently read files as JSON, because parsing JSON is fast and returns a copy."""

    def __init__(self) -> None:
        self._found: OrderedDict[str, _Read] = OrderedDict()
        self._bytes = 0

    def get(self, id: str) -> _Read | None:
        return self._found.get(id)

    def put(self, id: str, read: _Read) -> None:
        if len(read.data) > _LARGEST:
            return
        self._found[id] = read
        self._bytes += len(read.data)
        while self._bytes > _KEPT_BYTES and self._found:
            self._bytes -= len(self._found.popitem(last=False)[1].data)


_KEPT: Final = _Kept()


def read_resources(text: bytes, file: str, id: str = "") -> list[Resource]:
    """Read all resources of a file; items of Lists come last."""
    known = _KEPT.get(id) if id else None
    if known is not None:
        values: list[Any] = orjson.loads(known.data)
        return [_resource(each, file, written, {}) for each, written in zip(values, known.written)]
    queue = _documents(text, file)
    try:
        values = _manifests(queue, file)
    except _NoManifest as fault:
        raise RenderError(str(fault), where=file, line=_line(text, queue, fault.number)) from None
    if may_be_lost(text) or any(map(_is_odd, values)):
        marks = Marks(queue, text)
        if marks.nulls or any(map(_is_odd, values)):
            return [_resource(each, file, _written(each, marks), marks.nulls) for each in values]
    nothing: list[dict[str, str]] = [{} for _ in values]
    if id:
        _KEPT.put(id, _Read(orjson.dumps(values), nothing))
    return [_resource(each, file, {}, {}) for each in values]


def resources_of_manifests(manifests: Sequence[dict[str, Any]], file: str) -> list[Resource]:
    """Build resources from the output of another tool."""
    try:
        return [_resource(each, file, {}, {}) for each in _manifests(list(manifests), file)]
    except _NoManifest as fault:
        raise RenderError(str(fault), where=file) from None


def read_values(text: bytes, file: str) -> tuple[dict[str, Any], Nulls]:
    """Read the values of a chart, and which nulls are explicit."""
    documents = _documents(text, file)
    value = documents[0] if documents else None
    if not isinstance(value, dict):
        raise RenderError("must be a mapping: write NAME: VALUE", where=file)
    return value, Marks(documents[:1], text).nulls


def refuse_directive(text: bytes, file: str) -> None:
    """k8s: files are split at `---` before parsing, so a directive would be a document of its own."""
    if text[:5] == b"%YAML":
        raise RenderError("starts with a YAML directive: remove it", where=file, line=1)


def _documents(text: bytes, file: str) -> list[Any]:
    refuse_directive(text, file)
    try:
        return load_all(text, profile=Profile.KUSTOMIZE, where=file)
    except ManifestError as error:
        raise RenderError(error.message, where=error.where, line=error.line) from error


class _NoManifest(Exception):
    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


def _line(text: bytes, documents: list[Any], number: int) -> int:
    """Return the line where a document starts; items of Lists are numbered after all documents."""
    marked, place = marked_queue(text), number - 1 - sum(each is None for each in documents[:number])
    return marked[place].line if place < len(marked) else 1


def _manifests(documents: list[Any], file: str) -> list[dict[str, Any]]:
    queue = list(documents)
    found: list[dict[str, Any]] = []
    for number, value in enumerate(queue, start=1):
        if value is None or value == {} or value == []:
            continue
        place = f"document {number}"
        if not isinstance(value, dict):
            raise _NoManifest(f"{place} is not a Kubernetes object: expected fields such as kind", number)
        kind = value.get("kind")
        if not isinstance(kind, str) or not kind:
            raise _NoManifest(f"{place} has no kind: add apiVersion and kind", number)
        if kind.endswith("List") and isinstance(value.get("items"), list):
            queue.extend(value["items"])
            continue
        metadata = value.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("name") in (None, ""):
            raise _NoManifest(f"{place}, a {kind}, has no metadata.name: add it", number)
        found.append(value)
    return found


def _is_odd(value: dict[str, Any]) -> bool:
    return is_odd(value["metadata"].get("annotations"))


def _written(value: dict[str, Any], marks: Marks) -> dict[str, str]:
    annotations = value["metadata"].get("annotations")
    texts = marks.texts(annotations)
    for key, text in texts.items():
        if type(annotations[key]) is str:  # a date, whose value is a string in another format
            annotations[key] = text
    return {key: "" if text == "~" else text for key, text in texts.items()}


def _resource(value: dict[str, Any], file: str, written: dict[str, str], nulls: Nulls) -> Resource:
    resource = Resource(value, file)
    resource.written = written
    resource.nulls = nulls
    resource.adopt_notes()
    return resource
