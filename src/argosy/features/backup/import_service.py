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
from argosy.features.backup.export_format import find_invalid_field, is_complete
from argosy.features.backup.import_plan import (
    ImportChange,
    ImportOptions,
    ImportVerb,
    list_missing_namespaces,
    plan_changes,
)
from argosy.features.backup.installation_objects import list_installation_objects
from argosy.gitops.coexistence.argocd_detection import detect_engines_or_unknown
from argosy.kube.client import Cluster, Propagation
from argosy.kube.objects import Manifest, read_manifests
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.schema.defaults.core import default_secret
from argosy.kube.well_known_kinds import APP_PROJECT, APPLICATION, APPLICATION_SET, CRD, NAMESPACE, SECRET

TRUNCATED_MESSAGE: Final = (
    "the file is truncated: the first or the last line of the export is missing; copy or export it again"
)
NO_DRY_RUN_TEXT: Final = "does not support dry run"  # k8s: a webhook with side effects
CRD_NAMES: Final = {
    APPLICATION: "applications.argoproj.io",
    APP_PROJECT: "appprojects.argoproj.io",
    APPLICATION_SET: "applicationsets.argoproj.io",
}
MAX_SERVED_CHECKS: Final = 100  # attempts until a new kind must be served
SERVED_CHECK_INTERVAL_SECONDS: Final = 0.2  # seconds


def read_import_file(content: bytes, where: str) -> list[Manifest]:
    """Read the manifests. A truncated file is an error: missing fields would be removed, and Applications pruned."""
    if not is_complete(content):
        raise UserError(TRUNCATED_MESSAGE, where=where)
    manifests = []
    for manifest in read_manifests(content, where=where):
        if fault := find_invalid_field(manifest):
            subject = f"{manifest['kind']} {manifest['metadata'].get('name') or 'without a name'}: {fault}"
            raise UserError(f"{subject}; use the output of argosy or argocd admin export", where=where)
        manifests.append(default_secret(manifest) if _read_group_kind(manifest) == SECRET else manifest)
    if not manifests:
        raise UserError("the file has no manifests; use the output of argosy or argocd admin export", where=where)
    return manifests


async def plan_import(cluster: Cluster, documents: Sequence[Manifest], options: ImportOptions) -> list[ImportChange]:
    """Plan the import; missing CRDs and namespaces come first."""
    kinds = (await cluster.kinds()).keys()
    missing_kinds = [kind for kind in CRD_NAMES if kind not in kinds and kind in map(_read_group_kind, documents)]
    served = [item for item in documents if _read_group_kind(item) in (*kinds, *missing_kinds)]
    unserved = [item for item in documents if _read_group_kind(item) not in (*kinds, *missing_kinds)]
    options = replace(options, engines=await detect_engines_or_unknown(cluster, options.scope.control))
    changes = plan_changes(served, await list_installation_objects(cluster, options.scope), options)
    namespace_names = [str(item["metadata"]["name"]) for item in (await cluster.list(NAMESPACE)).items]
    namespace_changes = [
        ImportChange(
            ImportVerb.CREATE,
            ResourceKey(*NAMESPACE, "", name),
            body={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        )
        for name in list_missing_namespaces(changes, namespace_names)
    ]
    skipped = [
        ImportChange(ImportVerb.SKIP, _build_key(item, options), "the cluster does not serve this kind")
        for item in unserved
    ]
    return [*map(_plan_crd, missing_kinds), *namespace_changes, *changes, *skipped]


def _plan_crd(kind: GroupKind) -> ImportChange:
    crd = load_definition(CRD_NAMES[kind])
    return ImportChange(ImportVerb.CREATE, ResourceKey(*CRD, "", CRD_NAMES[kind]), body=crd)


def _read_group_kind(document: Manifest) -> GroupKind:
    return GroupKind(str(document["apiVersion"]).rpartition("/")[0], str(document["kind"]))


def _build_key(document: Manifest, options: ImportOptions) -> ResourceKey:
    metadata = document["metadata"]
    return ResourceKey(
        *_read_group_kind(document), metadata.get("namespace") or options.scope.control, metadata["name"]
    )


async def execute_changes(
    cluster: Cluster, changes: Sequence[ImportChange], report: Callable[[ImportChange], None]
) -> None:
    """Apply the changes, after a server-side dry run of all of them where possible, so that rejections come first."""
    created_keys = {change.key for change in changes if change.verb is ImportVerb.CREATE}
    for change in changes:
        if change.verb is not ImportVerb.PRUNE and _can_dry_run(change.key, created_keys):
            await _apply_change(cluster, change, is_dry_run=True)
    for change in changes:
        await _apply_change(cluster, change)
        report(change)


def _can_dry_run(key: ResourceKey, created_keys: Container[ResourceKey]) -> bool:
    """k8s: a dry run fails if the kind or the namespace does not exist yet."""
    crd_key = ResourceKey(*CRD, "", CRD_NAMES.get(key.group_kind, ""))
    return crd_key not in created_keys and ResourceKey(*NAMESPACE, "", key.namespace) not in created_keys


async def _apply_change(cluster: Cluster, change: ImportChange, *, is_dry_run: bool = False) -> None:
    try:
        await _write_change(cluster, change, dry_run=is_dry_run)
    except Conflict as error:
        message = f"{change.key.kind} {change.key.name} was changed in the meantime; run the import again"
        raise UserError(message) from error
    except ClusterError as error:
        if not is_dry_run or NO_DRY_RUN_TEXT not in str(error):
            raise


async def _write_change(cluster: Cluster, change: ImportChange, *, dry_run: bool) -> None:
    key = change.key
    if change.verb is ImportVerb.CREATE:
        metadata = {**change.body["metadata"], **({"namespace": key.namespace} if key.namespace else {})}
        await cluster.create({**change.body, "metadata": metadata}, dry_run=dry_run)
        if key.group_kind == CRD and not dry_run:
            await _wait_until_served(cluster, key.name)
    elif change.verb is ImportVerb.UPDATE:
        metadata = {**change.body.get("metadata", {}), "resourceVersion": change.version}
        await cluster.patch(key, {**change.body, "metadata": metadata}, dry_run=dry_run)
    elif change.verb is ImportVerb.PRUNE:
        await _prune_object(cluster, change)


async def _wait_until_served(cluster: Cluster, name: str) -> None:
    """k8s: a kind is served shortly after its CRD is created."""
    kind = next(kind for kind, defined in CRD_NAMES.items() if defined == name)
    for _ in range(MAX_SERVED_CHECKS):
        if kind in await cluster.kinds():
            return
        await asyncio.sleep(SERVED_CHECK_INTERVAL_SECONDS)
    raise TransientError(f"{name} was created but is not served yet; run the import again")


async def _prune_object(cluster: Cluster, change: ImportChange) -> None:
    """argo: remove an Application's finalizers first, to keep its resources; an ApplicationSet's are orphaned, too."""
    try:
        if change.key.group_kind == APPLICATION:
            patch = {"metadata": {"finalizers": None, "resourceVersion": change.version}}
            await cluster.patch(change.key, patch)
        await cluster.delete(change.key, propagation=Propagation.ORPHAN, uid=change.uid or None)
    except ClusterError as error:
        if error.code != 404:
            raise
