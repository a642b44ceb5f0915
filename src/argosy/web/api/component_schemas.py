"""Schemas of API objects, as a compact table with one line per schema.

In: the table below. Out: JSON schemas by name, and references to them. Never: a secret property in a response, except
in the two responses that return a token.

A line is `Name: field type, field type, …`; a type is string, boolean, integer, any, another Name, `[type]` for a list,
or `{type}` for a map. Other fields are allowed too: these are Argo CD's objects, which grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

SCHEMA_LINES: Final = """
Error: error string, code integer, message string
Nothing:
ListMeta: resourceVersion string, continue string, remainingItemCount integer
ObjectMeta: name string, namespace string, labels {string}, annotations {string}, uid string, resourceVersion string, \
creationTimestamp string, finalizers [string]
Destination: server string, name string, namespace string
Source: repoURL string, path string, targetRevision string, chart string, ref string, helm any, kustomize any, \
directory any, plugin any
ApplicationSpec: project string, source Source, sources [Source], destination Destination, syncPolicy any, \
ignoreDifferences [any], info [any], revisionHistoryLimit integer
Application: apiVersion string, kind string, metadata ObjectMeta, spec ApplicationSpec, status any, operation any
ApplicationList: metadata ListMeta, items [Application]
ApplicationEvent: type string, application Application
SyncRequest: revision string, revisions [string], dryRun boolean, prune boolean, strategy any, resources [any], \
syncOptions any, retryStrategy any, infos [any]
RollbackRequest: id integer, dryRun boolean, prune boolean
PatchRequest: patch string, patchType string
ManagedResources: items [any]
ResourceTree: nodes [any], orphanedNodes [any], hosts [any]
Manifests: manifests [string], revision string, sourceType string
Resource: manifest string
EventList: metadata ListMeta, items [any]
LogStream: result LogEntry
LogEntry: content string, timeStampStr string, last boolean, podName string
RevisionMetadata: author string, date string, message string, tags [string], signatureInfo string
Project: metadata ObjectMeta, spec any, status any
ProjectList: metadata ListMeta, items [Project]
Repository: repo string, type string, name string, project string, connectionState any
RepositoryList: metadata ListMeta, items [Repository]
Cluster: server string, name string, namespaces [string], connectionState any, serverVersion string, info any
ClusterList: metadata ListMeta, items [Cluster]
Account: name string, enabled boolean, capabilities [string]
AccountList: items [Account]
SessionRequest: username string, password string
SessionResponse: token string
TokenResponse: token string
TokenRequest: name string, id string, expiresIn integer
PasswordRequest: name string, currentPassword string, newPassword string
CanI: value string
UserInfo: loggedIn boolean, username string, iss string, groups [string]
Version: Version string
Settings: url string, appLabelKey string
"""
BASIC_SCHEMAS: Final = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer"},
    "any": {},
}


@cache
def load_schemas() -> dict[str, dict[str, Any]]:
    schemas_by_name: dict[str, dict[str, Any]] = {}
    for line in filter(None, SCHEMA_LINES.strip().split("\n")):
        name, _, fields = line.partition(":")
        fields_and_types = [field_text.split() for field_text in fields.split(",") if field_text.strip()]
        schemas_by_name[name] = {
            "type": "object",
            "properties": {field: _build_type(kind) for field, kind in fields_and_types},
        }
    schemas_by_name["Error"]["required"] = ["error", "code", "message"]
    return schemas_by_name


def _build_type(type_text: str) -> dict[str, Any]:
    if type_text[0] == "[":
        return {"type": ["array", "null"], "items": _build_type(type_text[1:-1])}
    if type_text[0] == "{":
        return {"type": ["object", "null"], "additionalProperties": _build_type(type_text[1:-1])}
    return BASIC_SCHEMAS[type_text] if type_text in BASIC_SCHEMAS else build_reference(type_text)


def build_reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def get_schema(schema: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    """Return a schema by name, or the given one; None means any object."""
    if isinstance(schema, str):
        if schema not in load_schemas():
            raise KeyError(f"unknown schema {schema!r}; add a line to api/component_schemas.py")
        return build_reference(schema)
    return schema if schema is not None else {}
