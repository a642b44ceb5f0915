"""Executes a setup plan, step by step.

In: a cluster and a plan. Out: a callback per change. Never: writes an object that is not in the plan; overwrites a
change that was made after the plan.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from argosy.errors import Conflict, UserError
from argosy.features.health_checks.argocd_install.merge import Check, missing_from
from argosy.features.health_checks.argocd_install.ownership_marks import with_marks
from argosy.features.health_checks.argocd_install.settings_location import ATTEMPTS, read_place
from argosy.features.setup.delivery import access_policy, desired
from argosy.features.setup.delivery.plan import Change, Part, Plan, Request, Verb
from argosy.gitops.coexistence.argocd_settings import Installation
from argosy.kube.client import Cluster
from argosy.kube.controller.clock import SYSTEM_CLOCK, sleep
from argosy.kube.controller.wait import AGAIN, until
from argosy.kube.objects import Manifest

ORDER: Final = list(Part)

Done = Callable[[Change, Verb], None]


async def apply_plan(cluster: Cluster, plan: Plan, request: Request, done: Done) -> None:
    """Execute the plan; call `done` for each change, including unchanged objects."""
    if plan.problems:
        raise UserError(plan.problems[0])
    if request.unread and any(change.part is Part.REPOSITORY for change in plan.to_write):
        raise UserError(f"{request.unread[0]}; set it, and run the command again")
    for change in sorted(plan.changes, key=lambda each: ORDER.index(each.part)):
        done(change, await _write(cluster, change, request, plan.installation))


async def _write(cluster: Cluster, change: Change, request: Request, installation: Installation) -> Verb:
    if change.verb is Verb.UNCHANGED:
        return Verb.UNCHANGED
    if change.part is Part.HEALTH:
        return await _write_checks(cluster, installation, request.checks)
    if change.part is Part.POLICY:
        return await _write_policy(cluster, installation, request)
    try:
        if change.verb is Verb.CREATE:
            await cluster.create(change.manifest)
        else:
            metadata = {**(change.manifest.get("metadata") or {}), "resourceVersion": change.version}
            await cluster.patch(change.key, {**change.manifest, "metadata": metadata})
    except Conflict as error:
        raise changed_meanwhile(change) from error
    return change.verb


def changed_meanwhile(change: Change) -> UserError:
    what = "was created" if change.verb is Verb.CREATE else "was changed"
    advice = "run the command again for a new plan"
    return UserError(f"{what} by someone else since the plan; {advice}", where=str(change.key))


async def _write_checks(cluster: Cluster, installation: Installation, checks: Sequence[Check]) -> Verb:
    """Write the checks; read the object before each attempt, because other writers change it too."""
    async for _ in attempts():
        patch = with_marks(await read_place(cluster, installation), checks)
        if patch is None:
            return Verb.UNCHANGED
        try:
            await cluster.patch(installation.key, patch)
            return Verb.UPDATE
        except Conflict:
            continue
    raise busy(str(installation.key))


async def _write_policy(cluster: Cluster, installation: Installation, request: Request) -> Verb:
    rbac, owner = request.delivery.rbac, request.delivery.product
    assert rbac is not None
    return await change_policy(cluster, installation, lambda texts: access_policy.merged(texts, rbac, owner))


async def change_policy(
    cluster: Cluster,
    installation: Installation,
    changed: Callable[[access_policy.Texts], access_policy.Texts],
) -> Verb:
    key = access_policy.policy_key(installation)
    async for _ in attempts():
        live = await cluster.get(key)
        before = access_policy.texts_of(installation, live)
        patch = access_policy.patch_of(installation, before, changed(before))
        if patch is None:
            return Verb.UNCHANGED
        try:
            if live is None:
                await cluster.create(_policy_map(installation, patch))
                return Verb.CREATE
            await cluster.patch(key, {"metadata": {"resourceVersion": live["metadata"]["resourceVersion"]}, **patch})
            return Verb.UPDATE
        except Conflict:
            continue
    raise busy(str(key))


def _policy_map(installation: Installation, patch: Manifest) -> Manifest:
    labels = {"app.kubernetes.io/name": access_policy.POLICY, "app.kubernetes.io/part-of": "argocd"}
    metadata = {
        "name": access_policy.POLICY,
        "namespace": installation.namespace,
        "labels": {**labels, desired.MANAGED_BY: desired.MARK},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **patch}


async def attempts() -> AsyncIterator[int]:
    """Yield attempt numbers, with a backoff between attempts so that a concurrent writer can finish."""
    for number in range(ATTEMPTS):
        if number:
            await sleep(SYSTEM_CLOCK, AGAIN.delay(number))
        yield number


def busy(where: str) -> UserError:
    what = f"gave up after {ATTEMPTS} write conflicts"
    return UserError(f"{what}; find out who changes it, then run the command again", where=where)


async def taken_over(cluster: Cluster, plan: Plan, request: Request, seconds: float) -> list[str]:
    """Wait for the operator; list the settings that it did not write into Argo CD's ConfigMaps in time."""
    installation, rbac = plan.installation, request.delivery.rbac
    late = []
    if request.checks and not await until(
        cluster,
        installation.settings,
        lambda live: live is not None and not missing_from(live.get("data") or {}, request.checks),
        seconds,
    ):
        late.append(f"{installation.settings} does not hold the health checks")
    policy = access_policy.read_by_argocd(installation)
    if rbac and not await until(
        cluster, policy, lambda live: live is not None and access_policy.holds(live.get("data") or {}, rbac), seconds
    ):
        late.append(f"{policy} does not hold the policy")
    return late
