"""Entry points of `argosy health apply`, `verify` and `export`.

In: command line values and the target cluster. Out: outcome and step messages. Never: implements a step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from argosy.cli.target import TargetOptions, open_target
from argosy.errors import UserError
from argosy.features.health_checks.argocd_install.export import exported
from argosy.features.health_checks.argocd_install.merge import INFERENCE_SERVICE, USUAL_KINDS, Check, wanted_checks
from argosy.features.health_checks.argocd_install.steps import Outcome, Request, apply
from argosy.features.health_checks.argocd_install.verification import Verification, told, verify
from argosy.features.health_checks.kinds import find_kind, known_kinds
from argosy.gitops.coexistence.argocd_settings import NotInstalled
from argosy.gitops.coexistence.step_messages import Ask, Said, Tell
from argosy.gitops.health.bundled import USUAL_PROFILE
from argosy.gitops.health.settings import Customizations
from argosy.kube.names import GroupKind

__all__ = ["Asked", "NotInstalled", "Outcome", "Said", "apply_checks", "export_checks", "told", "verify_checks"]


@dataclass(frozen=True)
class Asked:
    """The options of `argosy health apply|verify|export` as typed."""

    kinds: str = ""  # comma-separated; empty: the default kinds
    profiles: Sequence[str] = ()
    namespace: str = ""
    name: str = ""
    is_forced: bool = False
    is_rehearsal: bool = False
    timeout: float = 120.0
    settle: float = 30.0


def apply_checks(options: TargetOptions, asked: Asked, tell: Tell, ask: Ask, where: Callable[[str], None]) -> Outcome:
    """Apply the checks; call `where` with the target before the first request to it."""
    request = Request(
        _checks(asked), asked.namespace, asked.name, asked.is_forced, asked.is_rehearsal, asked.timeout, asked.settle
    )

    async def run() -> Outcome:
        async with open_target(options) as (cluster, target):
            where(target.where)
            return await apply(cluster, request, tell, ask)

    return asyncio.run(run())


def verify_checks(options: TargetOptions, asked: Asked, where: Callable[[str], None]) -> Verification:
    """Verify the checks; `where` gets the target, because without KUBECONFIG a sandbox precedes ~/.kube/config."""
    kinds = _kinds(asked.kinds) or (INFERENCE_SERVICE,)

    async def run() -> Verification:
        async with open_target(options) as (cluster, target):
            where(target.where)
            return await verify(cluster, asked.namespace, asked.name, kinds)

    return asyncio.run(run())


def export_checks(asked: Asked, form: str) -> str:
    return exported(form, _checks(asked), namespace=asked.namespace, name=asked.name)


def _checks(asked: Asked) -> tuple[Check, ...]:
    chosen = list(dict.fromkeys(asked.profiles)) or [USUAL_PROFILE]
    if len(chosen) > 1:
        what = f"{' and '.join(chosen)} cannot be used together, because Argo CD has one health check per kind"
        raise UserError(f"{what}; choose one of them", where="--profile")
    return wanted_checks(_kinds(asked.kinds) or USUAL_KINDS, chosen[0])


def _kinds(words: str) -> tuple[GroupKind, ...]:
    known = known_kinds(Customizations())
    return tuple(find_kind(word, known) for part in words.split(",") if (word := part.strip()))
