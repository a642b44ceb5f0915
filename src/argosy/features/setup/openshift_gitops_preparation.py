"""Prepares a cluster with OpenShift GitOps: namespaces, Argo CD's permissions in them, and login information.

In: a cluster and namespace names. Out: step messages. Never: prints; reveals the password unless requested; changes a
namespace that is not listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import ClusterError, Conflict
from argosy.features.setup.delivery import desired_manifests
from argosy.gitops.coexistence.argocd_settings_location import OPENSHIFT_GITOPS, ArgoCDInstallation, ArgoCDNotFound
from argosy.gitops.coexistence.multi_step_command_output import PrintStep, build_banner
from argosy.kube.client import Cluster, ClusterReader
from argosy.kube.client.whoami import whoami
from argosy.kube.controller.object_condition_wait import wait_for_object
from argosy.kube.objects import Manifest
from argosy.kube.patch.live_to_desired_merge_patch import build_update_patch
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import DEPLOYMENT, NAMESPACE, ROUTE, SECRET, SUBSCRIPTION

OPERATOR_NAME: Final = "openshift-gitops-operator"
OPERATOR_NAMESPACES: Final = ("openshift-operators", "openshift-gitops-operator")
SERVER_DEPLOYMENT: Final = "openshift-gitops-server"
ADMIN_SECRET_KEY: Final = ResourceKey(*SECRET, OPENSHIFT_GITOPS, "openshift-gitops-cluster")
PASSWORD_FIELD: Final = "admin.password"
NAMESPACE_TIMEOUT_SECONDS: Final = 60.0
SERVER_TIMEOUT_SECONDS: Final = 300.0


class ArgoCDNotReady(ArgoCDNotFound):
    """Raised if Argo CD did not become ready in time."""


@dataclass(frozen=True)
class PreparationOptions:
    namespaces: tuple[str, ...]
    shows_password: bool = False
    timeout_seconds: float = SERVER_TIMEOUT_SECONDS


async def prepare_cluster(cluster: Cluster, options: PreparationOptions, print_step: PrintStep) -> None:
    """Run all steps; safe to repeat, because existing objects stay."""
    for line in build_banner("Setting up Argo CD"):
        print_step(line)
    await _check_login(cluster, print_step)
    await _check_operator(cluster, print_step)
    await _wait_for_server(cluster, options.timeout_seconds, print_step)
    print_step("\nStep 4: Creating the namespaces...")
    for name in options.namespaces:
        print_step(await _create_namespace(cluster, name))
    print_step("\nStep 5: Letting Argo CD administer them...")
    for name in options.namespaces:
        print_step(await _create_binding(cluster, name))
    await _print_login_details(cluster, print_step, shows_password=options.shows_password)


async def _check_login(cluster: Cluster, print_step: PrintStep) -> None:
    print_step("\nStep 1: Checking the login...")
    user = await whoami(cluster)
    print_step(f"✓ Logged in{f' as {user}' if user else ''}")


async def _check_operator(cluster: ClusterReader, print_step: PrintStep) -> None:
    print_step("\nStep 2: Checking that the OpenShift GitOps operator is installed...")
    for namespace in OPERATOR_NAMESPACES:
        if await find_object(cluster, ResourceKey(*SUBSCRIPTION, namespace, OPERATOR_NAME)):
            print_step(f"✓ Subscription {OPERATOR_NAME} found in namespace {namespace}")
            return
    problem = (
        f"the OpenShift GitOps operator is not installed: no Subscription {OPERATOR_NAME} in "
        f"{' or '.join(OPERATOR_NAMESPACES)}"
    )
    raise ArgoCDNotFound(f"{problem}; install it from OperatorHub, or use argosy setup apply for an Argo CD without it")


async def _wait_for_server(cluster: ClusterReader, timeout_seconds: float, print_step: PrintStep) -> None:
    seconds = min(NAMESPACE_TIMEOUT_SECONDS, timeout_seconds)
    print_step(
        f"\nStep 3: Waiting for Argo CD (namespace at most {seconds:g} s, server at most {timeout_seconds:g} s)..."
    )
    key = ResourceKey(*NAMESPACE, "", OPENSHIFT_GITOPS)
    advice = "look at the operator with: kubectl get pods -n openshift-gitops-operator"
    if not await wait_for_object(cluster, key, lambda live: live is not None, seconds):
        raise ArgoCDNotReady(f"namespace {OPENSHIFT_GITOPS} did not appear within {seconds:g} s; {advice}")
    print_step(f"✓ Namespace {OPENSHIFT_GITOPS} exists")
    if not await wait_for_object(
        cluster, ResourceKey(*DEPLOYMENT, OPENSHIFT_GITOPS, SERVER_DEPLOYMENT), is_available, timeout_seconds
    ):
        raise ArgoCDNotReady(f"Deployment {SERVER_DEPLOYMENT} was not available within {timeout_seconds:g} s; {advice}")
    print_step(f"✓ Deployment {SERVER_DEPLOYMENT} is available")


def is_available(deployment: Manifest | None) -> bool:
    conditions: Sequence[Any] = ((deployment or {}).get("status") or {}).get("conditions") or ()
    return any((condition.get("type"), condition.get("status")) == ("Available", "True") for condition in conditions)


async def _create_namespace(cluster: Cluster, name: str) -> str:
    desired_namespace = desired_manifests.build_namespace(name)
    key = ResourceKey(*NAMESPACE, "", name)
    live = await cluster.get(key)
    if live is None:
        await cluster.create(desired_namespace)
        return f"✓ Namespace {name} created"
    patch = build_update_patch(live, {"metadata": {"labels": desired_manifests.DASHBOARD_LABELS}})
    if patch is None:
        return f"✓ Namespace {name} is already there"
    await cluster.patch(key, patch)
    return f"✓ Namespace {name} is already there; its labels were refreshed"


async def _create_binding(cluster: Cluster, namespace: str) -> str:
    desired_binding = desired_manifests.build_role_binding(
        namespace, ArgoCDInstallation(OPENSHIFT_GITOPS, OPENSHIFT_GITOPS)
    )
    live = await cluster.get(ResourceKey(*desired_manifests.ROLE_BINDING, namespace, desired_manifests.BINDING_NAME))
    if live is None:
        try:
            await cluster.create(desired_binding)
            return f"✓ RoleBinding {desired_manifests.BINDING_NAME} created in {namespace}"
        except Conflict:
            return f"✓ RoleBinding {desired_manifests.BINDING_NAME} in {namespace} was created in the meantime, skipped"
    subject = desired_binding["subjects"][0]
    if any(subject.items() <= live_subject.items() for live_subject in live.get("subjects") or ()):
        return f"✓ RoleBinding {desired_manifests.BINDING_NAME} in {namespace} is already there, skipped"
    name = desired_manifests.BINDING_NAME
    warning = f"⚠ RoleBinding {name} in {namespace} is already there, but not for Argo CD's account, skipped"
    command = f"kubectl -n {namespace} create rolebinding argocd --clusterrole=admin {_render_subject_flag(subject)}"
    return f"{warning}\n  To let Argo CD in: {command}"


def _render_subject_flag(subject: dict[str, str]) -> str:
    return f"--serviceaccount={subject['namespace']}:{subject['name']}"


async def _print_login_details(cluster: ClusterReader, print_step: PrintStep, *, shows_password: bool) -> None:
    print_step("")
    for line in build_banner("Argo CD is ready"):
        print_step(line)
    print_step(f"URL:      {await find_argocd_url(cluster) or 'none: there is no Route ' + SERVER_DEPLOYMENT}")
    print_step("Username: admin")
    if shows_password and (password := await _load_password(cluster)):
        print_step(f"Password: {password}")
        return
    key = PASSWORD_FIELD.replace(".", "\\.")
    command = (
        f"kubectl -n {ADMIN_SECRET_KEY.namespace} get secret {ADMIN_SECRET_KEY.name} -o "
        f"jsonpath='{{.data.{key}}}' | base64 -d"
    )
    print_step(f"Password: {command}")


async def find_argocd_url(
    cluster: ClusterReader, namespace: str = OPENSHIFT_GITOPS, name: str = SERVER_DEPLOYMENT
) -> str:
    """Return the URL of Argo CD; empty if it has no Route."""
    route = await find_object(cluster, ResourceKey(*ROUTE, namespace, name))
    host = ((route or {}).get("spec") or {}).get("host")
    return f"https://{host}" if host else ""


async def _load_password(cluster: ClusterReader) -> str:
    secret = await find_object(cluster, ADMIN_SECRET_KEY)
    return desired_manifests.decode_secret_data(secret).get(PASSWORD_FIELD, "") if secret else ""


async def find_object(cluster: ClusterReader, key: ResourceKey) -> Manifest | None:
    """Get an object; None if it does not exist or its kind is not served."""
    try:
        return await cluster.get(key)
    except ClusterError as error:
        if error.code == 404:
            return None
        raise
