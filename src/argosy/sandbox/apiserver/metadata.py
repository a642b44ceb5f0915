"""Metadata that the server sets: names, uids, timestamps, generations. Pure except for randomness."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.kube.schema import field_error
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.served_kind import Served

Clock = Callable[[], datetime]

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # k8s: no vowels, so that no words are formed
LONGEST_PREFIX = 58
# k8s: the fields of metadata in the order in which a real server prints them
ORDER = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
]
COUNTS_ANNOTATIONS = GroupKind("apps", "Deployment")  # k8s: so that its controller notices new annotations
KEPT_FROM_OLD = ("uid", "creationTimestamp", "generation")


def utc_now() -> datetime:
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def generated_name(prefix: str) -> str:
    return prefix[:LONGEST_PREFIX] + "".join(secrets.choice(SUFFIX_LETTERS) for _ in range(5))


def ordered(metadata: Manifest) -> Manifest:
    """Drop empty fields and sort the rest; `resourceVersion` is always kept, because the store fills it in."""
    known = {name: metadata[name] for name in ORDER if metadata.get(name) or name == "resourceVersion"}
    if metadata.get("deletionGracePeriodSeconds") == 0:  # k8s: zero is not empty here
        known["deletionGracePeriodSeconds"] = 0
    return known


def for_create(served: Served, manifest: Manifest, namespace: str, now: datetime) -> Manifest:
    """The metadata of a new object; the server assigns its identity."""
    metadata = manifest.get("metadata") or {}
    resource = served.resource
    if metadata.get("resourceVersion"):
        raise status_errors.internal("resourceVersion should not be set on objects to be created")
    check_namespace(served, metadata, namespace)
    name = metadata.get("name") or ""
    if not name and metadata.get("generateName"):
        name = generated_name(metadata["generateName"])
    if not name:
        faults = [field_error.required("metadata.name", "name or generateName is required")]
        raise status_errors.invalid(resource, "", faults)
    return ordered(
        {
            **metadata,
            "name": name,
            "namespace": namespace,
            "selfLink": "",
            "uid": str(uuid.uuid4()),
            "resourceVersion": "",
            "creationTimestamp": stamp(now),
            "deletionTimestamp": None,
            "deletionGracePeriodSeconds": None,
            "generation": 1 if served.tracks_generation() else metadata.get("generation"),
        }
    )


def check_namespace(served: Served, metadata: Manifest, namespace: str) -> None:
    given = metadata.get("namespace") or ""
    if not served.resource.namespaced:
        given = ""  # k8s: ignored for cluster-scoped kinds
    if given and given != namespace:
        message = "the namespace of the provided object does not match the namespace sent on the request"
        raise status_errors.bad_request(message)


def check_name(given: Manifest, expected: str) -> str:
    """k8s: the body of an update must have the name in the URL."""
    name = given.get("name") or ""
    if not name:
        message = f"the name of the object ({expected} based on URL) was undeterminable: name must be provided"
        raise status_errors.bad_request(message)
    if name != expected:
        raise status_errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({expected})"
        )
    return expected


def version_of(metadata: Manifest) -> str:
    """The resourceVersion in a request; "" if there is none or it is "0"."""
    version = str(metadata.get("resourceVersion") or "")
    if version and not (version.isascii() and version.isdigit()):
        raise status_errors.internal(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    return version if version.strip("0") else ""


def for_update(served: Served, manifest: Manifest, old: Manifest) -> Manifest:
    """The metadata of an updated object; fields that the server owns keep their old values."""
    given, before = manifest.get("metadata") or {}, old["metadata"]
    name = check_name(given, before["name"])
    check_namespace(served, given, before.get("namespace", ""))
    metadata: dict[str, Any] = {**given, "name": name, "namespace": before.get("namespace", "")}
    for field in KEPT_FROM_OLD:
        metadata[field] = before.get(field)
    if given.get("uid"):
        metadata["uid"] = given["uid"]  # validation refuses a different one
    # k8s: a deletion cannot be undone; validation refuses a client that sets these fields
    metadata["deletionTimestamp"] = before.get("deletionTimestamp") or given.get("deletionTimestamp")
    if given.get("deletionGracePeriodSeconds") is None:
        metadata["deletionGracePeriodSeconds"] = before.get("deletionGracePeriodSeconds")
    metadata["selfLink"] = ""
    metadata["resourceVersion"] = before["resourceVersion"]
    # k8s: an empty list resets managedFields, unlike a missing one
    emptied = {"managedFields": given["managedFields"]} if "managedFields" in given else {}
    return {**ordered(metadata), **emptied}


def _annotations(manifest: Manifest) -> Any:
    return manifest["metadata"].get("annotations") or {}


def next_generation(served: Served, new: Manifest, old: Manifest) -> Manifest:
    """Increase the generation if the desired state changed. k8s: metadata and a status subresource do not count."""
    if not served.tracks_generation():
        return new
    apart = {"metadata"}
    if not served.resource.custom or served.resource.subresource("status"):
        apart.add("status")
    same = all(new.get(name) == old.get(name) for name in new.keys() | old.keys() if name not in apart)
    if same and not (served.resource.group_kind == COUNTS_ANNOTATIONS and _annotations(new) != _annotations(old)):
        return new
    generation = int(old["metadata"].get("generation") or 0) + 1
    return {**new, "metadata": ordered({**new["metadata"], "generation": generation})}


def check_uid(served: Served, old: Manifest, uid: str) -> None:
    """Refuse an update whose uid is of an earlier object of the same name. k8s: the message is etcd storage's."""
    resource, about = served.resource, old["metadata"]
    if uid != about["uid"]:
        path = [resource.plural, about.get("namespace"), about["name"]]
        key = "/".join(part for part in ("/registry", resource.group if resource.custom else "", *path) if part)
        why = (
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {about['uid']}"
        )
        raise status_errors.conflict(resource, about["name"], why)
