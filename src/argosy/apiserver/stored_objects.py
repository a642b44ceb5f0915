"""An object as the store keeps it: its bytes, and how large they may be.

In: a manifest in the version that is stored. Out: bytes without kind and apiVersion. Never: stores them.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from argosy.model.manifest import Manifest

MAX_STORED_BYTES = 3 << 19  # k8s: 1.5 MiB, etcd's --max-request-bytes


def without_kind(manifest: Manifest) -> Manifest:
    return {name: value for name, value in manifest.items() if name not in ("kind", "apiVersion")}


def encoder(manifest: Manifest) -> Callable[[int], bytes]:
    def encode(revision: int) -> bytes:
        stored = without_kind(manifest)
        stored["metadata"] = {**manifest["metadata"], "resourceVersion": str(revision)}
        # A copy: what orjson returns keeps the whole buffer it was written to, 4 KB for a small object.
        return bytes(memoryview(orjson.dumps(stored)))

    return encode


def is_releasable(manifest: Manifest) -> bool:
    """Nothing holds a dying object back any more."""
    metadata = manifest["metadata"]
    if metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"):
        return False
    is_namespace = (manifest.get("apiVersion"), manifest.get("kind")) == ("v1", "Namespace")
    return not (is_namespace and (manifest.get("spec") or {}).get("finalizers"))
