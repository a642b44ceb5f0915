"""Encodes objects for the store and checks their size.

In: a manifest in the storage version. Out: bytes without kind and apiVersion. Never: stores them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from argosy.errors import ClusterError
from argosy.kube.objects import Manifest
from argosy.kube.patch.changed_field_path_trees import build_owned_tree
from argosy.kube.schema import protobuf_envelope
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.store import StoreEntry

MAX_STORED_BYTES = 3 << 19  # k8s: 1.5 MiB, etcd's --max-request-bytes


def to_json(manifest: Any) -> bytes:
    """Raises ClusterError for an object nested too deeply to encode, which many small patches can create."""
    try:
        return orjson.dumps(manifest)
    except TypeError as error:
        if "Recursion" not in str(error):
            raise
        raise status_errors.bad_request("the object is nested more than 250 levels deep: flatten the data") from None


def drop_type_meta(manifest: Manifest) -> Manifest:
    return {name: value for name, value in manifest.items() if name not in ("kind", "apiVersion")}


def check_size(served: ApiKind, manifest: Manifest) -> None:
    """k8s: refuse what etcd would refuse. Built-in kinds are stored as protobuf, custom ones as JSON."""
    size = len(to_json(manifest))
    if size > MAX_STORED_BYTES and not served.resource.custom:
        size = len(protobuf_envelope.encode(manifest))
    if size > MAX_STORED_BYTES:
        raise status_errors.object_too_large()


def check_changed_size(served: ApiKind, manifest: Manifest, entry: StoreEntry) -> None:
    """Refuse a change that makes an object too large to store.

    Stores of earlier versions may have larger objects. These can still be deleted, and changed if they do not grow.
    """
    if manifest["metadata"].get("deletionTimestamp") and is_removable(manifest):
        return  # the change removes the object
    try:
        check_size(served, manifest)
    except ClusterError:
        if len(build_encoder(served.to_stored(manifest))(entry.revision)) > len(entry.body):
            raise


def check_managed_fields_size(served: ApiKind, manifest: Manifest, old: Manifest | None = None) -> None:
    """Refuse early an object that `check_size` would refuse later because of its managedFields.

    Every kind stores managedFields as JSON. For a list with keys they take twice the bytes of its items.
    """
    if old is not None and len(to_json(old)) > MAX_STORED_BYTES:
        return  # `check_changed_size` decides: the same configuration may be applied again
    owned_fields = build_owned_tree({name: value for name, value in manifest.items() if name != "status"}, served.shape)
    size = len(to_json(owned_fields))
    if served.resource.custom:
        size += len(to_json(manifest))
    if size > MAX_STORED_BYTES:
        raise status_errors.object_too_large()


def build_encoder(manifest: Manifest) -> Callable[[int], bytes]:
    def encode(revision: int) -> bytes:
        stored = drop_type_meta(manifest)
        stored["metadata"] = {**manifest["metadata"], "resourceVersion": str(revision)}
        # A copy: the bytes that orjson returns keep its whole buffer alive, 4 KB for a small object.
        return bytes(memoryview(to_json(stored)))

    return encode


def is_removable(manifest: Manifest) -> bool:
    """True if a terminating object has no finalizer or grace period left."""
    metadata = manifest["metadata"]
    if metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"):
        return False
    is_namespace = (manifest.get("apiVersion"), manifest.get("kind")) == ("v1", "Namespace")
    return not (is_namespace and (manifest.get("spec") or {}).get("finalizers"))
