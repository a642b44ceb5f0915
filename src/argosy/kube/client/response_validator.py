"""Validates responses of an API server before use: a destination cluster may be under foreign control.

In: bytes or JSON values from a server, and the request. Out: valid manifests and list pages, or ApiServerUnavailable
with a message. Never: accepts an object of another kind, namespace or name than requested, a name that is unsafe in a
path or a log line, or JSON beyond the memory limits; does I/O.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from argosy.kube.client.deep_json_truncation import TRUNCATION_LEVEL, can_be_deep, read_deep_json, truncate_objects
from argosy.kube.client.status_errors import ApiServerUnavailable, build_not_json_error, sanitize_text
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey, split_api_version

log = logging.getLogger(__name__)
MAX_RESPONSE_BYTES: Final = 64 * 2**20  # one response or watch event, uncompressed
MAX_RESPONSE_MEMORY_BYTES: Final = 512 * 2**20  # bytes of its values in memory after parsing
# (group, kind of the request, kind of the response)
RESPONSE_KINDS: Final = frozenset({
    ("project.openshift.io", "ProjectRequest", "Project"),
    ("authorization.openshift.io", "ResourceAccessReview", "ResourceAccessReviewResponse"),
    ("authorization.openshift.io", "LocalResourceAccessReview", "ResourceAccessReviewResponse"),
    ("authorization.openshift.io", "SubjectAccessReview", "SubjectAccessReviewResponse"),
    ("authorization.openshift.io", "LocalSubjectAccessReview", "SubjectAccessReviewResponse"),
})  # fmt: skip
EVENT_TYPES: Final = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})
_STRING_FIELDS: Final = (
    "namespace",
    "uid",
    "resourceVersion",
    "generateName",
    "creationTimestamp",
    "deletionTimestamp",
)
_OWNER_STRING_FIELDS: Final = ("apiVersion", "kind", "name", "uid")


class ResponseTooLarge(ApiServerUnavailable):
    """The response exceeds the size limit and was not read to its end. A list may fit in smaller pages."""


class CollectionPage(NamedTuple):
    items: list[Manifest]
    version: str
    continue_token: str
    unprintable: list[str]  # names of objects that were left out because of unprintable characters


def estimate_memory(content: bytes) -> int:
    """Estimate the bytes of memory that parsed JSON takes: `[[],[]]` takes 20 times the size of its text."""
    containers = content.count(b"{") + content.count(b"[")
    return len(content) + 64 * containers + 48 * content.count(b",")


def read_response_json(content: bytes, host: str) -> Any:
    """Parse a response. Raises ApiServerUnavailable if it is not JSON or takes too much memory."""
    if estimate_memory(content) > MAX_RESPONSE_MEMORY_BYTES:
        raise build_too_large_error(host)
    try:
        value = read_deep_json(content)
    except orjson.JSONDecodeError as error:
        raise build_not_json_error(host, content) from error
    if can_be_deep(content):
        truncate_and_log(value, host)
    return value


def truncate_and_log(value: Any, host: str) -> None:
    """Truncate objects that are nested too deeply and log their names, so that the other objects stay readable."""
    names = truncate_objects(value)
    if names:
        log.warning(
            "objects nested more than %d levels deep, deeper fields are ignored: cluster=%s count=%d example=%s",
            TRUNCATION_LEVEL, host, len(names), sanitize_text(repr(names[0]))[:100],
        )  # fmt: skip


def build_too_large_error(host: str) -> ApiServerUnavailable:
    return ResponseTooLarge(
        f"{host}: the response is larger than {MAX_RESPONSE_BYTES >> 20} MiB or takes more than "
        f"{MAX_RESPONSE_MEMORY_BYTES >> 20} MiB of memory"
    )


def check_returned_object(value: Any, requested: ResourceKey, host: str) -> Manifest:
    """Check the response to a write or get of one object. A key without a name accepts a generated name."""
    manifest = _check_mapping(value, host, str(requested))
    group, kind = split_api_version(str(manifest.get("apiVersion") or ""))[0], str(manifest.get("kind") or "")
    if (requested.group, requested.kind, kind) in RESPONSE_KINDS:
        return manifest
    metadata = manifest.get("metadata")
    if (
        requested.name or not isinstance(metadata, dict) or metadata.get("name")
    ):  # k8s: reviews are returned without a name
        check_metadata(manifest, host, is_namespaced=bool(requested.namespace))
        if not has_printable_name(manifest):
            raise _build_name_error(host, manifest["metadata"]["name"])
    metadata = manifest["metadata"]
    returned = ResourceKey(group, kind, metadata.get("namespace") or "", metadata.get("name") or "")
    if returned != (requested if requested.name else requested._replace(name=returned.name)):
        raise ApiServerUnavailable(
            f"{host}: requested {requested}, but the server returned {sanitize_text(str(returned))}"
        )
    return manifest


def read_page(value: Any, kind: GroupKind, namespace: str, host: str, *, is_namespaced: bool) -> CollectionPage:
    page = _check_mapping(value, host, f"a list of {kind}")
    metadata, items = page.get("metadata") or {}, page.get("items") or []
    if not isinstance(metadata, dict) or not isinstance(items, list):
        raise _build_format_error(host, f"a list of {kind}")
    for item in items:
        check_metadata(_check_mapping(item, host, f"a list of {kind}"), host, is_namespaced=is_namespaced)
        _check_namespace(item, namespace, kind, host)
    unprintable = [item["metadata"]["name"] for item in items if not has_printable_name(item)]
    if unprintable:
        items = [item for item in items if has_printable_name(item)]
    resource_version, continue_token = metadata.get("resourceVersion") or "", metadata.get("continue") or ""
    if not isinstance(resource_version, str) or not isinstance(continue_token, str):
        raise _build_format_error(host, f"a list of {kind}")
    return CollectionPage(items, resource_version, continue_token, unprintable)


def read_event(
    line: bytes, kind: GroupKind, namespace: str, host: str, *, is_namespaced: bool
) -> tuple[str, Manifest] | None:
    """Read a watch event. None for a line that is not JSON: the connection may break within a line."""
    if estimate_memory(line) > MAX_RESPONSE_MEMORY_BYTES:
        raise build_too_large_error(host)
    try:
        event = read_deep_json(line)
    except orjson.JSONDecodeError:
        return None
    event = _check_mapping(event, host, f"a watch of {kind}")
    event_type, manifest = event.get("type"), _check_mapping(event.get("object"), host, f"a watch of {kind}")
    if not isinstance(event_type, str) or event_type not in EVENT_TYPES:
        raise ApiServerUnavailable(f"{host}: a watch of {kind} returned an event of an unknown type")
    if event_type == "BOOKMARK":
        if not isinstance(
            (_check_mapping(manifest.get("metadata"), host, "a bookmark")).get("resourceVersion") or "", str
        ):
            raise _build_format_error(host, "a bookmark")
    elif event_type != "ERROR":
        if can_be_deep(line):
            truncate_and_log(manifest, host)
        check_metadata(manifest, host, is_namespaced=is_namespaced)
        _check_namespace(manifest, namespace, kind, host)
    return event_type, manifest


def check_metadata(manifest: Mapping[str, Any], host: str, *, is_namespaced: bool) -> None:
    """k8s: check the types of the metadata fields, and that the name is a valid path segment."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        raise _build_format_error(host, "an object")
    name = metadata.get("name")
    if not isinstance(name, str) or not is_path_segment(name):
        raise _build_name_error(host, name)
    for field in _STRING_FIELDS:
        if not isinstance(metadata.get(field) or "", str):
            raise _build_metadata_error(host, name, field)
    namespace = metadata.get("namespace") or ""
    if bool(namespace) != is_namespaced or (namespace and not (is_path_segment(namespace) and namespace.isprintable())):
        raise _build_metadata_error(host, name, "namespace")
    for field in ("labels", "annotations"):
        texts = metadata.get(field) or {}
        if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
            raise _build_metadata_error(host, name, field)
    if not all(isinstance(finalizer, str) for finalizer in _read_list(metadata, "finalizers", host, name)):
        raise _build_metadata_error(host, name, "finalizers")
    for owner in _read_list(metadata, "ownerReferences", host, name):
        if not isinstance(owner, dict) or not all(isinstance(owner.get(field), str) for field in _OWNER_STRING_FIELDS):
            raise _build_metadata_error(host, name, "ownerReferences")
    for entry in _read_list(metadata, "managedFields", host, name):
        if not isinstance(entry, dict):
            raise _build_metadata_error(host, name, "managedFields")


