"""Builds OpenAPI v3 schemas from built-in types and CRDs.

In: the resources of one group version, and the schemas of its custom kinds. Out: the components that they need.
Never: caches descriptions itself; `builtin_go_struct_fields.load_table` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from argosy.kube.schema.api_resource import ApiResource
from argosy.kube.schema.builtin_go_struct_fields import (
    META_PACKAGE,
    StructField,
    Type,
    find_builtin_type,
    get_named_type,
    load_table,
)
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES

_SCALAR_SCHEMAS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
}
# Types with their own JSON encoding have their own schema.
_SPECIAL_SCHEMAS: dict[str, dict[str, Any]] = {
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "Duration": {"type": "string"},
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "IntOrString": {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    "SchemaOrBool": {},
    "SchemaOrArray": {},
    "SchemaOrStringArray": {},
}
_ZERO_VALUES: dict[str, Any] = {"string": "", "int32": 0, "int64": 0, "float64": 0, "bool": False}
_EXTENSION_NAMES = {
    "list": "x-kubernetes-list-type",
    "keys": "x-kubernetes-list-map-keys",
    "map": "x-kubernetes-map-type",
    "key": "x-kubernetes-patch-merge-key",
    "patch": "x-kubernetes-patch-strategy",
}
_OBJECT_META = f"{META_PACKAGE}.ObjectMeta"
_LIST_META = f"{META_PACKAGE}.ListMeta"
_TYPE_META = f"{META_PACKAGE}.TypeMeta"


def schema_name(group: str, version: str, kind: str) -> str:
    """Return `io.k8s.api.core.v1.Pod`; the group of a custom kind is reversed: `dev.argosy.v1.Widget`."""
    type_ = find_builtin_type(group, version, kind)
    if type_ is not None:
        return type_.name
    return ".".join([*reversed(group.split(".")), version, kind])


def build_components(
    resources: Iterable[ApiResource], custom_schemas: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Build the schemas of all kinds, their lists, and the types that these refer to."""
    schemas: dict[str, Any] = {}
    _add_type(schemas, get_named_type(f"{META_PACKAGE}.Status"))
    _add_type(schemas, get_named_type(f"{META_PACKAGE}.DeleteOptions"))
    _add_type(schemas, get_named_type(_OBJECT_META))
    _add_type(schemas, get_named_type(_LIST_META))
    for resource in resources:
        name = schema_name(resource.group, resource.version, resource.kind)
        type_ = find_builtin_type(resource.group, resource.version, resource.kind)
        if type_ is not None:
            _add_type(schemas, type_)
        else:
            schemas[name] = _build_custom_schema(custom_schemas.get(resource.kind) or {"type": "object"})
            _set_group_version_kind(schemas[name], resource.group, resource.version, resource.kind)
        if "list" in resource.verbs:
            schemas[f"{name}List"] = _build_list_schema(resource, name)
        for subresource in resource.subresources:
            group, version = subresource.group or resource.group, subresource.version or resource.version
            subresource_type = find_builtin_type(group, version, subresource.kind) if subresource.kind else None
            if subresource_type is not None:
                _add_type(schemas, subresource_type)
                _set_group_version_kind(schemas[subresource_type.name], group, version, subresource.kind)
    return schemas


@cache
def _index_builtin_resources() -> Mapping[str, ApiResource]:
    return {schema_name(resource.group, resource.version, resource.kind): resource for resource in BUILTIN_RESOURCES}


def _load_descriptions(name: str) -> tuple[str, Mapping[str, str]]:
    """Return the description of a type and the descriptions of its fields."""
    text, fields = load_table("descriptions").get(name) or ("", {})
    return text, fields


def _set_group_version_kind(schema: dict[str, Any], group: str, version: str, kind: str) -> None:
    schema["x-kubernetes-group-version-kind"] = [{"group": group, "version": version, "kind": kind}]


