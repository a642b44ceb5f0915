"""Plans, applies, shows and removes the setup of argosy.yaml.

In: a setup request and target flags. Out: a plan, its result or the status. Never: writes before the user confirmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from argosy.cli.target import TargetOptions, open_target
from argosy.features.setup.delivery.apply import Done, apply_plan, taken_over
from argosy.features.setup.delivery.live_state import survey
from argosy.features.setup.delivery.plan import Change, Live, Part, Plan, Request, Verb, make_plan
from argosy.features.setup.delivery.removal import make_removal, remove
from argosy.gitops.coexistence.application_refresh import statuses
from argosy.kube.client.whoami import whoami
from argosy.kube.controller.wait import TooLate

__all__ = ["Change", "Part", "Plan", "Planned", "Request", "SetupStatus", "TooLate", "Verb"]


@dataclass(frozen=True)
class Planned:
    plan: Plan
    request: Request
    where: str
    user: str


@dataclass(frozen=True)
class Talk:
    """Callbacks to the user interface."""

    show: Callable[[Planned], None]
    confirm: Callable[[Planned], None]  # raises UserError if the user declines
    done: Done


def plan(options: TargetOptions, request: Request) -> Planned:
    async def run() -> Planned:
        async with open_target(options) as (cluster, target):
            user = await whoami(cluster)
            return Planned(make_plan(request, await survey(cluster, request.delivery)), request, target.where, user)

    return asyncio.run(run())


def apply(options: TargetOptions, request: Request, talk: Talk, timeout: float) -> Planned:
    """Apply the setup; return the plan with the verbs that were executed."""

    async def run() -> Planned:
        async with open_target(options) as (cluster, target):
            user = await whoami(cluster)
            made = make_plan(request, await survey(cluster, request.delivery))
            planned = Planned(made, request, target.where, user)
            talk.show(planned)
            if made.to_write:
                talk.confirm(planned)
            done: list[Change] = []

            def note(change: Change, verb: Verb) -> None:
                done.append(replace(change, verb=verb))
                talk.done(change, verb)

            await apply_plan(cluster, made, request, note)
            if late := await taken_over(cluster, made, request, timeout):
                advice = "check that the operator runs, then: argosy setup status"
                raise TooLate(f"{late[0]} after {timeout:g} s; {advice}")
            return replace(planned, plan=replace(made, changes=tuple(done)))

    return asyncio.run(run())


def destroy(options: TargetOptions, request: Request, talk: Talk, timeout: float, *, with_namespaces: bool) -> Planned:
    async def run() -> Planned:
        async with open_target(options) as (cluster, target):
            user = await whoami(cluster)
            live = await survey(cluster, request.delivery)
            made = make_removal(request, live, with_namespaces=with_namespaces)
            planned = Planned(made, request, target.where, user)
            talk.show(planned)
            if made.to_write:
                talk.confirm(planned)
                await remove(cluster, made, request, talk.done, timeout)
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
    planned: Planned
    environments: tuple[EnvironmentStatus, ...]
    missing: tuple[str, ...]  # cluster-wide

    @property
    def is_complete(self) -> bool:
        return not self.missing and all(each.is_complete for each in self.environments)


def status(options: TargetOptions, request: Request) -> SetupStatus:
    async def run() -> SetupStatus:
        async with open_target(options) as (cluster, target):
            user = await whoami(cluster)
            live = await survey(cluster, request.delivery)
            planned = Planned(make_plan(request, live), request, target.where, user)
            late = await taken_over(cluster, planned.plan, request, 0)
            return _status(planned, live, late)

    return asyncio.run(run())


def _status(planned: Planned, live: Live, late: Sequence[str]) -> SetupStatus:
    environments = []
    for environment in planned.request.delivery.environments:
        changes = [each for each in planned.plan.changes if each.environment == environment.name]
        application = next(live.found.get(each.key) for each in changes if each.part is Part.APPLICATION)
        sync, health = statuses(application or {})
        missing = tuple(_missing(change) for change in changes if change.verb is not Verb.UNCHANGED)
        environments.append(
            EnvironmentStatus(environment.name, environment.namespace, environment.application, sync, health, missing)
        )
    of_cluster = [each for each in planned.plan.to_write if not each.environment]
    missing = (*(_missing(change) for change in of_cluster), *(late if not of_cluster else ()))
    return SetupStatus(planned, tuple(environments), (*missing, *planned.plan.problems))


def _missing(change: Change) -> str:
    return f"{change.part} {change.key.name} {'is missing' if change.verb is Verb.CREATE else 'differs'}"
