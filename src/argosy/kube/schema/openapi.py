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

from argosy.kube.schema.builtin_kinds import BUILT_IN
from argosy.kube.schema.openapi_schemas import components, schema_name
from argosy.kube.schema.resources import Resource

Schemas = Mapping[str, Mapping[str, Any]]
"""The `openAPIV3Schema` of the custom kinds of one group version, by kind."""

_INFO = {"title": "Kubernetes", "version": "v1.32.13"}
_FIELD_VALIDATION = {"name": "fieldValidation", "in": "query"}
_QUERY = {"schema": {"type": "string", "uniqueItems": True}}
_JSON = "application/json"


def group_path(resource: Resource) -> str:
    """Return `api/v1` or `apis/apps/v1`: the key in the index and the end of the document's URL."""
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


def by_group_path(resources: Iterable[Resource]) -> dict[str, tuple[Resource, ...]]:
    found: dict[str, list[Resource]] = {}
    for resource in resources:
        found.setdefault(group_path(resource), []).append(resource)
    return {path: tuple(each) for path, each in found.items()}


def index(resources: Iterable[Resource], schemas: Mapping[str, Schemas] | None = None) -> dict[str, Any]:
    """Build the response of `/openapi/v3`. `schemas` are those of custom kinds, by group path and kind."""
    paths = {
        path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest(each, (schemas or {}).get(path))}"}
        for path, each in by_group_path(resources).items()
    }
    return {"paths": paths}


def digest(resources: Sequence[Resource], schemas: Schemas | None = None) -> str:
    """Return a hash that changes whenever the full document would; costs no more than the stub."""
    packed = orjson.dumps(schemas or {}, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(stub_document(resources) + packed).hexdigest().upper()


def stub_document(resources: Sequence[Resource]) -> bytes:
    """Build a document with only patch operations and no schemas: enough for apply, create, replace, edit and diff."""
    return _stub(tuple(resources))


def full_document(resources: Sequence[Resource], schemas: Schemas | None = None) -> bytes:
    """Build a document with all paths, and the schemas they refer to, with descriptions."""
    return _full(tuple(resources), orjson.dumps(schemas or {}, option=orjson.OPT_SORT_KEYS))


@lru_cache(maxsize=256)
def _stub(resources: tuple[Resource, ...]) -> bytes:
    paths = {}
    for resource in _with_namespaces(resources):
        # k8s: without strategic-merge-patch here kubectl uses its compiled-in types and needs no schema.
        content: dict[str, Any] = {"application/apply-patch+yaml": {}, "application/merge-patch+json": {}}
        paths[_item_path(resource)] = {
            "patch": {
                "parameters": [_FIELD_VALIDATION],
                "requestBody": {"content": content},
                "x-kubernetes-group-version-kind": _gvk(resource),
            }
        }
    return orjson.dumps({"openapi": "3.0.0", "info": _INFO, "paths": paths})


def _with_namespaces(resources: tuple[Resource, ...]) -> tuple[Resource, ...]:
    """k8s: for kinds that it does not find, kubectl checks Namespace for the features of the server."""
    if not resources or resources[0].group or any(each.kind == "Namespace" for each in resources):
        return resources
    return (*resources, next(each for each in BUILT_IN if each.kind == "Namespace"))


@lru_cache(maxsize=32)
def _full(resources: tuple[Resource, ...], packed: bytes) -> bytes:
    schemas = orjson.loads(packed)
    paths: dict[str, Any] = {}
    for resource in resources:
        paths[_collection_path(resource)] = _collection(resource)
        paths[_item_path(resource)] = _item(resource)
    paths = {path: operations for path, operations in paths.items() if operations}
    document = {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": paths,
        "components": {"schemas": components(resources, schemas)},
    }
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def _collection_path(resource: Resource) -> str:
    place = "/namespaces/{namespace}" if resource.namespaced else ""
    return f"/{group_path(resource)}{place}/{resource.plural}"


def _item_path(resource: Resource) -> str:
    return _collection_path(resource) + "/{name}"


def _gvk(resource: Resource) -> dict[str, str]:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _collection(resource: Resource) -> dict[str, Any]:
    listed = _reference(f"{schema_name(resource.group, resource.version, resource.kind)}List")
    operations = {
        "get": ("list", _operation(resource, "list", answer=listed)),
        "post": ("create", _operation(resource, "post", body=(_JSON,))),
        "delete": ("deletecollection", _operation(resource, "deletecollection", answer=_status())),
    }
    return {method: made for method, (verb, made) in operations.items() if verb in resource.verbs}


def _item(resource: Resource) -> dict[str, Any]:
    patches = ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"]
    if not resource.custom:
        patches.append("application/strategic-merge-patch+json")
    operations = {
        "get": ("get", _operation(resource, "get")),
        "put": ("update", _operation(resource, "put", body=(_JSON,))),
        "patch": ("patch", _operation(resource, "patch", body=patches)),
        "delete": ("delete", _operation(resource, "delete", answer=_status())),
    }
    return {method: made for method, (verb, made) in operations.items() if verb in resource.verbs}


def _operation(
    resource: Resource, action: str, *, body: Sequence[str] = (), answer: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    own = _reference(schema_name(resource.group, resource.version, resource.kind))
    made: dict[str, Any] = {
        "responses": {"200": {"description": "OK", "content": {_JSON: {"schema": answer or own}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(resource),
    }
    if body:
        taken = {"type": "object"} if action == "patch" else own
        made["requestBody"] = {"required": True, "content": {content: {"schema": taken} for content in body}}
        made["parameters"] = [
            {**_QUERY, "name": name, "in": "query"} for name in ("dryRun", "fieldManager", "fieldValidation")
        ]
    return made


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _status() -> dict[str, str]:
    return _reference("io.k8s.apimachinery.pkg.apis.meta.v1.Status")
