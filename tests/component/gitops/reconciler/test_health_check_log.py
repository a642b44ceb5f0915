"""The application controller logs a failing health check once per error."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from argosy.gitops.reconciler.settings_watch import SettingsWatcher
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.isolation import WorkerPool
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest

pytestmark = pytest.mark.anyio
KEY = "resource.customizations.health.serving.kserve.io_InferenceService"


def model(name: str) -> Manifest:
    metadata = {"name": name, "namespace": "ml", "uid": name, "resourceVersion": "1"}
    return {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": metadata}


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    opened = WorkerPool()
    yield opened
    await opened.close()


async def test_failing_health_script_is_logged_once_with_key_object_and_lua_error(
    pool: WorkerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = InformerCache()
    settings = SettingsWatcher(cache, Repositories(tmp_path, SourceSettings()), pool, control_namespace="argocd")

    def configure(script: str) -> None:
        metadata = {"name": "argocd-cm", "namespace": "argocd"}
        cache.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: script}})
        settings.invalidate()
        settings.current_settings()

    def logged() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name == "argosy.gitops.health"]

    caplog.set_level(logging.WARNING, logger="argosy.gitops.health")
    configure("return obj.status.phase")
    for _ in range(2):
        await settings.assess_health([model("a"), model("b")])
    [line] = logged()
    assert line.startswith(f"health check failed: argocd-cm {KEY}: Lua error for serving.kserve.io/InferenceService")
    assert "ml/a" in line and "<string>:1:" in line
    configure('return {status = "Healthy"}')
    await settings.assess_health([model("a")])
    assert len(logged()) == 1
    configure("if then")
    await settings.assess_health([model("a")])
    assert len(logged()) == 2
