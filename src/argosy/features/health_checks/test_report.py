"""Report of `argosy health test`. In: test outcomes, object health, trials. Out: test cases. Never: runs anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.health_checks.confined_test_runner import CheckTrial, ObjectHealth
from argosy.features.health_checks.kind_name_lookup import parse_kind_pattern
from argosy.features.health_checks.lint import ERROR_SEVERITY, LintedScript, LintResult
from argosy.gitops.health.setting_fault_and_location import EVERY_KIND, SettingFault
from argosy.gitops.health.test_suite import (
    ActionTestCase,
    CaseResult,
    DiscoveryTestCase,
    HealthTestCase,
    RuleTestCase,
    build_report,
)
from argosy.kube.resource_key import GroupKind

CASE_CLASSES: Final[dict[str, type[RuleTestCase]]] = {
    "health": HealthTestCase,
    "action": ActionTestCase,
    "discovery": DiscoveryTestCase,
}


@dataclass(frozen=True)
class HealthTestReport:
    """Results of rule tests, of assessed objects, and of tested settings."""

    tests: tuple[CaseResult, ...] = ()
    verdicts: tuple[ObjectHealth, ...] = ()
    trials: tuple[CheckTrial, ...] = ()
    lint_result: LintResult = field(default_factory=LintResult)  # lint result of the tested settings
    failing_faults: tuple[SettingFault, ...] = ()  # faults of settings that affect this test
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    expect: str = ""
    is_by_script: bool = False
    problems: tuple[UserError, ...] = ()  # unreadable files

    def list_outcomes(self) -> list[CaseResult]:
        """List all results as test cases; a case of an object expects a health or nothing."""
        return [
            *self.tests,
            *self._list_object_outcomes(),
            *self._list_script_outcomes(),
            *map(_build_fault_outcome, self.failing_faults),
        ]

    def to_wire(self) -> dict[str, Any]:
        """Build the JSON report; cases of objects include the rule, unless --script was used."""
        data = build_report(self.list_outcomes())
        if not self.is_by_script:
            cases = data["cases"][len(self.tests) :]
            for case, verdict in zip(cases, self.verdicts, strict=False):
                case |= {"rule": verdict.rule, "file": verdict.file, "message": verdict.message}
        return data

    def _list_object_outcomes(self) -> Iterator[CaseResult]:
        return (_build_object_outcome(verdict, self.expect) for verdict in self.verdicts)

    def _list_script_outcomes(self) -> Iterator[CaseResult]:
        """Yield one case per script: it must have no lint errors, and a check must not fail on a new object."""
        trials = {trial.check.where: trial for trial in self.trials}
        for script in self.lint_result.linted_scripts:
            trial = trials.get(script.place) if script.purpose == "health" else None
            group, kind = parse_kind_pattern(script.pattern)
            case = CASE_CLASSES[script.purpose](group=group, kind=kind, name=script.place)
            error = self._find_error(script, trial)
            got: Any = {"error": error} if error else None
            if trial and not error:
                got = {"status": trial.health, "message": trial.message}
            yield CaseResult(case, not error, None, got)

    def _find_error(self, script: LintedScript, trial: CheckTrial | None) -> str:
        if trial and trial.fault:
            return trial.fault
        errors = [
            remark for remark in self.lint_result.list_script_remarks(script) if remark.severity == ERROR_SEVERITY
        ]
        return f"line {errors[0].line}: {errors[0].message} ({errors[0].rule})" if errors else ""


def _build_object_outcome(verdict: ObjectHealth, expect: str) -> CaseResult:
    key = verdict.key
    name = "/".join(part for part in (key.namespace, key.name) if part)
    case = HealthTestCase(group=key.group, kind=key.kind, name=name, status=expect or None)
    is_ok = not verdict.fault and expect in ("", verdict.health)
    got = {"error": verdict.fault} if verdict.fault else {"status": verdict.health, "message": verdict.message}
    return CaseResult(case, is_ok, {"status": expect} if expect else None, got)


def _build_fault_outcome(fault: SettingFault) -> CaseResult:
    group, kind = parse_kind_pattern(fault.pattern) if fault.pattern != EVERY_KIND else GroupKind("", "")
    case = HealthTestCase(group=group, kind=kind, name=fault.where, status=None)
    return CaseResult(case, False, None, {"error": fault.text})
