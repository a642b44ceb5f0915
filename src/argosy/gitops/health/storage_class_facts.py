"""Facts about a cluster that a health rule may need besides the object.

In: manifests of StorageClasses. Out: plain data that Lua sees as `facts`. Never: reads a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from argosy.kube.objects import Manifest, get_annotation

DEFAULT_CLASS_ANNOTATIONS: Final = tuple(f"storageclass.{part}kubernetes.io/is-default-class" for part in ("", "beta."))


def read_cluster_facts(manifests: Iterable[Manifest]) -> dict[str, Any]:
    """Extract the facts; manifests of other kinds are ignored."""
    modes: dict[str, str] = {}
    default_class = ""
    for manifest in manifests:
        if manifest.get("kind") != "StorageClass":
            continue
        name = str(manifest["metadata"]["name"])
        # k8s: the default mode is Immediate
        modes[name] = str(manifest.get("volumeBindingMode") or "Immediate")
        if any(get_annotation(manifest, annotation_name) == "true" for annotation_name in DEFAULT_CLASS_ANNOTATIONS):
            default_class = name
    facts: dict[str, Any] = {}
    if modes:
        facts["storageClasses"] = modes
    if default_class:
        facts["defaultStorageClass"] = default_class
    return facts
