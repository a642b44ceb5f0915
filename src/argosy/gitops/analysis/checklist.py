"""Builds the checklist after a sync: statements that hold, do not hold, or need a person's judgement.

In: live Applications. Out: checklist items with evidence. Never: reports a statement as true without having checked
it.
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
    """One statement. `holds` is None if it cannot be decided from here."""

    text: str
    holds: bool | None
    told: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        return {"text": self.text, "holds": self.holds, "evidence": list(self.told)}


def checklist(apps: Sequence[LiveApp]) -> list[Item]:
    return [_synced(apps), _healthy(apps), _errors(apps), _branches(apps), _secrets(apps), _documented()]


def _synced(apps: Sequence[LiveApp]) -> Item:
    wrong = [app.name for app in apps if app.sync != "Synced" and not is_acceptable(app)]
    return Item("all applications are Synced, or OutOfSync only in fields that others own", not wrong, tuple(wrong))


def _healthy(apps: Sequence[LiveApp]) -> Item:
    wrong = [f"{app.name}: {app.health}" for app in apps if app.health != "Healthy"]
    return Item("all applications are Healthy", not wrong, tuple(wrong))


def _errors(apps: Sequence[LiveApp]) -> Item:
    wrong = [f"{app.name}: {kind}" for app in apps for kind, _ in app.conditions if kind in ERRORS]
    return Item("no ComparisonError and no SyncError", not wrong, tuple(wrong))


def _branches(apps: Sequence[LiveApp]) -> Item:
    """Branch names of unfinished work are wrong, whatever the default branch is called."""
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
    told = (f"not checked: {', '.join(unseen)}",) if unseen else ()
    return Item("no Secret with values is in Git", None if unseen else True, told)


def _documented() -> Item:
    return Item("new patterns are documented", None, ("needs a person's review",))
