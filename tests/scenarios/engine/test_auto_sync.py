"""Auto-sync: when an Application is synced automatically, and when it is not."""

from __future__ import annotations

from typing import Any

import pytest

from support.engine import Room, conditions, config_map
from support.tiers import IN_TEST_ALL

pytestmark = pytest.mark.anyio
ONE = {"app/settings.yaml": config_map(a="one")}


def automated(**switches: Any) -> dict[str, Any]:
    return {"automated": switches}


def broken() -> dict[str, Any]:
    return {**config_map("broken"), "data": {"a": ["no text"]}}


async def test_automated_sync_records_initiator_revision_and_options(room: Room) -> None:
    revision = room.repository.push(ONE)
    await room.deliver(syncPolicy={**automated(prune=True), "syncOptions": ["PruneLast=true"]})
    app = await room.until_synced()
    operation = app["status"]["operationState"]["operation"]
    assert operation["initiatedBy"] == {"automated": True}
    assert operation["retry"] == {"limit": 5}
    assert operation["sync"]["revision"] == revision
    assert operation["sync"]["prune"] is True
    assert operation["sync"]["syncOptions"] == ["PruneLast=true"]
    assert "operation" not in app


@pytest.mark.parametrize(
    "policy", [pytest.param({}, marks=IN_TEST_ALL), automated(enabled=False)], ids=["none", "switched off"]
)
async def test_no_sync_starts_without_automated_policy(room: Room, policy: dict[str, Any]) -> None:
    room.repository.push(ONE)
    await room.deliver(syncPolicy=policy)
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    app = await room.settled()
    assert "operationState" not in app["status"]
    assert await room.get("ConfigMap", "settings") is None


