"""What triggers a reconciliation: refresh annotations, spec and live changes, timeouts and pushes."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.source.webhook_payloads import Push
from support.engine import Room, config_map
from support.tiers import IN_TEST_ALL

pytestmark = pytest.mark.anyio
ONE = {"app/settings.yaml": config_map(a="one")}


@pytest.mark.parametrize(
    "word", ["hard", *(pytest.param(value, marks=IN_TEST_ALL) for value in ("normal", "whatever"))]
)
async def test_refresh_annotation_with_any_value_is_handled_and_removed(room: Room, word: str) -> None:
    room.repository.push(ONE)
    await room.deliver()
    before = await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    room.clock.leap(90)
    await room.annotate(refresh=word, refresh_timestamp="2026-01-01T00:00:00.000001Z")
    app = await room.until(lambda status: status["reconciledAt"] != before["status"]["reconciledAt"])
    assert not [name for name in app["metadata"].get("annotations") or () if "argoproj.io/refresh" in name]


async def test_refresh_without_changes_within_a_minute_writes_no_status(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver()
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    before = (await room.app())["status"]
    assert (await room.settled())["status"] == before


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"source": {"path": "other"}}, marks=IN_TEST_ALL),
        pytest.param({"destination": {"namespace": "argocd"}}, marks=IN_TEST_ALL),
        {"ignoreDifferences": [{"kind": "ConfigMap", "jsonPointers": ["/data"]}]},
    ],
    ids=["source", "destination", "ignoreDifferences"],
)
async def test_spec_change_triggers_a_comparison(room: Room, change: dict[str, Any]) -> None:
    room.repository.push({**ONE, "other/settings.yaml": config_map("other")})
    await room.deliver()
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    await room.patch_app({"spec": change})
    (name, expected), *_ = change.items()

    def holds(status: dict[str, Any]) -> bool:
        actual = status["sync"]["comparedTo"].get(name)
        return actual == expected if isinstance(expected, list) else expected.items() <= (actual or {}).items()

    await room.until(holds)


async def test_application_is_reconciled_again_after_the_reconciliation_timeout(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver()
    before = await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    await room.settled()
    # argo: 120 s plus at most 60 s; repeated, because the timer may be set only after the clock has leapt
    await room.until(lambda status: room.clock.leap(181) or status["reconciledAt"] > before["status"]["reconciledAt"])


async def test_live_object_change_triggers_a_comparison(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver()
    await room.sync()
    await room.until_synced()
    await room.change(a="changed")
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    await room.change(a="one")
    await room.until(lambda status: status["sync"]["status"] == "Synced")


async def test_push_webhook_refreshes_only_matching_applications(room: Room) -> None:
    room.repository.push(ONE)
    elsewhere = {"repoURL": "https://git.example.com/team/app.git", "path": "app", "targetRevision": "main"}
    await room.deliver("elsewhere", source=elsewhere)
    await room.deliver("pinned", source={**elsewhere, "targetRevision": "v1"})
    await room.deliver()
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    push = Push(urls=("https://git.example.com/team/app",), ref="refs/heads/main", default_branch="main")
    woken = await room.engine.handle_pushes([push])
    assert [key.name for key in woken] == ["elsewhere"]


async def test_new_application_and_new_source_use_the_last_push(room: Room) -> None:
    room.repository.push({**ONE, "other/settings.yaml": config_map("other")})
    await room.deliver()
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    revision = room.repository.push({"app/settings.yaml": config_map(a="two")})
    await room.deliver("second")
    second = await room.until(lambda status: "sync" in status, name="second")
    assert second["status"]["sync"]["revision"] == revision
    revision = room.repository.push({"other/settings.yaml": config_map("other", a="two")})
    await room.patch_app({"spec": {"source": {"path": "other"}}})
    moved = await room.until(lambda status: status["sync"]["comparedTo"]["source"]["path"] == "other")
    assert moved["status"]["sync"]["revision"] == revision
