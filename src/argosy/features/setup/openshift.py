"""Prepares a cluster with OpenShift GitOps: namespaces, Argo CD's permissions in them, and login information.

In: a cluster and namespace names. Out: step messages. Never: prints; reveals the password unless requested; changes a
namespace that is not listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import ClusterError, Conflict
from argosy.features.setup.delivery import desired
from argosy.gitops.coexistence.argocd_settings import USUAL, Installation, NotInstalled
from argosy.gitops.coexistence.step_messages import Tell, banner
from argosy.kube.client import Cluster, ClusterReader
from argosy.kube.client.whoami import whoami
from argosy.kube.controller.wait import until
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.patch.change_summary import update

SUBSCRIPTION: Final = GroupKind("operators.coreos.com", "Subscription")
ROUTE: Final = GroupKind("route.openshift.io", "Route")
DEPLOYMENT: Final = GroupKind("apps", "Deployment")
OPERATOR: Final = "openshift-gitops-operator"
PLACES: Final = ("openshift-operators", "openshift-gitops-operator")
SERVER: Final = "openshift-gitops-server"
ACCOUNT: Final = ResourceKey(*desired.SECRET, USUAL, "openshift-gitops-cluster")
FIELD: Final = "admin.password"
NAMESPACE_SECONDS: Final = 60.0
SERVER_SECONDS: Final = 300.0


class NotReady(NotInstalled):
    """Raised if Argo CD did not become ready in time."""


@dataclass(frozen=True)
class Preparation:
    namespaces: tuple[str, ...]
    shows_password: bool = False
    timeout: float = SERVER_SECONDS


async def prepare(cluster: Cluster, wanted: Preparation, tell: Tell) -> None:
    """Run all steps; safe to repeat, because existing objects stay."""
    for line in banner("Setting up Argo CD"):
        tell(line)
    await _check_login(cluster, tell)
    await _check_operator(cluster, tell)
    await _await_server(cluster, wanted.timeout, tell)
    tell("\nStep 4: Creating the namespaces...")
    for name in wanted.namespaces:
        tell(await _namespace(cluster, name))
    tell("\nStep 5: Letting Argo CD administer them...")
    for name in wanted.namespaces:
        tell(await _binding(cluster, name))
    await _say_where(cluster, tell, shows_password=wanted.shows_password)


async def _check_login(cluster: Cluster, tell: Tell) -> None:
    tell("\nStep 1: Checking the login...")
    user = await whoami(cluster)
    tell(f"✓ Logged in{f' as {user}' if user else ''}")


async def _check_operator(cluster: ClusterReader, tell: Tell) -> None:
    tell("\nStep 2: Checking that the OpenShift GitOps operator is installed...")
    for place in PLACES:
        if await found(cluster, ResourceKey(*SUBSCRIPTION, place, OPERATOR)):
            tell(f"✓ Subscription {OPERATOR} found in namespace {place}")
            return
    what = f"the OpenShift GitOps operator is not installed: no Subscription {OPERATOR} in {' or '.join(PLACES)}"
    raise NotInstalled(f"{what}; install it from OperatorHub, or use argosy setup apply for an Argo CD without it")


async def _await_server(cluster: ClusterReader, timeout: float, tell: Tell) -> None:
    seconds = min(NAMESPACE_SECONDS, timeout)
    tell(f"\nStep 3: Waiting for Argo CD (namespace at most {seconds:g} s, server at most {timeout:g} s)...")
    key = ResourceKey(*desired.NAMESPACE, "", USUAL)
    advice = "look at the operator with: kubectl get pods -n openshift-gitops-operator"
    if not await until(cluster, key, lambda live: live is not None, seconds):
        raise NotReady(f"namespace {USUAL} did not appear within {seconds:g} s; {advice}")
    tell(f"✓ Namespace {USUAL} exists")
    if not await until(cluster, ResourceKey(*DEPLOYMENT, USUAL, SERVER), is_available, timeout):
        raise NotReady(f"Deployment {SERVER} was not available within {timeout:g} s; {advice}")
    tell(f"✓ Deployment {SERVER} is available")


def is_available(deployment: Manifest | None) -> bool:
    conditions: Sequence[Any] = ((deployment or {}).get("status") or {}).get("conditions") or ()
    return any((each.get("type"), each.get("status")) == ("Available", "True") for each in conditions)


async def _namespace(cluster: Cluster, name: str) -> str:
    wanted = desired.namespace(name)
    key = ResourceKey(*desired.NAMESPACE, "", name)
    live = await cluster.get(key)
    if live is None:
        await cluster.create(wanted)
        return f"✓ Namespace {name} created"
    patch = update(live, {"metadata": {"labels": desired.DASHBOARD}})
    if patch is None:
        return f"✓ Namespace {name} is already there"
    await cluster.patch(key, patch)
    return f"✓ Namespace {name} is already there; its labels were refreshed"


async def _binding(cluster: Cluster, place: str) -> str:
    wanted = desired.role_binding(place, Installation(USUAL, USUAL))
    live = await cluster.get(ResourceKey(*desired.ROLE_BINDING, place, desired.BINDING))
    if live is None:
        try:
            await cluster.create(wanted)
            return f"✓ RoleBinding {desired.BINDING} created in {place}"
        except Conflict:
            return f"✓ RoleBinding {desired.BINDING} in {place} was created in the meantime, skipped"
    subject = wanted["subjects"][0]
    if any(subject.items() <= each.items() for each in live.get("subjects") or ()):
        return f"✓ RoleBinding {desired.BINDING} in {place} is already there, skipped"
    what = f"⚠ RoleBinding {desired.BINDING} in {place} is already there, but not for Argo CD's account, skipped"
    command = f"kubectl -n {place} create rolebinding argocd --clusterrole=admin {_as_flag(subject)}"
    return f"{what}\n  To let Argo CD in: {command}"


def _as_flag(subject: dict[str, str]) -> str:
    return f"--serviceaccount={subject['namespace']}:{subject['name']}"


async def _say_where(cluster: ClusterReader, tell: Tell, *, shows_password: bool) -> None:
    tell("")
    for line in banner("Argo CD is ready"):
        tell(line)
    tell(f"URL:      {await url(cluster) or 'none: there is no Route ' + SERVER}")
    tell("Username: admin")
    if shows_password and (password := await _password(cluster)):
        tell(f"Password: {password}")
        return
    key = FIELD.replace(".", "\\.")
    command = f"kubectl -n {ACCOUNT.namespace} get secret {ACCOUNT.name} -o jsonpath='{{.data.{key}}}' | base64 -d"
    tell(f"Password: {command}")


async def url(cluster: ClusterReader, namespace: str = USUAL, name: str = SERVER) -> str:
    """Return the URL of Argo CD; empty if it has no Route."""
    route = await found(cluster, ResourceKey(*ROUTE, namespace, name))
    host = ((route or {}).get("spec") or {}).get("host")
    return f"https://{host}" if host else ""


async def _password(cluster: ClusterReader) -> str:
    secret = await found(cluster, ACCOUNT)
    return desired.decoded(secret).get(FIELD, "") if secret else ""


async def found(cluster: ClusterReader, key: ResourceKey) -> Manifest | None:
    """Get an object; None if it does not exist or its kind is not served."""
    try:
        return await cluster.get(key)
    except ClusterError as error:
        if error.code == 404:
            return None
        raise
