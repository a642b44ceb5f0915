"""A reconcile accepts no response of a Git host that is older than the latest request."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from argosy import annotations as names
from argosy.gitops.engine.engine import Engine, EngineOptions
from argosy.gitops.reconciler import ReconcileResult
from argosy.kube.client import Cluster
from argosy.kube.controller import SYSTEM_CLOCK, ControllerContext
from argosy.kube.objects import Manifest, key_of
from support.engine import shared_crew

pytestmark = pytest.mark.anyio


def application(version: int, **fields: Any) -> Manifest:
    metadata = {"name": "app", "namespace": "argocd", "resourceVersion": str(version)}
    source = {"repoURL": "https://git.example.com/app.git", "path": "app"}
    spec = {"project": "default", "source": source, "destination": {"name": "in-cluster", "namespace": "default"}}
    marks = {names.REFRESH: "normal", names.ENGINE: "argosy"}
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    return {**kind, "metadata": {**metadata, "annotations": marks}, "spec": spec, **fields}


async def test_sync_requested_during_a_refresh_has_its_own_request_time(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(cluster, EngineOptions(tmp_path), "argocd", render_pool=shared_crew())
    request_times: list[float | None] = []

    async def reconcile(app: Any, rules: Any, requested_at: float | None, **_: Any) -> ReconcileResult:
        request_times.append(requested_at)
        return ReconcileResult()

    monkeypatch.setattr(engine.reconciler, "reconcile", reconcile)
    refreshed, synced = application(1), application(2, operation={"sync": {}})
    engine.watched.on_change(None, refreshed)
    pressed = time.monotonic()  # a push may have happened just before
    engine.watched.on_change(refreshed, synced)
    engine.cache.put(synced)
    await engine.controller.reconcile(key_of(synced), ControllerContext(cluster, engine.cache, SYSTEM_CLOCK))
    assert request_times[0] is not None and request_times[0] >= pressed
