"""Expands the short notation of the bundled CRDs into CustomResourceDefinitions.

In: a file's data. Out: a CustomResourceDefinition. Never: does I/O; guesses: unreadable data raises ManifestError.

    kind, versions (storage version first), short, categories, cluster, subresource, deprecated, about, columns, names
    names:    `segments` if objects may be named `model:latest`, which only the embedded server allows
    columns:  "Prev (integer) = .status.prev", "Message (string, 1) = .status.message" (1 is the priority), "Age"
    fields:   in addition to apiVersion, kind and metadata; a field whose name ends in `!` is required
    a field:  a type of TYPE_SCHEMAS | "$name", a shared shape | "a | b", an enum | [field], a list
              | a mapping of fields. After a type, " = x" is the default and " -- text" the description.
    in a mapping, $with adds the fields of a shape, $open preserves unknown fields, $map sets the type of all values,
    $list and $is start a list or a type, and every other $keyword is copied into the schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.annotations import ACTIONS, NAMES
from argosy.errors import ManifestError
from argosy.kube.objects import Manifest

Schema = dict[str, Any]

_NUMBER: Final = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_QUANTITY: Final = rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$"
_INT_OR_STRING: Final[Schema] = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_PRESERVE_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"

TYPE_SCHEMAS: Final[Mapping[str, Schema]] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "number": {"type": "number"},
    "time": {"type": "string", "format": "date-time"},
    "quantity": {**_INT_OR_STRING, "pattern": _QUANTITY},
    "port": _INT_OR_STRING,
    "strings": {"type": "array", "items": {"type": "string"}},
    "map": {"type": "object", "additionalProperties": {"type": "string"}},
    "open": {"type": "object", _PRESERVE_UNKNOWN: True},
    "any": {_PRESERVE_UNKNOWN: True},
}
_STRUCTURE_KEYWORDS: Final = {"is", "open", "list", "map"}
_COLUMN_PATTERN: Final = re.compile(r"(?P<name>.+?)(?: \((?P<type>\w+)(?:, (?P<priority>\d+))?\))? = (?P<path>\..+)")
_AGE_COLUMN: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def expand_definition(name: str, source: Mapping[str, Any], shared_shapes: Mapping[str, Any]) -> Manifest:
    """Build a CRD from its source; `shared_shapes` are available to all files."""
    plural, _, group = name.partition(".")
    try:
        versions = list(_build_versions(source, {**shared_shapes, **source.get("shapes", {})}))
    except (KeyError, TypeError, ValueError) as error:
        raise ManifestError(f"{type(error).__name__}: {error}", where=f"{name}.yaml") from error
    kind = source["kind"]
    names: dict[str, Any] = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    for key, field in (("short", "shortNames"), ("categories", "categories")):
        if key in source:
            names[field] = source[key]
    scope = "Cluster" if source.get("cluster") else "Namespaced"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": name,
            **({"annotations": annotations} if (annotations := _build_annotations(source)) else {}),
        },
        "spec": {"group": group, "names": names, "scope": scope, "versions": versions},
    }


def _build_annotations(source: Mapping[str, Any]) -> dict[str, str]:
    """Build the annotations for settings that a CustomResourceDefinition has no fields for."""
    actions = ",".join(
        f"{subresource}={request_kind}" for subresource, request_kind in source.get("actions", {}).items()
    )
    return {name: text for name, text in ((NAMES, source.get("names")), (ACTIONS, actions)) if text}


def _build_versions(source: Mapping[str, Any], shapes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Build all versions with the same schema, since there is no conversion."""
    root = _build_schema(source["fields"], shapes)
    identity = {"apiVersion": TYPE_SCHEMAS["string"], "kind": TYPE_SCHEMAS["string"], "metadata": {"type": "object"}}
    root = {"description": source["about"], **root, "properties": {**identity, **root["properties"]}}
    columns = [_read_column(text) for text in source.get("columns", ())]
    for version in source["versions"]:
        version_spec: dict[str, Any] = {"name": version, "served": True, "storage": version == source["versions"][0]}
        if warning := source.get("deprecated", {}).get(version):
            version_spec |= {"deprecated": True, "deprecationWarning": warning}
        if columns:
            version_spec["additionalPrinterColumns"] = columns
        if source.get("subresource", True):
            version_spec["subresources"] = {"status": {}}
        yield {**version_spec, "schema": {"openAPIV3Schema": root}}


def _read_column(text: str) -> dict[str, Any]:
    if text == "Age":
        return _AGE_COLUMN
    match = _COLUMN_PATTERN.fullmatch(text)
    if not match:
        raise ValueError(f"invalid column {text!r}: expected `name (type, priority) = .path`")
    column = {"name": match["name"], "type": match["type"] or "string", "jsonPath": match["path"]}
    return {**column, "priority": int(match["priority"])} if match["priority"] else column


def _build_schema(source: Any, shapes: Mapping[str, Any]) -> Schema:
    if isinstance(source, str):
        return _read_type(source, shapes)
    if isinstance(source, list):
        (items,) = source
        return {"type": "array", "items": _build_schema(items, shapes)}
    if "$with" in source:
        source = {**shapes[source["$with"]], **{key: value for key, value in source.items() if key != "$with"}}
    keywords = {key[1:]: value for key, value in source.items() if key.startswith("$")}
    fields = {key: value for key, value in source.items() if not key.startswith("$")}
    return _build_object_schema(keywords, fields, shapes) | {
        key: keywords[key] for key in keywords if key not in _STRUCTURE_KEYWORDS
    }


def _build_object_schema(keywords: Mapping[str, Any], fields: Mapping[str, Any], shapes: Mapping[str, Any]) -> Schema:
    """Build the schema from the structural keywords; the caller adds the copied keywords."""
    if "is" in keywords:
        return _build_schema(keywords["is"], shapes)
    if "list" in keywords:
        return _build_schema([keywords["list"]], shapes)
    if "map" in keywords:
        return {"type": "object", "additionalProperties": _build_schema(keywords["map"], shapes)}
    schema: Schema = {"type": "object"}
    if keywords.get("open"):
        schema[_PRESERVE_UNKNOWN] = True
    if required := [name[:-1] for name in fields if name.endswith("!")]:
        schema["required"] = required
    if fields:
        schema["properties"] = {name.removesuffix("!"): _build_schema(field, shapes) for name, field in fields.items()}
    return schema


def _read_type(text: str, shapes: Mapping[str, Any]) -> Schema:
    text, _, description = text.partition(" -- ")
    text, _, default = text.partition(" = ")
    if text.startswith("$"):
        schema = _build_schema(shapes[text[1:]], shapes)
    elif " | " in text:
        schema = {"type": "string", "enum": text.split(" | ")}
    else:
        schema = dict(TYPE_SCHEMAS[text])
    if default:
        schema["default"] = _read_default(default, schema["type"])
    return {"description": description, **schema} if description else schema


def _read_default(text: str, type_name: str) -> Any:
    if type_name == "boolean":
        return {"true": True, "false": False}[text]
    return int(text) if type_name == "integer" else text
