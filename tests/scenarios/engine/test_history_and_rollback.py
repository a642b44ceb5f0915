"""Deployment history, rollback, and what a sync operation records."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.resource_key import GroupKind
from support.engine import Room, config_map

pytestmark = pytest.mark.anyio


async def deliver_versions(room: Room, count: int, **spec: Any) -> list[str]:
    revisions = []
    for number in range(count):
        revisions.append(room.repository.push({"app/settings.yaml": config_map(a=str(number))}))
        if number == 0:
            await room.deliver(**spec)
        await room.sync()
        await room.until(lambda status, done=number: len(status.get("history") or ()) > min(done, 2))
        await room.until_synced()
    return revisions


@pytest.mark.tier("all")
async def test_history_ids_increase_and_respect_revision_history_limit(room: Room) -> None:
    revisions = []
    for number in range(4):
        revisions.append(room.repository.push({"app/settings.yaml": config_map(a=str(number))}))
        if number == 0:
            await room.deliver(revisionHistoryLimit=2)
        await room.until(lambda status, head=revisions[-1]: status["sync"].get("revision") == head)
        await room.sync()
        await room.until_synced()
    history = (await room.app())["status"]["history"]
    assert [(deployment["id"], deployment["revision"]) for deployment in history] == [
        (2, revisions[2]),
        (3, revisions[3]),
    ]


async def test_dry_run_and_partial_sync_add_no_history(room: Room) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="one"), "app/more.yaml": config_map("more")})
    await room.deliver()
    await room.sync(dryRun=True)
    app = await room.until_over()
    assert await room.get("ConfigMap", "settings") is None
    await room.sync(resources=[{"kind": "ConfigMap", "name": "more"}])
    await room.until(lambda status: status["operationState"]["operation"]["sync"].get("resources"))
    app = await room.until_over()
    assert await room.get("ConfigMap", "settings") is None
    assert await room.get("ConfigMap", "more") is not None
    assert "history" not in app["status"]


async def test_rollback_restores_an_earlier_revision_and_adds_history(room: Room) -> None:
    first, second = await deliver_versions(room, 2)
    entry = (await room.app())["status"]["history"][0]
    await room.sync(revision=first, source=entry["source"], syncStrategy={"apply": {}})
    app = await room.until(lambda status: len(status["history"]) == 3)
    assert [deployment["revision"] for deployment in app["status"]["history"]] == [first, second, first]
    assert (await room.get("ConfigMap", "settings") or {})["data"] == {"a": "0"}
    app = await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    assert app["status"]["sync"]["revision"] == second


async def test_held_rollback_is_not_undone_by_auto_sync(room: Room) -> None:
    (first,) = await deliver_versions(room, 1, syncPolicy={"automated": {"selfHeal": True}})
    source = (await room.app())["spec"]["source"]
    room.repository.push({"app/settings.yaml": config_map(a="broken")})
    await room.until_synced()
    operation = {"sync": {"revision": first, "source": source, "syncStrategy": {"apply": {}}}}
    hold = {"argosy.dev/hold": '{"reason": "rolled back", "by": "ann"}'}
    await room.patch_app({"operation": operation, "metadata": {"annotations": hold}})
    message = await room.until_condition("SyncError")
    assert "held by ann: rolled back" in message and "argosy app release models" in message
    assert (await room.get("ConfigMap", "settings") or {})["data"] == {"a": "0"}
    await room.settled()
    assert (await room.get("ConfigMap", "settings") or {})["data"] == {"a": "0"}


async def test_sync_event_names_its_initiator(room: Room) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="one")})
    await room.deliver()
    await room.sync()
    await room.until_over()
    events = (await room.cluster.list(GroupKind("", "Event"), namespace="argocd")).items
    reasons = {event["reason"]: event["message"] for event in events}
    assert {"OperationStarted", "OperationCompleted"} <= reasons.keys()
    assert "ann" in reasons["OperationStarted"]


async def test_sync_of_an_invalid_application_ends_in_error(room: Room) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="one")})
    await room.deliver(project="nowhere")
    await room.sync()
    app = await room.until_over()
    state = app["status"]["operationState"]
    assert state["phase"] == "Error"
    assert "project nowhere which does not exist" in state["message"]


async def test_manual_sync_uses_only_the_options_of_its_request(room: Room) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="one")})
    policy = {"syncOptions": ["CreateNamespace=true"]}
    destination = {"server": "https://kubernetes.default.svc", "namespace": "fresh"}
    await room.deliver(syncPolicy=policy, destination=destination)
    await room.sync()
    app = await room.until_over()
    assert app["status"]["operationState"]["phase"] == "Failed"
    await room.sync(**policy)
    await room.until_synced()
    assert await room.get("ConfigMap", "settings", "fresh") is not None
