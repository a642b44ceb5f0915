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
from argosy.kube.names import ResourceKey, split_api_version
from argosy.kube.objects import Manifest, key_of, key_of_source

Method = Literal["annotation", "label", "annotation+label"]

METHOD: Final = "application.resourceTrackingMethod"
LABEL: Final = "application.instanceLabelKey"
INSTALLATION: Final = "installationID"
LONGEST_LABEL: Final = 63  # k8s: characters of a label value
_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
_NO_END_OF_A_LABEL: Final = re.compile(r"[^a-zA-Z0-9]+\Z")


@dataclass(frozen=True, slots=True)
class Tracking:
    """How an installation marks the objects of its Applications."""

    method: Method = "annotation"
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


def read_tracking(argocd_cm: Mapping[str, str], control_namespace: str) -> Tracking:
    """argo: an unknown method counts as the default; argosy also reports it in `faults`."""
    given = argocd_cm.get(METHOD, "").strip()
    method: Method = "annotation"
    faults: tuple[str, ...] = ()
    for known in get_args(Method):
        if given == known:
            method = known
    if given and given != method:
        faults = (f"argocd-cm: {METHOD}: unknown tracking method {given!r}; use one of {', '.join(get_args(Method))}",)
    return Tracking(
        method=method,
        label=argocd_cm.get(LABEL, "").strip() or INSTANCE_LABEL,
        installation_id=argocd_cm.get(INSTALLATION, "").strip(),
        control_namespace=control_namespace,
        faults=faults,
    )


def instance_name(app: Application, tracking: Tracking) -> str:
    """argo: the instance name of an Application outside the control namespace includes its namespace."""
    if not app.namespace or app.namespace == tracking.control_namespace:
        return app.name
    return f"{app.namespace}_{app.name}"


def track(manifest: Manifest, app: Application, tracking: Tracking) -> Manifest:
    """Return the desired manifest with tracking metadata. Raises ManifestError if its metadata is malformed."""
    if _is_definition(manifest):
        return manifest  # argo: CRDs outlive Applications
    instance = instance_name(app, tracking)
    metadata = dict(_map(manifest, "metadata"))
    if tracking.method != "label":
        metadata["annotations"] = _marked(manifest, _map(metadata, "annotations"), instance, app, tracking)
    if tracking.method != "annotation":
        # argo: with method "label" the label must be the full name, so the API server rejects one that is too long
        text = instance if tracking.method == "label" else _cut(instance)
        metadata["labels"] = {**_map(metadata, "labels"), tracking.label: text}
    return {**manifest, "metadata": metadata}


def owner(manifest: Manifest, tracking: Tracking) -> str:
    """Return the instance name of the Application that a live manifest belongs to; empty if it has none."""
    if tracking.method == "label":
        return _text(manifest, "labels", tracking.label)
    found = tracking_id(manifest, tracking)
    return found.instance if found else ""


def tracking_id(manifest: Manifest, tracking: Tracking) -> TrackingId | None:
    """Return None if the annotation is missing, unreadable or written by another installation."""
    text = _text(manifest, "annotations", TRACKING_ID)
    if not text or _text(manifest, "annotations", INSTALLATION_ID) != tracking.installation_id:
        return None
    return read_id(text)


def read_id(text: str) -> TrackingId | None:
    """argo: the name comes last and may contain colons."""
    parts = text.split(":", 2)
    if len(parts) != 3 or parts[1].count("/") != 1 or parts[2].count("/") != 1:
        return None
    return TrackingId(parts[0], ResourceKey(*parts[1].split("/"), *parts[2].split("/")))


def is_self_referenced(live: Manifest, tracking: Tracking, desired: Manifest | None = None) -> bool:
    """Return True if the tracking id names this object; otherwise the annotation was copied from another object.

    A desired object belongs to the Application, even if its live tracking id was copied.
    """
    if tracking.method == "label":
        return True  # argo: a label does not name the object it was written on
    if desired is not None:
        named: ResourceKey = key_of(desired)
    else:
        found = tracking_id(live, tracking)
        if found is None:
            return True
        named = found.key
    key = key_of(live)
    # argo: the id of a cluster-scoped object has the destination namespace
    return key._replace(namespace="") == named._replace(namespace="") and key.namespace in ("", named.namespace)


def settle(desired: Manifest, live: Manifest, tracking: Tracking) -> Manifest:
    """Return the live manifest for a comparison, changed so that a new tracking method is not drift.

    argo: an object with the label counts as tracked; the label is dropped if it is not desired any more.
    """
    if tracking.method == "label" or not _text(live, "labels", tracking.label) or _is_definition(live):
        return live
    metadata = dict(live["metadata"])
    if wanted := _text(desired, "annotations", TRACKING_ID):
        metadata["annotations"] = {**_texts(live, "annotations"), TRACKING_ID: wanted}
    if not _text(desired, "labels", tracking.label):
        metadata["labels"] = {name: text for name, text in metadata["labels"].items() if name != tracking.label}
        if not metadata["labels"]:
            del metadata["labels"]
    return {**live, "metadata": metadata}


def _marked(
    manifest: Manifest, annotations: Mapping[str, Any], instance: str, app: Application, tracking: Tracking
) -> dict[str, Any]:
    # argo: the generated name of a hook is not known yet; the sync completes the id
    key = key_of(manifest) if manifest["metadata"].get("name") else key_of_source(manifest)._replace(name="")
    if not key.namespace:
        key = key._replace(namespace=app.destination.namespace)  # argo: also for cluster-scoped kinds
    marked = {**annotations, TRACKING_ID: str(TrackingId(instance, key))}
    marked.pop(INSTALLATION_ID, None)
    if tracking.installation_id:
        marked[INSTALLATION_ID] = tracking.installation_id
    return marked


def _cut(instance: str) -> str:
    """argo: the annotation identifies the Application, so the label may be truncated."""
    return instance if len(instance) <= LONGEST_LABEL else _NO_END_OF_A_LABEL.sub("", instance[:LONGEST_LABEL])


def _is_definition(manifest: Manifest) -> bool:
    group, _ = split_api_version(str(manifest.get("apiVersion")))
    return (group, manifest.get("kind")) == _DEFINITION


def _text(manifest: Manifest, part: str, name: str) -> str:
    text = _texts(manifest, part).get(name)
    return text if isinstance(text, str) else ""


def _texts(manifest: Manifest, part: str) -> Mapping[str, Any]:
    """Return the labels or annotations; empty if they are missing or malformed."""
    metadata = manifest.get("metadata")
    found = metadata.get(part) if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}


def _map(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = of.get(name)
    if found is not None and not isinstance(found, dict):
        path = name if name == "metadata" else f"metadata.{name}"
        raise ManifestError(f"{path} must be a map; correct it")
    return found or {}
