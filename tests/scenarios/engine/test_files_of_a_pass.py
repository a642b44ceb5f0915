"""From a watch event to the status patch, the control flow passes through at most 30 files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.engine import Room, engine_room
from support.executed_files import record_executed_files

pytestmark = pytest.mark.anyio
MAX_FILES = 30  # files whose coroutines run: who reads a pass from top to bottom opens these


@pytest.fixture
async def wire_room(tmp_path: Path) -> AsyncIterator[Room]:
    """An engine that reaches its cluster over HTTPS, as an installed one does."""
    async with engine_room(tmp_path, flavour="wire") as room:
        yield room


def deployment(replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


async def deliver(room: Room) -> None:
    room.repository.push({"app/web.yaml": deployment(1)})
    await room.deliver(syncPolicy={"automated": {}})
    await room.until_synced()
    await room.settled()


async def test_refresh_that_finds_nothing_new(wire_room: Room) -> None:
    await deliver(wire_room)
    with record_executed_files() as files:
        await wire_room.settled()
    assert "gitops/reconciler/reconcile.py" in files.coroutines
    assert len(files.coroutines) <= MAX_FILES, "\n".join(sorted(files.coroutines))


async def test_push_that_changes_a_deployment(wire_room: Room) -> None:
    await deliver(wire_room)
    with record_executed_files() as files:
        revision = wire_room.repository.push({"app/web.yaml": deployment(2)})
        await wire_room.until_synced(revision)
        await wire_room.until_over()
    assert "gitops/sync/apply.py" in files.coroutines
    assert len(files.coroutines) <= MAX_FILES, "\n".join(sorted(files.coroutines))
