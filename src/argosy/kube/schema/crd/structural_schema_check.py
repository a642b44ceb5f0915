"""Checks that a schema is structural: types everywhere, and only value validations under anyOf, oneOf, allOf and not.

In: an openAPIV3Schema. Out: errors in the server's order. Never: sees an object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.kube.schema.field_error import FieldError, forbidden, format_go_value, invalid, required
from argosy.languages import go_regexp

Schema = Mapping[str, Any]

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_EMPTY_TYPE_ERRORS = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_PRESERVE_KEYWORD = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED_KEYWORD = "x-kubernetes-embedded-resource"
_INT_OR_STRING_KEYWORD = "x-kubernetes-int-or-string"
_FORBIDDEN_IN_COMBINATORS = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    _PRESERVE_KEYWORD: "must be false to be structural",
    _EMBEDDED_KEYWORD: "must be false to be structural",
    _INT_OR_STRING_KEYWORD: "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def check_structural(schema: Schema, path: str) -> list[FieldError]:
    errors = [*_check_node(schema, "root", path), *_check_completeness(schema, path)]
    return sorted(errors, key=str)


def _get_mapping(schema: Schema, name: str) -> Schema:
    value = schema.get(name)
    return value if isinstance(value, Mapping) else {}


def _check_node(schema: Schema, level: str, path: str) -> Iterable[FieldError]:
    if schema.get("type") == "array" and not isinstance(schema.get("items"), Mapping):
        yield required(f"{path}.items", "must be specified")
    if isinstance(schema.get("items"), Mapping):
        yield from _check_node(schema["items"], "item", f"{path}.items")
    for name, child in _get_mapping(schema, "properties").items():
        yield from _check_node(child, "field", f"{path}.properties[{name}]")
    additional = schema.get("additionalProperties")
    if additional is not None:
        if level == "root":
            yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(additional, Mapping):
            yield from _check_node(additional, "field", f"{path}.additionalProperties")
    yield from _check_int_or_string(schema, path)
    yield from _check_value_validations(schema, path, any_of=schema.get("anyOf") != _INT_OR_STRING)
    yield from _check_type(schema, level, path)
    yield from _check_metadata(schema, level, path)


def _check_int_or_string(schema: Schema, path: str) -> Iterable[FieldError]:
    if schema.get(_INT_OR_STRING_KEYWORD):
        for name in (_PRESERVE_KEYWORD, _EMBEDDED_KEYWORD):
            if schema.get(name):
                yield invalid(f"{path}.{name}", "true", "must be false if x-kubernetes-int-or-string is true")


def _check_type(schema: Schema, level: str, path: str) -> Iterable[FieldError]:
    kind = schema.get("type") or ""
    is_embedded = schema.get(_EMBEDDED_KEYWORD) is True
    if is_embedded and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", format_go_value(kind), detail) if kind else required(f"{path}.type", detail)
    elif not kind and not schema.get(_INT_OR_STRING_KEYWORD) and not schema.get(_PRESERVE_KEYWORD):
        yield required(f"{path}.type", _EMPTY_TYPE_ERRORS[level])
    if is_embedded and schema.get("additionalProperties") is not None:
        yield forbidden(f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set")
    if level == "root" and kind and kind != "object":
        yield invalid(f"{path}.type", format_go_value(kind), "must be object at the root")
    if is_embedded and not schema.get(_PRESERVE_KEYWORD) and not schema.get("properties"):
        yield required(
            f"{path}.properties",
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        )


def _check_metadata(schema: Schema, level: str, path: str) -> Iterable[FieldError]:
    properties = _get_mapping(schema, "properties")
    if level != "root" and not schema.get(_EMBEDDED_KEYWORD):
        return
    for name in ("kind", "apiVersion"):
        if name in properties and (kind := properties[name].get("type") or "") != "string":
            yield invalid(f"{path}.properties[{name}].type", format_go_value(kind), "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    metadata_path = f"{path}.properties[metadata]"
    if metadata.get("type") != "object":
        yield invalid(f"{metadata_path}.type", format_go_value(metadata.get("type") or ""), "must be object")
    if level != "root":
        return
    other_keywords = set(metadata) - {"type", "default", "properties"}
    if other_keywords or set(metadata.get("properties") or ()) - {"name", "generateName"}:
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(metadata_path, detail)


def _check_value_validations(schema: Schema, path: str, *, any_of: bool = True) -> Iterable[FieldError]:
    """Check the value validations of a schema, also under anyOf, oneOf, allOf and not."""
    if any_of:
        for index, subschema in enumerate(schema.get("anyOf") or ()):
            yield from _check_nested_schema(subschema, f"{path}.anyOf[{index}]")
    for index, subschema in enumerate(schema.get("allOf") or ()):
        is_int_or_string = index == 0 and subschema.get("anyOf") == _INT_OR_STRING
        yield from _check_nested_schema(subschema, f"{path}.allOf[{index}]", any_of=not is_int_or_string)
    for index, subschema in enumerate(schema.get("oneOf") or ()):
        yield from _check_nested_schema(subschema, f"{path}.oneOf[{index}]")
    if isinstance(schema.get("not"), Mapping):
        yield from _check_nested_schema(schema["not"], f"{path}.not")
    pattern = schema.get("pattern")
    if pattern and (reason := go_regexp.find_pattern_error(pattern)):
        detail = f"must be a valid regular expression, but isn't: {reason}"
        yield invalid(f"{path}.pattern", format_go_value(pattern), detail)


def _check_nested_schema(schema: Schema, path: str, *, any_of: bool = True) -> Iterable[FieldError]:
    yield from _check_value_validations(schema, path, any_of=any_of)
    if isinstance(schema.get("items"), Mapping):
        yield from _check_nested_schema(schema["items"], f"{path}.items")
    for name, child in _get_mapping(schema, "properties").items():
        yield from _check_nested_schema(child, f"{path}.properties[{name}]")
        if name == "metadata":
            yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")
    for name, detail in _FORBIDDEN_IN_COMBINATORS.items():
        if schema.get(name):
            yield forbidden(f"{path}.{name}", detail)


def _check_completeness(schema: Schema, path: str) -> Iterable[FieldError]:
    """Check that fields under anyOf, oneOf, allOf and not are also declared outside of them."""
    for keyword in ("anyOf", "oneOf", "allOf"):
        for index, subschema in enumerate(schema.get(keyword) or ()):
            yield from _check_declared(subschema, schema, path, f"{path}.{keyword}[{index}]")
    if isinstance(schema.get("not"), Mapping):
        yield from _check_declared(schema["not"], schema, path, f"{path}.not")
    for name, child in _get_mapping(schema, "properties").items():
        yield from _check_completeness(child, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            yield from _check_completeness(schema[name], f"{path}.{name}")


def _check_declared(nested: Schema, outer: Schema, path: str, nested_path: str) -> Iterable[FieldError]:
    additional = outer.get("additionalProperties")
    for name, child in _get_mapping(nested, "properties").items():
        declared = _get_mapping(outer, "properties").get(name)
        declared_path = f"{path}.properties[{name}]"
        if declared is None and isinstance(additional, Mapping):
            declared, declared_path = additional, f"{path}.additionalProperties"
        if declared is None:
            detail = f"because it is defined in {nested_path}.properties[{name}]"
            yield required(declared_path, detail)
        else:
            yield from _check_declared(child, declared, declared_path, f"{nested_path}.properties[{name}]")
    if isinstance(nested.get("items"), Mapping):
        if isinstance(outer.get("items"), Mapping):
            yield from _check_declared(nested["items"], outer["items"], f"{path}.items", f"{nested_path}.items")
        else:
            yield required(f"{path}.items", f"because it is defined in {nested_path}.items")
    for keyword in ("anyOf", "oneOf", "allOf"):
        for index, subschema in enumerate(nested.get(keyword) or ()):
            yield from _check_declared(subschema, outer, path, f"{nested_path}.{keyword}[{index}]")
    if isinstance(nested.get("not"), Mapping):
        yield from _check_declared(nested["not"], outer, path, f"{nested_path}.not")
