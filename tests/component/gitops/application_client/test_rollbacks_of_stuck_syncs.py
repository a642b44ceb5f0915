"""A rollback that terminates a stuck sync first either completes or changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.annotations import HOLD
from argosy.errors import ArgosyError
from argosy.gitops.application import Application
from argosy.gitops.application_client.application_actions import choose_rollback_entry, roll_back
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.well_known_kinds import APPLICATION
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS

KEY = ResourceKey(*APPLICATION, "argocd", "models")
SOURCE = {"repoURL": "https://git.example.com/ml.git", "path": "app", "targetRevision": "main"}
OLD, NEW, BROKEN = "a" * 40, "b" * 40, "c" * 40


def deployed(number: int, revision: str, **source: Any) -> dict[str, Any]:
    return {"id": number, "revision": revision, "deployedAt": "2026-01-01T00:00:00Z", **source}


@pytest.fixture
async def desk() -> AsyncIterator[ApplicationService]:
    async with EmbeddedCluster.open() as cluster:
        await cluster.create(load_definition("applications.argoproj.io"))
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}})
        yield ApplicationService(cluster, "embedded", "argocd", "argocd", acting_user="ann")


async def create_stuck_app(desk: ApplicationService, *history: dict[str, Any]) -> Application:
    """Create an Application whose sync failed and waits for its next retry."""
    destination = {"server": "https://kubernetes.default.svc", "namespace": "ml"}
    spec = {"project": "default", "source": SOURCE, "destination": destination, "syncPolicy": {"automated": {}}}
    metadata = {"name": KEY.name, "namespace": KEY.namespace}
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    state = {
        "operation": {"sync": {"revision": BROKEN}, "retry": {"limit": 5}}, "phase": "Running", "retryCount": 1,
        "message": "no such kind. Retrying attempt #2 at 10:00AM.", "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:01:00Z", "syncResult": {"revision": BROKEN, "source": SOURCE},
    }  # fmt: skip
    await desk.cluster.create(
        {**kind, "metadata": metadata, "spec": spec, "operation": state["operation"],
         "status": {"history": list(history), "operationState": state}}
    )  # fmt: skip
    return await desk.load_application(KEY.name)


async def end_sync_and_trim_history(desk: ApplicationService) -> None:
    """End the terminating sync as a controller does, and drop the oldest history entry at the same time."""
    while (await desk.load_application(KEY.name)).status["operationState"]["phase"] != "Terminating":
        await asyncio.sleep(0.01)
    ended = {"phase": "Failed", "finishedAt": "2026-01-01T00:02:00Z", "message": "Operation terminated"}
    history = [deployed(1, NEW, source=SOURCE)]
    await desk.cluster.patch(KEY, {"operation": None, "status": {"operationState": ended, "history": history}})


async def test_rollback_succeeds_when_its_entry_leaves_history_during_termination(
    desk: ApplicationService,
) -> None:
    app = await create_stuck_app(desk, deployed(0, OLD, source=SOURCE), deployed(1, NEW, source=SOURCE))
    controller = asyncio.create_task(end_sync_and_trim_history(desk))
    entry = choose_rollback_entry(app, 0)
    after = await asyncio.wait_for(roll_back(desk, app, entry, prune=False, hold_reason="latency"), HANG_SECONDS)
    await controller
    assert after.operation is not None and after.operation.sync.revision == OLD
    assert HOLD in after.annotations


async def test_rollback_to_entry_without_source_is_rejected_without_changes(
    desk: ApplicationService,
) -> None:
    app = await create_stuck_app(desk, deployed(0, OLD), deployed(1, NEW, source=SOURCE))
    rolling_back = roll_back(desk, app, choose_rollback_entry(app, 0), prune=False, hold_reason="latency")
    with pytest.raises(ArgosyError, match="choose another entry"):
        await asyncio.wait_for(rolling_back, HANG_SECONDS)
    after = await desk.load_application(KEY.name)
    assert after.annotations == app.annotations and after.status == app.status


async def test_rollback_to_entry_missing_from_history_is_rejected(desk: ApplicationService) -> None:
    """The rollback entry was chosen from an older read of the Application."""
    before = await create_stuck_app(desk, deployed(0, OLD, source=SOURCE), deployed(1, NEW, source=SOURCE))
    await desk.cluster.patch(KEY, {"status": {"history": [deployed(1, NEW, source=SOURCE)]}})
    app = await desk.load_application(KEY.name)
    rolling_back = roll_back(desk, app, choose_rollback_entry(before, 0), prune=False, hold_reason="latency")
    with pytest.raises(ArgosyError, match="models has no deployment 0 in its history; existing ones: 1"):
        await asyncio.wait_for(rolling_back, HANG_SECONDS)
    assert await desk.load_application(KEY.name) == app
