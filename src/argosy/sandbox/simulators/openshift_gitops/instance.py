"""Builds the objects that the operator creates for one ArgoCD resource.

In: the live resource. Out: the manifests it owns. Never: calls a cluster; reads more of the resource than name,
namespace and spec.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.openshift_gitops import config_maps
from argosy.sandbox.simulators.openshift_gitops.constants import (
    COMPONENT,
    DOMAIN,
    MANAGED_BY,
    NAME,
    PART_OF,
    POLICY,
    SETTINGS,
    simulated,
)
from argosy.sandbox.simulators.openshift_gitops.workloads import deployment, stateful_set

RECONCILIATION: Final = "ARGOCD_RECONCILIATION_TIMEOUT"
_UNIT_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


@dataclass(frozen=True)
class Instance:
    """An ArgoCD resource, and the names of its objects."""

    live: Manifest

    @property
    def name(self) -> str:
        return str(self.live["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.live["metadata"]["namespace"])

    @property
    def spec(self) -> Mapping[str, Any]:
        return self.live.get("spec") or {}

    @property
    def host(self) -> str:
        """Host of its Route; empty if it has none."""
        server = self.spec.get("server") or {}
        if not (server.get("route") or {}).get("enabled"):
            return ""
        return server.get("host") or f"{self.name}-server-{self.namespace}.{DOMAIN}"

    @property
    def parts(self) -> dict[str, bool]:
        """Components by their status field, with True if the component is enabled."""
        spec = self.spec
        wanted = {field: (spec.get(field) or {}).get("enabled") is not False for field in ("redis", "repo", "server")}
        return {
            **wanted,
            "applicationController": (spec.get("controller") or {}).get("enabled") is not False,
            "applicationSetController": _is_chosen(spec, "applicationSet", otherwise=True),
            "notificationsController": _is_chosen(spec, "notifications", otherwise=False),
            "sso": config_maps.uses_dex(spec),
        }

    def reference(self) -> Manifest:
        return {
            "apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "name": self.name,
            "uid": self.live["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True,
        }  # fmt: skip

    def account(self, component: str) -> str:
        return f"{self.name}-argocd-{component}"


def _is_chosen(spec: Mapping[str, Any], field: str, *, otherwise: bool) -> bool:
    """argo: without `enabled`, such a component exists as soon as its field does."""
    part = spec.get(field)
    return part is not None and bool(part.get("enabled", otherwise))


def config_map(instance: Instance, name: str) -> Manifest:
    return _owned(instance, simulated("v1", "ConfigMap", name, instance.namespace, _labels(instance, name), data={}))


def data_of(instance: Instance) -> dict[str, dict[str, str]]:
    """Build the complete data of both ConfigMaps, by name."""
    url = f"https://{instance.host or f'{instance.name}-server'}"
    user = f"system:serviceaccount:{instance.namespace}:{instance.account('dex-server')}"
    return {
        SETTINGS: config_maps.settings(instance.spec, url=url, account=user),
        POLICY: config_maps.policy(instance.spec),
    }


def password(instance: Instance) -> Manifest:
    """Build the admin Secret with a new password; it is only created, never replaced."""
    name = f"{instance.name}-cluster"
    data = {"admin.password": secrets.token_urlsafe(24)}
    made = simulated("v1", "Secret", name, instance.namespace, _labels(instance, name), type="Opaque", stringData=data)
    return _owned(instance, made)


def accounts(instance: Instance) -> Sequence[Manifest]:
    names = [instance.account("application-controller"), instance.account("server")]
    if instance.parts["sso"]:
        names.append(instance.account("dex-server"))
    return [
        _owned(instance, simulated("v1", "ServiceAccount", name, instance.namespace, _labels(instance, name)))
        for name in names
    ]


def workloads(instance: Instance) -> dict[str, Manifest]:
    """Build all possible workloads, by the status field that reports them."""
    place = instance.namespace
    made = {
        field: deployment(f"{instance.name}-{part}", place, _labels(instance, part))
        for field, part in {
            "applicationSetController": "applicationset-controller",
            "notificationsController": "notifications-controller",
            "redis": "redis",
            "repo": "repo-server",
            "server": "server",
            "sso": "dex-server",
        }.items()
    }
    controller = f"{instance.name}-application-controller"
    labels = _labels(instance, "application-controller")
    account = instance.account("application-controller")
    made["applicationController"] = stateful_set(controller, place, labels, account, _controller_env(instance.spec))
    return {field: _owned(instance, manifest) for field, manifest in made.items()}


def service(instance: Instance) -> Manifest:
    name = f"{instance.name}-server"
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 8080}]
    spec = {"ports": ports, "selector": {NAME: name}, "type": "ClusterIP"}
    made = simulated("v1", "Service", name, instance.namespace, {**_labels(instance, "server"), NAME: name}, spec=spec)
    return _owned(instance, made)


def route(instance: Instance) -> Manifest:
    name = f"{instance.name}-server"
    labels = {**_labels(instance, "server"), NAME: name}
    spec = {
        "host": instance.host or f"{name}.{DOMAIN}",
        "port": {"targetPort": "https"},
        "tls": {"termination": "reencrypt", "insecureEdgeTerminationPolicy": "Redirect"},
        "to": {"kind": "Service", "name": name, "weight": 100},
        "wildcardPolicy": "None",
    }
    return _owned(instance, simulated("route.openshift.io/v1", "Route", name, instance.namespace, labels, spec=spec))


def _controller_env(spec: Mapping[str, Any]) -> dict[str, str]:
    """argo: appSync sets the reconciliation interval on the application controller, in whole seconds."""
    wanted = str((spec.get("controller") or {}).get("appSync") or "")
    found = _DURATION.findall(wanted)
    if not found or "".join(map("".join, found)) != wanted:
        return {}
    return {RECONCILIATION: f"{int(sum(float(number) * _UNIT_SECONDS[unit] for number, unit in found))}s"}


def _labels(instance: Instance, component: str) -> dict[str, str]:
    names = {NAME: component} if component.startswith("argocd-") else {}
    return {MANAGED_BY: instance.name, PART_OF: "argocd", COMPONENT: component, **names}


def _owned(instance: Instance, manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [instance.reference()]}}
