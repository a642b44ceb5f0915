"""Builds the objects that the operator creates for one ArgoCD resource.

In: the live resource. Out: the manifests it owns. Never: calls a cluster; reads more of the resource than name,
namespace and spec.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.annotations import PART_OF
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.openshift_gitops import config_maps
from argosy.sandbox.simulators.openshift_gitops.kinds_and_labels import (
    COMPONENT_LABEL,
    DEFAULT_DOMAIN,
    MANAGED_BY_LABEL,
    NAME_LABEL,
    build_simulated,
)
from argosy.sandbox.simulators.openshift_gitops.workload_manifests import build_deployment, build_stateful_set

RECONCILIATION_TIMEOUT_VARIABLE: Final = "ARGOCD_RECONCILIATION_TIMEOUT"
_SECONDS_PER_UNIT: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION_PATTERN: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


@dataclass(frozen=True)
class ArgoCDInstance:
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
        return server.get("host") or f"{self.name}-server-{self.namespace}.{DEFAULT_DOMAIN}"

    @property
    def url_host(self) -> str:
        """Host in the URL of argocd-cm."""
        server = self.spec.get("server") or {}
        has_ingress = (server.get("ingress") or {}).get("enabled")
        return self.host or server.get("host") or (self.name if has_ingress else f"{self.name}-server")

    @property
    def enabled_components(self) -> dict[str, bool]:
        """Components by their status field, with True if the component is enabled."""
        spec = self.spec
        always_available = {
            field: (spec.get(field) or {}).get("enabled") is not False for field in ("redis", "repo", "server")
        }
        return {
            **always_available,
            "applicationController": (spec.get("controller") or {}).get("enabled") is not False,
            "applicationSetController": _is_enabled(spec, "applicationSet", default=True),
            "notificationsController": _is_enabled(spec, "notifications", default=False),
            "sso": config_maps.uses_dex(spec),
        }

    def build_owner_reference(self) -> Manifest:
        return {
            "apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "name": self.name,
            "uid": self.live["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True,
        }  # fmt: skip

    def service_account_name(self, component: str) -> str:
        return f"{self.name}-argocd-{component}"

    def add_owner(self, manifest: Manifest) -> Manifest:
        return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [self.build_owner_reference()]}}


def _is_enabled(spec: Mapping[str, Any], field: str, *, default: bool) -> bool:
    """argo: without `enabled`, such a component exists as soon as its field does."""
    component = spec.get(field)
    return component is not None and bool(component.get("enabled", default))


def build_service_accounts(instance: ArgoCDInstance) -> Sequence[Manifest]:
    names = [instance.service_account_name("application-controller"), instance.service_account_name("server")]
    if instance.enabled_components["sso"]:
        names.append(instance.service_account_name("dex-server"))
    return [
        instance.add_owner(
            build_simulated("v1", "ServiceAccount", name, instance.namespace, _build_labels(instance, name))
        )
        for name in names
    ]


def build_workloads(instance: ArgoCDInstance) -> dict[str, Manifest]:
    """Build all possible workloads, by the status field that reports them."""
    namespace = instance.namespace
    manifests = {
        field: build_deployment(f"{instance.name}-{component}", namespace, _build_labels(instance, component))
        for field, component in {
            "applicationSetController": "applicationset-controller",
            "notificationsController": "notifications-controller",
            "redis": "redis",
            "repo": "repo-server",
            "server": "server",
            "sso": "dex-server",
        }.items()
    }
    controller = f"{instance.name}-application-controller"
    labels = _build_labels(instance, "application-controller")
    account = instance.service_account_name("application-controller")
    manifests["applicationController"] = build_stateful_set(
        controller, namespace, labels, account, _build_controller_env(instance.spec)
    )
    return {field: instance.add_owner(manifest) for field, manifest in manifests.items()}


def build_service(instance: ArgoCDInstance) -> Manifest:
    name = f"{instance.name}-server"
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 8080}]
    spec = {"ports": ports, "selector": {NAME_LABEL: name}, "type": "ClusterIP"}
    manifest = build_simulated(
        "v1", "Service", name, instance.namespace, {**_build_labels(instance, "server"), NAME_LABEL: name}, spec=spec
    )
    return instance.add_owner(manifest)


def build_route(instance: ArgoCDInstance) -> Manifest:
    name = f"{instance.name}-server"
    labels = {**_build_labels(instance, "server"), NAME_LABEL: name}
    spec = {
        "host": instance.host or f"{name}.{DEFAULT_DOMAIN}",
        "port": {"targetPort": "https"},
        "tls": {"termination": "reencrypt", "insecureEdgeTerminationPolicy": "Redirect"},
        "to": {"kind": "Service", "name": name, "weight": 100},
        "wildcardPolicy": "None",
    }
    return instance.add_owner(
        build_simulated("route.openshift.io/v1", "Route", name, instance.namespace, labels, spec=spec)
    )


def _build_controller_env(spec: Mapping[str, Any]) -> dict[str, str]:
    """argo: appSync sets the reconciliation interval on the application controller, in whole seconds."""
    interval = str((spec.get("controller") or {}).get("appSync") or "")
    parts = _DURATION_PATTERN.findall(interval)
    if not parts or "".join(map("".join, parts)) != interval:
        return {}
    seconds = sum(float(number) * _SECONDS_PER_UNIT[unit] for number, unit in parts)
    return {RECONCILIATION_TIMEOUT_VARIABLE: f"{int(seconds)}s"}


def _build_labels(instance: ArgoCDInstance, component: str) -> dict[str, str]:
    return {MANAGED_BY_LABEL: instance.name, PART_OF: "argocd", COMPONENT_LABEL: component}
