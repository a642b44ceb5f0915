"""Secrets with the admin credentials of a Gitea that its operator installed.

In: a cluster and a namespace. Out: progress messages. Never: prints a password; guesses missing credentials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from argosy.features.setup.delivery import desired
from argosy.features.setup.openshift import found
from argosy.gitops.coexistence.step_messages import Tell
from argosy.kube.client import Cluster
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.patch.change_summary import update

GITEA: Final = ResourceKey("pfe.rhpds.com", "Gitea", "gitea", "gitea-with-admin")
# Secret types by name: the first Secret is for external-secrets, the second for Git clients
SECRETS: Final = {"gitea-credentials-source": "Opaque", "git-credentials-source": "kubernetes.io/basic-auth"}


@dataclass(frozen=True)
class Credentials:
    username: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.username!r})"


async def write_credentials(cluster: Cluster, namespace: str, tell: Tell) -> None:
    gitea = await found(cluster, GITEA)
    if gitea is None:
        tell(f"- skipped: there is no {GITEA.kind} {GITEA.name} in namespace {GITEA.namespace}")
        return
    credentials = credentials_of(gitea)
    if isinstance(credentials, str):
        tell(f"- skipped: {credentials}")
        return
    for name, kind in SECRETS.items():
        word = await _write(cluster, secret(name, namespace, kind, credentials))
        tell(f"✓ Secret {name} in {namespace} {word}")


def credentials_of(gitea: Manifest) -> Credentials | str:
    """Read the admin credentials, or return why they are missing."""
    username = (gitea.get("spec") or {}).get("giteaAdminUser")
    password = (gitea.get("status") or {}).get("adminPassword")
    which = f"{GITEA.kind} {GITEA.name}"
    if not username:
        return f"{which} has no spec.giteaAdminUser"
    if not password:
        return f"{which} has no status.adminPassword yet; run the command again when it is installed"
    return Credentials(str(username), str(password))


def secret(name: str, namespace: str, kind: str, credentials: Credentials) -> Manifest:
    labels = {"app.kubernetes.io/component": "external-secrets", desired.MANAGED_BY: desired.MARK}
    data: Mapping[str, str] = {"username": credentials.username, "password": credentials.password}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "type": kind,
        "data": desired.encoded(data),
    }


async def _write(cluster: Cluster, wanted: Manifest) -> str:
    key = key_of(wanted)
    live = await cluster.get(key)
    if live is None:
        await cluster.create(wanted)
        return "created"
    patch = update(live, {"data": wanted["data"]})
    if patch is None:
        return "unchanged"
    await cluster.patch(key, patch)
    return "updated"
