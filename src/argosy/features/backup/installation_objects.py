"""The objects of an installation: settings, projects, Applications, ApplicationSets, Secrets.

In: a cluster, the control namespace. Out: manifests, in export order. Never: writes; reads Secrets unless requested.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from argosy.annotations import SECRET_TYPE
from argosy.errors import ClusterError, Forbidden
from argosy.kube.client import ClusterReader
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import (
    APP_PROJECT,
    APPLICATION,
    APPLICATION_SET,
    ARGOPROJ_API_VERSION,
    CONFIG_MAP,
    SECRET,
)

EXPORTED_KINDS: Final = (CONFIG_MAP, SECRET, APP_PROJECT, APPLICATION, APPLICATION_SET)  # argo: in this order
# argo: the ConfigMaps that its import reads; it fails on others that exist already
ARGOCD_CONFIG_MAPS: Final = (
    "argocd-cm",
    "argocd-rbac-cm",
    "argocd-ssh-known-hosts-cm",
    "argocd-tls-certs-cm",
    "argosy-cm",
)
EXTRA_CONFIG_MAPS: Final = ("argocd-cmd-params-cm", "argocd-gpg-keys-cm", "argocd-notifications-cm")
SECRET_NAMES: Final = ("argocd-secret", "argocd-notifications-secret")


@dataclass(frozen=True)
class BackupScope:
    """Selection of objects for an export or import."""

    control: str
    has_secrets: bool = False
    has_all_settings: bool = False
    namespaces: tuple[str, ...] = ()  # globs: Application namespaces in addition to the control namespace; empty: all

    def includes(self, manifest: Manifest) -> bool:
        """True if the manifest is part of the installation and selected."""
        metadata = manifest["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace") or self.control
        match manifest.get("kind"):
            case "ConfigMap":
                return namespace == self.control and name in (
                    *ARGOCD_CONFIG_MAPS,
                    *(EXTRA_CONFIG_MAPS if self.has_all_settings else ()),
                )
            case "Secret":
                is_installation_secret = name in SECRET_NAMES or SECRET_TYPE in (metadata.get("labels") or {})
                return self.has_secrets and is_installation_secret and namespace == self.control
            case "AppProject":
                return namespace == self.control
            case "Application" | "ApplicationSet":
                is_selected_namespace = not self.namespaces or any(
                    fnmatchcase(namespace, pattern) for pattern in self.namespaces
                )
                return namespace == self.control or is_selected_namespace
        return False


async def list_installation_objects(cluster: ClusterReader, scope: BackupScope) -> list[Manifest]:
    """List all live objects in scope, with their type meta."""
    objects: list[Manifest] = []
    for kind in EXPORTED_KINDS:
        if kind == SECRET and not scope.has_secrets:
            continue
        api_version, live_objects = _api_version(kind), await _list_kind(cluster, kind, scope)
        typed_objects = [{"apiVersion": api_version, **manifest, "kind": kind.kind} for manifest in live_objects]
        objects += sorted(
            (manifest for manifest in typed_objects if scope.includes(manifest)),
            key=lambda manifest: (manifest["metadata"].get("namespace") or "", manifest["metadata"]["name"]),
        )
    return objects


def _api_version(kind: GroupKind) -> str:
    return ARGOPROJ_API_VERSION if kind.group else "v1"


async def _list_kind(cluster: ClusterReader, kind: GroupKind, scope: BackupScope) -> list[Manifest]:
    """List Applications in all namespaces if permitted, other kinds in the control namespace."""
    namespaces = ("", scope.control) if kind in (APPLICATION, APPLICATION_SET) else (scope.control,)
    for namespace in namespaces:
        try:
            return list((await cluster.list(kind, namespace=namespace)).items)
        except Forbidden:
            if namespace:
                raise
        except ClusterError as error:
            if error.code == 404:  # a kind that is not served has no objects
                return []
            raise
    return []
