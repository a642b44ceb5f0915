"""Builds the ConfigMaps and Secrets of one ArgoCD resource, and what the operator does with those that exist.

In: the live resource, live objects. Out: new objects, or the content that an existing one gets. Never: calls a cluster;
makes argocd-secret and certificates, because no Argo CD runs that would use them.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.annotations import PART_OF
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.openshift_gitops import config_maps, kinds_and_labels
from argosy.sandbox.simulators.openshift_gitops.argocd_instance_objects import ArgoCDInstance
from argosy.sandbox.simulators.openshift_gitops.initial_objects import GITOPS_NAMESPACE
from argosy.sandbox.simulators.openshift_gitops.kinds_and_labels import build_simulated

# argo: an ArgoCD in these namespaces may deliver to all namespaces
CLUSTER_WIDE_NAMESPACES: Final = (GITOPS_NAMESPACE,)
# argo: of these ConfigMaps, the operator restores the owner reference
OWNER_RESTORED: Final = (kinds_and_labels.SETTINGS_CONFIG_MAP, kinds_and_labels.PARAMETERS_CONFIG_MAP)
SECRET_TYPE_LABEL: Final = "argocd.argoproj.io/secret-type"
IN_CLUSTER_ADDRESS: Final = "https://kubernetes.default.svc"
REDIS_PASSWORD_BYTES: Final = 12  # 16 characters
ADMIN_PASSWORD_BYTES: Final = 24  # 32 characters

ConfigMapData = dict[str, str]


@dataclass(frozen=True)
class OwnedConfigMap:
    """A ConfigMap of an installation. `correct` returns the data that an existing one gets, None to leave it alone."""

    name: str
    initial_data: ConfigMapData
    correct: Callable[[Mapping[str, str]], ConfigMapData] | None

    @property
    def restores_owner(self) -> bool:
        return self.name in OWNER_RESTORED


def build_config_data(instance: ArgoCDInstance) -> dict[str, ConfigMapData]:
    """Build the complete data of argocd-cm and the first data of argocd-rbac-cm, by name."""
    url = f"https://{instance.url_host}"
    user = f"system:serviceaccount:{instance.namespace}:{instance.service_account_name('dex-server')}"
    return {
        kinds_and_labels.SETTINGS_CONFIG_MAP: config_maps.build_settings_data(instance.spec, url=url, account=user),
        kinds_and_labels.POLICY_CONFIG_MAP: config_maps.build_policy_data(instance.spec),
    }


def list_config_maps(instance: ArgoCDInstance) -> Sequence[OwnedConfigMap]:
    spec, data = instance.spec, build_config_data(instance)
    settings, parameters = data[kinds_and_labels.SETTINGS_CONFIG_MAP], config_maps.build_command_parameters(spec)
    return (
        OwnedConfigMap(kinds_and_labels.SETTINGS_CONFIG_MAP, settings, lambda _: settings),
        OwnedConfigMap(
            kinds_and_labels.POLICY_CONFIG_MAP,
            data[kinds_and_labels.POLICY_CONFIG_MAP],
            lambda live: {**live, **config_maps.read_policy_settings(spec)},
        ),
        # argo: only created: users and Argo CD itself write into them
        OwnedConfigMap(kinds_and_labels.KNOWN_HOSTS_CONFIG_MAP, config_maps.build_known_hosts(spec), None),
        OwnedConfigMap(kinds_and_labels.CERTIFICATES_CONFIG_MAP, config_maps.build_certificates(spec), None),
        OwnedConfigMap(kinds_and_labels.PARAMETERS_CONFIG_MAP, parameters, lambda _: parameters),
        OwnedConfigMap(kinds_and_labels.GPG_KEYS_CONFIG_MAP, {}, None),
    )


def build_config_map(instance: ArgoCDInstance, config_map: OwnedConfigMap) -> Manifest:
    data = {"data": config_map.initial_data} if config_map.initial_data else {}
    labels = build_labels(instance, config_map.name)
    return instance.add_owner(build_simulated("v1", "ConfigMap", config_map.name, instance.namespace, labels, **data))


def build_secrets(instance: ArgoCDInstance) -> Sequence[Manifest]:
    """Build the Secrets with new passwords; they are only created, never replaced."""
    built = [
        _build_secret(instance, "cluster", {"admin.password": secrets.token_urlsafe(ADMIN_PASSWORD_BYTES)}),
        _build_secret(
            instance,
            "redis-initial-password",
            {"admin.password": secrets.token_urlsafe(REDIS_PASSWORD_BYTES), "immutable": "true"},
        ),
    ]
    if instance.namespace not in CLUSTER_WIDE_NAMESPACES:
        cluster = {
            "config": json.dumps({"tlsClientConfig": {"insecure": False}}, separators=(",", ":")),
            "name": "in-cluster",
            "namespaces": instance.namespace,
            "server": IN_CLUSTER_ADDRESS,
        }
        secret = _build_secret(instance, "default-cluster-config", cluster)
        secret["metadata"]["labels"][SECRET_TYPE_LABEL] = "cluster"
        built.append(secret)
    return built


def correct_secret(live: Manifest, desired: Manifest) -> Manifest | None:
    """Return a Secret with the namespace of the installation; None if it needs no change.

    argo: namespaces that somebody added to the Secret of the cluster stay.
    """
    if "namespaces" not in desired["stringData"] or live["metadata"]["name"] != desired["metadata"]["name"]:
        return None
    text = base64.b64decode((live.get("data") or {}).get("namespaces") or "").decode(errors="replace")
    namespaces = ",".join(sorted({name.strip() for name in text.split(",")} | {desired["stringData"]["namespaces"]}))
    if namespaces == text:
        return None
    encoded = base64.b64encode(namespaces.encode()).decode()
    return {**live, "data": {**(live.get("data") or {}), "namespaces": encoded}}


def _build_secret(instance: ArgoCDInstance, suffix: str, data: Mapping[str, Any]) -> Manifest:
    name = f"{instance.name}-{suffix}"
    labels = build_labels(instance, name)
    return instance.add_owner(
        build_simulated("v1", "Secret", name, instance.namespace, labels, type="Opaque", stringData=dict(data))
    )


def build_labels(instance: ArgoCDInstance, name: str) -> dict[str, str]:
    """Build the labels of a ConfigMap or a Secret."""
    return {
        kinds_and_labels.MANAGED_BY_LABEL: instance.name,
        kinds_and_labels.NAME_LABEL: name,
        PART_OF: "argocd",
        kinds_and_labels.TRACKED_BY_LABEL: "argocd",
    }
