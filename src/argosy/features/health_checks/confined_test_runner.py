"""Runner that assesses objects and runs rule tests in a pool of confined workers.

In: objects, test suites and settings. Out: object health and test outcomes. Never: runs a user's script in this
process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, TypeVar

from argosy.features.health_checks.effective_health_rule_catalog import render_rule_name
from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.assess import HealthAssessor
from argosy.gitops.health.bundled_rules import RuleOrigin
from argosy.gitops.health.lua import EVALUATE_FUNCTION, LuaFault, read_health, read_script_result
from argosy.gitops.health.lua.health_results import INVALID_STATUS_MESSAGE
from argosy.gitops.health.rule_lookup import HealthRules
from argosy.gitops.health.setting_kind_names import has_wildcard
from argosy.gitops.health.settings import CustomHealthCheck, Customizations
from argosy.gitops.health.test_suite import CaseResult, RuleTestSuite, run_suite
from argosy.isolation import WorkerPool
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey

PROGRESS_INTERVAL_SECONDS: Final = 1.0


@dataclass(frozen=True)
class ObjectHealth:
    """The health of one object. No assessment means that its kind has no health rule."""

    key: ResourceKey
    assessment: Assessment | None
    file: str = ""
    origin: RuleOrigin | None = None  # of the rule

    @property
    def health(self) -> str:
        """The health status; empty if the script returned none or the kind has no rule."""
        return str(self.assessment.health or "") if self.assessment else ""

    @property
    def message(self) -> str:
        if self.assessment is None:
            return "no health rule for this kind"
        if self.assessment.health is None:
            return "the check returned nothing"
        return self.assessment.message

    @property
    def display_message(self) -> str:
        """The message, with the script name in place of Lua's `<string>`."""
        return insert_script_name(self.message, self.rule)

    @property
    def rule(self) -> str:
        return render_rule_name(self.assessment.rule) if self.assessment else ""

    @property
    def fault(self) -> str:
        return find_fault(self.assessment) if self.assessment else ""

    @property
    def is_builtin_rule(self) -> bool:
        """True if the rule is not a user's check; if it fails, the object is malformed."""
        return self.origin is not RuleOrigin.ARGOCD_CM


def insert_script_name(text: str, script: str) -> str:
    """Insert the script name, because Argo CD's messages call every script `<string>`."""
    return text.replace("<string>:", f"{script.removeprefix(f'{RuleOrigin.ARGOCD_CM} ')}:") if script else text


def find_fault(assessment: Assessment) -> str:
    """Return why a rule failed. An invalid status is Unknown in a cluster, but an error in a test."""
    is_invalid_status = (assessment.health, assessment.message) == (HealthStatus.UNKNOWN, INVALID_STATUS_MESSAGE)
    return assessment.fault or (
        f"{INVALID_STATUS_MESSAGE}: none of {', '.join(HealthStatus)}" if is_invalid_status else ""
    )


@dataclass(frozen=True)
class CheckTrial:
    """One run of a check on an empty object of its kind."""

    check: CustomHealthCheck
    health: str
    message: str
    fault: str

    @property
    def display_message(self) -> str:
        return insert_script_name(self.message, self.check.where)


ReportTestProgress = Callable[[str], None]
WorkResult = TypeVar("WorkResult")


class HealthTestRunner:
    """Context manager whose workers serve all runs. `tell` gets progress of work that takes longer than a second."""

    def __init__(self, report_progress: ReportTestProgress) -> None:
        self._report_progress = report_progress
        self._event_loop = asyncio.Runner()
        self.pool = WorkerPool(preload=("argosy.gitops.health.lua.worker",))

    def __enter__(self) -> HealthTestRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._event_loop.run(self.pool.close())
        finally:
            self._event_loop.close()

    def run_suite(self, suite: RuleTestSuite) -> list[CaseResult]:
        finished_count = 0

        def count_finished(now: int, _total: int) -> None:
            nonlocal finished_count
            finished_count = now

        suite_run = run_suite(suite, self.pool, progress=count_finished, gather=asyncio.gather)
        return self._wait(suite_run, lambda: f"{finished_count} of {len(suite.cases)} cases")

    def _wait(self, work: Coroutine[Any, Any, WorkResult], describe_progress: Callable[[], str]) -> WorkResult:
        async def report_until_done() -> WorkResult:
            running = asyncio.ensure_future(work)
            try:
                while not (await asyncio.wait({running}, timeout=PROGRESS_INTERVAL_SECONDS))[0]:
                    self._report_progress(describe_progress())
                return running.result()
            finally:
                running.cancel()  # after Ctrl-C
                await asyncio.gather(running, return_exceptions=True)

        return self._event_loop.run(report_until_done())

    def assess(
        self, customizations: Customizations, manifests: Sequence[Manifest], facts: Mapping[str, Any]
    ) -> list[ObjectHealth]:
        # No cache: files may share uid and resourceVersion, and are edited between runs.
        rulebook = HealthRules(customizations)
        assessor = HealthAssessor(rulebook, self.pool, max_cached=0)
        assessments = self._wait(assessor.assess_all(manifests, facts), lambda: f"assessing {len(manifests)} objects")
        return [
            ObjectHealth(_read_key(manifest), assessment, origin=_find_rule_origin(rulebook, manifest))
            for manifest, assessment in zip(manifests, assessments, strict=True)
        ]

    def try_checks(self, checks: Sequence[CustomHealthCheck]) -> list[CheckTrial]:
        """Run each check once on an object that has only a kind and a name; it must not fail."""
        payloads = [
            {"script": check.script, "manifest": _build_empty_object(check.pattern), "open": check.open_libs}
            for check in checks
        ]
        answers = self._wait(self.pool.run_batch(EVALUATE_FUNCTION, payloads), lambda: f"trying {len(checks)} checks")
        return [_read_trial(check, answer) for check, answer in zip(checks, answers, strict=True)]


def _read_key(manifest: Manifest) -> ResourceKey:
    """Read the key; objects in files may have only generateName."""
    metadata = manifest["metadata"]
    return key_of({**manifest, "metadata": {**metadata, "name": metadata.get("name") or metadata.get("generateName")}})


def _find_rule_origin(rulebook: HealthRules, manifest: Manifest) -> RuleOrigin | None:
    key = _read_key(manifest)
    rule = rulebook.find_rule(key.group, key.kind)
    return rule.origin if rule else None


def _build_empty_object(pattern: str) -> Manifest:
    group, _, kind = pattern.rpartition("/")
    group, kind = ("example.com" if has_wildcard(group) else group), ("Example" if has_wildcard(kind) else kind)
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": {"name": "empty"}}


def _read_trial(check: CustomHealthCheck, response: Any) -> CheckTrial:
    try:
        assessment = read_health(read_script_result(response))
    except LuaFault as fault:
        return CheckTrial(check, "Unknown", str(fault), str(fault))
    return CheckTrial(check, str(assessment.health or ""), assessment.message, find_fault(assessment))
