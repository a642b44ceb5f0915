"""Follows Applications until something is true of them.

In: Applications, what to wait for. Out: how it ended. Never: waits for what cannot come by itself, unless told to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from argosy.app.applications.desk import Desk
from argosy.app.applications.facts import health_word, is_busy, rows, sync_word
from argosy.app.applications.requests import chosen_keys
from argosy.model.application import Application, read_application
from argosy.model.manifest import Manifest
from argosy.report.wire import mapping, mappings
from argosy.setup.waiting import until

FOR_EVER: Final = 3e8  # seconds
UNHEARD: Final = 10.0  # seconds after which somebody is told that nobody takes the work up

Seen = Callable[[Application], None]
Tell = Callable[[str], None]


class Ending(StrEnum):
    REACHED = "reached"
    TOO_LATE = "too late"
    HOPELESS = "hopeless"
    GONE = "gone"


class Ended(NamedTuple):
    ending: Ending
    app: Application | None
    why: str = ""


@dataclass(frozen=True)
class Waited:
    """argo: the flags of its wait; no flag of these three stands for all of them."""

    sync: bool = False
    operation: bool = False
    health: frozenset[str] = frozenset()
    is_deleted: bool = False
    resources: tuple[str, ...] = ()
    gives_up: bool = True  # on what cannot come by itself

    def missing(self, app: Application) -> list[str]:
        """What is not yet so, in sentences."""
        found = []
        if self.is_deleted:
            return ["it is still there"]
        if self.operation and is_busy(app):
            told = app.state.message if app.state and not app.state.progress.is_over else "not begun"
            found.append(f"its operation is not over: {told or 'running'}")
        if self.resources:
            return found + self._missing_resources(app)
        if self.sync and sync_word(app) != "Synced":
            found.append(f"it is {sync_word(app)}, not Synced")
        if self.health and health_word(app) not in self.health:
            found.append(f"it is {health_word(app)}, not {' or '.join(sorted(self.health))}")
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


def hopeless(app: Application, waited: Waited) -> str:
    """Why waiting longer cannot help; empty where it may."""
    if waited.is_deleted or is_busy(app) or not app.status:
        return ""
    for each in mappings(app.status.get("conditions")):
        if each.get("type") == "InvalidSpecError":
            return f"InvalidSpecError: {each.get('message')}"
    if not waited.sync or sync_word(app) != "OutOfSync":
        return ""
    automated = app.policy.automated
    if app.state is not None and app.state.progress in ("Failed", "Error") and _is_of_now(app):
        return f"the sync of this revision {app.state.progress.value.lower()}: {app.state.message}"
    if automated is None or not automated.is_on:
        return "nobody asked for a sync, and it does not sync by itself"
    return ""


def _is_of_now(app: Application) -> bool:
    """Whether the last operation was about what is wanted now: no other one begins by itself for that."""
    if app.state is None:
        return False
    sync = mapping(app.status.get("sync"))
    return bool(app.state.revision) and app.state.revision == sync.get("revision")


async def follow(desk: Desk, app: Application, waited: Waited, seconds: float, see: Seen) -> Ended:
    """Until nothing is missing. `see` is told of every state on the way."""
    last: list[Application | None] = [app]
    told = [""]

    def is_done(manifest: Manifest | None) -> bool:
        if manifest is None:
            last[0] = None
            return True
        now = last[0] = read_application(manifest)
        see(now)
        if not waited.missing(now):
            return True
        told[0] = hopeless(now, waited) if waited.gives_up else ""
        return bool(told[0])

    in_time = await until(desk.cluster, app.key, is_done, seconds or FOR_EVER)
    if not in_time:
        return Ended(Ending.TOO_LATE, last[0])
    if last[0] is None:
        return Ended(Ending.REACHED if waited.is_deleted else Ending.GONE, None)
    return Ended(Ending.HOPELESS if told[0] else Ending.REACHED, last[0], told[0])


async def follow_operation(desk: Desk, app: Application, seconds: float, see: Seen, tell: Tell) -> Ended:
    """Until the operation that was just asked for is over."""
    begun = asyncio.Event()

    def watch(now: Application) -> None:
        if now.operation is None or (now.state is not None and not now.state.progress.is_over):
            begun.set()
        see(now)

    async def remind() -> None:
        try:
            await asyncio.wait_for(begun.wait(), UNHEARD)
        except TimeoutError:
            tell(f"{app.name}: nobody has taken the operation up yet; does a controller run? argosy controller")

    reminder = asyncio.create_task(remind())
    try:
        return await follow(desk, app, Waited(operation=True, gives_up=False), seconds, watch)
    finally:
        reminder.cancel()
