"""Revisions of a Pod template, kept so that `kubectl rollout undo` can go back to one.

In: a StatefulSet or DaemonSet, and the revisions that it has. Out: the one for its template, made where it is missing.
Never: forgets one that a Pod still has.
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
    """k8s: what is kept is a patch that replaces the template; `kubectl rollout undo` sends it back."""
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
    kept = set(used)
    free = [each for each in revisions if each["metadata"]["name"] not in kept]
    free.sort(key=lambda each: int(each["revision"]))
    return free[: max(len(free) - limit, 0)]


def owned_revisions(live: Manifest, cache: Cache) -> list[Manifest]:
    uid = live["metadata"]["uid"]
    owned = (each for each in cache.owned(uid) if each["kind"] == "ControllerRevision")
    return [each for each in owned if (owner_of(each) or {}).get("uid") == uid]


async def newest_revision(live: Manifest, known: Sequence[Manifest], context: Context) -> Manifest | None:
    """The one for its template. None: it was just made, and seeing it wakes its owner again."""
    name = revision_name(live)
    newest = max((int(each["revision"]) for each in known), default=0)
    found = next((each for each in known if each["metadata"]["name"] == name), None)
    if found is None:
        await create_once(new_revision(live, newest + 1), context.cluster)
        return None
    if int(found["revision"]) < newest:  # k8s: a template that comes back is the newest again
        await change(found, {"revision": newest + 1}, context.cluster)
    return found


async def forget(live: Manifest, known: Sequence[Manifest], used: Iterable[str], context: Context) -> None:
    for each in superfluous(known, used, int(live["spec"].get("revisionHistoryLimit", 10))):
        await remove(each, context.cluster)
