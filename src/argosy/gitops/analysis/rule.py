"""A rule: its text, why it is certain, and the function that checks it.

In: a repository or an installation. Out: violations. Never: guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from argosy.gitops.analysis.live_view import LiveView
from argosy.gitops.analysis.repository import Repository
from argosy.gitops.analysis.violation import Severity, Sight

Look = Callable[[Repository], Iterable[Sight]]
Diagnose = Callable[[LiveView], Iterable[Sight]]


def _nothing(seen: object) -> Iterable[Sight]:
    return ()


@dataclass(frozen=True)
class Rule:
    """A rule of `argosy check` has `check_repository`, a rule of `argosy doctor` has `check_installation`."""

    id: str
    severity: Severity
    title: str
    about: str  # the consequence if it is not fixed
    why_sure: str
    fix: str
    look: Look = _nothing
    mends: str = ""  # when `--fix` applies a fix
    diagnose: Diagnose = _nothing

    @property
    def is_live(self) -> bool:
        return self.diagnose is not _nothing


def live_rule(
    number: str, severity: Severity, title: str, about: str, why_sure: str, fix: str, diagnose: Diagnose
) -> Rule:
    return Rule(number, severity, title, about, why_sure, fix, diagnose=diagnose)
