"""Decides how much of each live object the cache keeps: objects of Applications whole, the rest trimmed.

In: kinds and live manifests, tracking settings. Out: the manifest without the fields that argosy never reads. Never:
trims an object that an Application tracks, or an Application; changes a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from argosy.gitops.live.stuck_containers import CONTAINER_STATUS_FIELDS, find_image_failure
from argosy.gitops.live.tracking import TrackingSettings, read_instance_name
from argosy.kube.objects import Manifest
from argosy.kube.objects.shared_texts import SHARED_TEXTS
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import (
    APP_PROJECT,
    APPLICATION,
    APPLICATION_SET,
    CONFIG_MAP,
    CRD,
    INGRESS,
    JOB,
    NAMESPACE,
    NOTEBOOK_JOB,
    POD,
    ROUTE,
    SECRET,
    STATEFUL_SET,
    STORAGE_CLASS,
)

# argosy reads more than the metadata of these kinds, tracked or not.
KINDS_KEPT_WHOLE: Final = frozenset(
    {
        APPLICATION,
        APP_PROJECT,
        APPLICATION_SET,
        CONFIG_MAP,  # settings; the data of all others is dropped
        SECRET,  # the same; the type shows which Secrets are tokens of a ServiceAccount
        NAMESPACE,
        POD,  # images, and whether they can be pulled
        JOB,  # hooks
        NOTEBOOK_JOB,  # its result: waves of Applications wait for it
        INGRESS,  # addresses
        GroupKind("extensions", "Ingress"),
        ROUTE,
        STORAGE_CLASS,  # its volumeBindingMode
        CRD,  # its schema says how lists are compared
        STATEFUL_SET,  # templates of claims
    }
)
DATA_FIELDS: Final = frozenset({"data", "binaryData"})  # k8s: up to 1 MiB, for example the Secret of a Helm release
MAX_SHARED_FIELD_SETS: Final = 5000


class ApplicationCachePolicy:
    """Implements `kube.controller.informer_set.CachePolicy`."""

    def __init__(self, tracking: Callable[[], TrackingSettings]) -> None:
        self._tracking = tracking
        # Returns the same version of the object if another part of the process already holds it.
        self.deduplicate: Callable[[Manifest], Manifest] = lambda manifest: manifest
        self._field_sets: dict[bytes, Any] = {}

    def needs_full_objects(self, kind: GroupKind) -> bool:
        return kind in KINDS_KEPT_WHOLE

    def requires_full_kind(self, manifest: Manifest) -> bool:
        return bool(read_instance_name(manifest, self._tracking()))

    def is_trimmed_too_much(self, manifest: Manifest) -> bool:
        return is_trimmed(manifest) and self.requires_full_kind(manifest)

    def trim(self, manifest: Manifest) -> Manifest:
        """Return the manifest as the cache keeps it.

        k8s: managedFields are half of a small object. argosy reads those of tracked objects and of Applications.
        """
        if (existing := self.deduplicate(manifest)) is not manifest:
            return existing
        trimmed = self._select_fields(manifest)
        SHARED_TEXTS.share(trimmed)
        return trimmed

    def _select_fields(self, manifest: Manifest) -> Manifest:
        metadata = manifest["metadata"]
        entries = metadata.get("managedFields")
        is_application = manifest["kind"] == APPLICATION.kind and manifest["apiVersion"].startswith(APPLICATION.group)
        if is_application or self.requires_full_kind(manifest):
            shared = {"managedFields": [self._intern_managed_fields(item) for item in entries]} if entries else {}
            return {**manifest, "metadata": {**metadata, **shared}} if shared else manifest
        slim_metadata = {name: item for name, item in metadata.items() if name != "managedFields"}
        return self._trim_untracked({**manifest, "metadata": slim_metadata} if entries else manifest)

    def _trim_untracked(self, manifest: Manifest) -> Manifest:
        """Trim untracked Pods (many) and untracked ConfigMaps and Secrets (large) to the fields that argosy reads."""
        if manifest["apiVersion"] != "v1":
            return manifest
        if manifest["kind"] == "Pod":
            spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
            return {**manifest, "spec": _trim_pod_spec(spec), "status": _trim_pod_status(status)}
        is_setting = manifest["metadata"].get("namespace") == self._tracking().control_namespace
        if manifest["kind"] not in ("ConfigMap", "Secret") or is_setting or DATA_FIELDS.isdisjoint(manifest):
            return manifest
        return {name: value for name, value in manifest.items() if name not in DATA_FIELDS}

    def _intern_managed_fields(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Store equal fieldsV1 values once: objects applied from the same template have the same ones."""
        fields = entry.get("fieldsV1")
        if not fields:
            return entry
        serialized = orjson.dumps(fields)
        if len(self._field_sets) >= MAX_SHARED_FIELD_SETS:
            self._field_sets.clear()  # values in use stay shared
        return {**entry, "fieldsV1": self._field_sets.setdefault(serialized, fields)}


def is_trimmed(manifest: Manifest) -> bool:
    """True if fields may have been removed from the manifest."""
    return not manifest["metadata"].get("managedFields")


def _trim_pod_spec(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [{"name": container.get("name"), "image": container.get("image")} for container in spec.get(name) or ()]
        for name in ("initContainers", "containers")
        if name in spec
    }


def _trim_pod_status(status: dict[str, Any]) -> dict[str, Any]:
    """Keep the phase, and containers whose image cannot be pulled: then a newer commit may supersede the sync."""
    trimmed = {name: value for name, value in status.items() if name == "phase"}
    for field in CONTAINER_STATUS_FIELDS:
        failed = [
            container for container in status.get(field) or () if find_image_failure({"status": {field: [container]}})
        ]
        if failed:
            trimmed[field] = [{"name": container.get("name"), "state": container["state"]} for container in failed]
    return trimmed
