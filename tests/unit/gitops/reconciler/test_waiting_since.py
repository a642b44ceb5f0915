"""Since when somebody waits: a Git host's word from before that is too old for what is asked for."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from argosy import annotations as names
from argosy.gitops.engine.engine import Engine, EngineOptions
from argosy.gitops.reconciler import Passed
from argosy.kube.client import Cluster
from argosy.kube.controller import SYSTEM_CLOCK, Context
from argosy.kube.objects import Manifest, key_of
from support.engine import shared_crew

pytestmark = pytest.mark.anyio


def application(version: int, **asked: Any) -> Manifest:
    metadata = {"name": "app", "namespace": "argocd", "resourceVersion": str(version)}
    source = {"repoURL": "https://git.example.com/app.git", "path": "app"}
    spec = {"project": "default", "source": source, "destination": {"name": "in-cluster", "namespace": "default"}}
    marks = {names.REFRESH: "normal", names.ENGINE: "argosy"}
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    return {**kind, "metadata": {**metadata, "annotations": marks}, "spec": spec, **asked}


async def test_a_sync_that_is_asked_for_during_a_refresh_waits_since_it_was_asked_for(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(cluster, EngineOptions(tmp_path), "argocd", crew=shared_crew())
    given: list[float | None] = []

    async def reconcile(app: Any, rules: Any, asked: float | None, **_: Any) -> Passed:
        given.append(asked)
        return Passed()

    monkeypatch.setattr(engine.pipeline, "reconcile", reconcile)
    refreshed, synced = application(1), application(2, operation={"sync": {}})
    engine.controller.noticed(None, refreshed)
    pressed = time.monotonic()  # and a push may have come just before
    engine.controller.noticed(refreshed, synced)
    engine.cache.put(synced)
    await engine.controller.reconcile(key_of(synced), Context(cluster, engine.cache, SYSTEM_CLOCK))
    assert given[0] is not None and given[0] >= pressed
