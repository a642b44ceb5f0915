"""Names and labels of the parts of an argosy installation.

In: a part. Out: labels. Never: a label value of Argo CD.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.kube.objects import Manifest

CONTROLLER_NAME: Final = "argosy-controller"
SERVER_NAME: Final = "argosy-server"
NAME_LABEL: Final = "app.kubernetes.io/name"
PART_OF_LABEL: Final = "app.kubernetes.io/part-of"
PART_OF_ARGOSY: Final = "argosy"
DEFAULT_INSTALL_NAMESPACE: Final = "argosy"
CONTROL_NAMESPACE_LABEL: Final = "argosy.dev/control"  # marks the namespace with settings and Applications
INSTALL_FIELD_MANAGER: Final = "argosy-install"


def build_selector(part: str) -> dict[str, str]:
    return {NAME_LABEL: part}


def build_labels(part: str) -> dict[str, str]:
    return {NAME_LABEL: part, PART_OF_LABEL: PART_OF_ARGOSY}


def is_part_of_argosy(manifest: Manifest) -> bool:
    return bool(_labels(manifest).get(PART_OF_LABEL) == PART_OF_ARGOSY)


def _labels(manifest: Manifest) -> dict[str, Any]:
    return (manifest.get("metadata") or {}).get("labels") or {}


def is_control_namespace(namespace: Manifest) -> bool:
    return bool(_labels(namespace).get(CONTROL_NAMESPACE_LABEL) == "true")


def was_labelled_by_install(namespace: Manifest) -> bool:
    """True if an installation added the label to an existing namespace."""
    label_fields = [
        entry["fieldsV1"]["f:metadata"]["f:labels"]
        for entry in namespace["metadata"].get("managedFields") or ()
        if (entry.get("manager"), entry.get("operation")) == (INSTALL_FIELD_MANAGER, "Apply")
        and "f:labels" in (entry.get("fieldsV1") or {}).get("f:metadata", {})
    ]
    return any(f"f:{CONTROL_NAMESPACE_LABEL}" in entry for entry in label_fields)
