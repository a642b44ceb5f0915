"""A rule: what it says, why it is sure, and how it looks.

In: a repository. Out: sights. Never: a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from argosy.advise.finding import Severity, Sight
from argosy.advise.repository import Repository

Look = Callable[[Repository], Iterable[Sight]]


@dataclass(frozen=True)
class Rule:
    id: str
    severity: Severity
    title: str
    about: str  # what happens to whoever leaves it so
    why_sure: str
    fix: str
    look: Look
    mends: str = ""  # when `--fix` does it
