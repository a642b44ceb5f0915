"""Removal of the objects that setup created.

In: a cluster and a setup request. Out: a plan of deletions, and its execution. Never: removes foreign objects; removes
a namespace without --namespaces; reports an object as deleted that still exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.errors import ClusterError, Conflict
from argosy.features.health_checks.argocd_install.ownership_marks import without_marked
from argosy.features.health_checks.argocd_install.settings_location import Place, read_place
from argosy.features.setup.delivery import access_policy, desired
from argosy.features.setup.delivery.apply import Done, attempts, busy, change_policy, changed_meanwhile
from argosy.features.setup.delivery.plan import Change, Live, Part, Plan, Request, Verb
from argosy.gitops.coexistence.argocd_settings import APPLICATION, Installation
from argosy.kube.client import Cluster
from argosy.kube.controller.wait import TooLate, until
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

# Applications first, because pruning their resources needs Argo CD's permissions.
ORDER: Final = (Part.APPLICATION, Part.HEALTH, Part.POLICY, Part.REPOSITORY, Part.ROLE_BINDING, Part.NAMESPACE)


def make_removal(request: Request, live: Live, *, with_namespaces: bool) -> Plan:
    """Plan the deletions, with a note for each object that stays."""
    changes: list[Change] = []
    notes: list[str] = []
    in_use = _in_use(live)
    for environment, part, found in _candidates(request, live):
        key = key_of(found)
        place = key.name if part is Part.NAMESPACE else key.namespace
        if not desired.is_ours(found):
            notes.append(f"{key} stays: setup did not create it")
        elif part in (Part.ROLE_BINDING, Part.NAMESPACE) and place in in_use:
            notes.append(f"{key} stays: {in_use[place]} deploys there, and setup did not create it")
        elif part is Part.NAMESPACE and not with_namespaces:
            notes.append(f"{key} stays, with everything in it; --namespaces removes it")
        elif key not in {change.key for change in changes}:
            metadata = found["metadata"]
            version, uid = metadata["resourceVersion"], metadata.get("uid", "")
            changes.append(Change(environment, part, key, Verb.DELETE, {}, (), version, uid))
    changes += _settings(request, live)
    rbac = request.delivery.rbac
    if rbac and (rbac.default_role or rbac.scopes):
        notes.append("the policy's default role and scopes stay: their previous values are unknown")
    ordered = sorted(changes, key=lambda change: ORDER.index(change.part))
    return Plan(live.installation, tuple(ordered), tuple(dict.fromkeys(notes)))


def _in_use(live: Live) -> dict[str, str]:
    """Map namespaces to the foreign Applications that deploy there and need the permissions for their deletion."""
    found = {key: manifest for key, manifest in live.found.items() if key.group_kind == APPLICATION}
    return {
        place: f"Application {key.name}"
        for key, manifest in found.items()
        if not desired.is_ours(manifest) and (place := desired.destination(manifest))
    }


def _candidates(request: Request, live: Live) -> Iterator[tuple[str, Part, Manifest]]:
    for environment in request.delivery.environments:
        application = key_of(desired.application(request.delivery, environment, live.installation))
        for part, key in (
            (Part.APPLICATION, application),
            (Part.ROLE_BINDING, ResourceKey(*desired.ROLE_BINDING, environment.namespace, desired.BINDING)),
            (Part.NAMESPACE, ResourceKey(*desired.NAMESPACE, "", environment.namespace)),
        ):
            if found := live.found.get(key):
                yield environment.name, part, found
    wanted = desired.repository_key(request.delivery, live.installation)
    for secret in live.repositories:
        if key_of(secret) == wanted:
            yield "", Part.REPOSITORY, secret


def _settings(request: Request, live: Live) -> Iterator[Change]:
    key = live.installation.key
    if removed := without_marked(Place(live.installation, live.found[key]), request.checks):
        patch, kinds = removed
        differences = tuple(f"- {of}" for of in kinds)
        yield Change("", Part.HEALTH, key, Verb.UPDATE, patch, differences)
    policy = access_policy.policy_key(live.installation)
    before = access_policy.texts_of(live.installation, live.found.get(policy))
    after = access_policy.without(before, request.delivery.product)
    if patch_of_policy := access_policy.patch_of(live.installation, before, after):
        differences = tuple(access_policy.added(before, after))
        yield Change("", Part.POLICY, policy, Verb.UPDATE, patch_of_policy, differences)


async def remove(cluster: Cluster, plan: Plan, request: Request, done: Done, seconds: float) -> None:
    for change in plan.changes:
        if change.part is Part.HEALTH:
            await _remove_checks(cluster, plan.installation, request)
        elif change.part is Part.POLICY:
            owner = request.delivery.product
            await change_policy(cluster, plan.installation, lambda texts: access_policy.without(texts, owner))  # noqa: B023
        else:
            await _delete(cluster, change)
        if change.key.group_kind == APPLICATION:
            await _gone(cluster, change.key, seconds)
        done(change, change.verb)


async def _delete(cluster: Cluster, change: Change) -> None:
    try:
        await cluster.delete(change.key, uid=change.uid or None)
    except Conflict as error:
        raise changed_meanwhile(change) from error
    except ClusterError as error:
        if error.code != 404:  # already deleted
            raise


async def _gone(cluster: Cluster, key: ResourceKey, seconds: float) -> None:
    """Wait for the deletion of an Application, because pruning its resources needs Argo CD's permissions."""
    if await until(cluster, key, lambda live: live is None, seconds):
        return
    live = await cluster.get(key) or {}
    finalizers = (live.get("metadata") or {}).get("finalizers")
    held = f", blocked by {', '.join(finalizers)}" if finalizers else ""
    what = f"{key.kind} {key.name} is still being deleted after {seconds:g} s{held}"
    raise TooLate(f"{what}; check that Argo CD runs, then run the command again: other objects are not removed yet")


async def _remove_checks(cluster: Cluster, installation: Installation, request: Request) -> None:
    async for _ in attempts():
        removed = without_marked(await read_place(cluster, installation), request.checks)
        if removed is None:
            return
        try:
            await cluster.patch(installation.key, removed[0])
            return
        except Conflict:
            continue
    raise busy(str(installation.key))
