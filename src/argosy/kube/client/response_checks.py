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

from argosy.kube.client.deep_json import CUT_LEVEL, can_be_deep, cut_objects, load_cut
from argosy.kube.client.status_errors import Unavailable, answered_without_json, plain_text
from argosy.kube.names import GroupKind, ResourceKey, split_api_version
from argosy.kube.objects import Manifest

log = logging.getLogger(__name__)
MAX_ANSWER_BYTES: Final = 64 * 2**20  # one response or watch event, uncompressed
MAX_ANSWER_MEMORY: Final = 512 * 2**20  # bytes of its values in memory after parsing
# (group, kind of the request, kind of the response)
ANSWERED_AS: Final = frozenset({
    ("project.openshift.io", "ProjectRequest", "Project"),
    ("authorization.openshift.io", "ResourceAccessReview", "ResourceAccessReviewResponse"),
    ("authorization.openshift.io", "LocalResourceAccessReview", "ResourceAccessReviewResponse"),
    ("authorization.openshift.io", "SubjectAccessReview", "SubjectAccessReviewResponse"),
    ("authorization.openshift.io", "LocalSubjectAccessReview", "SubjectAccessReviewResponse"),
})  # fmt: skip
EVENT_TYPES: Final = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})
_TEXTS: Final = ("namespace", "uid", "resourceVersion", "generateName", "creationTimestamp", "deletionTimestamp")
_OWNER_TEXTS: Final = ("apiVersion", "kind", "name", "uid")


class TooLarge(Unavailable):
    """The response exceeds the size limit and was not read to its end. A list may fit in smaller pages."""


class Page(NamedTuple):
    items: list[Manifest]
    version: str
    next: str
    unprintable: list[str]  # names of objects that were left out because of unprintable characters


def estimate_memory(content: bytes) -> int:
    """Estimate the bytes of memory that parsed JSON takes: `[[],[]]` takes 20 times the size of its text."""
    containers = content.count(b"{") + content.count(b"[")
    return len(content) + 64 * containers + 48 * content.count(b",")


def load_json(content: bytes, host: str) -> Any:
    """Parse a response. Raises ApiServerUnavailable if it is not JSON or takes too much memory."""
    if estimate_memory(content) > MAX_ANSWER_MEMORY:
        raise too_large(host)
    try:
        value = load_cut(content)
    except orjson.JSONDecodeError as error:
        raise answered_without_json(host, content) from error
    if can_be_deep(content):
        cut_and_log(value, host)
    return value


def cut_and_log(value: Any, host: str) -> None:
    """Truncate objects that are nested too deeply and log their names, so that the other objects stay readable."""
    names = cut_objects(value)
    if names:
        log.warning(
            "objects nested more than %d levels deep, deeper fields are ignored: cluster=%s count=%d example=%s",
            CUT_LEVEL, host, len(names), plain_text(repr(names[0]))[:100],
        )  # fmt: skip


def too_large(host: str) -> Unavailable:
    return TooLarge(
        f"{host}: the response is larger than {MAX_ANSWER_BYTES >> 20} MiB or takes more than "
        f"{MAX_ANSWER_MEMORY >> 20} MiB of memory"
    )


def check_written(value: Any, asked: ResourceKey, host: str) -> Manifest:
    """Check the response to a write or get of one object. A key without a name accepts a generated name."""
    manifest = _mapping(value, host, str(asked))
    group, kind = split_api_version(str(manifest.get("apiVersion") or ""))[0], str(manifest.get("kind") or "")
    if (asked.group, asked.kind, kind) in ANSWERED_AS:
        return manifest
    metadata = manifest.get("metadata")
    if asked.name or not isinstance(metadata, dict) or metadata.get("name"):  # k8s: reviews are returned without a name
        check_metadata(manifest, host, is_namespaced=bool(asked.namespace))
        if not has_printable_name(manifest):
            raise _bad_name(host, manifest["metadata"]["name"])
    metadata = manifest["metadata"]
    found = ResourceKey(group, kind, metadata.get("namespace") or "", metadata.get("name") or "")
    if found != (asked if asked.name else asked._replace(name=found.name)):
        raise Unavailable(f"{host}: requested {asked}, but the server returned {plain_text(str(found))}")
    return manifest


