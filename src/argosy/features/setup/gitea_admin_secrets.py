"""Secrets with the admin credentials of a Gitea that its operator installed.

In: a cluster and a namespace. Out: progress messages. Never: prints a password; guesses missing credentials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from argosy.features.setup.delivery import desired_manifests
from argosy.features.setup.openshift_gitops_preparation import find_object
from argosy.gitops.coexistence.multi_step_command_output import PrintStep
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from argosy.kube.patch.live_to_desired_merge_patch import build_update_patch
from argosy.kube.resource_key import ResourceKey

GITEA_KEY: Final = ResourceKey("pfe.rhpds.com", "Gitea", "gitea", "gitea-with-admin")
# Secret types by name: the first Secret is for external-secrets, the second for Git clients
SECRET_TYPES: Final = {"gitea-credentials-source": "Opaque", "git-credentials-source": "kubernetes.io/basic-auth"}


@dataclass(frozen=True)
class GiteaCredentials:
    username: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.username!r})"


async def write_credentials(cluster: Cluster, namespace: str, print_step: PrintStep) -> None:
    gitea = await find_object(cluster, GITEA_KEY)
    if gitea is None:
        print_step(f"- skipped: there is no {GITEA_KEY.kind} {GITEA_KEY.name} in namespace {GITEA_KEY.namespace}")
        return
    credentials = read_credentials(gitea)
    if isinstance(credentials, str):
        print_step(f"- skipped: {credentials}")
        return
    for name, kind in SECRET_TYPES.items():
        result = await _write_secret(cluster, build_secret(name, namespace, kind, credentials))
        print_step(f"✓ Secret {name} in {namespace} {result}")


def read_credentials(gitea: Manifest) -> GiteaCredentials | str:
    """Read the admin credentials, or return why they are missing."""
    username = (gitea.get("spec") or {}).get("giteaAdminUser")
    password = (gitea.get("status") or {}).get("adminPassword")
    gitea_name = f"{GITEA_KEY.kind} {GITEA_KEY.name}"
    if not username:
        return f"{gitea_name} has no spec.giteaAdminUser"
    if not password:
        return f"{gitea_name} has no status.adminPassword yet; run the command again when it is installed"
    return GiteaCredentials(str(username), str(password))


def build_secret(name: str, namespace: str, kind: str, credentials: GiteaCredentials) -> Manifest:
    labels = {
        "app.kubernetes.io/component": "external-secrets",
        desired_manifests.MANAGED_BY: desired_manifests.MANAGED_BY_SETUP,
    }
    data: Mapping[str, str] = {"username": credentials.username, "password": credentials.password}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "type": kind,
        "data": desired_manifests.encode_secret_data(data),
    }


async def _write_secret(cluster: Cluster, desired_secret: Manifest) -> str:
    key = key_of(desired_secret)
    live = await cluster.get(key)
    if live is None:
        await cluster.create(desired_secret)
        return "created"
    patch = build_update_patch(live, {"data": desired_secret["data"]})
    if patch is None:
        return "unchanged"
    await cluster.patch(key, patch)
    return "updated"
