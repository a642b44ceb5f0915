"""Applies Applications from files and reports their status in Argo CD.

In: a cluster and manifests. Out: progress messages. Never: prints; writes an Application that is unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from argosy.errors import ClusterError, Conflict, UserError
from argosy.features.setup.delivery import desired_manifests
from argosy.features.setup.delivery.cluster_setup_plan import ChangeVerb
from argosy.features.setup.openshift_gitops_preparation import find_argocd_url, find_object
from argosy.gitops.application.url_credential_detection import PLACEHOLDER_URL
from argosy.gitops.coexistence.application_refresh import build_status_table, is_status_current, list_applications
from argosy.gitops.coexistence.argocd_settings_location import (
    DEFAULT_NAMESPACE,
    OPENSHIFT_GITOPS,
    SETTINGS_CONFIG_MAP_NAME,
    ArgoCDNotFound,
)
from argosy.gitops.coexistence.multi_step_command_output import PrintStep, build_banner
from argosy.kube.client import Cluster, ClusterReader
from argosy.kube.client.whoami import whoami
from argosy.kube.controller.object_condition_wait import ManifestsByName, wait_for_objects
from argosy.kube.objects import Manifest, key_of
from argosy.kube.patch.live_to_desired_merge_patch import build_replacement_patch
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, CONFIG_MAP, NAMESPACE

STATUS_WAIT_SECONDS: Final = 10.0  # seconds to wait until Argo CD has compared the changed Applications
APPLICATION_FILE_NAMES: Final = ("dev-application.yaml", "staging-application.yaml", "production-application.yaml")
VERB_PAST_TENSES: Final = {
    ChangeVerb.CREATE: "created",
    ChangeVerb.UPDATE: "updated",
    ChangeVerb.UNCHANGED: "unchanged",
}


async def apply_applications(cluster: Cluster, manifests: Sequence[Manifest], print_step: PrintStep) -> None:
    """Apply the Applications and report their status; safe to repeat."""
    for line in build_banner("Applying Argo CD Applications"):
        print_step(line)
    print_step("\nStep 1: Checking the login...")
    user = await whoami(cluster)
    print_step(f"✓ Logged in{f' as {user}' if user else ''}")
    namespaces = list(dict.fromkeys(key_of(item).namespace for item in manifests))
    print_step("\nStep 2: Checking that Argo CD is there...")
    for name in namespaces:
        await _check_namespace(cluster, name)
        print_step(f"✓ Namespace {name} exists")
    print_step("\nStep 3: Applying the Applications...")
    for manifest in manifests:
        print_step(
            f"✓ Application {key_of(manifest).name} {VERB_PAST_TENSES[await apply_application(cluster, manifest)]}"
        )
    are_compared = [await _wait_until_compared(cluster, manifests, name) for name in namespaces]
    if placeholder_names := _list_names_with_placeholder_url(manifests):
        print_step(f"⚠ {', '.join(placeholder_names)}: repoURL is still the placeholder {PLACEHOLDER_URL}")
        print_step("  Replace it with the URL of your repository, and run this again")
    print_step("")
    for line in build_banner("Current Application Status:"):
        print_step(line)
    for name in namespaces:
        live_by_key = {key_of(item): item for item in await list_applications(cluster, name)}
        print_step(build_status_table([live_by_key[key] for item in manifests if (key := key_of(item)) in live_by_key]))
        print_step(f"\nURL: {await _find_argocd_address(cluster, name)}")
    if not all(are_compared):
        print_step("⚠ The table is outdated: the new sources are not compared yet; check that a controller runs")


async def _wait_until_compared(cluster: ClusterReader, manifests: Sequence[Manifest], namespace: str) -> bool:
    """Wait until the status of each Application matches its current sources; new Applications have no status yet."""
    names = [key_of(manifest).name for manifest in manifests if key_of(manifest).namespace == namespace]

    def is_new(live: ManifestsByName) -> bool:
        return all(is_status_current(live[name]) for name in names if name in live)

    return await wait_for_objects(cluster, APPLICATION, namespace, is_new, STATUS_WAIT_SECONDS)


async def _check_namespace(cluster: ClusterReader, name: str) -> None:
    if await cluster.get(ResourceKey(*NAMESPACE, "", name)) is None:
        advice = "install Argo CD, then run: argosy setup argocd --apps DIR"
        raise ArgoCDNotFound(f"namespace {name} does not exist; {advice}")


async def apply_application(cluster: Cluster, manifest: Manifest) -> ChangeVerb:
    """Create the Application or replace its spec; other labels and annotations stay."""
    key = key_of(manifest)
    try:
        live = await cluster.get(key)
        if live is None:
            await cluster.create(manifest)
            return ChangeVerb.CREATE
        patch = build_replacement_patch(live, manifest, "spec")
        if patch is None:
            return ChangeVerb.UNCHANGED
        metadata = {**(patch.get("metadata") or {}), "resourceVersion": live["metadata"]["resourceVersion"]}
        await cluster.patch(key, {**patch, "metadata": metadata})
        return ChangeVerb.UPDATE
    except Conflict as error:
        raise UserError("was changed in the meantime; run the command again", where=str(key)) from error
    except ClusterError as error:
        if error.code == 404:
            what = "this cluster has no kind Application"
            raise ArgoCDNotFound(f"{what}; install Argo CD, or log in to the cluster that has it") from error
        raise


async def _find_argocd_address(cluster: ClusterReader, namespace: str) -> str:
    server = f"{namespace if namespace == OPENSHIFT_GITOPS else DEFAULT_NAMESPACE}-server"
    if address := await find_argocd_url(cluster, namespace, server):
        return address
    settings = await find_object(cluster, ResourceKey(*CONFIG_MAP, namespace, SETTINGS_CONFIG_MAP_NAME)) or {}
    data: dict[str, Any] = settings.get("data") or {}
    return data.get("url") or f"kubectl -n {namespace} port-forward svc/{server} 8080:443, then https://localhost:8080"


def check_application(manifest: Manifest, where: str) -> Manifest:
    key = key_of(manifest)
    if key.group_kind != APPLICATION:
        raise UserError(f"contains {key.kind} {key.name}, not an Application; move it elsewhere", where=where)
    if not key.namespace:
        raise UserError(f"Application {key.name} has no metadata.namespace; add the namespace of Argo CD", where=where)
    return manifest


def list_destination_namespaces(manifests: Sequence[Manifest]) -> tuple[str, ...]:
    """List the namespaces of this cluster that the Applications deploy to, in order."""
    return tuple(
        dict.fromkeys(
            namespace for manifest in manifests if (namespace := desired_manifests.read_destination_namespace(manifest))
        )
    )


def _list_names_with_placeholder_url(manifests: Sequence[Manifest]) -> list[str]:
    sources = ((key_of(manifest).name, (manifest.get("spec") or {}).get("source") or {}) for manifest in manifests)
    return [name for name, source in sources if source.get("repoURL") == PLACEHOLDER_URL]
