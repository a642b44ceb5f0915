"""Reads resources from a file. In: text. Out: resources. Never: a document without a kind or a name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import orjson

from argosy.errors import ManifestError, RenderError
from argosy.gitops.render.kustomize.error_lines import list_documents_and_items
from argosy.gitops.render.kustomize.explicit_nulls_and_scalar_texts import (
    YamlDetails,
    has_unusual_values,
    may_lose_details,
)
from argosy.gitops.render.kustomize.resource import ExplicitNulls, KustomizeResource
from argosy.kube.objects import YamlDialect, read_yaml_documents

_MAX_CACHE_BYTES: Final = 64 * 1024 * 1024
_MAX_CACHED_FILE_BYTES: Final = 4 * 1024 * 1024


class _CachedManifests(NamedTuple):
    """Manifests as JSON, and for each the source text of its annotations that are not strings."""

    data: bytes
    annotation_texts: list[dict[str, str]]


class _ManifestCache:
    """Caches recently read files as JSON, because parsing JSON is fast and returns a copy."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, _CachedManifests] = OrderedDict()
        self._bytes = 0

    def get(self, id: str) -> _CachedManifests | None:
        return self._entries.get(id)

    def put(self, id: str, entry: _CachedManifests) -> None:
        if len(entry.data) > _MAX_CACHED_FILE_BYTES:
            return
        self._entries[id] = entry
        self._bytes += len(entry.data)
        while self._bytes > _MAX_CACHE_BYTES and self._entries:
            self._bytes -= len(self._entries.popitem(last=False)[1].data)


_MANIFEST_CACHE: Final = _ManifestCache()


def read_resources(text: bytes, file: str, id: str = "") -> list[KustomizeResource]:
    """Read all resources of a file; items of Lists come last."""
    cached = _MANIFEST_CACHE.get(id) if id else None
    if cached is not None:
        values: list[Any] = orjson.loads(cached.data)
        return [
            _build_resource(value, file, annotation_texts, {})
            for value, annotation_texts in zip(values, cached.annotation_texts)
        ]
    queue = _load_documents(text, file)
    try:
        values = _collect_manifests(queue, file)
    except _InvalidManifest as error:
        raise RenderError(str(error), where=file, line=_find_document_line(text, queue, error.number)) from None
    if may_lose_details(text) or any(map(_has_unusual_annotations, values)):
        marks = YamlDetails(queue, text)
        if marks.nulls or any(map(_has_unusual_annotations, values)):
            return [_build_resource(value, file, _read_annotation_texts(value, marks), marks.nulls) for value in values]
    no_texts: list[dict[str, str]] = [{} for _ in values]
    if id:
        _MANIFEST_CACHE.put(id, _CachedManifests(orjson.dumps(values), no_texts))
    return [_build_resource(value, file, {}, {}) for value in values]


def build_resources(manifests: Sequence[dict[str, Any]], file: str) -> list[KustomizeResource]:
    """Build resources from the output of another tool."""
    try:
        return [_build_resource(manifest, file, {}, {}) for manifest in _collect_manifests(list(manifests), file)]
    except _InvalidManifest as error:
        raise RenderError(str(error), where=file) from None


def read_chart_values(text: bytes, file: str) -> tuple[dict[str, Any], ExplicitNulls]:
    """Read the values of a chart, and which nulls are explicit."""
    documents = _load_documents(text, file)
    value = documents[0] if documents else None
    if not isinstance(value, dict):
        raise RenderError("must be a mapping: write NAME: VALUE", where=file)
    return value, YamlDetails(documents[:1], text).nulls


def reject_yaml_directive(text: bytes, file: str) -> None:
    """k8s: files are split at `---` before parsing, so a directive would be a document of its own."""
    if text[:5] == b"%YAML":
        raise RenderError("starts with a YAML directive: remove it", where=file, line=1)


def _load_documents(text: bytes, file: str) -> list[Any]:
    reject_yaml_directive(text, file)
    try:
        return read_yaml_documents(text, dialect=YamlDialect.KUSTOMIZE, where=file)
    except ManifestError as error:
        raise RenderError(error.message, where=error.where, line=error.line) from error


class _InvalidManifest(Exception):
    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


def _find_document_line(text: bytes, documents: list[Any], number: int) -> int:
    """Return the line where a document starts; items of Lists are numbered after all documents."""
    marked_documents, index = (
        list_documents_and_items(text),
        number - 1 - sum(document is None for document in documents[:number]),
    )
    return marked_documents[index].line if index < len(marked_documents) else 1


def _collect_manifests(documents: list[Any], file: str) -> list[dict[str, Any]]:
    queue = list(documents)
    manifests: list[dict[str, Any]] = []
    for number, value in enumerate(queue, start=1):
        if value is None or value == {} or value == []:
            continue
        document_text = f"document {number}"
        if not isinstance(value, dict):
            raise _InvalidManifest(f"{document_text} is not a Kubernetes object: expected fields such as kind", number)
        kind = value.get("kind")
        if not isinstance(kind, str) or not kind:
            raise _InvalidManifest(f"{document_text} has no kind: add apiVersion and kind", number)
        if kind.endswith("List") and isinstance(value.get("items"), list):
            queue.extend(value["items"])
            continue
        metadata = value.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("name") in (None, ""):
            raise _InvalidManifest(f"{document_text}, a {kind}, has no metadata.name: add it", number)
        manifests.append(value)
    return manifests


def _has_unusual_annotations(value: dict[str, Any]) -> bool:
    return has_unusual_values(value["metadata"].get("annotations"))


def _read_annotation_texts(value: dict[str, Any], marks: YamlDetails) -> dict[str, str]:
    annotations = value["metadata"].get("annotations")
    texts = marks.get_source_texts(annotations)
    for key, text in texts.items():
        if type(annotations[key]) is str:  # a date, whose value is a string in another format
            annotations[key] = text
    return {key: "" if text == "~" else text for key, text in texts.items()}


def _build_resource(
    value: dict[str, Any], file: str, annotation_texts: dict[str, str], nulls: ExplicitNulls
) -> KustomizeResource:
    resource = KustomizeResource(value, file)
    resource.written_annotations = annotation_texts
    resource.nulls = nulls
    resource.adopt_internal_annotations()
    return resource
