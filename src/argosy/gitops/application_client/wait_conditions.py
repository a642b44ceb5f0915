"""Conditions of `app wait`, and whether they can still be met without action.

In: an Application, the conditions. Out: unmet conditions; why waiting is in vain. Never: asks a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from argosy.gitops.application import Application
from argosy.gitops.application_client.status_summary import (
    is_busy,
    list_rows,
    read_health_message,
    read_health_status,
    read_sync_status,
)
from argosy.gitops.application_client.sync_operation_builder import select_keys
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.gitops.status.sync_hold_annotation import read_hold

BLOCKING_CONDITIONS: Final = ("InvalidSpecError", "ComparisonError")  # nothing is compared until a user fixes it
FAILED_PHASES: Final = ("Failed", "Error")


@dataclass(frozen=True)
class WaitConditions:
    """argo: the flags of `app wait`; without --sync, --operation and --health all three apply."""

    sync: bool = False
    operation: bool = False
    health: frozenset[str] = frozenset()
    is_deleted: bool = False
    resources: tuple[str, ...] = ()
    gives_up_early: bool = True  # gives up if a condition cannot be met without action

    def list_unmet(self, app: Application) -> list[str]:
        """Describe the conditions that are not met yet."""
        unmet = []
        if self.is_deleted:
            return ["the application still exists"]
        if self.operation and is_busy(app):
            detail = app.state.message if app.state and not app.state.phase.is_over else "not started"
            unmet.append(f"the operation is not finished: {detail or 'running'}")
        if self.resources:
            return unmet + self._list_unmet_resources(app)
        if self.sync and read_sync_status(app) != "Synced":
            unmet.append(f"sync status is {read_sync_status(app)}, not Synced")
        if self.health and read_health_status(app) not in self.health:
            unmet.append(f"health is {read_health_status(app)}, not {' or '.join(sorted(self.health))}")
        return unmet

    def _list_unmet_resources(self, app: Application) -> list[str]:
        unmet = []
        keys = set(select_keys(app, self.resources))
        for row in list_rows(app):
            if row.key not in keys:
                continue
            display_name = f"{row.key.kind}/{row.key.name}"
            if self.sync and row.status not in ("Synced", "Succeeded", ""):
                unmet.append(f"{display_name} is {row.status}, not Synced")
            if self.health and row.health and row.health not in self.health:
                unmet.append(f"{display_name} is {row.health}, not {' or '.join(sorted(self.health))}")
        return unmet

    @property
    def wants_healthy(self) -> bool:
        """True if a Degraded object prevents success."""
        return "Healthy" in self.health and "Degraded" not in self.health


class WaitFailure(NamedTuple):
    """Why waiting longer is in vain. An uncertain reason counts only after it has lasted for a while."""

    reason: str
    is_certain: bool = True


def find_wait_failure(app: Application, conditions: WaitConditions) -> WaitFailure | None:
    """Return why the conditions cannot be met without action; None if they still may be."""
    if conditions.is_deleted or is_busy(app) or not app.status:
        return None
    for condition in as_mappings(app.status.get("conditions")):
        if condition.get("type") in BLOCKING_CONDITIONS:
            return WaitFailure(
                f"{condition.get('type')}: {condition.get('message')}", condition.get("type") == BLOCKING_CONDITIONS[0]
            )
    if reason := _explain_no_sync(app, conditions):
        return WaitFailure(reason)
    return _find_health_failure(app, conditions)


def _explain_no_sync(app: Application, conditions: WaitConditions) -> str:
    """Explain why no sync will start."""
    is_waited_for = conditions.sync or (conditions.wants_healthy and read_health_status(app) == "Missing")
    if not is_waited_for or read_sync_status(app) != "OutOfSync":
        return ""
    if app.state is not None and app.state.phase in FAILED_PHASES and _has_synced_current_revision(app):
        return f"the sync of this revision {app.state.phase.value.lower()}: {app.state.message}"
    automated = app.policy.automated
    if automated is None or not automated.is_on:
        return "no sync was requested, and automated sync is off"
    hold = read_hold(app.annotations)
    if hold is None:
        return ""
    return f"automated sync is held{f' by {hold.by}' if hold.by else ''}{f': {hold.reason}' if hold.reason else ''}"


def _has_synced_current_revision(app: Application) -> bool:
    """True if the last operation synced the current revision: automated sync does not repeat it."""
    if app.state is None:
        return False
    sync = as_mapping(app.status.get("sync"))
    if app.state.revisions:
        return list(app.state.revisions) == sync.get("revisions")
    return bool(app.state.revision) and app.state.revision == sync.get("revision")


def _find_health_failure(app: Application, conditions: WaitConditions) -> WaitFailure | None:
    """Degraded objects stay so without action; only self heal or a due sync would act."""
    if not conditions.wants_healthy or _will_sync_automatically(app):
        return None
    if not conditions.resources:
        if read_health_status(app) != "Degraded":
            return None
        message = read_health_message(app)
        return WaitFailure(f"health is Degraded{f': {message}' if message else ''}, and no operation is running", False)
    keys = set(select_keys(app, conditions.resources))
    degraded = [row for row in list_rows(app) if row.key in keys and row.health == "Degraded"]
    if not degraded:
        return None
    names = ", ".join(f"{row.key.kind}/{row.key.name}" for row in degraded)
    return WaitFailure(f"{names}: Degraded, and no operation is running", False)


def _will_sync_automatically(app: Application) -> bool:
    automated = app.policy.automated
    if automated is None or not automated.is_on or read_hold(app.annotations) is not None:
        return False
    return automated.self_heal or read_sync_status(app) == "OutOfSync"


__all__ = ["WaitConditions", "WaitFailure", "find_wait_failure"]
