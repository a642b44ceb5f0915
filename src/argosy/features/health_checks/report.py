"""Report of `argosy health test`. In: test outcomes, object health, trials. Out: test cases. Never: runs anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.health_checks.kinds import kind_of
from argosy.features.health_checks.lint import ERROR, Linted, Looked
from argosy.features.health_checks.service import Trial, Verdict
from argosy.gitops.health.setting_error import EVERY_KIND, Fault
from argosy.gitops.health.test_suite import ActionCase, Case, DiscoveryCase, HealthCase, Outcome, report
from argosy.kube.names import GroupKind

CASES: Final[dict[str, type[Case]]] = {"health": HealthCase, "action": ActionCase, "discovery": DiscoveryCase}


@dataclass(frozen=True)
class Report:
    """Results of rule tests, of assessed objects, and of tested settings."""

    tests: tuple[Outcome, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    trials: tuple[Trial, ...] = ()
    review: Linted = field(default_factory=Linted)  # lint result of the tested settings
    failing: tuple[Fault, ...] = ()  # faults of settings that affect this test
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    expect: str = ""
    is_by_script: bool = False
    problems: tuple[UserError, ...] = ()  # unreadable files

    def outcomes(self) -> list[Outcome]:
        """List all results as test cases; a case of an object expects a health or nothing."""
        return [*self.tests, *self._judged(), *self._tried(), *map(_of_fault, self.failing)]

    def as_data(self) -> dict[str, Any]:
        """Build the JSON report; cases of objects include the rule, unless --script was used."""
        data = report(self.outcomes())
        if not self.is_by_script:
            cases = data["cases"][len(self.tests) :]
            for case, verdict in zip(cases, self.verdicts, strict=False):
                case |= {"rule": verdict.rule, "file": verdict.file, "message": verdict.message}
        return data

    def _judged(self) -> Iterator[Outcome]:
        return (_of_verdict(verdict, self.expect) for verdict in self.verdicts)

    def _tried(self) -> Iterator[Outcome]:
        """Yield one case per script: it must have no lint errors, and a check must not fail on a new object."""
        trials = {trial.check.where: trial for trial in self.trials}
        for looked in self.review.looked:
            trial = trials.get(looked.place) if looked.purpose == "health" else None
            group, kind = kind_of(looked.pattern)
            case = CASES[looked.purpose](group=group, kind=kind, name=looked.place)
            wrong = self._wrong(looked, trial)
            got: Any = {"error": wrong} if wrong else None
            if trial and not wrong:
                got = {"status": trial.health, "message": trial.message}
            yield Outcome(case, not wrong, None, got)

    def _wrong(self, looked: Looked, trial: Trial | None) -> str:
        if trial and trial.fault:
            return trial.fault
        errors = [each for each in self.review.of(looked) if each.severity == ERROR]
        return f"line {errors[0].line}: {errors[0].message} ({errors[0].rule})" if errors else ""


def _of_verdict(verdict: Verdict, expect: str) -> Outcome:
    key = verdict.key
    name = "/".join(part for part in (key.namespace, key.name) if part)
    case = HealthCase(group=key.group, kind=key.kind, name=name, status=expect or None)
    is_ok = not verdict.fault and expect in ("", verdict.health)
    got = {"error": verdict.fault} if verdict.fault else {"status": verdict.health, "message": verdict.message}
    return Outcome(case, is_ok, {"status": expect} if expect else None, got)


def _of_fault(fault: Fault) -> Outcome:
    group, kind = kind_of(fault.pattern) if fault.pattern != EVERY_KIND else GroupKind("", "")
    case = HealthCase(group=group, kind=kind, name=fault.where, status=None)
    return Outcome(case, False, None, {"error": fault.text})
