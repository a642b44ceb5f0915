"""Reads documents and Kubernetes manifests from YAML or JSON text.

In: YAML or JSON text. Out: plain data or manifests. Never: guesses the type of a document.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from argosy.errors import ManifestError
from argosy.kube.objects.input_limits import Limits, check_depth, nodes_error, size_error
from argosy.kube.objects.json_reader import load_json
from argosy.kube.objects.yaml_reader import Document, documents
from argosy.kube.objects.yaml_scalars import Profile

_LIMITS = Limits()


def load(
    text: str | bytes,
    *,
    profile: Profile = Profile.KUBERNETES,
    where: str = "",
    strict: bool = False,
    limits: Limits = _LIMITS,
) -> Any:
    """Parse text that holds one document; None if it is empty. `strict` rejects repeated keys."""
    found: list[Document] = []
    for document in _read(text, profile, where, strict, limits):
        if found:
            message = "a second document starts here, but one is expected: split the file"
            raise ManifestError(message, where=where, line=document.line)
        found.append(document)
    return found[0].value if found else None


def load_all(
    text: str | bytes,
    *,
    profile: Profile = Profile.KUBERNETES,
    where: str = "",
    strict: bool = False,
    limits: Limits = _LIMITS,
) -> list[Any]:
    """Parse all documents of the text; an empty document is None."""
    return [document.value for document in _read(text, profile, where, strict, limits)]


def read_manifests(
    text: str | bytes,
    *,
    profile: Profile = Profile.KUBERNETES,
    where: str = "",
    strict: bool = False,
    limits: Limits = _LIMITS,
) -> list[dict[str, Any]]:
    """Parse all Kubernetes objects of the text, including items of lists. Empty documents are skipped."""
    manifests: list[dict[str, Any]] = []
    for number, (value, line) in enumerate(_read(text, profile, where, strict, limits), start=1):
        if value is not None:
            try:
                manifests.extend(_objects(value, f"document {number}", where))
            except ManifestError as error:
                error.line = line
                raise
    return manifests


def _read(text: str | bytes, profile: Profile, where: str, strict: bool, limits: Limits) -> Iterator[Document]:
    """Parse the text as JSON if it is JSON, else as YAML: YAML does not support all JSON escapes."""
    data = text.lstrip()[:1]
    if data in ("{", b"{") and len(text) <= limits.size:
        value = _json(text)
        if value is not None:
            unique = strict or profile is Profile.KUSTOMIZE
            return iter((Document(_checked_json(text, value, where, unique, limits), 1),))
    return documents(text, profile=profile, where=where, strict=strict, limits=limits)


def _json(text: str | bytes) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def _checked_json(text: str | bytes, value: Any, where: str, unique: bool, limits: Limits) -> Any:
    data = text.encode() if isinstance(text, str) else text
    if len(data) > limits.size:
        raise size_error(len(data), limits, where)
    if data.count(b",") + data.count(b"[") + data.count(b"{") > limits.nodes:
        raise nodes_error(limits, where)
    check_depth(value, limits.depth, where)
    if unique and (duplicates := load_json(data, where=where, strict=True).duplicates):
        message = f'key "{duplicates[0]}" already set in map: keep one of them'
        raise ManifestError(message, where=where, line=_line_of_duplicate(data, limits))
    return value


def _line_of_duplicate(data: bytes, limits: Limits) -> int:
    try:
        for _ in documents(data, profile=Profile.KUBERNETES, where="", strict=True, limits=limits):
            pass
    except ManifestError as error:
        return error.line
    return 0


def _objects(value: Any, place: str, where: str) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict):
        raise ManifestError(f"{place}: not a Kubernetes object: expected fields such as apiVersion", where=where)
    for field in ("apiVersion", "kind"):
        given = value.get(field)
        if not isinstance(given, str) or not given:
            raise ManifestError(f"{place}: {field} {_wrong(given)}", where=where)
    items = value.get("items")
    if value["kind"].endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            yield from _objects(_typed_item(item, value), f"{place}, items[{index}]", where)
        return
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        raise ManifestError(f"{place}: {value['kind']} has no metadata: add metadata.name", where=where)
    name = metadata.get("name") or metadata.get("generateName")
    if not isinstance(name, str):
        raise ManifestError(f"{place}: {value['kind']}'s metadata.name {_wrong(name)}", where=where)
    yield value


def _typed_item(item: Any, listing: dict[str, Any]) -> Any:
    """k8s: an item of a ConfigMapList without a kind is a ConfigMap."""
    kind = listing["kind"].removesuffix("List")
    if isinstance(item, dict) and kind and not item.get("kind"):
        return {**item, "apiVersion": item.get("apiVersion") or listing["apiVersion"], "kind": kind}
    return item


def _wrong(given: Any) -> str:
    if given is None or given == "":
        return "is missing: add it"
    return f"is {str(given)[:40]!r}, which is not a string: put it in quotes"
