"""Checks that a schema is structural: types everywhere, and only value validations under anyOf, oneOf, allOf and not.

In: an openAPIV3Schema. Out: errors in the server's order. Never: sees an object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.kube.schema.crd import patterns
from argosy.kube.schema.field_error import Fault, forbidden, go_value, invalid, required

Schema = Mapping[str, Any]

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_EMPTY_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_EITHER = "x-kubernetes-int-or-string"
_NOT_NESTED = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    _PRESERVE: "must be false to be structural",
    _EMBEDDED: "must be false to be structural",
    _EITHER: "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def structural_faults(schema: Schema, path: str) -> list[Fault]:
    found = [*_node(schema, "root", path), *_completeness(schema, path)]
    return sorted(found, key=str)


def _sub(schema: Schema, name: str) -> Schema:
    value = schema.get(name)
    return value if isinstance(value, Mapping) else {}


def _node(schema: Schema, level: str, path: str) -> Iterable[Fault]:
    if schema.get("type") == "array" and not isinstance(schema.get("items"), Mapping):
        yield required(f"{path}.items", "must be specified")
    if isinstance(schema.get("items"), Mapping):
        yield from _node(schema["items"], "item", f"{path}.items")
    for name, child in _sub(schema, "properties").items():
        yield from _node(child, "field", f"{path}.properties[{name}]")
    additional = schema.get("additionalProperties")
    if additional is not None:
        if level == "root":
            yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(additional, Mapping):
            yield from _node(additional, "field", f"{path}.additionalProperties")
    yield from _extensions(schema, path)
    yield from _values(schema, path, any_of=schema.get("anyOf") != _INT_OR_STRING)
    yield from _types(schema, level, path)
    yield from _metadata(schema, level, path)


def _extensions(schema: Schema, path: str) -> Iterable[Fault]:
    if schema.get(_EITHER):
        for name in (_PRESERVE, _EMBEDDED):
            if schema.get(name):
                yield invalid(f"{path}.{name}", "true", "must be false if x-kubernetes-int-or-string is true")


def _types(schema: Schema, level: str, path: str) -> Iterable[Fault]:
    kind = schema.get("type") or ""
    embedded = schema.get(_EMBEDDED) is True
    if embedded and kind != "object":
        words = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", go_value(kind), words) if kind else required(f"{path}.type", words)
    elif not kind and not schema.get(_EITHER) and not schema.get(_PRESERVE):
        yield required(f"{path}.type", _EMPTY_TYPE[level])
    if embedded and schema.get("additionalProperties") is not None:
        yield forbidden(f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set")
    if level == "root" and kind and kind != "object":
        yield invalid(f"{path}.type", go_value(kind), "must be object at the root")
    if embedded and not schema.get(_PRESERVE) and not schema.get("properties"):
        yield required(
            f"{path}.properties",
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        )


def _metadata(schema: Schema, level: str, path: str) -> Iterable[Fault]:
    properties = _sub(schema, "properties")
    if level != "root" and not schema.get(_EMBEDDED):
        return
    for name in ("kind", "apiVersion"):
        if name in properties and (kind := properties[name].get("type") or "") != "string":
            yield invalid(f"{path}.properties[{name}].type", go_value(kind), "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    where = f"{path}.properties[metadata]"
    if metadata.get("type") != "object":
        yield invalid(f"{where}.type", go_value(metadata.get("type") or ""), "must be object")
    if level != "root":
        return
    others = set(metadata) - {"type", "default", "properties"}
    if others or set(metadata.get("properties") or ()) - {"name", "generateName"}:
        words = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(where, words)


def _values(schema: Schema, path: str, *, any_of: bool = True) -> Iterable[Fault]:
    """Check the value validations of a schema, also under anyOf, oneOf, allOf and not."""
    if any_of:
        for index, each in enumerate(schema.get("anyOf") or ()):
            yield from _nested(each, f"{path}.anyOf[{index}]")
    for index, each in enumerate(schema.get("allOf") or ()):
        either = index == 0 and each.get("anyOf") == _INT_OR_STRING
        yield from _nested(each, f"{path}.allOf[{index}]", any_of=not either)
    for index, each in enumerate(schema.get("oneOf") or ()):
        yield from _nested(each, f"{path}.oneOf[{index}]")
    if isinstance(schema.get("not"), Mapping):
        yield from _nested(schema["not"], f"{path}.not")
    pattern = schema.get("pattern")
    if pattern and (reason := patterns.problem(pattern)):
        words = f"must be a valid regular expression, but isn't: {reason}"
        yield invalid(f"{path}.pattern", go_value(pattern), words)


def _nested(schema: Schema, path: str, *, any_of: bool = True) -> Iterable[Fault]:
    yield from _values(schema, path, any_of=any_of)
    if isinstance(schema.get("items"), Mapping):
        yield from _nested(schema["items"], f"{path}.items")
    for name, child in _sub(schema, "properties").items():
        yield from _nested(child, f"{path}.properties[{name}]")
        if name == "metadata":
            yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")
    for name, words in _NOT_NESTED.items():
        if schema.get(name):
            yield forbidden(f"{path}.{name}", words)


def _completeness(schema: Schema, path: str) -> Iterable[Fault]:
    """Check that fields under anyOf, oneOf, allOf and not are also declared outside of them."""
    for words in ("anyOf", "oneOf", "allOf"):
        for index, each in enumerate(schema.get(words) or ()):
            yield from _declared(each, schema, path, f"{path}.{words}[{index}]")
    if isinstance(schema.get("not"), Mapping):
        yield from _declared(schema["not"], schema, path, f"{path}.not")
    for name, child in _sub(schema, "properties").items():
        yield from _completeness(child, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            yield from _completeness(schema[name], f"{path}.{name}")


def _declared(nested: Schema, outer: Schema, path: str, where: str) -> Iterable[Fault]:
    additional = outer.get("additionalProperties")
    for name, child in _sub(nested, "properties").items():
        known = _sub(outer, "properties").get(name)
        inner = f"{path}.properties[{name}]"
        if known is None and isinstance(additional, Mapping):
            known, inner = additional, f"{path}.additionalProperties"
        if known is None:
            because = f"because it is defined in {where}.properties[{name}]"
            yield required(inner, because)
        else:
            yield from _declared(child, known, inner, f"{where}.properties[{name}]")
    if isinstance(nested.get("items"), Mapping):
        if isinstance(outer.get("items"), Mapping):
            yield from _declared(nested["items"], outer["items"], f"{path}.items", f"{where}.items")
        else:
            yield required(f"{path}.items", f"because it is defined in {where}.items")
    for words in ("anyOf", "oneOf", "allOf"):
        for index, each in enumerate(nested.get(words) or ()):
            yield from _declared(each, outer, path, f"{where}.{words}[{index}]")
    if isinstance(nested.get("not"), Mapping):
        yield from _declared(nested["not"], outer, path, f"{where}.not")
