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
_KEEP: Final = "x-kubernetes-preserve-unknown-fields"

WORDS: Final[Mapping[str, Schema]] = {
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
    "open": {"type": "object", _KEEP: True},
    "any": {_KEEP: True},
}
_PLACES: Final = {"is", "open", "list", "map"}
_COLUMN: Final = re.compile(r"(?P<name>.+?)(?: \((?P<type>\w+)(?:, (?P<priority>\d+))?\))? = (?P<path>\..+)")
_AGE: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def expand(name: str, written: Mapping[str, Any], shared: Mapping[str, Any]) -> Manifest:
    """Build a CRD from its source; `shared_shapes` are available to all files."""
    plural, _, group = name.partition(".")
    try:
        versions = list(_versions(written, {**shared, **written.get("shapes", {})}))
    except (KeyError, TypeError, ValueError) as error:
        raise ManifestError(f"{type(error).__name__}: {error}", where=f"{name}.yaml") from error
    kind = written["kind"]
    names: dict[str, Any] = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    for key, field in (("short", "shortNames"), ("categories", "categories")):
        if key in written:
            names[field] = written[key]
    scope = "Cluster" if written.get("cluster") else "Namespaced"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, **({"annotations": marks} if (marks := _marks(written)) else {})},
        "spec": {"group": group, "names": names, "scope": scope, "versions": versions},
    }


def _marks(written: Mapping[str, Any]) -> dict[str, str]:
    """Build the annotations for settings that a CustomResourceDefinition has no fields for."""
    actions = ",".join(f"{part}={sent}" for part, sent in written.get("actions", {}).items())
    return {name: text for name, text in ((NAMES, written.get("names")), (ACTIONS, actions)) if text}


def _versions(written: Mapping[str, Any], shapes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Build all versions with the same schema, since there is no conversion."""
    root = _field(written["fields"], shapes)
    identity = {"apiVersion": WORDS["string"], "kind": WORDS["string"], "metadata": {"type": "object"}}
    root = {"description": written["about"], **root, "properties": {**identity, **root["properties"]}}
    columns = [_column(text) for text in written.get("columns", ())]
    for version in written["versions"]:
        made: dict[str, Any] = {"name": version, "served": True, "storage": version == written["versions"][0]}
        if warning := written.get("deprecated", {}).get(version):
            made |= {"deprecated": True, "deprecationWarning": warning}
        if columns:
            made["additionalPrinterColumns"] = columns
        if written.get("subresource", True):
            made["subresources"] = {"status": {}}
        yield {**made, "schema": {"openAPIV3Schema": root}}


def _column(text: str) -> dict[str, Any]:
    if text == "Age":
        return _AGE
    found = _COLUMN.fullmatch(text)
    if not found:
        raise ValueError(f"invalid column {text!r}: expected `name (type, priority) = .path`")
    column = {"name": found["name"], "type": found["type"] or "string", "jsonPath": found["path"]}
    return {**column, "priority": int(found["priority"])} if found["priority"] else column


def _field(written: Any, shapes: Mapping[str, Any]) -> Schema:
    if isinstance(written, str):
        return _word(written, shapes)
    if isinstance(written, list):
        (items,) = written
        return {"type": "array", "items": _field(items, shapes)}
    if "$with" in written:
        written = {**shapes[written["$with"]], **{key: value for key, value in written.items() if key != "$with"}}
    keywords = {key[1:]: value for key, value in written.items() if key.startswith("$")}
    fields = {key: value for key, value in written.items() if not key.startswith("$")}
    return _opened(keywords, fields, shapes) | {key: keywords[key] for key in keywords if key not in _PLACES}


def _opened(keywords: Mapping[str, Any], fields: Mapping[str, Any], shapes: Mapping[str, Any]) -> Schema:
    """Build the schema from the structural keywords; the caller adds the copied keywords."""
    if "is" in keywords:
        return _field(keywords["is"], shapes)
    if "list" in keywords:
        return _field([keywords["list"]], shapes)
    if "map" in keywords:
        return {"type": "object", "additionalProperties": _field(keywords["map"], shapes)}
    schema: Schema = {"type": "object"}
    if keywords.get("open"):
        schema[_KEEP] = True
    if required := [name[:-1] for name in fields if name.endswith("!")]:
        schema["required"] = required
    if fields:
        schema["properties"] = {name.removesuffix("!"): _field(each, shapes) for name, each in fields.items()}
    return schema


def _word(text: str, shapes: Mapping[str, Any]) -> Schema:
    text, _, description = text.partition(" -- ")
    text, _, default = text.partition(" = ")
    if text.startswith("$"):
        schema = _field(shapes[text[1:]], shapes)
    elif " | " in text:
        schema = {"type": "string", "enum": text.split(" | ")}
    else:
        schema = dict(WORDS[text])
    if default:
        schema["default"] = _default(default, schema["type"])
    return {"description": description, **schema} if description else schema


def _default(text: str, of: str) -> Any:
    if of == "boolean":
        return {"true": True, "false": False}[text]
    return int(text) if of == "integer" else text
