"""Format of exported manifests, and checks of imported ones.

In: a manifest. Out: the manifest without cluster-specific fields. Never: I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from argosy import annotations as names
from argosy.gitops.application import OperationPhase
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest, dump_yaml

# Transient, and specific to one cluster
TRANSIENT_ANNOTATIONS: Final = frozenset({names.REFRESH, names.REFRESH_TIMESTAMP, names.NOTIFYING, names.FENCE})
# Written by add-ons in the cluster: newer there than in a file
ADDON_ANNOTATIONS: Final = frozenset({names.NOTIFIED, names.NOTEBOOK_STATUS, names.NOTEBOOK_SUMMARY})
# User decisions in the cluster: overwriting them could sync a held Application, or hand over an adopted one
USER_DECISION_ANNOTATIONS: Final = frozenset({names.HOLD, names.ENGINE, names.SKIP_RECONCILE, names.DELETION_APPROVED})
BODY_FIELDS: Final = {"ConfigMap": ("data", "binaryData"), "Secret": ("type", "data")}
STRING_MAP_FIELDS: Final = {"ConfigMap": ("data", "binaryData"), "Secret": ("data", "stringData")}  # maps of strings
FIRST_LINE: Final = "# Written by argosy admin export: it is whole if its last line says so"
LAST_LINE: Final = "# This is the last line of what argosy admin export wrote"
COMPLETED_PHASES: Final = frozenset(phase.value for phase in OperationPhase if phase.is_over)


def manifest_to_export(manifest: Manifest, control: str) -> dict[str, Any]:
    """argo: as `argocd admin export` writes it: without cluster-specific fields and without the control namespace."""
    metadata = manifest["metadata"]
    new_metadata: dict[str, Any] = {"name": metadata["name"]}
    namespace = metadata.get("namespace")
    if namespace and namespace != control:
        new_metadata["namespace"] = namespace
    annotations = {
        name: text for name, text in (metadata.get("annotations") or {}).items() if name not in TRANSIENT_ANNOTATIONS
    }
    for name, value in (("labels", metadata.get("labels")), ("annotations", annotations)):
        if value:
            new_metadata[name] = dict(value)
    if metadata.get("finalizers"):
        new_metadata["finalizers"] = list(metadata["finalizers"])
    exported_manifest: dict[str, Any] = {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": new_metadata,
    }
    for name in BODY_FIELDS.get(manifest["kind"], ("spec",)):
        if name in manifest:
            exported_manifest[name] = manifest[name]
    if manifest["kind"] == "Application" and (status := drop_running_operation(as_mapping(manifest.get("status")))):
        exported_manifest["status"] = status
    return exported_manifest


def find_invalid_field(manifest: Manifest) -> str:
    """Describe an invalid field of the manifest; empty if the manifest is valid."""
    metadata = manifest["metadata"]
    if not metadata.get("name"):
        return "metadata.name is missing"
    if not isinstance(metadata.get("namespace") or "", str):
        return "metadata.namespace is not a string"
    string_maps = {f"metadata.{field}": metadata.get(field) or {} for field in ("labels", "annotations")}
    string_maps |= {field: manifest.get(field) or {} for field in STRING_MAP_FIELDS.get(manifest["kind"], ())}
    for field_path, value in string_maps.items():
        if not isinstance(value, dict) or not _are_strings(value.values()):
            return f"{field_path} is not a map of strings"
    finalizers = metadata.get("finalizers") or []
    if not isinstance(finalizers, list) or not _are_strings(finalizers):
        return "metadata.finalizers is not a list of strings"
    for field_path in ("spec", "status"):
        if not isinstance(manifest.get(field_path) or {}, dict):
            return f"{field_path} is not a map"
    is_list = isinstance(as_mapping(manifest.get("status")).get("history") or [], list)
    return "" if is_list else "status.history is not a list"


def _are_strings(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def drop_running_operation(status: Mapping[str, Any]) -> dict[str, Any]:
    """The status without a running operation, which must not continue in another cluster."""
    state = as_mapping(status.get("operationState"))
    is_completed = str(state.get("phase")) in COMPLETED_PHASES
    return {name: value for name, value in status.items() if name != "operationState" or is_completed}


def prepare_for_import(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest to write into the target cluster: of the status, only the history.

    Sync and health status of another cluster do not apply here. Also, an automated sync tries each revision once:
    an imported operation would prevent the first sync in the new cluster.
    """
    history = as_mapping(manifest.get("status")).get("history")
    without_status = {name: value for name, value in manifest.items() if name != "status"}
    return {**without_status, "status": {"history": history}} if history else without_status


def render_stream(manifests: list[dict[str, Any]]) -> str:
    """argo: a separator after each manifest. A comment in the first and the last line detects truncation."""
    return "".join((f"{FIRST_LINE}\n", *(f"{dump_yaml(manifest)}---\n" for manifest in manifests), f"{LAST_LINE}\n"))


def is_complete(content: bytes) -> bool:
    """True if every first-line marker has its last-line marker; files of other tools have neither and are accepted."""
    markers = (FIRST_LINE.encode(), LAST_LINE.encode())
    marker_lines = [line for raw_line in content.splitlines() if (line := raw_line.rstrip()) in markers]
    return marker_lines == [*markers] * (len(marker_lines) // 2)
