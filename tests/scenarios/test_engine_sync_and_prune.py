"""The engine delivers commits: sync, automated sync, self-heal, prune, hooks, refresh and deletion."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest

from argosy.kube.resource_key import GroupKind, ResourceKey
from support.deadlines import HANG_SECONDS
from support.engine import Room, config_map, engine_room
from support.real_server import REAL
from support.sync_operations import finish_jobs

pytestmark = pytest.mark.anyio
AUTOMATED = {"automated": {"prune": True, "selfHeal": True}}


@pytest.fixture(params=["embedded", REAL])
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    server = request.getfixturevalue("real_server") if request.param == "real" else None
    async with engine_room(tmp_path, flavour=request.param, server=server) as opened_room:
        yield opened_room


async def test_new_application_is_out_of_sync_and_missing_until_it_is_synced(room: Room) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="one")})
    await room.deliver()
    app = await room.until(lambda status: status.get("sync", {}).get("status") == "OutOfSync")
    assert app["status"]["health"]["status"] == "Missing"
    await room.sync()
    app = await room.until_over()
    assert app["status"]["operationState"]["phase"] == "Succeeded"
    app = await room.until_synced()
    assert (await room.get("ConfigMap", "settings") or {})["data"] == {"a": "one"}
    assert [entry["revision"] for entry in app["status"]["history"]] == [room.repository.head]
    assert app["status"]["health"]["status"] == "Healthy"


async def test_automated_sync_delivers_a_push(room: Room) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="one")})
    await room.deliver(syncPolicy=AUTOMATED)
    await room.until_synced()
    room.repository.push({"app/settings.yaml": config_map(a="two")})
    await room.until_synced()
    assert (await room.get("ConfigMap", "settings") or {})["data"] == {"a": "two"}


async def test_self_heal_reverts_drift_and_without_it_drift_is_out_of_sync(room: Room) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="one"), "hands/other.yaml": config_map("other", a="one")})
    await room.deliver(syncPolicy=AUTOMATED)
    await room.deliver("hands", "hands")
    await room.until_synced()
    await room.sync("hands")
    await room.until_synced(name="hands")
    for name in ("settings", "other"):
        await room.cluster.patch(key("ConfigMap", name), {"data": {"a": "changed"}})
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync", "hands")
    await room.until(lambda status: status["operationState"]["operation"]["sync"].get("autoHealAttemptsCount") == 1)
    await room.until_synced()
    assert (await room.get("ConfigMap", "settings") or {})["data"] == {"a": "one"}
    assert (await room.get("ConfigMap", "other") or {})["data"] == {"a": "changed"}
    app = await room.app()
    assert len(app["status"]["history"]) == 1  # self-heal adds no history entry


async def test_automated_prune_deletes_objects_removed_from_git(room: Room) -> None:
    files = {"app/settings.yaml": config_map(a="one"), "app/more.yaml": config_map("more", b="two")}
    room.repository.push(files)
    await room.deliver(syncPolicy=AUTOMATED)
    await room.until_synced()
    foreign = {**config_map("foreign"), "metadata": {"name": "foreign", "namespace": "ml"}}
    await room.cluster.create(foreign)
    room.repository.push({"app/more.yaml": None})
    await room.until_synced()
    assert await room.get("ConfigMap", "more") is None
    assert await room.get("ConfigMap", "foreign") is not None


async def test_pre_sync_hook_runs_before_other_objects_and_once_per_sync(room: Room) -> None:
    hook = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "migrate", "annotations": {"argocd.argoproj.io/hook": "PreSync"}},
        "spec": {
            "managedBy": "example.com/hands",  # k8s: the Job controller ignores a Job that has it
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}},
        },
    }
    room.repository.push({"app/settings.yaml": config_map(a="one"), "app/hook.yaml": hook})
    await room.deliver()
    await room.sync()
    waiting = "waiting for completion of hook"
    await room.until(lambda status: waiting in (status.get("operationState") or {}).get("message", ""))
    assert await room.get("ConfigMap", "settings") is None
    first = await room.get("batch/Job", "migrate")
    assert first is not None
    await finish_jobs(room.cluster)
    app = await room.until_over()
    assert app["status"]["operationState"]["phase"] == "Succeeded"
    again = await room.get("batch/Job", "migrate")
    assert again is not None and again["metadata"]["uid"] == first["metadata"]["uid"]


async def test_hook_with_generate_name_gets_a_new_name_at_each_sync(room: Room) -> None:
    hook = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": "upgrade-sql-schema", "annotations": {"argocd.argoproj.io/hook": "PreSync"}},
        "spec": {
            "managedBy": "example.com/hands",  # k8s: the Job controller ignores a Job that has it
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}},
        },
    }
    room.repository.push({"app/settings.yaml": config_map(a="one"), "app/hook.yaml": hook})
    await room.deliver(metadata={"finalizers": ["resources-finalizer.argocd.argoproj.io"]})
    names = []
    for _ in range(2):
        room.clock.leap(2)
        await room.sync()
        app = await room.until(lambda status: "waiting for completion of hook" in status["operationState"]["message"])
        state = app["status"]["operationState"]
        second = int(datetime.fromisoformat(state["startedAt"]).timestamp())
        names.append(f"upgrade-sql-schema{room.repository.head[:7]}-presync-{second}")
        assert state["message"] == f"waiting for completion of hook batch/Job/{names[-1]}"
        await finish_jobs(room.cluster)
        app = await room.until_over()
        assert app["status"]["operationState"]["phase"] == "Succeeded"
        results = app["status"]["operationState"]["syncResult"]["resources"]
        hook_phases = [
            (result["name"], result["hookPhase"]) for result in results if result.get("hookType") == "PreSync"
        ]
        assert hook_phases == [(names[-1], "Succeeded")]
    there = (await room.cluster.list(GroupKind("batch", "Job"), namespace="ml")).items
    assert sorted(job["metadata"]["name"] for job in there) == sorted(set(names)) and len(set(names)) == 2
    await room.until(lambda status: status["sync"]["status"] == "Synced" and status["health"]["status"] == "Healthy")
    await room.cluster.delete(key("argoproj.io/Application", "models", "argocd"))
    await room.until_gone("argoproj.io/Application", "models", "argocd")
    assert not (await room.cluster.list(GroupKind("batch", "Job"), namespace="ml")).items


async def test_object_with_generate_name_that_is_no_hook_is_missing_and_cannot_be_applied(room: Room) -> None:
    plain = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "settings-"}}
    room.repository.push({"app/plain.yaml": plain})
    await room.deliver()
    app = await room.until(lambda status: status.get("resources"))
    [resource] = app["status"]["resources"]
    state = (resource["name"], resource["status"], app["status"]["health"]["status"])
    assert state == ("settings-", "OutOfSync", "Missing")
    await room.sync()
    app = await room.until(lambda status: (status.get("operationState") or {}).get("phase") == "Failed")
    [result] = app["status"]["operationState"]["syncResult"]["resources"]
    assert result["message"] == "from settings-: cannot use generate name with apply"


async def test_unknown_branch_is_a_comparison_error_until_it_is_corrected(room: Room) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="one")})
    source = {"repoURL": room.repository.url, "path": "app", "targetRevision": "nowhere"}
    await room.deliver(source=source)
    app = await room.until(lambda status: status.get("conditions"))
    assert app["status"]["conditions"][0]["type"] == "ComparisonError"
    assert app["status"]["sync"]["status"] == "Unknown"
    await room.patch_app({"spec": {"source": {"targetRevision": "main"}}})
    app = await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    assert "conditions" not in app["status"]


async def test_deleted_application_with_finalizer_deletes_its_resources(room: Room) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="one")})
    await room.deliver(metadata={"finalizers": ["resources-finalizer.argocd.argoproj.io"]}, syncPolicy=AUTOMATED)
    await room.until_synced()
    await room.cluster.delete(key("argoproj.io/Application", "models", "argocd"))
    async with asyncio.timeout(HANG_SECONDS):
        while await room.get("argoproj.io/Application", "models", "argocd") is not None:
            await asyncio.sleep(0.02)
    assert await room.get("ConfigMap", "settings") is None


async def test_refresh_annotation_is_processed_and_removed(room: Room) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="one")})
    await room.deliver()
    await room.until(lambda status: status.get("sync", {}).get("status") == "OutOfSync")
    await room.patch_app({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}})
    async with asyncio.timeout(HANG_SECONDS):
        while "argocd.argoproj.io/refresh" in ((await room.app())["metadata"].get("annotations") or {}):
            await asyncio.sleep(0.02)


async def test_second_sync_does_not_write_unchanged_objects(room: Room) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="one")})
    await room.deliver()
    await room.sync()
    await room.until_synced()
    before = await room.get("ConfigMap", "settings") or {}
    await room.sync()
    await room.until(lambda status: len(status.get("history") or []) == 2)
    after = await room.get("ConfigMap", "settings") or {}
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def key(kind: str, name: str, namespace: str = "ml") -> ResourceKey:
    group, _, plain = kind.rpartition("/")
    return ResourceKey(group, plain, namespace, name)
