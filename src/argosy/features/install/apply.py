"""Executes the plan of an installation or removal, step by step.

In: a cluster and a plan. Out: one callback per finished step. Never: writes an object that is not in the plan; deletes
the engine before it has pruned the resources of deleted Applications.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy.annotations import RESOURCES_FINALIZER
from argosy.errors import ClusterError, Conflict, UserError
from argosy.features.install.live_state import APPLICATION
from argosy.features.install.plan import KEPT, Plan, Step
from argosy.features.install.removal import needs_finalizer
from argosy.features.setup.delivery.plan import Verb
from argosy.gitops.application.install_labels import MANAGER
from argosy.kube.client import Cluster
from argosy.kube.controller.wait import TooLate, until

Done = Callable[[Step], None]


async def carry_out(cluster: Cluster, plan: Plan, done: Done, seconds: float) -> None:
    """Execute the plan; `seconds` is the timeout for the deletion of each Application."""
    if plan.problems:
        raise UserError(plan.problems[0])
    leaving = [step for step in plan.steps if step.verb is Verb.DELETE and step.key.group_kind == APPLICATION]
    for step in leaving:  # all at once, because the engine deletes many in parallel
        await _let_go(cluster, step)
    for step in plan.steps:
        if step in leaving:
            await _gone(cluster, step, seconds)
        elif step.verb is Verb.DELETE:
            await _delete(cluster, step)
        elif step.verb is not Verb.UNCHANGED:
            await _bring(cluster, step)
        done(step)


async def _bring(cluster: Cluster, step: Step) -> None:
    if step.verb is Verb.CREATE and step.key.group_kind in KEPT:
        try:
            await cluster.create(step.manifest, manager=MANAGER)
        except Conflict:
            return  # created by someone else in the meantime: keep it
    else:
        await cluster.apply(step.manifest, manager=MANAGER, force=True)


async def _let_go(cluster: Cluster, step: Step) -> None:
    if needs_finalizer(step.manifest) and not step.manifest["metadata"].get("deletionTimestamp"):
        finalizers = [*(step.manifest["metadata"].get("finalizers") or ()), RESOURCES_FINALIZER]
        await cluster.patch(step.key, {"metadata": {"finalizers": finalizers, "uid": step.uid}})
    await _delete(cluster, step)


async def _delete(cluster: Cluster, step: Step) -> None:
    try:
        await cluster.delete(step.key, uid=step.uid or None)
    except Conflict as error:
        raise UserError("was recreated since the plan; run the command again", where=str(step.key)) from error
    except ClusterError as error:
        if error.code != 404:  # already deleted
            raise


async def _gone(cluster: Cluster, step: Step, seconds: float) -> None:
    if not await until(cluster, step.key, lambda live: live is None, seconds):
        what = f"Application {step.key.name} is still being deleted after {seconds:g} s"
        raise TooLate(f"{what}; find out what blocks it, then run the command again: the engine still runs")
