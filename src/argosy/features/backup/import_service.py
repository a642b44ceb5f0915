"""Carries an import out: reads a file, plans, writes.

In: a cluster, a file's text, how to import. Out: changes, done one after another. Never: overwrites what somebody
changed since it was planned; deletes what an Application manages.
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

CUT: Final = (
    "it is not whole: what argosy exports has a first line and a last line that say so, and one of them is missing;"
    " copy or export it again"
)
NO_REHEARSAL: Final = "does not support dry run"  # k8s: a webhook that would do something
NAMESPACE: Final = GroupKind("", "Namespace")
DEFINED: Final = {
    APPLICATION: "applications.argoproj.io",
    PROJECT: "appprojects.argoproj.io",
    APPLICATION_SET: "applicationsets.argoproj.io",
}
LOOKS: Final = 100  # whether a new kind is served
BETWEEN_LOOKS: Final = 0.2  # seconds


def read_stream(content: bytes, where: str) -> list[Manifest]:
    """What was cut off would be taken for what is not wanted: fields would be removed, and Applications pruned."""
    if not is_whole(content):
        raise UserError(CUT, where=where)
    found = []
    for each in read_manifests(content, where=where):
        if fault := misshapen(each):
            told = f"{each['kind']} {each['metadata'].get('name') or 'without a name'}: {fault}"
            raise UserError(f"{told}; import what an export wrote", where=where)
        found.append(secret(each) if _kind(each) == SECRET else each)
    if not found:
        raise UserError("it holds nothing; import what an export wrote", where=where)
    return found


async def plan_import(cluster: Cluster, documents: Sequence[Manifest], wish: Wish) -> list[Change]:
    """Kinds and namespaces that are missing first."""
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
    unknown = [Change(Verb.SKIP, _key(each, wish), "this cluster does not serve its kind") for each in unserved]
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
    """All that can be is rehearsed first: what the cluster refuses then is refused before anything is written."""
    new = {each.key for each in changes if each.verb is Verb.CREATE}
    for each in changes:
        if each.verb is not Verb.PRUNE and _can_rehearse(each.key, new):
            await _attempt(cluster, each, is_rehearsal=True)
    for each in changes:
        await _attempt(cluster, each)
        tell(each)


def _can_rehearse(key: ResourceKey, new: Container[ResourceKey]) -> bool:
    """k8s: not where its kind, or its namespace, is not there yet."""
    defined = ResourceKey(*DEFINITION, "", DEFINED.get(key.group_kind, ""))
    return defined not in new and ResourceKey(*NAMESPACE, "", key.namespace) not in new


async def _attempt(cluster: Cluster, change: Change, *, is_rehearsal: bool = False) -> None:
    try:
        await _write(cluster, change, dry_run=is_rehearsal)
    except Conflict as error:
        told = f"{change.key.kind} {change.key.name} was changed meanwhile; what is left to do: import again"
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
    """k8s: some moments after its definition."""
    kind = next(kind for kind, defined in DEFINED.items() if defined == name)
    for _ in range(LOOKS):
        if kind in await cluster.kinds():
            return
        await asyncio.sleep(BETWEEN_LOOKS)
    raise TransientError(f"{name} is defined, and not served yet; import again")


async def _prune(cluster: Cluster, change: Change) -> None:
    """argo: finalizers of an Application go first, so that what it manages stays; that of a set stays, too."""
    try:
        if change.key.group_kind == APPLICATION:
            patch = {"metadata": {"finalizers": None, "resourceVersion": change.version}}
            await cluster.patch(change.key, patch)
        await cluster.delete(change.key, propagation=Propagation.ORPHAN, uid=change.uid or None)
    except ClusterError as error:
        if error.code != 404:
            raise
