"""Manifests of a file. In: text. Out: resources. Never: a document that has no kind or no name."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any, Final, NamedTuple

import orjson
import yaml

from argosy.model.errors import ManifestError, RenderError
from argosy.model.manifest import Profile, load_all
from argosy.render.kustomize.resource import Resource

_LITERAL_NULL = re.compile(rb"[:\-\[,][ \t]+(?:null|Null|NULL|~)[ \t]*(?:#.*)?$", re.MULTILINE)
_LISTED_NULL = re.compile(rb"(?m)(?<!-)-[ \t]*(?:#.*)?$|-[ \t]+(?:null|Null|NULL|~)[ \t]*$|[\[,]\s*(?:null|~)")
_KEPT_BYTES: Final = 64 * 1024 * 1024
_LARGEST: Final = 4 * 1024 * 1024


class _Read(NamedTuple):
    data: bytes
    blank_nulls: bool


class _Kept:
    """What was read of files lately, as JSON, because reading that again is fast and gives a copy."""

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
    """Every resource of a file, those in lists last."""
    known = _KEPT.get(id) if id else None
    if known is not None:
        values: list[Any] = orjson.loads(known.data)
        return [_resource(each, file, known.blank_nulls) for each in values]
    values = _values(text, file)
    blank = not _LITERAL_NULL.search(text)
    if id:
        _KEPT.put(id, _Read(orjson.dumps(values), blank))
    return [_resource(each, file, blank) for each in values]


def _values(text: bytes, file: str) -> list[dict[str, Any]]:
    try:
        queue = load_all(text, profile=Profile.KUSTOMIZE, where=file)
    except ManifestError as error:
        raise RenderError(error.message, where=error.where) from error
    if _LISTED_NULL.search(text) and any(_has_listed_null(each) for each in queue):
        raise RenderError("an entry of a list is null: remove it or give it a value", where=file)
    _keep_annotations_as_written(queue, text)
    found: list[dict[str, Any]] = []
    for number, value in enumerate(queue, start=1):
        if value is None or value == {}:
            continue
        place = f"document {number}"
        if not isinstance(value, dict):
            raise RenderError(f"{place} is no Kubernetes object: expected fields such as kind", where=file)
        kind = value.get("kind")
        if not isinstance(kind, str) or not kind:
            raise RenderError(f"{place} has no kind: add apiVersion and kind", where=file)
        if kind.endswith("List") and isinstance(value.get("items"), list):
            queue.extend(value["items"])
            continue
        metadata = value.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("name") in (None, ""):
            raise RenderError(f"{place}, a {kind}, has no metadata.name: add it", where=file)
        found.append(value)
    return found


def _resource(value: dict[str, Any], file: str, blank: bool) -> Resource:
    resource = Resource(value, file, blank_nulls=blank)
    resource.adopt_notes()
    return resource


def _has_listed_null(value: Any) -> bool:
    if type(value) is dict:
        return any(map(_has_listed_null, value.values()))
    if type(value) is list:
        return any(each is None or _has_listed_null(each) for each in value)
    return False


def _keep_annotations_as_written(queue: list[Any], text: bytes) -> None:
    """k8s: kustomize takes annotations for text, whatever they look like."""
    nodes: list[Any] = []
    for place, value in enumerate(queue):
        metadata = value.get("metadata") if isinstance(value, dict) else None
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        if not isinstance(annotations, dict):
            continue
        odd = [key for key, each in annotations.items() if type(each) is not str]
        if odd and not nodes:
            nodes = list(yaml.compose_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        for key in odd:
            annotations[key] = _written(nodes[place], ("metadata", "annotations", key))


def _written(node: Any, path: tuple[str, ...]) -> str:
    for step in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        node = next((each for name, each in pairs if name.value == step), None)
    text = node.value if isinstance(node, yaml.ScalarNode) else ""
    return "" if text in ("", "~") else str(text)
