"""How much of what lives is kept in memory: all of what applications have, of the rest what is read of it.

In: kinds and live manifests, how things are tracked. Out: the manifest without what nobody reads. Never: takes anything
from what an application tracks, or from an Application; changes a manifest.
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
# More than metadata is read of these, whoever has them.
READ_WHOLE: Final = frozenset(
    {
        APPLICATION,
        GroupKind("argoproj.io", "AppProject"),
        GroupKind("argoproj.io", "ApplicationSet"),
        GroupKind("", "ConfigMap"),  # settings: of others no data
        GroupKind("", "Secret"),  # the same; the type of a token tells whose it is
        GroupKind("", "Namespace"),
        GroupKind("", "Pod"),  # images, and whether they can be pulled
        GroupKind("batch", "Job"),  # hooks
        GroupKind("mlops.mlops.dev", "NotebookValidationJob"),  # how it ended: waves of others wait for that
        GroupKind("networking.k8s.io", "Ingress"),  # addresses
        GroupKind("extensions", "Ingress"),
        GroupKind("route.openshift.io", "Route"),
        GroupKind("storage.k8s.io", "StorageClass"),  # whether claims bind at once
        GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"),  # how lists of its kind are compared
        STATEFUL_SET,  # templates of claims
    }
)
TEXTS: Final = frozenset({"data", "binaryData"})  # k8s: up to a mebibyte: a Helm release is a Secret like that
MOST_SHAPES: Final = 5000


class Keeping:
    """Implements `kube.controller.informer_set.Thrift`."""

    def __init__(self, tracking: Callable[[], Tracking]) -> None:
        self._tracking = tracking
        self.once: Callable[[Manifest], Manifest] = lambda manifest: manifest  # the one that somebody has already
        self._shapes: dict[bytes, Any] = {}

    def is_read(self, kind: GroupKind) -> bool:
        return kind in READ_WHOLE

    def is_wanted(self, manifest: Manifest) -> bool:
        return bool(owner(manifest, self._tracking()))

    def is_short(self, manifest: Manifest) -> bool:
        return is_slim(manifest) and self.is_wanted(manifest)

    def kept(self, manifest: Manifest) -> Manifest:
        """k8s: managedFields are half of a small object. They are read of what applications have, and of these."""
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
        """Of the many and the large ones no more than is read of those that nobody tracks."""
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
        """What is written in the same way has the same fields: they are kept once."""
        fields = entry.get("fieldsV1")
        if not fields:
            return entry
        shape = orjson.dumps(fields)
        if len(self._shapes) >= MOST_SHAPES:
            self._shapes.clear()  # those that are in use stay shared
        return {**entry, "fieldsV1": self._shapes.setdefault(shape, fields)}


def is_slim(manifest: Manifest) -> bool:
    """Whether something may have been left out of it."""
    return not manifest["metadata"].get("managedFields")


def _images(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [{"name": each.get("name"), "image": each.get("image")} for each in spec.get(name) or ()]
        for name in ("initContainers", "containers")
        if name in spec
    }


def _start(status: dict[str, Any]) -> dict[str, Any]:
    """The phase, and containers whose image cannot be pulled: a newer commit may then supersede a sync."""
    kept = {name: value for name, value in status.items() if name == "phase"}
    for field in CONTAINER_LISTS:
        failed = [each for each in status.get(field) or () if find_image_failure({"status": {field: [each]}})]
        if failed:
            kept[field] = [{"name": each.get("name"), "state": each["state"]} for each in failed]
    return kept
