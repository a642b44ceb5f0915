"""Plans, applies, shows and removes the setup of argosy.yaml.

In: a setup request and target flags. Out: a plan, its result or the status. Never: writes before the user confirmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from argosy.cli.cluster_target import TargetOptions, open_target
from argosy.features.setup.delivery.apply import OnChangeDone, apply_plan, wait_for_settings
from argosy.features.setup.delivery.cluster_setup_plan import (
    ChangeVerb,
    SetupChange,
    SetupPart,
    SetupPlan,
    SetupRequest,
    SetupState,
    build_setup_plan,
)
from argosy.features.setup.delivery.live_state import load_setup_state
from argosy.features.setup.delivery.removal import build_removal_plan, execute_removal
from argosy.gitops.coexistence.application_refresh import read_statuses
from argosy.kube.client.whoami import whoami
from argosy.kube.controller.object_condition_wait import WaitTimeout

__all__ = [
    "ChangeVerb",
    "PlannedSetup",
    "SetupChange",
    "SetupPart",
    "SetupPlan",
    "SetupRequest",
    "SetupStatus",
    "WaitTimeout",
]


@dataclass(frozen=True)
class PlannedSetup:
    plan: SetupPlan
    request: SetupRequest
    where: str
    user: str


@dataclass(frozen=True)
class SetupCallbacks:
    """Callbacks to the user interface."""

    show: Callable[[PlannedSetup], None]
    confirm: Callable[[PlannedSetup], None]  # raises UserError if the user declines
    done: OnChangeDone


def plan_setup(options: TargetOptions, request: SetupRequest) -> PlannedSetup:
    async def run() -> PlannedSetup:
        async with open_target(options) as (cluster, target):
            user = await whoami(cluster)
            return PlannedSetup(
                build_setup_plan(request, await load_setup_state(cluster, request.delivery)),
                request,
                target.display_name,
                user,
            )

    return asyncio.run(run())


def apply_setup(
    options: TargetOptions, request: SetupRequest, callbacks: SetupCallbacks, timeout_seconds: float
) -> PlannedSetup:
    """Apply the setup; return the plan with the verbs that were executed."""

    async def run() -> PlannedSetup:
        async with open_target(options) as (cluster, target):
            user = await whoami(cluster)
            setup_plan = build_setup_plan(request, await load_setup_state(cluster, request.delivery))
            planned = PlannedSetup(setup_plan, request, target.display_name, user)
            callbacks.show(planned)
            if setup_plan.to_write:
                callbacks.confirm(planned)
            executed: list[SetupChange] = []

            def record_change(change: SetupChange, verb: ChangeVerb) -> None:
                executed.append(replace(change, verb=verb))
                callbacks.done(change, verb)

            await apply_plan(cluster, setup_plan, request, record_change)
            if missing_settings := await wait_for_settings(cluster, setup_plan, request, timeout_seconds):
                advice = "check that the operator runs, then: argosy setup status"
                raise WaitTimeout(f"{missing_settings[0]} after {timeout_seconds:g} s; {advice}")
            return replace(planned, plan=replace(setup_plan, changes=tuple(executed)))

    return asyncio.run(run())


def destroy_setup(
    options: TargetOptions,
    request: SetupRequest,
    callbacks: SetupCallbacks,
    timeout_seconds: float,
    *,
    with_namespaces: bool,
) -> PlannedSetup:
    async def run() -> PlannedSetup:
        async with open_target(options) as (cluster, target):
            user = await whoami(cluster)
            live = await load_setup_state(cluster, request.delivery)
            removal_plan = build_removal_plan(request, live, with_namespaces=with_namespaces)
            planned = PlannedSetup(removal_plan, request, target.display_name, user)
            callbacks.show(planned)
            if removal_plan.to_write:
                callbacks.confirm(planned)
                await execute_removal(cluster, removal_plan, request, callbacks.done, timeout_seconds)
            return planned

    return asyncio.run(run())


@dataclass(frozen=True)
class EnvironmentStatus:
    name: str
    namespace: str
    application: str
    sync: str  # as reported by Argo CD; a dash if not reported
    health: str
    missing: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        return not self.missing


@dataclass(frozen=True)
class SetupStatus:
    planned: PlannedSetup
    environments: tuple[EnvironmentStatus, ...]
    missing: tuple[str, ...]  # cluster-wide

    @property
    def is_complete(self) -> bool:
        return not self.missing and all(environment.is_complete for environment in self.environments)


def load_setup_status(options: TargetOptions, request: SetupRequest) -> SetupStatus:
    async def run() -> SetupStatus:
        async with open_target(options) as (cluster, target):
            user = await whoami(cluster)
            live = await load_setup_state(cluster, request.delivery)
            planned = PlannedSetup(build_setup_plan(request, live), request, target.display_name, user)
            missing_settings = await wait_for_settings(cluster, planned.plan, request, 0)
            return _build_status(planned, live, missing_settings)

    return asyncio.run(run())


def _build_status(planned: PlannedSetup, live: SetupState, missing_settings: Sequence[str]) -> SetupStatus:
    environments = []
    for environment in planned.request.delivery.environments:
        changes = [change_item for change_item in planned.plan.changes if change_item.environment == environment.name]
        application = next(
            live.live_objects.get(change_item.key)
            for change_item in changes
            if change_item.part is SetupPart.APPLICATION
        )
        sync, health = read_statuses(application or {})
        missing = tuple(_render_missing(change) for change in changes if change.verb is not ChangeVerb.UNCHANGED)
        environments.append(
            EnvironmentStatus(environment.name, environment.namespace, environment.application, sync, health, missing)
        )
    cluster_changes = [change_item for change_item in planned.plan.to_write if not change_item.environment]
    missing = (
        *(_render_missing(change) for change in cluster_changes),
        *(missing_settings if not cluster_changes else ()),
    )
    return SetupStatus(planned, tuple(environments), (*missing, *planned.plan.problems))


def _render_missing(change: SetupChange) -> str:
    return f"{change.part} {change.key.name} {'is missing' if change.verb is ChangeVerb.CREATE else 'differs'}"
