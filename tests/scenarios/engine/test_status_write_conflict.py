"""The engine repeats a reconciliation whose status write failed with a conflict."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import Conflict
from argosy.kube.resource_key import ResourceKey
from support.engine import Room, config_map

pytestmark = pytest.mark.anyio


async def test_sync_results_survive_a_conflict_while_writing_the_status(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.repository.push({"app/a.yaml": config_map("a"), "app/b.yaml": config_map("b")})
    await room.deliver()
    await room.sync()
    await room.until_over()
    doorway, refused = type(room.engine.cluster), list[str]()
    patch = doorway.patch

    async def patch_once_refused(self: Any, key: ResourceKey, change: Any, **options: Any) -> Any:
        state = ((change.get("status") or {}).get("operationState") or {}) if isinstance(change, dict) else {}
        if key.kind == "Application" and not refused and (state.get("syncResult") or {}).get("resources"):
            refused.append(key.name)
            raise Conflict("the object has been modified", key=key)
        return await patch(self, key, change, **options)

    monkeypatch.setattr(doorway, "patch", patch_once_refused)
    changed = {**config_map("a"), "data": {"other": "value"}}
    room.repository.push({"app/a.yaml": changed, "app/b.yaml": config_map("b"), "app/c.yaml": config_map("c")})
    await room.annotate(refresh="normal")
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    await room.sync()
    app = await room.until(lambda status: len(status["operationState"]["syncResult"].get("resources", ())) == 3)
    results = app["status"]["operationState"]["syncResult"]["resources"]
    assert refused == ["models"]
    assert {result["name"]: result["message"] for result in results} == {
        "a": "configmap/a configured", "b": "configmap/b unchanged", "c": "configmap/c created",
    }  # fmt: skip
