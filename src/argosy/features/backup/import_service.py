"""Runs an import: reads the file, plans the changes, writes them.

In: a cluster, the content of a file, import options. Out: changes, applied one after another. Never: overwrites an
object that changed after planning; deletes resources that an Application manages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Final

from argosy.errors import ClusterError, Conflict, TransientError, UserError
from argosy.features.backup.file_format import is_whole, misshapen
from argosy.features.backup.import_plan import Change, Verb, Wish, missing_namespaces, planned
from argosy.features.backup.installation_objects import APPLICATION, APPLICATION_SET, PROJECT, SECRET, collected
from argosy.gitops.coexistence.argocd_detection import seen_engines
from argosy.gitops.reconciler.app_state import DEFINITION
from argosy.kube.client import Cluster, Propagation
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, read_manifests
from argosy.kube.schema.bundled_crds import definition
from argosy.kube.schema.defaults.core import secret

CUT: Final = "the file is truncated: the first or the last line of the export is missing; copy or export it again"
NO_REHEARSAL: Final = "does not support dry run"  # k8s: a webhook with side effects
NAMESPACE: Final = GroupKind("", "Namespace")
DEFINED: Final = {
    APPLICATION: "applications.argoproj.io",
    PROJECT: "appprojects.argoproj.io",
    APPLICATION_SET: "applicationsets.argoproj.io",
}
LOOKS: Final = 100  # attempts until a new kind must be served
BETWEEN_LOOKS: Final = 0.2  # seconds


def read_stream(content: bytes, where: str) -> list[Manifest]:
    """Read the manifests. A truncated file is an error: missing fields would be removed, and Applications pruned."""
    if not is_whole(content):
        raise UserError(CUT, where=where)
    found = []
    for each in read_manifests(content, where=where):
        if fault := misshapen(each):
            told = f"{each['kind']} {each['metadata'].get('name') or 'without a name'}: {fault}"
            raise UserError(f"{told}; use the output of argosy or argocd admin export", where=where)
        found.append(secret(each) if _kind(each) == SECRET else each)
    if not found:
        raise UserError("the file has no manifests; use the output of argosy or argocd admin export", where=where)
    return found


async def plan_import(cluster: Cluster, documents: Sequence[Manifest], wish: Wish) -> list[Change]:
    """Plan the import; missing CRDs and namespaces come first."""
    kinds = (await cluster.kinds()).keys()
    new = [kind for kind in DEFINED if kind not in kinds and kind in map(_kind, documents)]
    served = [each for each in documents if _kind(each) in (*kinds, *new)]
    unserved = [each for each in documents if _kind(each) not in (*kinds, *new)]
    wish = replace(wish, engines=await seen_engines(cluster, wish.scope.control))
    changes = planned(served, await collected(cluster, wish.scope), wish)
    there = [str(each["metadata"]["name"]) for each in (await cluster.list(NAMESPACE)).items]
    spaces = [
        Change(
            Verb.CREATE,
            ResourceKey(*NAMESPACE, "", name),
            body={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        )
        for name in missing_namespaces(changes, there)
    ]
    unknown = [Change(Verb.SKIP, _key(each, wish), "the cluster does not serve this kind") for each in unserved]
    return [*map(_defined, new), *spaces, *changes, *unknown]


def _defined(kind: GroupKind) -> Change:
    made = definition(DEFINED[kind])
    return Change(Verb.CREATE, ResourceKey(*DEFINITION, "", DEFINED[kind]), body=made)


def _kind(document: Manifest) -> GroupKind:
    return GroupKind(str(document["apiVersion"]).rpartition("/")[0], str(document["kind"]))


def _key(document: Manifest, wish: Wish) -> ResourceKey:
    metadata = document["metadata"]
    return ResourceKey(*_kind(document), metadata.get("namespace") or wish.scope.control, metadata["name"])


async def carry_out(cluster: Cluster, changes: Sequence[Change], tell: Callable[[Change], None]) -> None:
    """Apply the changes, after a server-side dry run of all of them where possible, so that rejections come first."""
    new = {each.key for each in changes if each.verb is Verb.CREATE}
    for each in changes:
        if each.verb is not Verb.PRUNE and _can_rehearse(each.key, new):
            await _attempt(cluster, each, is_rehearsal=True)
    for each in changes:
        await _attempt(cluster, each)
        tell(each)


def _can_rehearse(key: ResourceKey, new: Container[ResourceKey]) -> bool:
    """k8s: a dry run fails if the kind or the namespace does not exist yet."""
    defined = ResourceKey(*DEFINITION, "", DEFINED.get(key.group_kind, ""))
    return defined not in new and ResourceKey(*NAMESPACE, "", key.namespace) not in new


async def _attempt(cluster: Cluster, change: Change, *, is_rehearsal: bool = False) -> None:
    try:
        await _write(cluster, change, dry_run=is_rehearsal)
    except Conflict as error:
        told = f"{change.key.kind} {change.key.name} was changed in the meantime; run the import again"
        raise UserError(told) from error
    except ClusterError as error:
        if not is_rehearsal or NO_REHEARSAL not in str(error):
            raise


async def _write(cluster: Cluster, change: Change, *, dry_run: bool) -> None:
    key = change.key
    if change.verb is Verb.CREATE:
        metadata = {**change.body["metadata"], **({"namespace": key.namespace} if key.namespace else {})}
        await cluster.create({**change.body, "metadata": metadata}, dry_run=dry_run)
        if key.group_kind == DEFINITION and not dry_run:
            await _until_served(cluster, key.name)
    elif change.verb is Verb.UPDATE:
        metadata = {**change.body.get("metadata", {}), "resourceVersion": change.version}
        await cluster.patch(key, {**change.body, "metadata": metadata}, dry_run=dry_run)
    elif change.verb is Verb.PRUNE:
        await _prune(cluster, change)


async def _until_served(cluster: Cluster, name: str) -> None:
    """k8s: a kind is served shortly after its CRD is created."""
    kind = next(kind for kind, defined in DEFINED.items() if defined == name)
    for _ in range(LOOKS):
        if kind in await cluster.kinds():
            return
        await asyncio.sleep(BETWEEN_LOOKS)
    raise TransientError(f"{name} was created but is not served yet; run the import again")


async def _prune(cluster: Cluster, change: Change) -> None:
    """argo: remove an Application's finalizers first, to keep its resources; an ApplicationSet's are orphaned, too."""
    try:
        if change.key.group_kind == APPLICATION:
            patch = {"metadata": {"finalizers": None, "resourceVersion": change.version}}
            await cluster.patch(change.key, patch)
        await cluster.delete(change.key, propagation=Propagation.ORPHAN, uid=change.uid or None)
    except ClusterError as error:
        if error.code != 404:
            raise
