"""Updates that change only ignored fields do not trigger a reconcile, unless health changed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from argosy.gitops.reconciler.ignored_updates import IgnoredUpdateFilter
from argosy.gitops.reconciler.settings_watch import SettingsWatcher
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.isolation import WorkerPool
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio
APP = ResourceKey("argoproj.io", "Application", "argocd", "models")
STATUS = {"resource.customizations.ignoreResourceUpdates.all": "jsonPointers: [/status]"}
TRACKED = {"argocd.argoproj.io/tracking-id": "models:apps/Deployment:ml/web"}


def updates(folder: Path, data: dict[str, str], ours: dict[str, str] | None = None) -> IgnoredUpdateFilter:
    cache = InformerCache()
    for name, settings in (("argocd-cm", data), ("argosy-cm", ours or {})):
        metadata = {"name": name, "namespace": "argocd"}
        cache.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": settings})
    return IgnoredUpdateFilter(
        SettingsWatcher(cache, Repositories(folder, SourceSettings()), WorkerPool(), control_namespace="argocd")
    )


def deployment(version: str, ready: int = 1, annotations: dict[str, str] = TRACKED, **status: Any) -> Manifest:
    metadata = {"name": "web", "namespace": "ml", "uid": "u", "resourceVersion": version, "generation": 1}
    counts = {"replicas": 1, "updatedReplicas": 1, "availableReplicas": ready, "observedGeneration": 1}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**metadata, "annotations": annotations},
        "spec": {"replicas": 1},
        "status": {**counts, **status},
    }


@pytest.mark.parametrize(
    ("settings", "after", "is_held"),
    [
        (STATUS, deployment("2", readyReplicas=1), True),
        ({}, deployment("2", readyReplicas=1), False),
        ({}, deployment("2"), True),
        (STATUS, {**deployment("2"), "spec": {"replicas": 2}}, False),
        (STATUS, None, False),
        (STATUS | {"resource.ignoreResourceUpdatesEnabled": "false"}, deployment("2"), False),
    ],
    ids=["its status", "status that counts", "only its version", "its spec", "it went", "switched off"],
)
async def test_update_is_held_if_only_ignored_fields_changed(
    tmp_path: Path, settings: dict[str, str], after: Manifest | None, is_held: bool
) -> None:
    assert updates(tmp_path, settings).hold_if_ignorable(deployment("1"), after, [APP]) is is_held


@pytest.mark.parametrize(
    ("annotations", "is_held"), [({}, False), ({"argocd.argoproj.io/ignore-resource-updates": "true"}, True)]
)
async def test_untracked_object_is_held_only_with_ignore_updates_annotation(
    tmp_path: Path, annotations: dict[str, str], is_held: bool
) -> None:
    before, after = deployment("1", annotations=annotations), deployment("2", annotations=annotations)
    assert updates(tmp_path, STATUS).hold_if_ignorable(before, after, [APP]) is is_held


async def test_held_update_enqueues_application_only_if_health_changed(tmp_path: Path) -> None:
    update_filter = updates(tmp_path, STATUS)
    woken: asyncio.Queue[ResourceKey] = asyncio.Queue()
    sick = APP._replace(name="sick")
    assert update_filter.hold_if_ignorable(deployment("1"), deployment("2", readyReplicas=1), [APP])
    assert update_filter.hold_if_ignorable(deployment("3"), deployment("4", ready=0), [sick])
    work = asyncio.create_task(update_filter.run(woken.put_nowait))
    async with asyncio.timeout(HANG_SECONDS):
        assert await woken.get() == sick
    assert woken.empty()
    work.cancel()


async def test_held_update_enqueues_application_if_health_check_fails(tmp_path: Path) -> None:
    """A check that fails both before and after the update cannot show that health is unchanged."""
    broken = {"resource.customizations.health.apps_Deployment": "return obj.nothing.more"}
    update_filter = updates(tmp_path, STATUS | broken)
    woken: asyncio.Queue[ResourceKey] = asyncio.Queue()
    assert update_filter.hold_if_ignorable(deployment("1"), deployment("2", readyReplicas=1), [APP])
    work = asyncio.create_task(update_filter.run(woken.put_nowait))
    async with asyncio.timeout(HANG_SECONDS):
        assert await woken.get() == APP
    work.cancel()


async def test_remote_pvc_health_uses_storage_classes_of_its_own_cluster(tmp_path: Path) -> None:
    update_filter = updates(tmp_path, STATUS, {"health.profile.PersistentVolumeClaim": "wait-for-consumer"})
    there, woken = InformerCache(), asyncio.Queue[ResourceKey]()
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    there.put({**storage, "volumeBindingMode": "Immediate"})

    def claim(version: str, phase: str) -> Manifest:
        metadata = {**deployment(version)["metadata"], "name": "data"}
        manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
        return {**manifest, "spec": {"storageClassName": "fast"}, "status": {"phase": phase}}

    for key, cache in ((APP, None), (APP._replace(name="there"), there)):
        assert update_filter.hold_if_ignorable(claim("1", "Pending"), claim("2", "Bound"), [key], cache)
    work = asyncio.create_task(update_filter.run(woken.put_nowait))
    async with asyncio.timeout(HANG_SECONDS):
        assert await woken.get() == APP._replace(name="there")
    work.cancel()
