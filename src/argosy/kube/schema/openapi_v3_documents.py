"""Builds the server's OpenAPI v3 documents: an index, and for each group version a stub or the full document.

In: the served resources, and the schemas of custom kinds. Out: JSON. Never: describes kinds that are not served.
A stub has only the parts that `kubectl apply` needs, because kubectl reads the whole document again for every object;
`kubectl explain` needs the full document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from argosy.kube.schema.api_resource import ApiResource
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES
from argosy.kube.schema.openapi_schema_builder import build_components, schema_name

CustomSchemas = Mapping[str, Mapping[str, Any]]
"""The `openAPIV3Schema` of the custom kinds of one group version, by kind."""

_INFO_OBJECT = {"title": "Kubernetes", "version": "v1.32.13"}
_FIELD_VALIDATION_PARAMETER = {"name": "fieldValidation", "in": "query"}
_QUERY_PARAMETER = {"schema": {"type": "string", "uniqueItems": True}}
_JSON_MEDIA_TYPE = "application/json"


def group_version_path(resource: ApiResource) -> str:
    """Return `api/v1` or `apis/apps/v1`: the key in the index and the end of the document's URL."""
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


def group_by_path(resources: Iterable[ApiResource]) -> dict[str, tuple[ApiResource, ...]]:
    resources_by_path: dict[str, list[ApiResource]] = {}
    for resource in resources:
        resources_by_path.setdefault(group_version_path(resource), []).append(resource)
    return {path: tuple(group_resources) for path, group_resources in resources_by_path.items()}


def build_index(resources: Iterable[ApiResource], schemas: Mapping[str, CustomSchemas] | None = None) -> dict[str, Any]:
    """Build the response of `/openapi/v3`. `schemas` are those of custom kinds, by group path and kind."""
    paths = {
        path: {
            "serverRelativeURL": f"/openapi/v3/{path}?hash={compute_digest(group_resources, (schemas or {}).get(path))}"
        }
        for path, group_resources in group_by_path(resources).items()
    }
    return {"paths": paths}


def compute_digest(resources: Sequence[ApiResource], schemas: CustomSchemas | None = None) -> str:
    """Return a hash that changes whenever the full document would; costs no more than the stub."""
    encoded_schemas = orjson.dumps(schemas or {}, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(build_stub_document(resources) + encoded_schemas).hexdigest().upper()


def build_stub_document(resources: Sequence[ApiResource]) -> bytes:
    """Build a document with only patch operations and no schemas: enough for apply, create, replace, edit and diff."""
    return _build_stub(tuple(resources))


def build_full_document(resources: Sequence[ApiResource], schemas: CustomSchemas | None = None) -> bytes:
    """Build a document with all paths, and the schemas they refer to, with descriptions."""
    return _build_full(tuple(resources), orjson.dumps(schemas or {}, option=orjson.OPT_SORT_KEYS))


@lru_cache(maxsize=256)
def _build_stub(resources: tuple[ApiResource, ...]) -> bytes:
    paths = {}
    for resource in _add_namespace_resource(resources):
        # k8s: without strategic-merge-patch here kubectl uses its compiled-in types and needs no schema.
        content: dict[str, Any] = {"application/apply-patch+yaml": {}, "application/merge-patch+json": {}}
        paths[_item_path(resource)] = {
            "patch": {
                "parameters": [_FIELD_VALIDATION_PARAMETER],
                "requestBody": {"content": content},
                "x-kubernetes-group-version-kind": _gvk(resource),
            }
        }
    return orjson.dumps({"openapi": "3.0.0", "info": _INFO_OBJECT, "paths": paths})


def _add_namespace_resource(resources: tuple[ApiResource, ...]) -> tuple[ApiResource, ...]:
    """k8s: for kinds that it does not find, kubectl checks Namespace for the features of the server."""
    if not resources or resources[0].group or any(resource.kind == "Namespace" for resource in resources):
        return resources
    return (*resources, next(resource for resource in BUILTIN_RESOURCES if resource.kind == "Namespace"))


@lru_cache(maxsize=32)
def _build_full(resources: tuple[ApiResource, ...], encoded_schemas: bytes) -> bytes:
    schemas = orjson.loads(encoded_schemas)
    paths: dict[str, Any] = {}
    for resource in resources:
        paths[_collection_path(resource)] = _build_collection_operations(resource)
        paths[_item_path(resource)] = _build_item_operations(resource)
    paths = {path: operations for path, operations in paths.items() if operations}
    document = {
        "openapi": "3.0.0",
        "info": _INFO_OBJECT,
        "paths": paths,
        "components": {"schemas": build_components(resources, schemas)},
    }
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def _collection_path(resource: ApiResource) -> str:
    namespace_segment = "/namespaces/{namespace}" if resource.namespaced else ""
    return f"/{group_version_path(resource)}{namespace_segment}/{resource.plural}"


def _item_path(resource: ApiResource) -> str:
    return _collection_path(resource) + "/{name}"


def _gvk(resource: ApiResource) -> dict[str, str]:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _build_collection_operations(resource: ApiResource) -> dict[str, Any]:
    list_reference = _build_reference(f"{schema_name(resource.group, resource.version, resource.kind)}List")
    operations = {
        "get": ("list", _build_operation(resource, "list", response=list_reference)),
        "post": ("create", _build_operation(resource, "post", body=(_JSON_MEDIA_TYPE,))),
        "delete": (
            "deletecollection",
            _build_operation(resource, "deletecollection", response=_build_status_reference()),
        ),
    }
    return {method: operation for method, (verb, operation) in operations.items() if verb in resource.verbs}


def _build_item_operations(resource: ApiResource) -> dict[str, Any]:
    patch_types = ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"]
    if not resource.custom:
        patch_types.append("application/strategic-merge-patch+json")
    operations = {
        "get": ("get", _build_operation(resource, "get")),
        "put": ("update", _build_operation(resource, "put", body=(_JSON_MEDIA_TYPE,))),
        "patch": ("patch", _build_operation(resource, "patch", body=patch_types)),
        "delete": ("delete", _build_operation(resource, "delete", response=_build_status_reference())),
    }
    return {method: operation for method, (verb, operation) in operations.items() if verb in resource.verbs}


def _build_operation(
    resource: ApiResource, action: str, *, body: Sequence[str] = (), response: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    kind_reference = _build_reference(schema_name(resource.group, resource.version, resource.kind))
    operation: dict[str, Any] = {
        "responses": {
            "200": {"description": "OK", "content": {_JSON_MEDIA_TYPE: {"schema": response or kind_reference}}}
        },
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(resource),
    }
    if body:
        body_schema = {"type": "object"} if action == "patch" else kind_reference
        operation["requestBody"] = {"required": True, "content": {content: {"schema": body_schema} for content in body}}
        operation["parameters"] = [
            {**_QUERY_PARAMETER, "name": name, "in": "query"} for name in ("dryRun", "fieldManager", "fieldValidation")
        ]
    return operation


def _build_reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _build_status_reference() -> dict[str, str]:
    return _build_reference("io.k8s.apimachinery.pkg.apis.meta.v1.Status")
