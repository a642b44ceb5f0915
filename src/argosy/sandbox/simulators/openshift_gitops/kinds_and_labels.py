"""Kinds, labels and the "simulated" mark of the objects of this add-on.

In, out: names and small manifests. Never: I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.annotations import SIMULATED  # on every object of this add-on
from argosy.kube.objects import Manifest, get_annotation

SETTINGS_CONFIG_MAP: Final = "argocd-cm"
POLICY_CONFIG_MAP: Final = "argocd-rbac-cm"
PARAMETERS_CONFIG_MAP: Final = "argocd-cmd-params-cm"
KNOWN_HOSTS_CONFIG_MAP: Final = "argocd-ssh-known-hosts-cm"
CERTIFICATES_CONFIG_MAP: Final = "argocd-tls-certs-cm"
GPG_KEYS_CONFIG_MAP: Final = "argocd-gpg-keys-cm"

SIMULATED_NOTE: Final = "simulated by argosy"
DEFAULT_DOMAIN: Final = "apps.argosy.invalid"  # RFC 2606: reserved, so a link to it leads nowhere

NAME_LABEL: Final = "app.kubernetes.io/name"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
TRACKED_BY_LABEL: Final = "operator.argoproj.io/tracked-by"


def build_simulated(
    api_version: str,
    kind: str,
    name: str,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    **fields: Any,
) -> Manifest:
    """Build a manifest with the annotation that marks it as simulated."""
    metadata: dict[str, Any] = {"name": name, "annotations": {SIMULATED: SIMULATED_NOTE}}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def is_simulated(manifest: Manifest) -> bool:
    """True if this add-on writes the object's status; another mark belongs to another add-on."""
    return get_annotation(manifest, SIMULATED) == SIMULATED_NOTE
