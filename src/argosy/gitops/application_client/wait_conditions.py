"""Conditions of `app wait`, and whether they can still be met without action.

In: an Application, the conditions. Out: unmet conditions; why waiting is in vain. Never: asks a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from argosy.gitops.application import Application
from argosy.gitops.application_client.summary import health_message, health_word, is_busy, rows, sync_word
from argosy.gitops.application_client.sync_requests import chosen_keys
from argosy.gitops.status.hold import read_hold
from argosy.gitops.status.wire_format import mapping, mappings

BROKEN: Final = ("InvalidSpecError", "ComparisonError")  # nothing is compared until a user fixes it
FAILED: Final = ("Failed", "Error")


@dataclass(frozen=True)
class Waited:
    """argo: the flags of `app wait`; without --sync, --operation and --health all three apply."""

    sync: bool = False
    operation: bool = False
    health: frozenset[str] = frozenset()
    is_deleted: bool = False
    resources: tuple[str, ...] = ()
    gives_up: bool = True  # gives up if a condition cannot be met without action

    def missing(self, app: Application) -> list[str]:
        """Describe the conditions that are not met yet."""
        found = []
        if self.is_deleted:
            return ["the application still exists"]
        if self.operation and is_busy(app):
            told = app.state.message if app.state and not app.state.progress.is_over else "not started"
            found.append(f"the operation is not finished: {told or 'running'}")
        if self.resources:
            return found + self._missing_resources(app)
        if self.sync and sync_word(app) != "Synced":
            found.append(f"sync status is {sync_word(app)}, not Synced")
        if self.health and health_word(app) not in self.health:
            found.append(f"health is {health_word(app)}, not {' or '.join(sorted(self.health))}")
        return found

    def _missing_resources(self, app: Application) -> list[str]:
        found = []
        keys = set(chosen_keys(app, self.resources))
        for row in rows(app):
            if row.key not in keys:
                continue
            what = f"{row.key.kind}/{row.key.name}"
            if self.sync and row.status not in ("Synced", "Succeeded", ""):
                found.append(f"{what} is {row.status}, not Synced")
            if self.health and row.health and row.health not in self.health:
                found.append(f"{what} is {row.health}, not {' or '.join(sorted(self.health))}")
        return found

    @property
    def wants_health(self) -> bool:
        """True if a Degraded object prevents success."""
        return "Healthy" in self.health and "Degraded" not in self.health


class Doom(NamedTuple):
    """Why waiting longer is in vain. An uncertain reason counts only after it has lasted for a while."""

    why: str
    is_certain: bool = True


def doom(app: Application, waited: Waited) -> Doom | None:
    """Return why the conditions cannot be met without action; None if they still may be."""
    if waited.is_deleted or is_busy(app) or not app.status:
        return None
    for each in mappings(app.status.get("conditions")):
        if each.get("type") in BROKEN:
            return Doom(f"{each.get('type')}: {each.get('message')}", each.get("type") == BROKEN[0])
    if why := _unsynced(app, waited):
        return Doom(why)
    return _unwell(app, waited)


def _unsynced(app: Application, waited: Waited) -> str:
    """Explain why no sync will start."""
    is_waited_for = waited.sync or (waited.wants_health and health_word(app) == "Missing")
    if not is_waited_for or sync_word(app) != "OutOfSync":
        return ""
    if app.state is not None and app.state.progress in FAILED and _is_of_now(app):
        return f"the sync of this revision {app.state.progress.value.lower()}: {app.state.message}"
    automated = app.policy.automated
    if automated is None or not automated.is_on:
        return "no sync was requested, and automated sync is off"
    hold = read_hold(app.annotations)
    if hold is None:
        return ""
    return f"automated sync is held{f' by {hold.by}' if hold.by else ''}{f': {hold.reason}' if hold.reason else ''}"


def _is_of_now(app: Application) -> bool:
    """True if the last operation synced the current revision: automated sync does not repeat it."""
    if app.state is None:
        return False
    sync = mapping(app.status.get("sync"))
    if app.state.revisions:
        return list(app.state.revisions) == sync.get("revisions")
    return bool(app.state.revision) and app.state.revision == sync.get("revision")


def _unwell(app: Application, waited: Waited) -> Doom | None:
    """Degraded objects stay so without action; only self heal or a due sync would act."""
    if not waited.wants_health or _is_acted_upon(app):
        return None
    if not waited.resources:
        if health_word(app) != "Degraded":
            return None
        message = health_message(app)
        return Doom(f"health is Degraded{f': {message}' if message else ''}, and no operation is running", False)
    keys = set(chosen_keys(app, waited.resources))
    unwell = [row for row in rows(app) if row.key in keys and row.health == "Degraded"]
    if not unwell:
        return None
    names = ", ".join(f"{row.key.kind}/{row.key.name}" for row in unwell)
    return Doom(f"{names}: Degraded, and no operation is running", False)


def _is_acted_upon(app: Application) -> bool:
    automated = app.policy.automated
    if automated is None or not automated.is_on or read_hold(app.annotations) is not None:
        return False
    return automated.self_heal or sync_word(app) == "OutOfSync"


__all__ = ["Doom", "Waited", "doom"]
