"""Resource tracking: marks applied manifests with their Application, and reads the mark from live ones.

In: a manifest, an Application, settings of the installation. Out: a manifest with tracking metadata, or the instance
name that one carries. Never: changes its argument; raises because of metadata on a live manifest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, get_args

from argosy.annotations import INSTALLATION_ID, INSTANCE_LABEL, TRACKING_ID
from argosy.errors import ManifestError
from argosy.gitops.application import Application
from argosy.kube.objects import Manifest, key_of, key_of_desired
from argosy.kube.resource_key import ResourceKey, split_api_version
from argosy.kube.well_known_kinds import CRD

TrackingMethod = Literal["annotation", "label", "annotation+label"]

METHOD_SETTING: Final = "application.resourceTrackingMethod"
LABEL_SETTING: Final = "application.instanceLabelKey"
INSTALLATION_ID_SETTING: Final = "installationID"
MAX_LABEL_LENGTH: Final = 63  # k8s: characters of a label value
_INVALID_LABEL_END: Final = re.compile(r"[^a-zA-Z0-9]+\Z")


@dataclass(frozen=True, slots=True)
class TrackingSettings:
    """How an installation marks the objects of its Applications."""

    method: TrackingMethod = "annotation"
    label: str = INSTANCE_LABEL
    installation_id: str = ""
    control_namespace: str = ""
    faults: tuple[str, ...] = field(default=(), compare=False)  # errors in argocd-cm


class TrackingId(NamedTuple):
    """Value of the tracking-id annotation: an instance name, and the key of the object it was written on."""

    instance: str
    key: ResourceKey

    def __str__(self) -> str:
        group, kind, namespace, name = self.key
        return f"{self.instance}:{group}/{kind}:{namespace}/{name}"


def read_tracking(argocd_cm: Mapping[str, str], control_namespace: str) -> TrackingSettings:
    """argo: an unknown method counts as the default; argosy also reports it in `faults`."""
    configured = argocd_cm.get(METHOD_SETTING, "").strip()
    method: TrackingMethod = "annotation"
    faults: tuple[str, ...] = ()
    for candidate in get_args(TrackingMethod):
        if configured == candidate:
            method = candidate
    if configured and configured != method:
        faults = (
            f"argocd-cm: {METHOD_SETTING}: unknown tracking method {configured!r}; use one of "
            f"{', '.join(get_args(TrackingMethod))}",
        )
    return TrackingSettings(
        method=method,
        label=argocd_cm.get(LABEL_SETTING, "").strip() or INSTANCE_LABEL,
        installation_id=argocd_cm.get(INSTALLATION_ID_SETTING, "").strip(),
        control_namespace=control_namespace,
        faults=faults,
    )


def build_instance_name(app: Application, tracking: TrackingSettings) -> str:
    """argo: the instance name of an Application outside the control namespace includes its namespace."""
    if not app.namespace or app.namespace == tracking.control_namespace:
        return app.name
    return f"{app.namespace}_{app.name}"


def add_tracking(manifest: Manifest, app: Application, tracking: TrackingSettings) -> Manifest:
    """Return the desired manifest with tracking metadata. Raises ManifestError if its metadata is malformed."""
    if _is_crd(manifest):
        return manifest  # argo: CRDs outlive Applications
    instance = build_instance_name(app, tracking)
    metadata = dict(_require_map(manifest, "metadata"))
    if tracking.method != "label":
        metadata["annotations"] = _add_tracking_annotations(
            manifest, _require_map(metadata, "annotations"), instance, app, tracking
        )
    if tracking.method != "annotation":
        # argo: with method "label" the label must be the full name, so the API server rejects one that is too long
        text = instance if tracking.method == "label" else _truncate_label(instance)
        metadata["labels"] = {**_require_map(metadata, "labels"), tracking.label: text}
    return {**manifest, "metadata": metadata}


def read_instance_name(manifest: Manifest, tracking: TrackingSettings) -> str:
    """Return the instance name of the Application that a live manifest belongs to; empty if it has none."""
    if tracking.method == "label":
        return _read_metadata_text(manifest, "labels", tracking.label)
    parsed_id = read_tracking_id(manifest, tracking)
    return parsed_id.instance if parsed_id else ""


def read_tracking_id(manifest: Manifest, tracking: TrackingSettings) -> TrackingId | None:
    """Return None if the annotation is missing, unreadable or written by another installation."""
    text = _read_metadata_text(manifest, "annotations", TRACKING_ID)
    if not text or _read_metadata_text(manifest, "annotations", INSTALLATION_ID) != tracking.installation_id:
        return None
    return parse_tracking_id(text)


def parse_tracking_id(text: str) -> TrackingId | None:
    """argo: the name comes last and may contain colons."""
    parts = text.split(":", 2)
    if len(parts) != 3 or parts[1].count("/") != 1 or parts[2].count("/") != 1:
        return None
    return TrackingId(parts[0], ResourceKey(*parts[1].split("/"), *parts[2].split("/")))


def is_self_referenced(live: Manifest, tracking: TrackingSettings, desired: Manifest | None = None) -> bool:
    """Return True if the tracking id names this object; otherwise the annotation was copied from another object.

    A desired object belongs to the Application, even if its live tracking id was copied.
    """
    if tracking.method == "label":
        return True  # argo: a label does not name the object it was written on
    if desired is not None:
        tracked_key: ResourceKey = key_of(desired)
    else:
        parsed_id = read_tracking_id(live, tracking)
        if parsed_id is None:
            return True
        tracked_key = parsed_id.key
    key = key_of(live)
    # argo: the id of a cluster-scoped object has the destination namespace
    return key._replace(namespace="") == tracked_key._replace(namespace="") and key.namespace in (
        "",
        tracked_key.namespace,
    )


def normalize_tracking(desired: Manifest, live: Manifest, tracking: TrackingSettings) -> Manifest:
    """Return the live manifest for a comparison, changed so that a new tracking method is not drift.

    argo: an object with the label and without the annotation counts as tracked; the label is dropped if it is not
    desired any more. The annotation of another Application stays, so that a sync takes the object over.
    """
    if tracking.method == "label" or not _read_metadata_text(live, "labels", tracking.label) or _is_crd(live):
        return live
    metadata = dict(live["metadata"])
    desired_id = _read_metadata_text(desired, "annotations", TRACKING_ID)
    if desired_id and not _read_metadata_text(live, "annotations", TRACKING_ID):
        metadata["annotations"] = {**_read_metadata_map(live, "annotations"), TRACKING_ID: desired_id}
    if not _read_metadata_text(desired, "labels", tracking.label):
        metadata["labels"] = {name: text for name, text in metadata["labels"].items() if name != tracking.label}
        if not metadata["labels"]:
            del metadata["labels"]
    return {**live, "metadata": metadata}


def _add_tracking_annotations(
    manifest: Manifest, annotations: Mapping[str, Any], instance: str, app: Application, tracking: TrackingSettings
) -> dict[str, Any]:
    # argo: the generated name of a hook is not known yet; the sync completes the id
    key = key_of(manifest) if manifest["metadata"].get("name") else key_of_desired(manifest)._replace(name="")
    if not key.namespace:
        key = key._replace(namespace=app.destination.namespace)  # argo: also for cluster-scoped kinds
    updated = {**annotations, TRACKING_ID: str(TrackingId(instance, key))}
    updated.pop(INSTALLATION_ID, None)
    if tracking.installation_id:
        updated[INSTALLATION_ID] = tracking.installation_id
    return updated


def _truncate_label(instance: str) -> str:
    """argo: the annotation identifies the Application, so the label may be truncated."""
    return instance if len(instance) <= MAX_LABEL_LENGTH else _INVALID_LABEL_END.sub("", instance[:MAX_LABEL_LENGTH])


def _is_crd(manifest: Manifest) -> bool:
    group, _ = split_api_version(str(manifest.get("apiVersion")))
    return (group, manifest.get("kind")) == CRD


def _read_metadata_text(manifest: Manifest, part: str, name: str) -> str:
    text = _read_metadata_map(manifest, part).get(name)
    return text if isinstance(text, str) else ""


def _read_metadata_map(manifest: Manifest, part: str) -> Mapping[str, Any]:
    """Return the labels or annotations; empty if they are missing or malformed."""
    metadata = manifest.get("metadata")
    values = metadata.get(part) if isinstance(metadata, dict) else None
    return values if isinstance(values, dict) else {}


def _require_map(container: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = container.get(name)
    if value is not None and not isinstance(value, dict):
        path = name if name == "metadata" else f"metadata.{name}"
        raise ManifestError(f"{path} must be a map; correct it")
    return value or {}
