"""Small facts about a cluster that a rule may want beside the object itself.

In: manifests of StorageClasses. Out: plain data that Lua sees as `facts`. Never: looks anything up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from argosy.kube.objects import Manifest, annotation

DEFAULT_CLASS: Final = tuple(f"storageclass.{part}kubernetes.io/is-default-class" for part in ("", "beta."))


def facts_from(manifests: Iterable[Manifest]) -> dict[str, Any]:
    """Facts from the manifests that tell some; all others are passed over."""
    modes: dict[str, str] = {}
    default = ""
    for manifest in manifests:
        if manifest.get("kind") != "StorageClass":
            continue
        name = str(manifest["metadata"]["name"])
        # k8s: a class that says nothing binds at once
        modes[name] = str(manifest.get("volumeBindingMode") or "Immediate")
        if any(annotation(manifest, mark) == "true" for mark in DEFAULT_CLASS):
            default = name
    facts: dict[str, Any] = {}
    if modes:
        facts["storageClasses"] = modes
    if default:
        facts["defaultStorageClass"] = default
    return facts
