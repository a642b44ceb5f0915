"""Decides how much of each live object the cache keeps: objects of Applications whole, the rest trimmed.

In: kinds and live manifests, tracking settings. Out: the manifest without the fields that argosy never reads. Never:
trims an object that an Application tracks, or an Application; changes a manifest in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from argosy.gitops.live.ownership import STATEFUL_SET
from argosy.gitops.live.stuck_pods import CONTAINER_LISTS, find_image_failure
from argosy.gitops.live.tracking import Tracking, owner
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest

APPLICATION: Final = GroupKind("argoproj.io", "Application")
# argosy reads more than the metadata of these kinds, tracked or not.
READ_WHOLE: Final = frozenset(
    {
        APPLICATION,
        GroupKind("argoproj.io", "AppProject"),
        GroupKind("argoproj.io", "ApplicationSet"),
        GroupKind("", "ConfigMap"),  # settings; the data of all others is dropped
        GroupKind("", "Secret"),  # the same; the type shows which Secrets are tokens of a ServiceAccount
        GroupKind("", "Namespace"),
        GroupKind("", "Pod"),  # images, and whether they can be pulled
        GroupKind("batch", "Job"),  # hooks
        GroupKind("mlops.mlops.dev", "NotebookValidationJob"),  # its result: waves of Applications wait for it
        GroupKind("networking.k8s.io", "Ingress"),  # addresses
        GroupKind("extensions", "Ingress"),
        GroupKind("route.openshift.io", "Route"),
        GroupKind("storage.k8s.io", "StorageClass"),  # its volumeBindingMode
        GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"),  # its schema says how lists are compared
        STATEFUL_SET,  # templates of claims
    }
)
TEXTS: Final = frozenset({"data", "binaryData"})  # k8s: up to 1 MiB, for example the Secret of a Helm release
MOST_SHAPES: Final = 5000


class Keeping:
    """Implements `kube.controller.informer_set.CachePolicy`."""

    def __init__(self, tracking: Callable[[], Tracking]) -> None:
        self._tracking = tracking
        # Returns the same version of the object if another part of the process already holds it.
        self.once: Callable[[Manifest], Manifest] = lambda manifest: manifest
        self._shapes: dict[bytes, Any] = {}

    def is_read(self, kind: GroupKind) -> bool:
        return kind in READ_WHOLE

    def is_wanted(self, manifest: Manifest) -> bool:
        return bool(owner(manifest, self._tracking()))

    def is_short(self, manifest: Manifest) -> bool:
        return is_slim(manifest) and self.is_wanted(manifest)

    def kept(self, manifest: Manifest) -> Manifest:
        """Return the manifest as the cache keeps it.

        k8s: managedFields are half of a small object. argosy reads those of tracked objects and of Applications.
        """
        if (known := self.once(manifest)) is not manifest:
            return known
        metadata = manifest["metadata"]
        entries = metadata.get("managedFields")
        is_application = manifest["kind"] == APPLICATION.kind and manifest["apiVersion"].startswith(APPLICATION.group)
        if is_application or self.is_wanted(manifest):
            kept = {"managedFields": [self._shared(each) for each in entries]} if entries else {}
            return {**manifest, "metadata": {**metadata, **kept}} if kept else manifest
        slim = {name: each for name, each in metadata.items() if name != "managedFields"}
        return self._little({**manifest, "metadata": slim} if entries else manifest)

    def _little(self, manifest: Manifest) -> Manifest:
        """Trim untracked Pods (many) and untracked ConfigMaps and Secrets (large) to the fields that argosy reads."""
        if manifest["apiVersion"] != "v1":
            return manifest
        if manifest["kind"] == "Pod":
            spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
            return {**manifest, "spec": _images(spec), "status": _start(status)}
        is_setting = manifest["metadata"].get("namespace") == self._tracking().control_namespace
        if manifest["kind"] not in ("ConfigMap", "Secret") or is_setting or TEXTS.isdisjoint(manifest):
            return manifest
        return {name: each for name, each in manifest.items() if name not in TEXTS}

    def _shared(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Store equal fieldsV1 values once: objects applied from the same template have the same ones."""
        fields = entry.get("fieldsV1")
        if not fields:
            return entry
        shape = orjson.dumps(fields)
        if len(self._shapes) >= MOST_SHAPES:
            self._shapes.clear()  # values in use stay shared
        return {**entry, "fieldsV1": self._shapes.setdefault(shape, fields)}


def is_slim(manifest: Manifest) -> bool:
    """True if fields may have been removed from the manifest."""
    return not manifest["metadata"].get("managedFields")


def _images(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [{"name": each.get("name"), "image": each.get("image")} for each in spec.get(name) or ()]
        for name in ("initContainers", "containers")
        if name in spec
    }


def _start(status: dict[str, Any]) -> dict[str, Any]:
    """Keep the phase, and containers whose image cannot be pulled: then a newer commit may supersede the sync."""
    kept = {name: value for name, value in status.items() if name == "phase"}
    for field in CONTAINER_LISTS:
        failed = [each for each in status.get(field) or () if find_image_failure({"status": {field: [each]}})]
        if failed:
            kept[field] = [{"name": each.get("name"), "state": each["state"]} for each in failed]
    return kept
