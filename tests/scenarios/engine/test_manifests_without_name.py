"""Manifests without metadata.name: hooks get a name, a sync of other objects fails, and a warning names the file."""

from __future__ import annotations

from typing import Any

import pytest

from support.engine import Room, conditions, config_map

pytestmark = pytest.mark.anyio


def without_name(**metadata: Any) -> dict[str, Any]:
    return {**config_map(a="one"), "metadata": metadata}


async def test_hook_without_name_is_named_after_its_phase(room: Room) -> None:
    hook = without_name(annotations={"argocd.argoproj.io/hook": "PreSync,PostSync"})
    room.repository.push({"app/hook.yaml": hook, "app/settings.yaml": config_map(a="one")})
    await room.deliver()
    await room.sync()
    app = await room.until_synced()
    names = [item["name"] for item in app["status"]["operationState"]["syncResult"]["resources"]]
    assert "-presync-" in names[0] and names[1] == "settings" and "-postsync-" in names[2]
    assert "conditions" not in app["status"]


async def test_object_without_name_fails_the_sync_and_a_warning_names_its_file(room: Room) -> None:
    room.repository.push({"app/nameless.yaml": without_name(), "app/settings.yaml": config_map(a="one")})
    await room.deliver()
    await room.sync()
    app = await room.until_over()
    state = app["status"]["operationState"]
    assert state["phase"] == "Failed"
    messages = {item["name"]: item["message"] for item in state["syncResult"]["resources"]}
    assert messages["*"] == "resource name may not be empty; add metadata.name"
    assert await room.get("ConfigMap", "settings") is None, "nothing is applied if a task is not valid"
    [warning] = conditions(app["status"], "SourceWarning")
    assert warning.startswith("app/nameless.yaml:1: document 1 is a ConfigMap without metadata.name: add it")
    assert app["status"]["sync"]["status"] == "OutOfSync"
    assert {item["name"] for item in app["status"]["resources"]} == {"*", "settings"}
