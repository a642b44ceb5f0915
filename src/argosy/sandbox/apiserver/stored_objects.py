"""An object as the store keeps it: its bytes, and how large they may be.

In: a manifest in the version that is stored. Out: bytes without kind and apiVersion. Never: stores them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from argosy.errors import ClusterError
from argosy.kube.objects import Manifest
from argosy.kube.patch.field_comparison import owned
from argosy.kube.schema import protobuf
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.served_kind import Served
from argosy.sandbox.store import Entry

MAX_STORED_BYTES = 3 << 19  # k8s: 1.5 MiB, etcd's --max-request-bytes


def to_json(manifest: Any) -> bytes:
    """Raises ClusterError for what is nested deeper than JSON can be written. Many small patches can nest so deeply."""
    try:
        return orjson.dumps(manifest)
    except TypeError as error:
        if "Recursion" not in str(error):
            raise
        raise status_errors.bad_request("the object is nested more than 250 levels deep: flatten the data") from None


def without_kind(manifest: Manifest) -> Manifest:
    return {name: value for name, value in manifest.items() if name not in ("kind", "apiVersion")}


def check_size(served: Served, manifest: Manifest) -> None:
    """k8s: what etcd would refuse is refused. Built-in kinds are stored as protobuf, custom ones as JSON."""
    size = len(to_json(manifest))
    if size > MAX_STORED_BYTES and not served.resource.custom:
        size = len(protobuf.encode(manifest))
    if size > MAX_STORED_BYTES:
        raise status_errors.too_large_to_store()


def check_changed_size(served: Served, manifest: Manifest, entry: Entry) -> None:
    """Refuse a change that makes an object too large to store.

    Stores of earlier versions have larger objects. They can still be deleted, and changed where they do not grow.
    """
    if manifest["metadata"].get("deletionTimestamp") and is_releasable(manifest):
        return  # the change removes the object
    try:
        check_size(served, manifest)
    except ClusterError:
        if len(encoder(served.store(manifest))(entry.revision)) > len(entry.body):
            raise


def check_owned_fields(served: Served, manifest: Manifest, old: Manifest | None = None) -> None:
    """Refuses early what `check_size` would refuse after all the work: who owns each field is stored, too.

    Owners are stored as JSON by every kind. For a list with keys they take twice the bytes of its entries.
    """
    if old is not None and len(to_json(old)) > MAX_STORED_BYTES:
        return  # `check_changed_size` decides: the same configuration may be applied again
    owned_fields = owned({name: value for name, value in manifest.items() if name != "status"}, served.shape)
    size = len(to_json(owned_fields))
    if served.resource.custom:
        size += len(to_json(manifest))
    if size > MAX_STORED_BYTES:
        raise status_errors.too_large_to_store()


def encoder(manifest: Manifest) -> Callable[[int], bytes]:
    def encode(revision: int) -> bytes:
        stored = without_kind(manifest)
        stored["metadata"] = {**manifest["metadata"], "resourceVersion": str(revision)}
        # A copy: what orjson returns keeps the whole buffer it was written to, 4 KB for a small object.
        return bytes(memoryview(to_json(stored)))

    return encode


def is_releasable(manifest: Manifest) -> bool:
    """Nothing holds a dying object back any more."""
    metadata = manifest["metadata"]
    if metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"):
        return False
    is_namespace = (manifest.get("apiVersion"), manifest.get("kind")) == ("v1", "Namespace")
    return not (is_namespace and (manifest.get("spec") or {}).get("finalizers"))
