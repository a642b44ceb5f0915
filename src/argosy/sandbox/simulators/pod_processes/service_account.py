"""Gives a Pod process access to the cluster as its service account: token, kubeconfig, `oc` and `kubectl`.

In: a Pod, the cluster's own kubeconfig. Out: a folder, variables, mounts. Never: the administrator's token.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from argosy.errors import ClusterError
from argosy.isolation.untrusted_program_runner import DEFAULT_PATH, build_module_command
from argosy.kube.client import Cluster
from argosy.kube.client.kubeconfig import load_kubeconfig
from argosy.kube.objects import Manifest, dump_yaml
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import AUTHENTICATION_API_VERSION
from argosy.sandbox.simulators.pod_processes.command_and_environment import ContainerConfigError
from argosy.sandbox.simulators.pod_processes.volumes import create_folder, set_owner

MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_LIFETIME_SECONDS: Final = 24 * 3600
TOOL_NAMES: Final = ("oc", "kubectl")


@dataclass(frozen=True)
class ServiceAccountAccess:
    env: dict[str, str]
    readable_paths: tuple[Path, ...]
    extra_mounts: tuple[tuple[str, str, bool], ...] = ()
    ports: tuple[int, ...] = ()


def write_kubectl_wrappers(folder: Path) -> Path:
    """Write wrapper scripts for `oc` and `kubectl`; they call a real kubectl if there is one."""
    create_folder(folder)
    for name in TOOL_NAMES:
        command = " ".join(map(shlex.quote, build_module_command("argosy", name)))
        (folder / name).write_text(f'#!/bin/sh\n# made by argosy\nexec {command} "$@"\n')
        set_owner(folder / name, 0o700)
    return folder


async def write_service_account_files(
    pod: Manifest, pod_folder: Path, cluster: Cluster, kubeconfig: Path
) -> ServiceAccountAccess:
    """Write the access files into the Pod's own folder."""
    tools = write_kubectl_wrappers(pod_folder / "bin")
    env = {"PATH": f"{tools}:{DEFAULT_PATH}"}
    spec, namespace = pod["spec"], pod["metadata"]["namespace"]
    if spec.get("automountServiceAccountToken") is False:
        return ServiceAccountAccess(env, (tools,))
    key = ResourceKey("", "ServiceAccount", namespace, str(spec.get("serviceAccountName") or "default"))
    token = await _request_token(key, cluster)
    cluster_access = load_kubeconfig([kubeconfig])
    account_folder = create_folder(pod_folder / "account")
    user = {"name": key.name, "user": {"tokenFile": str(account_folder / "token")}}
    server = {"server": cluster_access.server, "certificate-authority": str(account_folder / "ca.crt")}
    context = {"cluster": "sandbox", "user": key.name, "namespace": namespace}
    document = {
        "apiVersion": "v1", "kind": "Config", "clusters": [{"name": "sandbox", "cluster": server}], "users": [user],
        "contexts": [{"name": "sandbox", "context": context}], "current-context": "sandbox",
    }  # fmt: skip
    texts_by_file = {
        "token": token,
        "ca.crt": cluster_access.ca_data.decode(),
        "namespace": namespace,
        "config": dump_yaml(document),
    }
    for name, text in texts_by_file.items():
        (account_folder / name).write_text(text)
        set_owner(account_folder / name, 0o600)
    address = urlsplit(cluster_access.server)
    port = address.port or 443
    env |= {
        "KUBECONFIG": str(account_folder / "config"), "KUBERNETES_SERVICE_HOST": address.hostname or "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(port),
    }  # fmt: skip
    return ServiceAccountAccess(env, (tools, account_folder), ((str(account_folder), MOUNT_PATH, True),), (port,))


async def _request_token(service_account: ResourceKey, cluster: Cluster) -> str:
    request = {
        "apiVersion": AUTHENTICATION_API_VERSION,
        "kind": "TokenRequest",
        "metadata": {"namespace": service_account.namespace, "name": service_account.name},
        "spec": {"expirationSeconds": TOKEN_LIFETIME_SECONDS},
    }
    try:
        return str((await cluster.create(request, subresource_of=service_account))["status"]["token"])
    except ClusterError as error:
        raise ContainerConfigError(
            f"error looking up service account {service_account.namespace}/{service_account.name}: {error.message}"
        ) from error