def read_page(value: Any, kind: GroupKind, namespace: str, host: str, *, is_namespaced: bool) -> Page:
    page = _mapping(value, host, f"a list of {kind}")
    metadata, items = page.get("metadata") or {}, page.get("items") or []
    if not isinstance(metadata, dict) or not isinstance(items, list):
        raise _no_object(host, f"a list of {kind}")
    for item in items:
        check_metadata(_mapping(item, host, f"a list of {kind}"), host, is_namespaced=is_namespaced)
        _check_namespace(item, namespace, kind, host)
    unprintable = [item["metadata"]["name"] for item in items if not has_printable_name(item)]
    if unprintable:
        items = [item for item in items if has_printable_name(item)]
    version, following = metadata.get("resourceVersion") or "", metadata.get("continue") or ""
    if not isinstance(version, str) or not isinstance(following, str):
        raise _no_object(host, f"a list of {kind}")
    return Page(items, version, following, unprintable)


def read_event(
    line: bytes, kind: GroupKind, namespace: str, host: str, *, is_namespaced: bool
) -> tuple[str, Manifest] | None:
    """Read a watch event. None for a line that is not JSON: the connection may break within a line."""
    if estimate_memory(line) > MAX_ANSWER_MEMORY:
        raise too_large(host)
    try:
        event = load_cut(line)
    except orjson.JSONDecodeError:
        return None
    event = _mapping(event, host, f"a watch of {kind}")
    event_type, manifest = event.get("type"), _mapping(event.get("object"), host, f"a watch of {kind}")
    if not isinstance(event_type, str) or event_type not in EVENT_TYPES:
        raise Unavailable(f"{host}: a watch of {kind} returned an event of an unknown type")
    if event_type == "BOOKMARK":
        if not isinstance((_mapping(manifest.get("metadata"), host, "a bookmark")).get("resourceVersion") or "", str):
            raise _no_object(host, "a bookmark")
    elif event_type != "ERROR":
        if can_be_deep(line):
            cut_and_log(manifest, host)
        check_metadata(manifest, host, is_namespaced=is_namespaced)
        _check_namespace(manifest, namespace, kind, host)
    return event_type, manifest


def check_metadata(manifest: Mapping[str, Any], host: str, *, is_namespaced: bool) -> None:
    """k8s: check the types of the metadata fields, and that the name is a valid path segment."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        raise _no_object(host, "an object")
    name = metadata.get("name")
    if not isinstance(name, str) or not is_path_segment(name):
        raise _bad_name(host, name)
    for field in _TEXTS:
        if not isinstance(metadata.get(field) or "", str):
            raise _bad_metadata(host, name, field)
    space = metadata.get("namespace") or ""
    if bool(space) != is_namespaced or (space and not (is_path_segment(space) and space.isprintable())):
        raise _bad_metadata(host, name, "namespace")
    for field in ("labels", "annotations"):
        texts = metadata.get(field) or {}
        if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
            raise _bad_metadata(host, name, field)
    if not all(isinstance(finalizer, str) for finalizer in _list(metadata, "finalizers", host, name)):
        raise _bad_metadata(host, name, "finalizers")
    for owner in _list(metadata, "ownerReferences", host, name):
        if not isinstance(owner, dict) or not all(isinstance(owner.get(field), str) for field in _OWNER_TEXTS):
            raise _bad_metadata(host, name, "ownerReferences")
    for entry in _list(metadata, "managedFields", host, name):
        if not isinstance(entry, dict):
            raise _bad_metadata(host, name, "managedFields")


def is_path_segment(text: str) -> bool:
    """k8s: the minimum rule for names; names of RBAC objects only have to satisfy this one."""
    return bool(text) and text not in (".", "..") and "/" not in text and "%" not in text


def has_printable_name(manifest: Mapping[str, Any]) -> bool:
    """False for a name that could forge log lines or control a terminal. Tenants can create such names."""
    name: str = manifest["metadata"]["name"]
    return name.isprintable()


def _list(metadata: Mapping[str, Any], field: str, host: str, name: str) -> list[Any]:
    found = metadata.get(field) or []
    if not isinstance(found, list):
        raise _bad_metadata(host, name, field)
    return found


def _check_namespace(manifest: Mapping[str, Any], namespace: str, kind: GroupKind, host: str) -> None:
    found = manifest["metadata"].get("namespace") or ""
    if namespace and found != namespace:
        raise Unavailable(f"{host}: requested {kind} in namespace {namespace}, but the server returned one in {found}")


def _mapping(value: Any, host: str, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _no_object(host, what)
    return value


def _no_object(host: str, what: str) -> Unavailable:
    return Unavailable(f"{host}: the answer is not {what}; is this an API server?")


def _bad_name(host: str, name: Any) -> Unavailable:
    return Unavailable(f"{host}: returned an object with an invalid name: {plain_text(repr(name))[:100]}")


def _bad_metadata(host: str, name: str, field: str) -> Unavailable:
    return Unavailable(f"{host}: returned an object with invalid metadata.{field}: {plain_text(name)[:100]}")
