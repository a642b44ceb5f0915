"""Carries an import out: reads a file, plans, writes.

In: a cluster, a file's text, how to import. Out: changes, done one after another. Never: overwrites what somebody
changed since it was planned; deletes what an Application manages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argosy.cluster import Cluster, Propagation
from argosy.desk.moving.collecting import APPLICATION, collected
from argosy.desk.moving.planning import Change, Verb, Wish, missing_namespaces, planned
from argosy.model.errors import ClusterError, Conflict, UserError
from argosy.model.manifest import Manifest, load_all
from argosy.model.names import GroupKind, ResourceKey

NAMESPACE = GroupKind("", "Namespace")


def read_stream(content: bytes, where: str) -> list[Manifest]:
    found = []
    for each in load_all(content, where=where):
        if not each:
            continue
        is_whole = isinstance(each, dict) and isinstance(each.get("metadata"), dict) and each["metadata"].get("name")
        if not is_whole or not each.get("kind") or not each.get("apiVersion"):
            raise UserError("it holds what is no manifest; import what an export wrote", where=where)
        found.append(each)
    if not found:
        raise UserError("it holds nothing; import what an export wrote", where=where)
    return found


async def plan_import(cluster: Cluster, documents: Sequence[Manifest], wish: Wish) -> list[Change]:
    """Namespaces that are missing first."""
    kinds = await cluster.kinds()
    if APPLICATION in map(_kind, documents) and APPLICATION not in kinds:
        told = "this cluster does not know Applications; start what delivers them: argosy controller"
        raise UserError(told)
    served = [each for each in documents if _kind(each) in kinds]
    unserved = [each for each in documents if _kind(each) not in kinds]
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
    return [*spaces, *changes, *unknown]


def _kind(document: Manifest) -> GroupKind:
    return GroupKind(str(document["apiVersion"]).rpartition("/")[0], str(document["kind"]))


def _key(document: Manifest, wish: Wish) -> ResourceKey:
    metadata = document["metadata"]
    return ResourceKey(*_kind(document), metadata.get("namespace") or wish.scope.control, metadata["name"])


async def carry_out(cluster: Cluster, changes: Sequence[Change], tell: Callable[[Change], None]) -> None:
    for each in changes:
        if each.writes:
            try:
                await _write(cluster, each)
            except Conflict as error:
                told = f"{each.key.kind} {each.key.name} was changed meanwhile; what is left to do: import again"
                raise UserError(told) from error
        tell(each)


async def _write(cluster: Cluster, change: Change) -> None:
    key = change.key
    if change.verb is Verb.CREATE:
        metadata = {**change.body["metadata"], **({"namespace": key.namespace} if key.namespace else {})}
        await cluster.create({**change.body, "metadata": metadata})
    elif change.verb is Verb.UPDATE:
        metadata = {**change.body.get("metadata", {}), "resourceVersion": change.version}
        await cluster.patch(key, {**change.body, "metadata": metadata})
    else:
        await _prune(cluster, change)


async def _prune(cluster: Cluster, change: Change) -> None:
    """argo: finalizers of an Application go first, so that what it manages stays; that of a set stays, too."""
    try:
        if change.key.group_kind == APPLICATION:
            patch = {"metadata": {"finalizers": None, "resourceVersion": change.version}}
            await cluster.patch(change.key, patch)
        await cluster.delete(change.key, propagation=Propagation.ORPHAN)
    except ClusterError as error:
        if error.code != 404:
            raise
