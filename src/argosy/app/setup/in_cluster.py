"""Brings argosy itself into a cluster, or takes it out.

In: options, and the flags that choose a cluster. Out: what is planned or was done. Never: writes before somebody
confirmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from argosy.app.target import TargetOptions, open_target
from argosy.gitops.application.install_labels import USUAL_NAMESPACE
from argosy.gitops.coexistence.argocd_detection import find_engines, seen_engines
from argosy.kube.client.whoami import whoami
from argosy.kube.controller.wait import TooLate
from argosy.kube.objects import Manifest, dump
from argosy.setup.delivery.plan import Verb
from argosy.setup.installing.apply import Done, carry_out
from argosy.setup.installing.manifests import manifests
from argosy.setup.installing.options import USUAL_IMAGE, InstallOptions
from argosy.setup.installing.plan import Plan, Step, make_plan
from argosy.setup.installing.removal import make_removal
from argosy.setup.installing.survey import survey, survey_remains

__all__ = ["USUAL_IMAGE", "USUAL_NAMESPACE", "InstallOptions", "Plan", "Planned", "Step", "TooLate", "Verb"]


@dataclass(frozen=True)
class Planned:
    plan: Plan
    options: InstallOptions
    where: str
    user: str


@dataclass(frozen=True)
class Talk:
    """How to speak with who asked. `confirm` raises UserError where somebody says no."""

    confirm: Callable[[Planned], None]
    done: Done


def printed(options: InstallOptions) -> str:
    return "---\n".join(dump(each) for each in manifests(options))


def listed(options: InstallOptions) -> Manifest:
    return {"apiVersion": "v1", "kind": "List", "items": manifests(options)}


def install(target_options: TargetOptions, options: InstallOptions, talk: Talk) -> Planned:
    async def run() -> Planned:
        async with open_target(target_options) as (cluster, target):
            plan = make_plan(options, await survey(cluster, options))
            if told := (await seen_engines(cluster, options.namespace)).beside(options.namespace):
                plan = replace(plan, notes=(*plan.notes, told))
            planned = Planned(plan, options, target.where, await whoami(cluster))
            talk.confirm(planned)
            await carry_out(cluster, plan, talk.done, 0.0)
            return planned

    return asyncio.run(run())


def uninstall(
    target_options: TargetOptions,
    options: InstallOptions,
    talk: Talk,
    *,
    with_applications: bool,
    is_forced: bool,
    seconds: float,
) -> Planned:
    async def run() -> Planned:
        async with open_target(target_options) as (cluster, target):
            engines = await find_engines(cluster, options.namespace)
            remains = await survey_remains(cluster, options, engines)
            plan = make_removal(options, remains, with_applications=with_applications, is_forced=is_forced)
            planned = Planned(plan, options, target.where, await whoami(cluster))
            talk.confirm(planned)
            await carry_out(cluster, plan, talk.done, seconds)
            return planned

    return asyncio.run(run())
