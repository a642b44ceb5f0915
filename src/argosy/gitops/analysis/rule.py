"""A rule: its text, why it is certain, and the function that checks it.

In: a repository or an installation. Out: violations. Never: guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from argosy.gitops.analysis.live_view import LiveView
from argosy.gitops.analysis.repository_view import RepositoryView
from argosy.gitops.analysis.rule_violation import Severity, Violation

CheckRepository = Callable[[RepositoryView], Iterable[Violation]]
CheckInstallation = Callable[[LiveView], Iterable[Violation]]


def _find_nothing(view: object) -> Iterable[Violation]:
    return ()


@dataclass(frozen=True)
class AnalysisRule:
    """A rule of `argosy check` has `check_repository`, a rule of `argosy doctor` has `check_installation`."""

    id: str
    severity: Severity
    title: str
    consequence: str  # the consequence if it is not fixed
    certainty: str
    fix: str
    check_repository: CheckRepository = _find_nothing
    automatic_fix: str = ""  # when `--fix` applies a fix
    check_installation: CheckInstallation = _find_nothing

    @property
    def is_live(self) -> bool:
        return self.check_installation is not _find_nothing


def build_live_rule(
    number: str,
    severity: Severity,
    title: str,
    consequence: str,
    certainty: str,
    fix: str,
    check_installation: CheckInstallation,
) -> AnalysisRule:
    return AnalysisRule(number, severity, title, consequence, certainty, fix, check_installation=check_installation)
