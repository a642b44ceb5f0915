"""Executes the plan of an installation or removal, step by step.

In: a cluster and a plan. Out: one callback per finished step. Never: writes an object that is not in the plan; deletes
the engine before it has pruned the resources of deleted Applications.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy.annotations import RESOURCES_FINALIZER
from argosy.errors import ClusterError, Conflict, UserError
from argosy.features.install.plan import KINDS_KEPT_IF_PRESENT, InstallPlan, InstallStep
from argosy.features.install.uninstall_plan import lacks_resources_finalizer
from argosy.features.setup.delivery.cluster_setup_plan import ChangeVerb
from argosy.gitops.application.argosy_component_labels import INSTALL_FIELD_MANAGER
from argosy.kube.client import Cluster
from argosy.kube.controller.object_condition_wait import WaitTimeout, wait_for_object
from argosy.kube.well_known_kinds import APPLICATION

OnStepDone = Callable[[InstallStep], None]


async def execute_plan(
    cluster: Cluster, plan: InstallPlan, on_step_done: OnStepDone, deletion_timeout_seconds: float
) -> None:
    """Execute the plan; `seconds` is the timeout for the deletion of each Application."""
    if plan.problems:
        raise UserError(plan.problems[0])
    application_deletions = [
        step for step in plan.steps if step.verb is ChangeVerb.DELETE and step.key.group_kind == APPLICATION
    ]
    for step in application_deletions:  # all at once, because the engine deletes many in parallel
        await _delete_application(cluster, step)
    for step in plan.steps:
        if step in application_deletions:
            await _wait_for_deletion(cluster, step, deletion_timeout_seconds)
        elif step.verb is ChangeVerb.DELETE:
            await _delete_object(cluster, step)
        elif step.verb is not ChangeVerb.UNCHANGED:
            await _create_or_apply(cluster, step)
        on_step_done(step)


async def _create_or_apply(cluster: Cluster, step: InstallStep) -> None:
    if step.verb is ChangeVerb.CREATE and step.key.group_kind in KINDS_KEPT_IF_PRESENT:
        try:
            await cluster.create(step.manifest, manager=INSTALL_FIELD_MANAGER)
        except Conflict:
            return  # created by someone else in the meantime: keep it
    else:
        await cluster.apply(step.manifest, manager=INSTALL_FIELD_MANAGER, force=True)


async def _delete_application(cluster: Cluster, step: InstallStep) -> None:
    if lacks_resources_finalizer(step.manifest) and not step.manifest["metadata"].get("deletionTimestamp"):
        finalizers = [*(step.manifest["metadata"].get("finalizers") or ()), RESOURCES_FINALIZER]
        await cluster.patch(step.key, {"metadata": {"finalizers": finalizers, "uid": step.uid}})
    await _delete_object(cluster, step)


async def _delete_object(cluster: Cluster, step: InstallStep) -> None:
    try:
        await cluster.delete(step.key, uid=step.uid or None)
    except Conflict as error:
        raise UserError("was recreated since the plan; run the command again", where=str(step.key)) from error
    except ClusterError as error:
        if error.code != 404:  # already deleted
            raise


async def _wait_for_deletion(cluster: Cluster, step: InstallStep, seconds: float) -> None:
    if not await wait_for_object(cluster, step.key, lambda live: live is None, seconds):
        problem = f"Application {step.key.name} is still being deleted after {seconds:g} s"
        raise WaitTimeout(f"{problem}; find out what blocks it, then run the command again: the engine still runs")
