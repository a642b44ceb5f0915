"""How often the engine writes to the API server: no unnecessary writes."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from argosy.gitops.application import Application
from argosy.gitops.reconciler import Reconciler, ReconcileResult
from argosy.kube.client import Cluster
from argosy.kube.resource_key import ResourceKey
from support.deadlines import HANG_SECONDS
from support.engine_crashes import APP, CONTROL, NAMESPACE, URL, Scene, Theatre, theatre
from support.engine_histories import by_hand, drifts
from support.loop_clock import turns
from support.sync_operations import config

pytestmark = pytest.mark.anyio
MANY = 100


def name(number: int) -> str:
    return f"app-{number}"


async def deliver_many(cluster: Cluster) -> None:
    for number in range(MANY):
        await cluster.create(
            {
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "Application",
                "metadata": {"name": name(number), "namespace": CONTROL},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": URL, "path": name(number), "targetRevision": "main"},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": NAMESPACE},
                },
            }
        )


async def until_deployed(stage: Theatre, times: int) -> None:
    """Wait until every Application was deployed that many times."""
    async with asyncio.timeout(HANG_SECONDS):
        waiting = set(range(MANY))
        while waiting:
            await asyncio.sleep(0.01)
            for number in list(waiting):
                app = await stage.cluster.get(ResourceKey("argoproj.io", "Application", CONTROL, name(number))) or {}
                status = app.get("status") or {}
                is_there = len(status.get("history") or ()) == times and "operation" not in app
                if is_there and status["sync"]["status"] == "Synced":
                    waiting.discard(number)


@pytest.mark.tier("all")
async def test_second_sync_writes_no_managed_object_and_few_application_updates() -> None:
    async with theatre(Scene([config("a")], policy={})) as stage:
        stage.shelf.push_files({f"{name(number)}/all.yaml": [config(f"c-{number}")] for number in range(MANY)})
        await deliver_many(stage.cluster)
        async with stage.engine() as running:
            for times in (1, 2):
                running.cluster.calls.clear()
                for number in range(MANY):
                    await stage.ask_of(name(number))
                await until_deployed(stage, times)
            await running.rest()
            writes = Counter(running.cluster.writes)
    assert not [call for call in writes if "ConfigMap" in call]
    of_apps = {call: count for call, count in writes.items() if "Application/" in call}
    assert len(of_apps) == MANY and max(of_apps.values()) <= 4


async def test_reconcile_without_changes_writes_only_an_old_reconciled_at() -> None:
    async with theatre(Scene([config("a")], policy={}, act=by_hand)) as stage, stage.engine() as running:
        await running.until(lambda outcome: (outcome.status, outcome.phase) == ("Synced", "Succeeded"))
        await running.rest()
        running.cluster.calls.clear()
        for _ in range(20):
            running.engine.queue.add(APP)
            await running.rest()
        assert running.cluster.writes == []
        before = await stage.cluster.get(APP) or {}
        await stage.patch({"status": {"reconciledAt": "2026-01-01T00:00:00Z"}})
        await running.rest()
        running.engine.queue.add(APP)
        await running.rest()
        assert running.cluster.writes == ["patch Application/models"]
        after = await stage.cluster.get(APP) or {}
    assert _without_time(after) == _without_time(before)


async def test_self_heal_writes_the_drifted_object_once() -> None:
    scene = Scene([config("a"), config("b")], before=[config("a"), config("b")], act=drifts)
    async with theatre(scene) as stage, stage.engine() as running:
        final_outcome = await running.until(
            lambda outcome: outcome.status == "Synced" and "drifted" not in str(outcome)
        )
        await running.rest()
        assert [call for call in running.cluster.writes if "ConfigMap" in call] == ["patch ConfigMap/a"]
        assert len([call for call in running.cluster.writes if "Application" in call]) <= 4
    assert final_outcome.deployments == 1  # self-heal does not count as a deployment


async def test_own_writes_of_the_engine_trigger_no_reconcile() -> None:
    async with theatre(Scene([config("a")], policy={}, act=by_hand)) as stage, stage.engine() as running:
        await running.until(lambda outcome: (outcome.status, outcome.phase) == ("Synced", "Succeeded"))
        await running.rest()
        passes = _counted(running.engine.reconciler)
        await stage.patch({"status": {"reconciledAt": "2026-01-01T00:00:00Z"}})
        await running.rest()
        assert len(passes) == 1  # it writes reconciledAt
        await stage.patch({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}})
        await running.rest()
        assert len(passes) == 2  # it removes the annotation
        await stage.patch({"metadata": {"annotations": {"somebody": "else"}}})
        await running.rest()
        assert len(passes) == 3


async def test_refresh_requested_during_a_write_is_not_lost() -> None:
    async with theatre(Scene([config("a")], policy={}, act=by_hand)) as stage, stage.engine() as running:
        await running.until(lambda outcome: (outcome.status, outcome.phase) == ("Synced", "Succeeded"))
        await running.rest()
        patch = running.engine.cluster.patch
        refresh_patch = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}

        async def interrupted(*args: Any, **more: Any) -> Any:
            patched = await patch(*args, **more)
            running.engine.cluster.patch = patch  # type: ignore[method-assign]
            await stage.patch(refresh_patch)
            await turns()  # the watch delivers it before the write returns
            return patched

        running.engine.cluster.patch = interrupted  # type: ignore[method-assign]
        await stage.patch({"status": {"reconciledAt": "2026-01-01T00:00:00Z"}})
        async with asyncio.timeout(HANG_SECONDS):
            while running.engine.cluster.patch is interrupted or await _is_asked_for(stage):
                await asyncio.sleep(0.01)


async def _is_asked_for(stage: Theatre) -> bool:
    app = await stage.cluster.get(APP) or {}
    return "argocd.argoproj.io/refresh" in (app["metadata"].get("annotations") or {})


def _counted(pipeline: Reconciler) -> list[str]:
    passes: list[str] = []
    reconcile = pipeline.reconcile

    async def counted(app: Application, *args: Any, **more: Any) -> ReconcileResult:
        passes.append(app.name)
        return await reconcile(app, *args, **more)

    pipeline.reconcile = counted  # type: ignore[method-assign]
    return passes


def _without_time(app: dict[str, object]) -> dict[str, object]:
    status = dict(app["status"])  # type: ignore[call-overload]
    status.pop("reconciledAt", None)
    return status
