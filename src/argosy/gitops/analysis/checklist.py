"""What to verify after a sync, as assertions: each is true, false, or for people to judge.

In: Applications as they live. Out: items with their evidence. Never: calls something true that nobody has looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.gitops.analysis.live_view import LiveApp
from argosy.gitops.analysis.rules.live.drift import is_acceptable

ERRORS: Final = ("ComparisonError", "SyncError")
WORK: Final = ("feature/", "feat/", "bugfix/", "fix/", "wip/", "dev/")


@dataclass(frozen=True)
class Item:
    """`holds` is None where it cannot be judged from here."""

    text: str
    holds: bool | None
    told: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        return {"text": self.text, "holds": self.holds, "evidence": list(self.told)}


def checklist(apps: Sequence[LiveApp]) -> list[Item]:
    return [_synced(apps), _healthy(apps), _errors(apps), _branches(apps), _secrets(apps), _documented()]


def _synced(apps: Sequence[LiveApp]) -> Item:
    wrong = [app.name for app in apps if app.sync != "Synced" and not is_acceptable(app)]
    return Item("all applications are Synced, or OutOfSync only by what others own", not wrong, tuple(wrong))


def _healthy(apps: Sequence[LiveApp]) -> Item:
    wrong = [f"{app.name}: {app.health}" for app in apps if app.health != "Healthy"]
    return Item("all applications are Healthy", not wrong, tuple(wrong))


def _errors(apps: Sequence[LiveApp]) -> Item:
    wrong = [f"{app.name}: {kind}" for app in apps for kind, _ in app.conditions if kind in ERRORS]
    return Item("there is no ComparisonError and no SyncError", not wrong, tuple(wrong))


def _branches(apps: Sequence[LiveApp]) -> Item:
    """Branches of unfinished work are wrong whatever the default branch is called."""
    mine = [app for app in apps if app.is_production]
    wrong = [
        f"{app.name}: {source.ref}, not {app.default_branch or 'the default branch'}"
        for app in mine
        for source in app.app.sources[:1]
        if app.default_branch or source.ref.startswith(WORK)
    ]
    return Item("production applications follow the default branch", not wrong, tuple(wrong))


def _secrets(apps: Sequence[LiveApp]) -> Item:
    wrong = tuple(f"{app.name}: {name}" for app in apps for name in app.open_secrets or ())
    unseen = [app.name for app in apps if app.open_secrets is None]
    if wrong:
        return Item("no Secret with values is in Git", False, wrong)
    told = (f"not looked at: {', '.join(unseen)}",) if unseen else ()
    return Item("no Secret with values is in Git", None if unseen else True, told)


def _documented() -> Item:
    return Item("new patterns are documented", None, ("for people to judge",))