def is_path_segment(text: str) -> bool:
    """k8s: the minimum rule for names; names of RBAC objects only have to satisfy this one."""
    return bool(text) and text not in (".", "..") and "/" not in text and "%" not in text


def has_printable_name(manifest: Mapping[str, Any]) -> bool:
    """False for a name that could forge log lines or control a terminal. Tenants can create such names."""
    name: str = manifest["metadata"]["name"]
    return name.isprintable()


def _read_list(metadata: Mapping[str, Any], field: str, host: str, name: str) -> list[Any]:
    items = metadata.get(field) or []
    if not isinstance(items, list):
        raise _build_metadata_error(host, name, field)
    return items


def _check_namespace(manifest: Mapping[str, Any], namespace: str, kind: GroupKind, host: str) -> None:
    returned = manifest["metadata"].get("namespace") or ""
    if namespace and returned != namespace:
        raise ApiServerUnavailable(
            f"{host}: requested {kind} in namespace {namespace}, but the server returned one in {returned}"
        )


def _check_mapping(value: Any, host: str, expected: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _build_format_error(host, expected)
    return value


def _build_format_error(host: str, expected: str) -> ApiServerUnavailable:
    return ApiServerUnavailable(f"{host}: the answer is not {expected}; is this an API server?")


def _build_name_error(host: str, name: Any) -> ApiServerUnavailable:
    return ApiServerUnavailable(f"{host}: returned an object with an invalid name: {sanitize_text(repr(name))[:100]}")


def _build_metadata_error(host: str, name: str, field: str) -> ApiServerUnavailable:
    return ApiServerUnavailable(
        f"{host}: returned an object with invalid metadata.{field}: {sanitize_text(name)[:100]}"
    )
