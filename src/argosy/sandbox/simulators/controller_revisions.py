"""Keeps ControllerRevisions of a Pod template, so that `kubectl rollout undo` can return to one.

In: a StatefulSet or DaemonSet and its revisions. Out: the revision of its template, created if it is missing.
Never: deletes a revision that a Pod still uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from argosy.kube.controller import ControllerContext, InformerCache
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.conditional_writes import create_if_absent, delete_object, patch_object
from argosy.sandbox.simulators.deployment_replica_set_manifests import hash_pod_template
from argosy.sandbox.simulators.owner_references_and_marks import build_owner_reference, find_controller_reference

REVISION_HASH_LABEL: Final = "controller-revision-hash"


def build_revision_name(workload: Manifest) -> str:
    return f"{workload['metadata']['name']}-{hash_pod_template(workload['spec']['template'])}"


def read_revision_hash(revision_name: str) -> str:
    return revision_name.rpartition("-")[2]


def build_revision(workload: Manifest, number: int) -> Manifest:
    """k8s: the stored data is a patch that replaces the template; `kubectl rollout undo` sends it back."""
    template = {**workload["spec"]["template"], "$patch": "replace"}
    labels = {**((workload["spec"]["template"].get("metadata") or {}).get("labels") or {})}
    labels[REVISION_HASH_LABEL] = read_revision_hash(build_revision_name(workload))
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": build_revision_name(workload),
            "namespace": workload["metadata"]["namespace"],
            "labels": labels,
            "ownerReferences": [build_owner_reference(workload)],
        },
        "data": {"spec": {"template": template}},
        "revision": number,
    }


def read_revision_template(revision: Manifest) -> Manifest:
    template = revision["data"]["spec"]["template"]
    return {name: value for name, value in template.items() if name != "$patch"}


def list_surplus_revisions(revisions: Sequence[Manifest], used_names: Iterable[str], limit: int) -> Sequence[Manifest]:
    """List the oldest unused revisions above the history limit."""
    kept_names = set(used_names)
    unused = [revision for revision in revisions if revision["metadata"]["name"] not in kept_names]
    unused.sort(key=lambda revision: int(revision["revision"]))
    return unused[: max(len(unused) - limit, 0)]


def list_owned_revisions(workload: Manifest, cache: InformerCache) -> list[Manifest]:
    uid = workload["metadata"]["uid"]
    owned = (revision for revision in cache.list_owned(uid) if revision["kind"] == "ControllerRevision")
    return [revision for revision in owned if (find_controller_reference(revision) or {}).get("uid") == uid]


async def find_or_create_revision(
    workload: Manifest, revisions: Sequence[Manifest], context: ControllerContext
) -> Manifest | None:
    """Return the revision of the current template, or None if it was just created.

    The watch event of a new revision triggers the next reconcile of its owner.
    """
    name = build_revision_name(workload)
    highest_number = max((int(revision["revision"]) for revision in revisions), default=0)
    current = next((revision for revision in revisions if revision["metadata"]["name"] == name), None)
    if current is None:
        await create_if_absent(build_revision(workload, highest_number + 1), context.cluster)
        return None
    # k8s: a template that returns becomes the newest revision again
    if int(current["revision"]) < highest_number:
        await patch_object(current, {"revision": highest_number + 1}, context.cluster)
    return current


async def delete_surplus_revisions(
    workload: Manifest, revisions: Sequence[Manifest], used_names: Iterable[str], context: ControllerContext
) -> None:
    """Delete unused revisions above `revisionHistoryLimit`."""
    for revision in list_surplus_revisions(
        revisions, used_names, int(workload["spec"].get("revisionHistoryLimit", 10))
    ):
        await delete_object(revision, context.cluster)
