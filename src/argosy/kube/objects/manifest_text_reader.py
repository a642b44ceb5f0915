"""Reads documents and Kubernetes manifests from YAML or JSON text.

In: YAML or JSON text. Out: plain data or manifests. Never: guesses the type of a document.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from argosy.errors import ManifestError
from argosy.kube.objects.go_json_decoder import read_json
from argosy.kube.objects.input_limits import InputLimits, build_nodes_error, build_size_error, check_depth
from argosy.kube.objects.kubernetes_yaml_parser import YamlDocument, parse_documents
from argosy.kube.objects.yaml_scalars import YamlDialect

_LIMITS = InputLimits()


def read_yaml(
    text: str | bytes,
    *,
    dialect: YamlDialect = YamlDialect.KUBERNETES,
    where: str = "",
    strict: bool = False,
    limits: InputLimits = _LIMITS,
) -> Any:
    """Parse text that holds one document; None if it is empty. `strict` rejects repeated keys."""
    results: list[YamlDocument] = []
    for document in _read_documents(text, dialect, where, strict, limits):
        if results:
            message = "a second document starts here, but one is expected: split the file"
            raise ManifestError(message, where=where, line=document.line)
        results.append(document)
    return results[0].value if results else None


def read_yaml_documents(
    text: str | bytes,
    *,
    dialect: YamlDialect = YamlDialect.KUBERNETES,
    where: str = "",
    strict: bool = False,
    limits: InputLimits = _LIMITS,
) -> list[Any]:
    """Parse all documents of the text; an empty document is None."""
    return [document.value for document in _read_documents(text, dialect, where, strict, limits)]


def read_manifests(
    text: str | bytes,
    *,
    dialect: YamlDialect = YamlDialect.KUBERNETES,
    where: str = "",
    strict: bool = False,
    limits: InputLimits = _LIMITS,
) -> list[dict[str, Any]]:
    """Parse all Kubernetes objects of the text, including items of lists. Empty documents are skipped."""
    manifests: list[dict[str, Any]] = []
    for number, (value, line) in enumerate(_read_documents(text, dialect, where, strict, limits), start=1):
        if value is not None:
            try:
                manifests.extend(_list_objects(value, f"document {number}", where))
            except ManifestError as error:
                error.line = line
                raise
    return manifests


def _read_documents(
    text: str | bytes, dialect: YamlDialect, where: str, strict: bool, limits: InputLimits
) -> Iterator[YamlDocument]:
    """Parse the text as JSON if it is JSON, else as YAML: YAML does not support all JSON escapes."""
    first_character = text.lstrip()[:1]
    if first_character in ("{", b"{") and len(text) <= limits.size:
        value = _try_json(text)
        if value is not None:
            refuses_duplicates = strict or dialect is YamlDialect.KUSTOMIZE
            return iter((YamlDocument(_check_json(text, value, where, refuses_duplicates, limits), 1),))
    return parse_documents(text, dialect=dialect, where=where, strict=strict, limits=limits)


def _try_json(text: str | bytes) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def _check_json(text: str | bytes, value: Any, where: str, refuses_duplicates: bool, limits: InputLimits) -> Any:
    data = text.encode() if isinstance(text, str) else text
    if len(data) > limits.size:
        raise build_size_error(len(data), limits, where)
    if data.count(b",") + data.count(b"[") + data.count(b"{") > limits.nodes:
        raise build_nodes_error(limits, where)
    check_depth(value, limits.depth, where)
    if refuses_duplicates and (duplicates := read_json(data, where=where, strict=True).duplicates):
        message = f'key "{duplicates[0]}" already set in map: keep one of them'
        raise ManifestError(message, where=where, line=_find_duplicate_line(data, limits))
    return value


def _find_duplicate_line(data: bytes, limits: InputLimits) -> int:
    try:
        for _ in parse_documents(data, dialect=YamlDialect.KUBERNETES, where="", strict=True, limits=limits):
            pass
    except ManifestError as error:
        return error.line
    return 0


def _list_objects(value: Any, label: str, where: str) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict):
        raise ManifestError(f"{label}: not a Kubernetes object: expected fields such as apiVersion", where=where)
    for field in ("apiVersion", "kind"):
        field_value = value.get(field)
        if not isinstance(field_value, str) or not field_value:
            raise ManifestError(f"{label}: {field} {_describe_bad_string(field_value)}", where=where)
    items = value.get("items")
    if value["kind"].endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            yield from _list_objects(_add_item_type(item, value), f"{label}, items[{index}]", where)
        return
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        raise ManifestError(f"{label}: {value['kind']} has no metadata: add metadata.name", where=where)
    name = metadata.get("name") or metadata.get("generateName")
    if not isinstance(name, str):
        raise ManifestError(f"{label}: {value['kind']}'s metadata.name {_describe_bad_string(name)}", where=where)
    yield value


def _add_item_type(item: Any, list_object: dict[str, Any]) -> Any:
    """k8s: an item of a ConfigMapList without a kind is a ConfigMap."""
    kind = list_object["kind"].removesuffix("List")
    if isinstance(item, dict) and kind and not item.get("kind"):
        return {**item, "apiVersion": item.get("apiVersion") or list_object["apiVersion"], "kind": kind}
    return item


def _describe_bad_string(value: Any) -> str:
    if value is None or value == "":
        return "is missing: add it"
    return f"is {str(value)[:40]!r}, which is not a string: put it in quotes"
