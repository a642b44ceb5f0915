"""The bench: a pool of confined workers, and what is done with it.

In: objects, trees and settings. Out: verdicts and outcomes. Never: runs a stranger's script in this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from argosy.confine import Pool
from argosy.health.assess import EVALUATE, Assessor
from argosy.health.bundled import Origin
from argosy.health.installation import MAP_KEY
from argosy.health.kind_keys import is_wild
from argosy.health.lua import LuaFault, answer_of, health_of
from argosy.health.rulebook import Rulebook
from argosy.health.settings import Check, Customizations
from argosy.health.suite import Outcome, Suite, run
from argosy.model.flow import Assessment
from argosy.model.manifest import Manifest, key_of
from argosy.model.names import ResourceKey


@dataclass(frozen=True)
class Verdict:
    """What was said of one object. No assessment: nothing judges its kind."""

    key: ResourceKey
    assessment: Assessment | None

    @property
    def health(self) -> str:
        """The word; empty where a script gave none, or nothing judges the kind."""
        return str(self.assessment.health or "") if self.assessment else ""

    @property
    def message(self) -> str:
        if self.assessment is None:
            return "no rule judges this kind"
        if self.assessment.health is None:
            return "the check returned nothing"
        return self.assessment.message

    @property
    def rule(self) -> str:
        return called(self.assessment.rule) if self.assessment else ""

    @property
    def fault(self) -> str:
        return self.assessment.fault if self.assessment else ""


def called(rule: str) -> str:
    """A rule's name for people: a script or an ArgoCD resource is no key of argocd-cm, though it is used as one."""
    place = rule.removeprefix(f"{Origin.ARGOCD_CM} ")
    return rule if place.startswith(MAP_KEY) else place


@dataclass(frozen=True)
class Trial:
    """One run of a check on an empty object of its kind."""

    check: Check
    health: str
    message: str
    fault: str


class Workbench:
    """Open while it is needed; the same workers serve all runs."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self.pool = Pool(preload=("argosy.health.lua.confined",))

    def __enter__(self) -> Workbench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._runner.run(self.pool.close())
        finally:
            self._runner.close()

    def run_suite(self, suite: Suite, progress: Callable[[int, int], None]) -> list[Outcome]:
        return list(self._runner.run(run(suite, self.pool, progress=progress, together=asyncio.gather)))

    def judge(
        self, customizations: Customizations, manifests: Sequence[Manifest], facts: Mapping[str, Any]
    ) -> list[Verdict]:
        # Nothing is remembered: files on a desk share uids and versions, and are edited.
        assessor = Assessor(Rulebook(customizations), self.pool, remembered=0)
        found = self._runner.run(assessor.assess_all(manifests, facts))
        return [Verdict(key_of(manifest), each) for manifest, each in zip(manifests, found, strict=True)]

    def try_checks(self, checks: Sequence[Check]) -> list[Trial]:
        """Run each check once on an object that has only a kind and a name: it must not fail on that."""
        payloads = [
            {"script": check.script, "manifest": _empty(check.pattern), "open": check.open_libs} for check in checks
        ]
        answers = self._runner.run(self.pool.run_batch(EVALUATE, payloads))
        return [_trial(check, answer) for check, answer in zip(checks, answers, strict=True)]


def _empty(pattern: str) -> Manifest:
    group, _, kind = pattern.rpartition("/")
    group, kind = ("example.com" if is_wild(group) else group), ("Example" if is_wild(kind) else kind)
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": {"name": "empty"}}


def _trial(check: Check, answer: Any) -> Trial:
    try:
        found = health_of(answer_of(answer))
    except LuaFault as fault:
        return Trial(check, "Unknown", str(fault), str(fault))
    return Trial(check, str(found.health or ""), found.message, found.fault)
