"""Builds OpenAPI v3 schemas from built-in types and CRDs.

In: the resources of one group version, and the schemas of its custom kinds. Out: the components that they need.
Never: caches descriptions itself; `builtin_types.load_table` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from argosy.kube.schema.builtin_kinds import BUILT_IN
from argosy.kube.schema.builtin_types import META, Field, Type, named, table, type_of
from argosy.kube.schema.resources import Resource

_SCALARS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
}
# Types with their own JSON encoding have their own schema.
_SPECIAL: dict[str, dict[str, Any]] = {
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "Duration": {"type": "string"},
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "IntOrString": {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    "SchemaOrBool": {},
    "SchemaOrArray": {},
    "SchemaOrStringArray": {},
}
_ZEROS: dict[str, Any] = {"string": "", "int32": 0, "int64": 0, "float64": 0, "bool": False}
_EXTENSIONS = {
    "list": "x-kubernetes-list-type",
    "keys": "x-kubernetes-list-map-keys",
    "map": "x-kubernetes-map-type",
    "key": "x-kubernetes-patch-merge-key",
    "patch": "x-kubernetes-patch-strategy",
}
_OBJECT_META = f"{META}.ObjectMeta"
_LIST_META = f"{META}.ListMeta"
_TYPE_META = f"{META}.TypeMeta"


def schema_name(group: str, version: str, kind: str) -> str:
    """Return `io.k8s.api.core.v1.Pod`; the group of a custom kind is reversed: `dev.argosy.v1.Widget`."""
    type_ = type_of(group, version, kind)
    if type_ is not None:
        return type_.name
    return ".".join([*reversed(group.split(".")), version, kind])


def components(resources: Iterable[Resource], custom: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Build the schemas of all kinds, their lists, and the types that these refer to."""
    made: dict[str, Any] = {}
    _add(made, named(f"{META}.Status"))
    _add(made, named(f"{META}.DeleteOptions"))
    _add(made, named(_OBJECT_META))
    _add(made, named(_LIST_META))
    for resource in resources:
        name = schema_name(resource.group, resource.version, resource.kind)
        type_ = type_of(resource.group, resource.version, resource.kind)
        if type_ is not None:
            _add(made, type_)
        else:
            made[name] = _custom(custom.get(resource.kind) or {"type": "object"})
            _name_kind(made[name], resource.group, resource.version, resource.kind)
        if "list" in resource.verbs:
            made[f"{name}List"] = _listing(resource, name)
        for part in resource.subresources:
            group, version = part.group or resource.group, part.version or resource.version
            found = type_of(group, version, part.kind) if part.kind else None
            if found is not None:
                _add(made, found)
                _name_kind(made[found.name], group, version, part.kind)
    return made


@cache
def _kinds() -> Mapping[str, Resource]:
    return {schema_name(each.group, each.version, each.kind): each for each in BUILT_IN}


def _texts(name: str) -> tuple[str, Mapping[str, str]]:
    """Return the description of a type and the descriptions of its fields."""
    text, fields = table("descriptions").get(name) or ("", {})
    return text, fields


def _name_kind(schema: dict[str, Any], group: str, version: str, kind: str) -> None:
    schema["x-kubernetes-group-version-kind"] = [{"group": group, "version": version, "kind": kind}]


def _add(made: dict[str, Any], type_: Type) -> None:
    """Add a named type and the types that it refers to."""
    if type_.name in made:
        return
    text, fields = _texts(type_.name)
    schema: dict[str, Any] = {"description": text} if text else {}
    made[type_.name] = schema
    if found := _kinds().get(type_.name):
        _name_kind(schema, found.group, found.version, found.kind)
    if type_.kind == "untyped" and type_.scalar == "Raw":
        if type_.go_name != "v1.JSON":
            schema["type"] = "object"
        return
    if type_.kind != "struct":
        schema |= _SPECIAL[type_.scalar]
        return
    schema["type"] = "object"
    if type_.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    if type_.fields:
        schema["properties"] = {name: _property(made, each, fields.get(name)) for name, each in type_.fields.items()}
    if required := [name for name, each in type_.fields.items() if each.required]:
        schema["required"] = required


def _property(made: dict[str, Any], field: Field, text: str | None) -> dict[str, Any]:
    type_ = field.type
    schema = _value(made, type_)
    default = field.default
    if default is None and not field.pointer:
        if type_.kind == "struct":
            default = {}
        elif not field.omitempty:
            default = _ZEROS.get(type_.scalar)
    return _beside(schema, {"description": text or None, "default": default} | _sharing(type_))


def _sharing(type_: Type) -> dict[str, Any]:
    said: dict[str, Any] = {_EXTENSIONS[word]: value for word, value in type_.facts.items()}
    if type_.map_keys:
        said[_EXTENSIONS["keys"]] = list(type_.map_keys)
    return said


def _beside(schema: dict[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """k8s: `$ref` has no sibling keywords, so with other keywords it moves into `allOf`."""
    said = {key: value for key, value in facts.items() if value is not None}
    if said and "$ref" in schema:
        schema = {"allOf": [schema]}
    return schema | said


def _value(made: dict[str, Any], type_: Type) -> dict[str, Any]:
    if type_.kind == "list":
        return {"type": "array", "items": _element(made, type_.items())}
    if type_.kind == "map":
        return {"type": "object", "additionalProperties": _element(made, type_.items())}
    if type_.scalar in _SCALARS:
        return _SCALARS[type_.scalar] | ({"enum": list(type_.enum)} if type_.enum else {})
    _add(made, type_)
    return {"$ref": f"#/components/schemas/{type_.name}"}


def _element(made: dict[str, Any], type_: Type) -> dict[str, Any]:
    default = {} if type_.kind == "struct" else _ZEROS.get(type_.scalar)
    return _beside(_value(made, type_), {"default": default})


def _type_meta() -> dict[str, Any]:
    _, texts = _texts(_TYPE_META)
    return {name: {"type": "string", "description": texts[name]} for name in ("apiVersion", "kind")}


def _custom(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Add apiVersion, kind and metadata to a custom kind's schema."""
    standard = {"$ref": f"#/components/schemas/{_OBJECT_META}"}
    _, texts = _texts("io.k8s.api.core.v1.Pod")
    metadata = {"allOf": [standard], "description": texts["metadata"]}
    return {**schema, "properties": {**(schema.get("properties") or {}), **_type_meta(), "metadata": metadata}}


def _listing(resource: Resource, name: str) -> dict[str, Any]:
    schema = {
        "description": f"{resource.kind}List is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_type_meta(),
            "metadata": {"$ref": f"#/components/schemas/{_LIST_META}"},
            "items": {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}},
        },
    }
    _name_kind(schema, resource.group, resource.version, f"{resource.kind}List")
    return schema
