"""Applies Applications from files and reports their status in Argo CD.

In: a cluster and manifests. Out: progress messages. Never: prints; writes an Application that is unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from argosy.errors import ClusterError, Conflict, UserError
from argosy.features.setup.delivery import desired
from argosy.features.setup.delivery.plan import Verb
from argosy.features.setup.openshift import found, url
from argosy.gitops.application.url_credentials import PLACEHOLDER
from argosy.gitops.coexistence.application_refresh import applications, is_status_of_its_sources, table_of
from argosy.gitops.coexistence.argocd_settings import APPLICATION, PLAIN_NAMESPACE, SETTINGS, USUAL, NotInstalled
from argosy.gitops.coexistence.step_messages import Tell, banner
from argosy.kube.client import Cluster, ClusterReader
from argosy.kube.client.whoami import whoami
from argosy.kube.controller.wait import Named, until_all
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.patch.change_summary import replacement

LOOKING: Final = 10.0  # seconds to wait until Argo CD has compared the changed Applications
FILES: Final = ("dev-application.yaml", "staging-application.yaml", "production-application.yaml")
WORDS: Final = {Verb.CREATE: "created", Verb.UPDATE: "updated", Verb.UNCHANGED: "unchanged"}


async def apply_applications(cluster: Cluster, wanted: Sequence[Manifest], tell: Tell) -> None:
    """Apply the Applications and report their status; safe to repeat."""
    for line in banner("Applying Argo CD Applications"):
        tell(line)
    tell("\nStep 1: Checking the login...")
    user = await whoami(cluster)
    tell(f"✓ Logged in{f' as {user}' if user else ''}")
    namespaces = list(dict.fromkeys(key_of(each).namespace for each in wanted))
    tell("\nStep 2: Checking that Argo CD is there...")
    for name in namespaces:
        await _check_namespace(cluster, name)
        tell(f"✓ Namespace {name} exists")
    tell("\nStep 3: Applying the Applications...")
    for manifest in wanted:
        tell(f"✓ Application {key_of(manifest).name} {WORDS[await apply_application(cluster, manifest)]}")
    seen = [await _is_looked_at(cluster, wanted, name) for name in namespaces]
    if left := _with_placeholder(wanted):
        tell(f"⚠ {', '.join(left)}: repoURL is still the placeholder {PLACEHOLDER}")
        tell("  Replace it with the URL of your repository, and run this again")
    tell("")
    for line in banner("Current Application Status:"):
        tell(line)
    for name in namespaces:
        there = {key_of(each): each for each in await applications(cluster, name)}
        tell(table_of([there[key] for each in wanted if (key := key_of(each)) in there]))
        tell(f"\nURL: {await _url(cluster, name)}")
    if not all(seen):
        tell("⚠ The table is outdated: the new sources are not compared yet; check that a controller runs")


async def _is_looked_at(cluster: ClusterReader, wanted: Sequence[Manifest], namespace: str) -> bool:
    """Wait until the status of each Application matches its current sources; new Applications have no status yet."""
    names = [key_of(each).name for each in wanted if key_of(each).namespace == namespace]

    def is_new(live: Named) -> bool:
        return all(is_status_of_its_sources(live[name]) for name in names if name in live)

    return await until_all(cluster, APPLICATION, namespace, is_new, LOOKING)


async def _check_namespace(cluster: ClusterReader, name: str) -> None:
    if await cluster.get(ResourceKey(*desired.NAMESPACE, "", name)) is None:
        advice = "install Argo CD, then run: argosy setup argocd --apps DIR"
        raise NotInstalled(f"namespace {name} does not exist; {advice}")


async def apply_application(cluster: Cluster, manifest: Manifest) -> Verb:
    """Create the Application or replace its spec; other labels and annotations stay."""
    key = key_of(manifest)
    try:
        live = await cluster.get(key)
        if live is None:
            await cluster.create(manifest)
            return Verb.CREATE
        patch = replacement(live, manifest, "spec")
        if patch is None:
            return Verb.UNCHANGED
        metadata = {**(patch.get("metadata") or {}), "resourceVersion": live["metadata"]["resourceVersion"]}
        await cluster.patch(key, {**patch, "metadata": metadata})
        return Verb.UPDATE
    except Conflict as error:
        raise UserError("was changed in the meantime; run the command again", where=str(key)) from error
    except ClusterError as error:
        if error.code == 404:
            what = "this cluster has no kind Application"
            raise NotInstalled(f"{what}; install Argo CD, or log in to the cluster that has it") from error
        raise


async def _url(cluster: ClusterReader, namespace: str) -> str:
    server = f"{namespace if namespace == USUAL else PLAIN_NAMESPACE}-server"
    if address := await url(cluster, namespace, server):
        return address
    settings = await found(cluster, ResourceKey("", "ConfigMap", namespace, SETTINGS)) or {}
    data: dict[str, Any] = settings.get("data") or {}
    return data.get("url") or f"kubectl -n {namespace} port-forward svc/{server} 8080:443, then https://localhost:8080"


def check_application(manifest: Manifest, where: str) -> Manifest:
    key = key_of(manifest)
    if key.group_kind != APPLICATION:
        raise UserError(f"contains {key.kind} {key.name}, not an Application; move it elsewhere", where=where)
    if not key.namespace:
        raise UserError(f"Application {key.name} has no metadata.namespace; add the namespace of Argo CD", where=where)
    return manifest


def destinations(wanted: Sequence[Manifest]) -> tuple[str, ...]:
    """List the namespaces of this cluster that the Applications deploy to, in order."""
    return tuple(dict.fromkeys(place for each in wanted if (place := desired.destination(each))))


def _with_placeholder(wanted: Sequence[Manifest]) -> list[str]:
    sources = ((key_of(each).name, (each.get("spec") or {}).get("source") or {}) for each in wanted)
    return [name for name, source in sources if source.get("repoURL") == PLACEHOLDER]
