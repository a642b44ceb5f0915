"""ignoreDifferences by JSON pointer, jq path and jq expression, and RespectIgnoreDifferences in a sync."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.resource_key import ResourceKey
from support.deadlines import HANG_SECONDS
from support.engine import Room, config_map, engine_room
from support.real_server import REAL

pytestmark = pytest.mark.anyio
REFRESH = "argocd.argoproj.io/refresh"
KEY = ResourceKey("", "ConfigMap", "ml", "settings")


@pytest.fixture(params=["embedded", REAL])
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    server = request.getfixturevalue("real_server") if request.param == "real" else None
    async with engine_room(tmp_path, flavour=request.param, server=server) as opened_room:
        yield opened_room


def rule(**fields: Any) -> list[dict[str, Any]]:
    return [{"group": "", "kind": "ConfigMap", **fields}]


async def refreshed(room: Room) -> dict[str, Any]:
    """Return the Application after a refresh that is requested now."""
    await room.patch_app({"metadata": {"annotations": {REFRESH: "normal"}}})
    async with asyncio.timeout(HANG_SECONDS):
        while REFRESH in ((app := await room.app())["metadata"].get("annotations") or {}):
            await asyncio.sleep(0.02)
    return app


RULES = {
    "pointer": rule(jsonPointers=["/data/a"]),
    "path": rule(jqPathExpressions=[".data.a"]),
    "more than a path": rule(jqPathExpressions=[".data | .[keys_unsorted[0]]"]),
}


@pytest.mark.parametrize("ignored", RULES.values(), ids=RULES.keys())
async def test_ignored_field_is_no_drift_and_other_fields_are(room: Room, ignored: list[dict[str, Any]]) -> None:
    if "keys" in str(ignored):
        pytest.importorskip("jq", reason="the real jq is not installed")
    room.repository.push({"app/settings.yaml": config_map(a="one", b="one")})
    await room.deliver(ignoreDifferences=ignored)
    await room.sync()
    await room.until_synced()
    await room.cluster.patch(KEY, {"data": {"a": "changed"}})
    app = await refreshed(room)
    assert app["status"]["sync"]["status"] == "Synced"
    assert "conditions" not in app["status"]
    await room.cluster.patch(KEY, {"data": {"b": "changed"}})
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")


async def test_invalid_jq_expression_is_a_comparison_error(room: Room) -> None:
    pytest.importorskip("jq", reason="the real jq is not installed")
    room.repository.push({"app/settings.yaml": config_map(a="one")})
    await room.deliver(ignoreDifferences=rule(jqPathExpressions=[".data | nonsense"]))
    await room.sync()
    app = await room.until(lambda status: status.get("conditions"))
    (condition,) = app["status"]["conditions"]
    assert condition["type"] == "ComparisonError"
    assert ".data | nonsense" in condition["message"]


async def test_sync_keeps_ignored_fields_with_respect_ignore_differences(room: Room) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="one", b="one")})
    options = {"syncOptions": ["RespectIgnoreDifferences=true"]}
    await room.deliver(ignoreDifferences=RULES["pointer"], syncPolicy=options)
    await room.sync(**options)
    await room.until_synced()
    await room.cluster.patch(KEY, {"data": {"a": "changed", "b": "changed"}})
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    await room.sync(**options)
    await room.until_synced()
    assert (await room.get("ConfigMap", "settings") or {})["data"] == {"a": "changed", "b": "one"}


HOSTILE = "repeat(.)"


@pytest.mark.tier("all")
@pytest.mark.parametrize("place", ["application", "argocd-cm"])
async def test_endless_jq_expression_is_a_condition_and_blocks_no_sync(room: Room, place: str) -> None:
    """Its Application keeps its other ignore rules, and another Application syncs at the same time."""
    pytest.importorskip("jq", reason="the real jq is not installed")
    room.repository.push({"app/settings.yaml": config_map(a="one"), "other/other.yaml": config_map("other", a="one")})
    await room.deliver(ignoreDifferences=rule(jqPathExpressions=[*[HOSTILE] * (place == "application"), ".data.a"]))
    if place == "argocd-cm":
        key = "resource.customizations.ignoreDifferences.ConfigMap"
        await room.configure({key: f"jqPathExpressions:\n- {HOSTILE}\n"})
    await room.sync()
    await room.until(lambda status: status["sync"]["status"] == "Synced")
    await room.cluster.patch(KEY, {"data": {"a": "changed"}})
    app = await refreshed(room)
    assert [condition["message"] for condition in app["status"]["conditions"]] == [
        "jqPathExpressions: 'repeat(.)': it takes too much time or memory; simplify it"
    ]
    assert app["status"]["sync"]["status"] == "Synced", "the plain path holds"
    await room.deliver("other", path="other")
    await room.sync("other")
    await room.until(lambda status: status["sync"]["status"] == "Synced", name="other")
