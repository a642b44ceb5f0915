"""A rule: what it says, why it is sure, and how it looks.

In: a repository, or what lives. Out: sights. Never: a guess.
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
    """One that looks at Git has `look`; one that looks at a cluster has `diagnose`."""

    id: str
    severity: Severity
    title: str
    about: str  # what happens to whoever leaves it so
    why_sure: str
    fix: str
    look: Look = _nothing
    mends: str = ""  # when `--fix` does it
    diagnose: Diagnose = _nothing

    @property
    def is_live(self) -> bool:
        return self.diagnose is not _nothing


def live_rule(
    number: str, severity: Severity, title: str, about: str, why_sure: str, fix: str, diagnose: Diagnose
) -> Rule:
    return Rule(number, severity, title, about, why_sure, fix, diagnose=diagnose)
