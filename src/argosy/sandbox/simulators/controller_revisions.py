"""Keeps ControllerRevisions of a Pod template, so that `kubectl rollout undo` can return to one.

In: a StatefulSet or DaemonSet and its revisions. Out: the revision of its template, created if it is missing.
Never: deletes a revision that a Pod still uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from argosy.kube.controller import Cache, Context
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import owner_of, reference_to
from argosy.sandbox.simulators.pod_templates import fingerprint
from argosy.sandbox.simulators.writes import change, create_once, remove

REVISION: Final = "controller-revision-hash"


def revision_name(live: Manifest) -> str:
    return f"{live['metadata']['name']}-{fingerprint(live['spec']['template'])}"


def hash_of(revision: str) -> str:
    return revision.rpartition("-")[2]


def new_revision(live: Manifest, number: int) -> Manifest:
    """k8s: the stored data is a patch that replaces the template; `kubectl rollout undo` sends it back."""
    template = {**live["spec"]["template"], "$patch": "replace"}
    labels = {**((live["spec"]["template"].get("metadata") or {}).get("labels") or {})}
    labels[REVISION] = hash_of(revision_name(live))
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": revision_name(live),
            "namespace": live["metadata"]["namespace"],
            "labels": labels,
            "ownerReferences": [reference_to(live)],
        },
        "data": {"spec": {"template": template}},
        "revision": number,
    }


def template_of(revision: Manifest) -> Manifest:
    template = revision["data"]["spec"]["template"]
    return {name: value for name, value in template.items() if name != "$patch"}


def superfluous(revisions: Sequence[Manifest], used: Iterable[str], limit: int) -> Sequence[Manifest]:
    """List the oldest unused revisions above the history limit."""
    kept = set(used)
    free = [each for each in revisions if each["metadata"]["name"] not in kept]
    free.sort(key=lambda each: int(each["revision"]))
    return free[: max(len(free) - limit, 0)]


def owned_revisions(live: Manifest, cache: Cache) -> list[Manifest]:
    uid = live["metadata"]["uid"]
    owned = (each for each in cache.owned(uid) if each["kind"] == "ControllerRevision")
    return [each for each in owned if (owner_of(each) or {}).get("uid") == uid]


async def newest_revision(live: Manifest, known: Sequence[Manifest], context: Context) -> Manifest | None:
    """Return the revision of the current template, or None if it was just created.

    The watch event of a new revision triggers the next reconcile of its owner.
    """
    name = revision_name(live)
    newest = max((int(each["revision"]) for each in known), default=0)
    found = next((each for each in known if each["metadata"]["name"] == name), None)
    if found is None:
        await create_once(new_revision(live, newest + 1), context.cluster)
        return None
    # k8s: a template that returns becomes the newest revision again
    if int(found["revision"]) < newest:
        await change(found, {"revision": newest + 1}, context.cluster)
    return found


async def forget(live: Manifest, known: Sequence[Manifest], used: Iterable[str], context: Context) -> None:
    """Delete unused revisions above `revisionHistoryLimit`."""
    for each in superfluous(known, used, int(live["spec"].get("revisionHistoryLimit", 10))):
        await remove(each, context.cluster)
