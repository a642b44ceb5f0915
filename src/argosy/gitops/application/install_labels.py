"""Names and labels of the parts of an argosy installation.

In: a part. Out: labels. Never: a label value of Argo CD.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.kube.objects import Manifest

CONTROLLER: Final = "argosy-controller"
SERVER: Final = "argosy-server"
NAME: Final = "app.kubernetes.io/name"
PART_OF: Final = "app.kubernetes.io/part-of"
OURS: Final = "argosy"
USUAL_NAMESPACE: Final = "argosy"
CONTROL: Final = "argosy.dev/control"  # marks the namespace with settings and Applications
MANAGER: Final = "argosy-install"


def selector(part: str) -> dict[str, str]:
    return {NAME: part}


def labels(part: str) -> dict[str, str]:
    return {NAME: part, PART_OF: OURS}


def is_ours(manifest: Manifest) -> bool:
    return bool(_labels(manifest).get(PART_OF) == OURS)


def _labels(manifest: Manifest) -> dict[str, Any]:
    return (manifest.get("metadata") or {}).get("labels") or {}


def is_control(namespace: Manifest) -> bool:
    return bool(_labels(namespace).get(CONTROL) == "true")


def has_marked(namespace: Manifest) -> bool:
    """True if an installation added the label to an existing namespace."""
    written = [
        each["fieldsV1"]["f:metadata"]["f:labels"]
        for each in namespace["metadata"].get("managedFields") or ()
        if (each.get("manager"), each.get("operation")) == (MANAGER, "Apply")
        and "f:labels" in (each.get("fieldsV1") or {}).get("f:metadata", {})
    ]
    return any(f"f:{CONTROL}" in each for each in written)