def _add_type(schemas: dict[str, Any], type_: Type) -> None:
    """Add a named type and the types that it refers to."""
    if type_.name in schemas:
        return
    text, fields = _load_descriptions(type_.name)
    schema: dict[str, Any] = {"description": text} if text else {}
    schemas[type_.name] = schema
    if resource := _index_builtin_resources().get(type_.name):
        _set_group_version_kind(schema, resource.group, resource.version, resource.kind)
    if type_.kind == "untyped" and type_.scalar == "Raw":
        if type_.go_name != "v1.JSON":
            schema["type"] = "object"
        return
    if type_.kind != "struct":
        schema |= _SPECIAL_SCHEMAS[type_.scalar]
        return
    schema["type"] = "object"
    if type_.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    if type_.fields:
        schema["properties"] = {
            name: _build_property(schemas, field, fields.get(name)) for name, field in type_.fields.items()
        }
    if required := [name for name, field in type_.fields.items() if field.required]:
        schema["required"] = required


def _build_property(schemas: dict[str, Any], field: StructField, text: str | None) -> dict[str, Any]:
    type_ = field.type
    schema = _build_value_schema(schemas, type_)
    default = field.default
    if default is None and not field.pointer:
        if type_.kind == "struct":
            default = {}
        elif not field.omitempty:
            default = _ZERO_VALUES.get(type_.scalar)
    return _merge_keywords(schema, {"description": text or None, "default": default} | _build_extensions(type_))


def _build_extensions(type_: Type) -> dict[str, Any]:
    extensions: dict[str, Any] = {_EXTENSION_NAMES[short_name]: value for short_name, value in type_.extensions.items()}
    if type_.map_keys:
        extensions[_EXTENSION_NAMES["keys"]] = list(type_.map_keys)
    return extensions


def _merge_keywords(schema: dict[str, Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """k8s: `$ref` has no sibling keywords, so with other keywords it moves into `allOf`."""
    present = {key: value for key, value in keywords.items() if value is not None}
    if present and "$ref" in schema:
        schema = {"allOf": [schema]}
    return schema | present


def _build_value_schema(schemas: dict[str, Any], type_: Type) -> dict[str, Any]:
    if type_.kind == "list":
        return {"type": "array", "items": _build_element_schema(schemas, type_.items())}
    if type_.kind == "map":
        return {"type": "object", "additionalProperties": _build_element_schema(schemas, type_.items())}
    if type_.scalar in _SCALAR_SCHEMAS:
        return _SCALAR_SCHEMAS[type_.scalar] | ({"enum": list(type_.enum)} if type_.enum else {})
    _add_type(schemas, type_)
    return {"$ref": f"#/components/schemas/{type_.name}"}


def _build_element_schema(schemas: dict[str, Any], type_: Type) -> dict[str, Any]:
    default = {} if type_.kind == "struct" else _ZERO_VALUES.get(type_.scalar)
    return _merge_keywords(_build_value_schema(schemas, type_), {"default": default})


def _build_type_meta_properties() -> dict[str, Any]:
    _, texts = _load_descriptions(_TYPE_META)
    return {name: {"type": "string", "description": texts[name]} for name in ("apiVersion", "kind")}


def _build_custom_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Add apiVersion, kind and metadata to a custom kind's schema."""
    standard = {"$ref": f"#/components/schemas/{_OBJECT_META}"}
    _, texts = _load_descriptions("io.k8s.api.core.v1.Pod")
    metadata = {"allOf": [standard], "description": texts["metadata"]}
    return {
        **schema,
        "properties": {**(schema.get("properties") or {}), **_build_type_meta_properties(), "metadata": metadata},
    }


def _build_list_schema(resource: ApiResource, name: str) -> dict[str, Any]:
    schema = {
        "description": f"{resource.kind}List is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_build_type_meta_properties(),
            "metadata": {"$ref": f"#/components/schemas/{_LIST_META}"},
            "items": {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}},
        },
    }
    _set_group_version_kind(schema, resource.group, resource.version, f"{resource.kind}List")
    return schema
