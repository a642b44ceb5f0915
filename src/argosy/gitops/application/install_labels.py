"""The names of an installation's parts, and the labels that say whose they are.

In: a part. Out: labels. Never: a word that is an Argo CD's.
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
CONTROL: Final = "argosy.dev/control"  # of the namespace that settings and Applications are in
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
    """Whether an installation gave the label to a namespace that was there before."""
    written = [
        each["fieldsV1"]["f:metadata"]["f:labels"]
        for each in namespace["metadata"].get("managedFields") or ()
        if (each.get("manager"), each.get("operation")) == (MANAGER, "Apply")
        and "f:labels" in (each.get("fieldsV1") or {}).get("f:metadata", {})
    ]
    return any(f"f:{CONTROL}" in each for each in written)
