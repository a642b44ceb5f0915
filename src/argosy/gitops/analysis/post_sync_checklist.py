"""Builds the checklist after a sync: statements that hold, do not hold, or need a person's judgement.

In: live Applications. Out: checklist items with evidence. Never: reports a statement as true without having checked
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.gitops.analysis.live_view import LiveApplication
from argosy.gitops.analysis.rules.live.drift_and_failed_syncs import has_acceptable_drift

ERROR_CONDITIONS: Final = ("ComparisonError", "SyncError")
WORK_BRANCH_PREFIXES: Final = ("feature/", "feat/", "bugfix/", "fix/", "wip/", "dev/")


@dataclass(frozen=True)
class ChecklistItem:
    """One statement. `holds` is None if it cannot be decided from here."""

    text: str
    holds: bool | None
    evidence: tuple[str, ...] = ()

    def to_wire(self) -> dict[str, Any]:
        return {"text": self.text, "holds": self.holds, "evidence": list(self.evidence)}


def build_checklist(apps: Sequence[LiveApplication]) -> list[ChecklistItem]:
    return [
        _check_synced(apps),
        _check_healthy(apps),
        _check_error_conditions(apps),
        _check_production_branches(apps),
        _check_secrets(apps),
        _check_documentation(),
    ]


def _check_synced(apps: Sequence[LiveApplication]) -> ChecklistItem:
    app_names = [app.name for app in apps if app.sync != "Synced" and not has_acceptable_drift(app)]
    return ChecklistItem(
        "all applications are Synced, or OutOfSync only in fields that others own", not app_names, tuple(app_names)
    )


def _check_healthy(apps: Sequence[LiveApplication]) -> ChecklistItem:
    app_texts = [f"{app.name}: {app.health}" for app in apps if app.health != "Healthy"]
    return ChecklistItem("all applications are Healthy", not app_texts, tuple(app_texts))


def _check_error_conditions(apps: Sequence[LiveApplication]) -> ChecklistItem:
    error_texts = [f"{app.name}: {kind}" for app in apps for kind, _ in app.conditions if kind in ERROR_CONDITIONS]
    return ChecklistItem("no ComparisonError and no SyncError", not error_texts, tuple(error_texts))


def _check_production_branches(apps: Sequence[LiveApplication]) -> ChecklistItem:
    """Branch names of unfinished work are wrong, whatever the default branch is called."""
    production_apps = [app for app in apps if app.is_production]
    branch_texts = [
        f"{app.name}: {source.ref}, not {app.default_branch or 'the default branch'}"
        for app in production_apps
        for source in app.app.sources[:1]
        if app.default_branch or source.ref.startswith(WORK_BRANCH_PREFIXES)
    ]
    return ChecklistItem("production applications follow the default branch", not branch_texts, tuple(branch_texts))


def _check_secrets(apps: Sequence[LiveApplication]) -> ChecklistItem:
    secret_texts = tuple(f"{app.name}: {name}" for app in apps for name in app.plain_secrets or ())
    unchecked_names = [app.name for app in apps if app.plain_secrets is None]
    if secret_texts:
        return ChecklistItem("no Secret with values is in Git", False, secret_texts)
    evidence = (f"not checked: {', '.join(unchecked_names)}",) if unchecked_names else ()
    return ChecklistItem("no Secret with values is in Git", None if unchecked_names else True, evidence)


def _check_documentation() -> ChecklistItem:
    return ChecklistItem("new patterns are documented", None, ("needs a person's review",))
