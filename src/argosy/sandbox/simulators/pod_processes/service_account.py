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
from argosy.isolation.program import PATH, python_command
from argosy.kube.client import Cluster
from argosy.kube.client.kubeconfig import load_kubeconfig
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, dump
from argosy.sandbox.simulators.pod_processes.settings import NotYet
from argosy.sandbox.simulators.pod_processes.volumes import give, own

MOUNTED: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
SECONDS: Final = 24 * 3600
TOOLS: Final = ("oc", "kubectl")


@dataclass(frozen=True)
class Account:
    env: dict[str, str]
    readable: tuple[Path, ...]
    extras: tuple[tuple[str, str, bool], ...] = ()
    ports: tuple[int, ...] = ()


def put_tools(folder: Path) -> Path:
    """Write wrapper scripts for `oc` and `kubectl`; they call a real kubectl if there is one."""
    give(folder)
    for name in TOOLS:
        command = " ".join(map(shlex.quote, python_command("argosy", name)))
        (folder / name).write_text(f'#!/bin/sh\n# made by argosy\nexec {command} "$@"\n')
        own(folder / name, 0o700)
    return folder


async def account_of(pod: Manifest, folder: Path, cluster: Cluster, kubeconfig: Path) -> Account:
    """Write the access files into the Pod's own folder."""
    tools = put_tools(folder / "bin")
    env = {"PATH": f"{tools}:{PATH}"}
    spec, namespace = pod["spec"], pod["metadata"]["namespace"]
    if spec.get("automountServiceAccountToken") is False:
        return Account(env, (tools,))
    key = ResourceKey("", "ServiceAccount", namespace, str(spec.get("serviceAccountName") or "default"))
    token = await _token(key, cluster)
    leads = load_kubeconfig([kubeconfig])
    place = give(folder / "account")
    user = {"name": key.name, "user": {"tokenFile": str(place / "token")}}
    server = {"server": leads.server, "certificate-authority": str(place / "ca.crt")}
    context = {"cluster": "sandbox", "user": key.name, "namespace": namespace}
    document = {
        "apiVersion": "v1", "kind": "Config", "clusters": [{"name": "sandbox", "cluster": server}], "users": [user],
        "contexts": [{"name": "sandbox", "context": context}], "current-context": "sandbox",
    }  # fmt: skip
    written = {"token": token, "ca.crt": leads.ca_data.decode(), "namespace": namespace, "config": dump(document)}
    for name, text in written.items():
        (place / name).write_text(text)
        own(place / name, 0o600)
    address = urlsplit(leads.server)
    port = address.port or 443
    env |= {
        "KUBECONFIG": str(place / "config"), "KUBERNETES_SERVICE_HOST": address.hostname or "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(port),
    }  # fmt: skip
    return Account(env, (tools, place), ((str(place), MOUNTED, True),), (port,))


async def _token(key: ResourceKey, cluster: Cluster) -> str:
    request = {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "metadata": {"namespace": key.namespace, "name": key.name}, "spec": {"expirationSeconds": SECONDS},
    }  # fmt: skip
    try:
        return str((await cluster.create(request, subresource_of=key))["status"]["token"])
    except ClusterError as error:
        raise NotYet(f"error looking up service account {key.namespace}/{key.name}: {error.message}") from error