@pytest.mark.tier("all")
async def test_automated_policy_with_null_enabled_syncs(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver(syncPolicy=automated(enabled=None))
    await room.until_synced()


async def test_application_with_skip_reconcile_is_not_reconciled(room: Room) -> None:
    room.repository.push(ONE)
    skip = {"annotations": {"argocd.argoproj.io/skip-reconcile": "true"}}
    await room.deliver(syncPolicy=automated(), metadata=skip)
    await room.deliver("other", syncPolicy=automated())
    await room.until_synced(name="other")
    assert "status" not in await room.app()


@pytest.mark.tier("all")
async def test_application_with_unknown_sync_status_is_not_auto_synced(room: Room) -> None:
    room.repository.push({"app/broken.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [a\n"})
    await room.deliver(syncPolicy=automated())
    message = await room.until_condition("ComparisonError")
    assert "app/broken.yaml" in message
    app = await room.settled()
    assert app["status"]["sync"]["status"] == "Unknown"
    assert "operationState" not in app["status"]


async def test_auto_sync_without_prune_ignores_resources_that_only_need_pruning(room: Room) -> None:
    room.repository.push({**ONE, "app/more.yaml": config_map("more")})
    await room.deliver(syncPolicy=automated())
    await room.until_synced()
    before = (await room.app())["status"]["operationState"]
    room.repository.push({"app/more.yaml": None})
    app = await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    line = next(resource for resource in app["status"]["resources"] if resource["name"] == "more")
    assert (line["status"], line["requiresPruning"]) == ("OutOfSync", True)
    app = await room.settled()
    assert app["status"]["operationState"] == before
    assert await room.get("ConfigMap", "more") is not None


async def test_auto_sync_skips_a_failed_revision_until_a_new_commit(room: Room) -> None:
    room.repository.push({"app/broken.yaml": broken()})
    await room.deliver(syncPolicy={**automated(), "retry": {"limit": 0}})
    message = await room.until_condition("SyncError")
    assert message.startswith(f"Failed last sync attempt to [{room.repository.head}]: ")
    started = (await room.settled())["status"]["operationState"]["startedAt"]
    assert (await room.app())["status"]["operationState"]["startedAt"] == started
    room.repository.push({"app/broken.yaml": None, **ONE})
    app = await room.until_synced()
    assert "conditions" not in app["status"]


async def test_drift_is_not_reverted_without_self_heal(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver(syncPolicy=automated(prune=True))
    await room.until_synced()
    await room.change(a="changed")
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    await room.settled()
    assert (await room.get("ConfigMap", "settings") or {})["data"] == {"a": "changed"}


async def test_self_heal_syncs_only_drifted_resources_with_growing_backoff(room: Room) -> None:
    room.repository.push({**ONE, "app/more.yaml": config_map("more")})
    await room.deliver(syncPolicy=automated(selfHeal=True))
    await room.until_synced()

    def heals(count: int) -> Any:
        return lambda status: (
            status["operationState"]["operation"]["sync"].get("autoHealAttemptsCount", 0) == count
            and status["operationState"]["phase"] == "Succeeded"
            and status["sync"]["status"] == "Synced"
        )

    for count, delay in enumerate((0, 2, 6, 18)):
        await room.change(a=f"changed {count}")
        if delay:
            await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
            room.clock.leap(delay - 1.9)
            app = await room.settled()
            assert app["status"]["operationState"]["operation"]["sync"]["autoHealAttemptsCount"] == count
            room.clock.leap(2)
        app = await room.until(heals(count + 1))
        sync = app["status"]["operationState"]["operation"]["sync"]
        assert sync["resources"] == [{"kind": "ConfigMap", "name": "settings"}]
    assert len(app["status"]["history"]) == 1


@pytest.mark.tier("all")
async def test_new_revision_resets_the_self_heal_attempt_count(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver(syncPolicy=automated(selfHeal=True))
    await room.until_synced()
    await room.change(a="changed")
    await room.until(lambda status: status["operationState"]["operation"]["sync"].get("autoHealAttemptsCount") == 1)
    room.repository.push({"app/settings.yaml": config_map(a="two")})
    app = await room.until_synced()
    assert "autoHealAttemptsCount" not in app["status"]["operationState"]["operation"]["sync"]


async def test_auto_sync_prunes_everything_only_with_allow_empty(room: Room) -> None:
    room.repository.push({**ONE, "app/readme.txt": "stays"})
    await room.deliver(syncPolicy=automated(prune=True))
    await room.until_synced()
    room.repository.push({"app/settings.yaml": None})
    message = await room.until_condition("SyncError")
    assert "auto-sync will wipe out all resources" in message
    assert await room.get("ConfigMap", "settings") is not None
    await room.patch_app({"spec": {"syncPolicy": {"automated": {"allowEmpty": True}}}})
    await room.until_gone("ConfigMap", "settings")
    await room.until(lambda status: not conditions(status, "SyncError"))


async def test_hold_annotation_pauses_auto_sync_until_it_is_removed(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver(syncPolicy=automated(selfHeal=True))
    await room.until_synced()
    await room.patch_app({"metadata": {"annotations": {"argosy.dev/hold": '{"reason": "incident 7", "by": "ann"}'}}})
    room.repository.push({"app/settings.yaml": config_map(a="two")})
    app = await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    app = await room.settled()
    messages = [condition["message"] for condition in app["status"]["conditions"]]
    assert any("incident 7" in message and "ann" in message for message in messages)
    assert (await room.get("ConfigMap", "settings") or {})["data"] == {"a": "one"}
    await room.patch_app({"metadata": {"annotations": {"argosy.dev/hold": None}}})
    app = await room.until_synced()
    assert "conditions" not in app["status"]


async def test_retry_reports_each_attempt_and_stops_at_its_limit(room: Room) -> None:
    room.repository.push({"app/broken.yaml": broken()})
    retry = {"limit": 2, "backoff": {"duration": "10s", "factor": 2, "maxDuration": "1m"}}
    await room.deliver(syncPolicy={**automated(), "retry": retry})
    for attempt, delay in ((1, 10), (2, 20)):
        words = f"Retrying attempt #{attempt}"
        app = await room.until(lambda status: words in (status.get("operationState") or {}).get("message", ""))  # noqa: B023
        assert app["status"]["operationState"]["phase"] == "Running"
        assert app["status"]["operationState"]["retryCount"] == attempt
        room.clock.leap(delay + 0.5)
    app = await room.until_over()
    assert app["status"]["operationState"]["phase"] == "Failed"
    assert app["status"]["operationState"]["retryCount"] == 2


@pytest.mark.tier("all")
async def test_retry_with_refresh_uses_the_newest_revision(room: Room) -> None:
    room.repository.push({"app/broken.yaml": broken()})
    retry = {"limit": 5, "refresh": True, "backoff": {"duration": "10s"}}
    await room.deliver(syncPolicy={**automated(), "retry": retry})
    await room.until(lambda status: "Retrying" in (status.get("operationState") or {}).get("message", ""))
    room.repository.push({"app/broken.yaml": None, **ONE})
    room.clock.leap(11)
    app = await room.until_synced()
    assert app["status"]["operationState"]["retryCount"] == 1
