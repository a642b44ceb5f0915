"""Metadata that the server sets: names, uids, timestamps, generations. Pure except for randomness."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.schema import field_error
from argosy.kube.well_known_kinds import DEPLOYMENT
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind

Clock = Callable[[], datetime]

NAME_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # k8s: no vowels, so that no words are formed
MAX_PREFIX_CHARACTERS = 58
# k8s: the fields of metadata in the order in which a real server prints them
FIELD_ORDER = [
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
KIND_WITH_COUNTED_ANNOTATIONS = DEPLOYMENT  # k8s: so that its controller notices new annotations
PRESERVED_FIELDS = ("uid", "creationTimestamp", "generation")


def utc_now() -> datetime:
    return datetime.now(UTC)


def generate_name(prefix: str) -> str:
    return prefix[:MAX_PREFIX_CHARACTERS] + "".join(secrets.choice(NAME_SUFFIX_ALPHABET) for _ in range(5))


def order_metadata(metadata: Manifest) -> Manifest:
    """Drop empty fields and sort the rest; `resourceVersion` is always kept, because the store fills it in."""
    ordered_fields = {name: metadata[name] for name in FIELD_ORDER if metadata.get(name) or name == "resourceVersion"}
    if metadata.get("deletionGracePeriodSeconds") == 0:  # k8s: zero is not empty here
        ordered_fields["deletionGracePeriodSeconds"] = 0
    return ordered_fields


def build_create_metadata(served: ApiKind, manifest: Manifest, namespace: str, now: datetime) -> Manifest:
    """The metadata of a new object; the server assigns its identity."""
    metadata = manifest.get("metadata") or {}
    resource = served.resource
    if metadata.get("resourceVersion"):
        raise status_errors.internal_error("resourceVersion should not be set on objects to be created")
    check_namespace(served, metadata, namespace)
    name = metadata.get("name") or ""
    if not name and metadata.get("generateName"):
        name = generate_name(metadata["generateName"])
    if not name:
        field_errors = [field_error.required("metadata.name", "name or generateName is required")]
        raise status_errors.invalid(resource, "", field_errors)
    return order_metadata(
        {
            **metadata,
            "name": name,
            "namespace": namespace,
            "selfLink": "",
            "uid": str(uuid.uuid4()),
            "resourceVersion": "",
            "creationTimestamp": format_timestamp(now),
            "deletionTimestamp": None,
            "deletionGracePeriodSeconds": None,
            "generation": 1 if served.tracks_generation() else metadata.get("generation"),
        }
    )


def check_namespace(served: ApiKind, metadata: Manifest, namespace: str) -> None:
    body_namespace = metadata.get("namespace") or ""
    if not served.resource.namespaced:
        body_namespace = ""  # k8s: ignored for cluster-scoped kinds
    if body_namespace and body_namespace != namespace:
        message = "the namespace of the provided object does not match the namespace sent on the request"
        raise status_errors.bad_request(message)


def check_name(metadata: Manifest, expected: str) -> str:
    """k8s: the body of an update must have the name in the URL."""
    name = metadata.get("name") or ""
    if not name:
        message = f"the name of the object ({expected} based on URL) was undeterminable: name must be provided"
        raise status_errors.bad_request(message)
    if name != expected:
        raise status_errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({expected})"
        )
    return expected


def read_resource_version(metadata: Manifest) -> str:
    """The resourceVersion in a request; "" if there is none or it is "0"."""
    version = str(metadata.get("resourceVersion") or "")
    if version and not (version.isascii() and version.isdigit()):
        raise status_errors.internal_error(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    return version if version.strip("0") else ""


def build_update_metadata(served: ApiKind, manifest: Manifest, old: Manifest) -> Manifest:
    """The metadata of an updated object; fields that the server owns keep their old values."""
    sent_metadata, old_metadata = manifest.get("metadata") or {}, old["metadata"]
    name = check_name(sent_metadata, old_metadata["name"])
    check_namespace(served, sent_metadata, old_metadata.get("namespace", ""))
    metadata: dict[str, Any] = {**sent_metadata, "name": name, "namespace": old_metadata.get("namespace", "")}
    for field in PRESERVED_FIELDS:
        metadata[field] = old_metadata.get(field)
    if sent_metadata.get("uid"):
        metadata["uid"] = sent_metadata["uid"]  # validation refuses a different one
    # k8s: a deletion cannot be undone; validation refuses a client that sets these fields
    metadata["deletionTimestamp"] = old_metadata.get("deletionTimestamp") or sent_metadata.get("deletionTimestamp")
    if sent_metadata.get("deletionGracePeriodSeconds") is None:
        metadata["deletionGracePeriodSeconds"] = old_metadata.get("deletionGracePeriodSeconds")
    metadata["selfLink"] = ""
    metadata["resourceVersion"] = old_metadata["resourceVersion"]
    # k8s: an empty list resets managedFields, unlike a missing one
    managed_fields = {"managedFields": sent_metadata["managedFields"]} if "managedFields" in sent_metadata else {}
    return {**order_metadata(metadata), **managed_fields}


def _get_annotations(manifest: Manifest) -> Any:
    return manifest["metadata"].get("annotations") or {}


def update_generation(served: ApiKind, new: Manifest, old: Manifest) -> Manifest:
    """Increase the generation if the desired state changed. k8s: metadata and a status subresource do not count."""
    if not served.tracks_generation():
        return new
    ignored_fields = {"metadata"}
    if not served.resource.custom or served.resource.find_subresource("status"):
        ignored_fields.add("status")
    is_same = all(new.get(name) == old.get(name) for name in new.keys() | old.keys() if name not in ignored_fields)
    if is_same and not (
        served.resource.group_kind == KIND_WITH_COUNTED_ANNOTATIONS and _get_annotations(new) != _get_annotations(old)
    ):
        return new
    generation = int(old["metadata"].get("generation") or 0) + 1
    return {**new, "metadata": order_metadata({**new["metadata"], "generation": generation})}


def check_uid(served: ApiKind, old: Manifest, uid: str) -> None:
    """Refuse an update whose uid is of an earlier object of the same name. k8s: the message is etcd storage's."""
    resource, old_metadata = served.resource, old["metadata"]
    if uid != old_metadata["uid"]:
        path = [resource.plural, old_metadata.get("namespace"), old_metadata["name"]]
        key = "/".join(part for part in ("/registry", resource.group if resource.custom else "", *path) if part)
        reason = (
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old_metadata['uid']}"
        )
        raise status_errors.conflict(resource, old_metadata["name"], reason)
