"""Facts about a cluster that a health rule may need besides the object.

In: manifests of StorageClasses. Out: plain data that Lua sees as `facts`. Never: reads a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from argosy.kube.objects import Manifest, annotation

DEFAULT_CLASS: Final = tuple(f"storageclass.{part}kubernetes.io/is-default-class" for part in ("", "beta."))


def facts_from(manifests: Iterable[Manifest]) -> dict[str, Any]:
    """Extract the facts; manifests of other kinds are ignored."""
    modes: dict[str, str] = {}
    default = ""
    for manifest in manifests:
        if manifest.get("kind") != "StorageClass":
            continue
        name = str(manifest["metadata"]["name"])
        # k8s: the default mode is Immediate
        modes[name] = str(manifest.get("volumeBindingMode") or "Immediate")
        if any(annotation(manifest, mark) == "true" for mark in DEFAULT_CLASS):
            default = name
    facts: dict[str, Any] = {}
    if modes:
        facts["storageClasses"] = modes
    if default:
        facts["defaultStorageClass"] = default
    return facts
