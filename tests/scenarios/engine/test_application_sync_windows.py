"""Sync windows: their effect on automated and manual syncs of an Application."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from argosy.gitops.reconciler.operation_dispatcher import CLOSED_WINDOW_RECHECK_SECONDS
from support.engine import Room, config_map

pytestmark = pytest.mark.anyio
ONE = {"app/settings.yaml": config_map(a="one")}
ALWAYS = {"schedule": "* * * * *", "duration": "1h", "applications": ["*"]}
NEVER = {"schedule": "0 0 29 2 *", "duration": "1s", "applications": ["*"]}
AUTOMATED = {"automated": {}}


@pytest.mark.parametrize(
    "window",
    [
        {**ALWAYS, "kind": "deny"},
        {**NEVER, "kind": "allow"},
        {**ALWAYS, "kind": "deny", "manualSync": True},
        {**ALWAYS, "kind": "allow", "schedule": "no cron"},
    ],
    ids=["deny", "no allow", "deny but for hands", "bad cron"],
)
async def test_auto_sync_does_not_start_while_a_window_denies_it(room: Room, window: dict[str, Any]) -> None:
    room.repository.push(ONE)
    await room.project(syncWindows=[window])
    await room.deliver(project="team", syncPolicy=AUTOMATED)
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    app = await room.settled()
    assert "operationState" not in app["status"]
    assert await room.get("ConfigMap", "settings") is None


async def test_open_allow_window_permits_auto_sync(room: Room) -> None:
    room.repository.push(ONE)
    await room.project(syncWindows=[{**ALWAYS, "kind": "allow"}])
    await room.deliver(project="team", syncPolicy=AUTOMATED)
    await room.until_synced()


async def test_manual_sync_waits_for_a_deny_window_and_reports_it(room: Room) -> None:
    room.repository.push(ONE)
    await room.project(syncWindows=[{**ALWAYS, "kind": "deny", "description": "freeze"}])
    await room.deliver(project="team")
    await room.sync()
    words = "Sync operation blocked by sync window: a deny window is open without end: * * * * * for 1h (freeze)"
    app = await room.until(lambda status: words in (status.get("operationState") or {}).get("message", ""))
    assert app["status"]["operationState"]["phase"] == "Running"
    project = await room.get("argoproj.io/AppProject", "team", "argocd") or {}
    project["spec"]["syncWindows"] = []
    await room.cluster.replace(project)
    await room.until_synced()


async def test_manual_sync_passes_a_deny_window_with_manual_sync(room: Room) -> None:
    room.repository.push(ONE)
    await room.project(syncWindows=[{**ALWAYS, "kind": "deny", "manualSync": True}])
    await room.deliver(project="team")
    await room.sync()
    await room.until_synced()


async def test_window_affects_only_matching_applications(room: Room) -> None:
    room.repository.push(ONE)
    await room.project(syncWindows=[{**ALWAYS, "kind": "deny", "applications": ["other*"]}])
    await room.deliver(project="team", syncPolicy=AUTOMATED)
    await room.until_synced()


HOUR = 3600.0


def opens_in_six_hours(room: Room) -> dict[str, Any]:
    """Return an allow window that opens in six hours, for two hours a day."""
    opens = room.clock.now() + timedelta(hours=6)
    schedule = f"{opens.minute} {opens.hour} * * *"
    return {"kind": "allow", "schedule": schedule, "duration": "2h", "applications": ["*"]}


@pytest.mark.parametrize("jump", [6 * HOUR, -18 * HOUR])
async def test_window_is_reevaluated_after_a_clock_change(room: Room, jump: float) -> None:
    room.repository.push(ONE)
    await room.project(syncWindows=[opens_in_six_hours(room)])
    await room.deliver(project="team", syncPolicy=AUTOMATED)
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    assert "operationState" not in (await room.settled())["status"]
    room.clock.set_by(jump + 60)
    room.clock.leap(CLOSED_WINDOW_RECHECK_SECONDS)
    await room.until_synced()
    room.clock.set_by(-jump - 60)
    revision = room.repository.push({"app/settings.yaml": config_map(a="two")})
    room.clock.leap(CLOSED_WINDOW_RECHECK_SECONDS)
    await room.until(lambda status: status["sync"]["revision"] == revision)
    state = (await room.settled())["status"]["operationState"]
    assert state["syncResult"]["revision"] != revision, "the window is closed again"
    room.clock.set_by(jump + 60)
    room.clock.leap(CLOSED_WINDOW_RECHECK_SECONDS)
    await room.until_synced(revision)


@pytest.mark.parametrize("jump", [6 * HOUR, -18 * HOUR])
async def test_waiting_manual_sync_starts_after_a_clock_change(room: Room, jump: float) -> None:
    room.repository.push(ONE)
    await room.project(syncWindows=[opens_in_six_hours(room)])
    await room.deliver(project="team")
    await room.sync()
    await room.until(lambda status: "no allow window" in (status.get("operationState") or {}).get("message", ""))
    room.clock.set_by(jump + 60)
    room.clock.leap(CLOSED_WINDOW_RECHECK_SECONDS)
    await room.until_synced()
