"""Tests the queue depth metric per project: queued reconciles, renders and health scripts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from argosy.fair_share import Tenant, charge_work_to
from argosy.gitops.engine.engine import Engine, EngineOptions
from argosy.gitops.engine.metrics import collect_engine_metrics
from argosy.isolation.fair_slots import FairSlots
from argosy.isolation.trusted_process_pool import ProcessPool
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from support.loop_clock import turns

pytestmark = pytest.mark.anyio
SLOTS = 2  # slots of one pool


def application(name: str, project: str) -> Manifest:
    return {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {"project": project, "source": {"repoURL": "https://git.example.com/app.git", "path": "."},
                 "destination": {"name": "in-cluster", "namespace": "default"}},
    }  # fmt: skip


def project(name: str) -> Manifest:
    metadata = {"name": name, "namespace": "argocd"}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": {}}


def queue_depths(engine: Engine) -> dict[tuple[str, str], float]:
    (family,) = (family for family in collect_engine_metrics(engine) if family.name == "argosy_project_queue_depth")
    assert family.kind == "gauge"
    return {(sample.labels["queue"], sample.labels["project"]): sample.value for sample in family.samples}


@asynccontextmanager
async def waiting_calls(slots: FairSlots, **projects: int) -> AsyncIterator[None]:
    """Start the given number of calls per project, each of which takes a slot and keeps it; the others wait."""
    release = asyncio.Event()

    async def call() -> None:
        async with slots.hold():
            await release.wait()

    calls: list[asyncio.Task[None]] = []
    for project, count in projects.items():
        with charge_work_to(Tenant(project)):
            calls += [asyncio.create_task(call()) for _ in range(count)]
    await turns()
    yield
    release.set()
    await asyncio.gather(*calls)


async def test_queue_depth_is_counted_by_project_and_queue(cluster: Cluster, tmp_path: Path) -> None:
    engine = Engine(cluster, EngineOptions(tmp_path), "argocd", render_pool=ProcessPool(workers=SLOTS))
    assert queue_depths(engine) == {}
    for name in ("vision", "speech"):
        engine.cache.put(project(name))
    engine.settings.invalidate()
    for app in (application("a", "vision"), application("b", "vision"), application("c", "speech")):
        engine.cache.put(app)
        engine.queue.add(key_of(app))
    passes = {("passes", "vision"): 2, ("passes", "speech"): 1}
    assert queue_depths(engine) == passes
    # One project holds all slots but one, which is reserved for the next project.
    async with waiting_calls(engine.render_pool._slots, vision=SLOTS + 3, speech=1 + 2):
        renders = {("renders", "vision"): 3, ("renders", "speech"): 2}
        assert queue_depths(engine) == {**passes, **renders}
        async with waiting_calls(engine.pool._slots, speech=SLOTS + 1):
            assert queue_depths(engine) == {**passes, **renders, ("scripts", "speech"): 1}
    assert queue_depths(engine) == passes
