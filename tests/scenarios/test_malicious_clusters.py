"""A destination cluster under an attacker's control must not affect Applications of another cluster."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.deadlines import wait_until_async
from support.engine import Room, config_map, engine_room
from support.lying_cluster import Lie, LyingCluster, Request, chunked, endless, http_answer
from support.remote_clusters import Far, far_cluster

AUTOMATED = {"automated": {"prune": True, "selfHeal": True}}
STOLEN = "argocd.argoproj.io/tracking-id"


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with engine_room(tmp_path) as opened_room:
        yield opened_room


@pytest.fixture
async def far(tmp_path: Path) -> AsyncIterator[Far]:
    async with far_cluster(tmp_path) as remote_cluster:
        yield remote_cluster


def of_config_maps(reply: Any) -> Lie:
    """Build a false answer to lists and watches of ConfigMaps; all other answers are true."""

    def lie(request: Request) -> Any:
        is_asked = request.method == "GET" and request.route.endswith("/configmaps")
        return reply(request) if is_asked else None

    return lie


def claimed(number: int) -> dict[str, Any]:
    """Build an object with the other Application's tracking id, owned by its own child; one is listed twice."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": f"loop-{1 - number}", "uid": f"u{1 - number}"}
    return {
        "metadata": {
            "name": f"loop-{number}", "namespace": "ml", "uid": f"u{number}", "resourceVersion": "5",
            "annotations": {STOLEN: f"near:/ConfigMap:ml/loop-{number}"}, "ownerReferences": [owner],
        }
    }  # fmt: skip


def listed(*items: Any) -> bytes:
    return http_answer({"kind": "ConfigMapList", "metadata": {"resourceVersion": "5"}, "items": list(items)})


GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
LIES: dict[str, Lie] = {
    "objects that are another Application's": of_config_maps(
        lambda request: None if request.is_watch else listed(claimed(0), claimed(1), {**claimed(0)})
    ),
    "an empty cluster": of_config_maps(lambda request: None if request.is_watch else listed()),
    "lists of nonsense": of_config_maps(lambda request: http_answer([{"metadata": []}])),
    "watches that are gone for ever": of_config_maps(
        lambda request: chunked(json.dumps(GONE).encode() + b"\n") if request.is_watch else None
    ),
    "answers without an end": of_config_maps(lambda request: endless(b" " * 2**20)),
    "discovery of nonsense": lambda request: http_answer({"kind": 5}) if request.route in ("/api", "/apis") else None,
    "redirects": lambda request: http_answer({}, 307, Location="http://169.254.169.254/"),
}

# The condition on its Application. If only one kind cannot be listed, objects of that kind are read one by one.
TOLD = {
    "lists of nonsense": ("UnknownError", "ConfigMap cannot be listed, its objects are read one by one: "),
    "discovery of nonsense": ("ComparisonError", "the answer is not a discovery document"),
    "redirects": ("ComparisonError", "answers with a redirect, which is not followed"),
}


@pytest.mark.tier("all")
@pytest.mark.parametrize("name", LIES)
async def test_malicious_cluster_affects_only_its_own_applications(room: Room, far: Far, name: str) -> None:
    async with LyingCluster(lambda request: None, far.server, far.sandbox.endpoint.token).serving() as liar:
        room.repository.push({"app/settings.yaml": config_map(a="1")})
        far.server = liar.address
        await far.declare(room, config=json.dumps({"tlsClientConfig": {}}))
        await room.deliver("near", syncPolicy=AUTOMATED)
        await room.deliver("distant", destination={"server": liar.address, "namespace": "ml"}, syncPolicy=AUTOMATED)
        await room.until_synced(name="near")
        await room.until_synced(name="distant")
        liar.lie, request_count = LIES[name], len(liar.requests)
        await liar.cut()
        await wait_until_async(lambda: len(liar.requests) > request_count + 5, "the lie is told")
        revision = room.repository.push({"app/settings.yaml": config_map(a="2")})
        near = await room.until_synced(revision, name="near")
        assert [(resource["kind"], resource["name"]) for resource in near["status"]["resources"]] == [
            ("ConfigMap", "settings")
        ]
        assert ((await room.get("ConfigMap", "settings")) or {})["data"] == {"a": "2"}
        assert await room.get("ConfigMap", "loop-0") is None
        if name in TOLD:
            condition, words = TOLD[name]
            message = await room.until_condition(condition, "distant")
            assert words in message and message.replace("\n", " ").isprintable(), message
        liar.lie = lambda request: None
        await liar.cut()
        await room.until_synced(revision, name="distant")
        if name == "lists of nonsense":
            await room.until(lambda status: not status.get("conditions"), "distant")
        assert ((await far.get("ConfigMap", "settings")) or {})["data"] == {"a": "2"}
