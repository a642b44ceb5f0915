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
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest

CONFIG_MAP, SECRET = GroupKind("", "ConfigMap"), GroupKind("", "Secret")
PROJECT, APPLICATION, APPLICATION_SET = (
    GroupKind("argoproj.io", each) for each in ("AppProject", "Application", "ApplicationSet")
)
KINDS: Final = (CONFIG_MAP, SECRET, PROJECT, APPLICATION, APPLICATION_SET)  # argo: in this order
# argo: the ConfigMaps that its import reads; it fails on others that exist already
SHARED: Final = ("argocd-cm", "argocd-rbac-cm", "argocd-ssh-known-hosts-cm", "argocd-tls-certs-cm", "argosy-cm")
MORE: Final = ("argocd-cmd-params-cm", "argocd-gpg-keys-cm", "argocd-notifications-cm")
SECRETS: Final = ("argocd-secret", "argocd-notifications-secret")


@dataclass(frozen=True)
class Scope:
    """Selection of objects for an export or import."""

    control: str
    has_secrets: bool = False
    has_all_settings: bool = False
    namespaces: tuple[str, ...] = ()  # globs: Application namespaces in addition to the control namespace; empty: all

    def has(self, manifest: Manifest) -> bool:
        """True if the manifest is part of the installation and selected."""
        metadata = manifest["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace") or self.control
        match manifest.get("kind"):
            case "ConfigMap":
                return namespace == self.control and name in (*SHARED, *(MORE if self.has_all_settings else ()))
            case "Secret":
                is_ours = name in SECRETS or SECRET_TYPE in (metadata.get("labels") or {})
                return self.has_secrets and is_ours and namespace == self.control
            case "AppProject":
                return namespace == self.control
            case "Application" | "ApplicationSet":
                is_named = not self.namespaces or any(fnmatchcase(namespace, each) for each in self.namespaces)
                return namespace == self.control or is_named
        return False


async def collected(cluster: ClusterReader, scope: Scope) -> list[Manifest]:
    """List all live objects in scope, with their type meta."""
    found: list[Manifest] = []
    for kind in KINDS:
        if kind == SECRET and not scope.has_secrets:
            continue
        version, there = _version(kind), await _listed(cluster, kind, scope)
        listed = [{"apiVersion": version, **each, "kind": kind.kind} for each in there]
        found += sorted(
            (each for each in listed if scope.has(each)),
            key=lambda each: (each["metadata"].get("namespace") or "", each["metadata"]["name"]),
        )
    return found


def _version(kind: GroupKind) -> str:
    return "argoproj.io/v1alpha1" if kind.group else "v1"


async def _listed(cluster: ClusterReader, kind: GroupKind, scope: Scope) -> list[Manifest]:
    """List Applications in all namespaces if permitted, other kinds in the control namespace."""
    places = ("", scope.control) if kind in (APPLICATION, APPLICATION_SET) else (scope.control,)
    for place in places:
        try:
            return list((await cluster.list(kind, namespace=place)).items)
        except Forbidden:
            if place:
                raise
        except ClusterError as error:
            if error.code == 404:  # a kind that is not served has no objects
                return []
            raise
    return []
