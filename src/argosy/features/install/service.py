"""Installs argosy in a cluster, or uninstalls it.

In: options and target flags. Out: the executed plan. Never: writes before the user confirmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from argosy.cli.target import TargetOptions, open_target
from argosy.features.install.apply import Done, carry_out
from argosy.features.install.live_state import survey, survey_remains
from argosy.features.install.manifests import manifests
from argosy.features.install.options import USUAL_IMAGE, InstallOptions
from argosy.features.install.plan import Plan, Step, make_plan
from argosy.features.install.removal import make_removal
from argosy.features.setup.delivery.plan import Verb
from argosy.gitops.application.install_labels import USUAL_NAMESPACE
from argosy.gitops.coexistence.argocd_detection import find_engines, seen_engines
from argosy.kube.client.whoami import whoami
from argosy.kube.controller.wait import TooLate
from argosy.kube.objects import Manifest, dump

__all__ = ["USUAL_IMAGE", "USUAL_NAMESPACE", "InstallOptions", "Plan", "Planned", "Step", "TooLate", "Verb"]


@dataclass(frozen=True)
class Planned:
    plan: Plan
    options: InstallOptions
    where: str
    user: str


@dataclass(frozen=True)
class Talk:
    """Callbacks to the user interface. `confirm` raises UserError if the user declines."""

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
