"""The names of an installation's parts, and the labels that say whose they are.

In: a part. Out: labels. Never: a word that is an Argo CD's.
"""

from __future__ import annotations

from typing import Final

from argosy.model.manifest import Manifest

CONTROLLER: Final = "argosy-controller"
SERVER: Final = "argosy-server"
NAME: Final = "app.kubernetes.io/name"
PART_OF: Final = "app.kubernetes.io/part-of"
OURS: Final = "argosy"
CONTROL: Final = "argosy.dev/control"  # of the namespace that settings and Applications are in
MANAGER: Final = "argosy-install"


def selector(part: str) -> dict[str, str]:
    return {NAME: part}


def labels(part: str) -> dict[str, str]:
    return {NAME: part, PART_OF: OURS}


def is_ours(manifest: Manifest) -> bool:
    return ((manifest.get("metadata") or {}).get("labels") or {}).get(PART_OF) == OURS
