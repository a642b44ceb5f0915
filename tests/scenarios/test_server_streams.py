"""Streams of resource trees and Applications: they follow the engine and end when the permission ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from argosy.features.serve.http_server import open_listener, serve_application
from argosy.features.serve.web_application import open_web_application
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.resource_key import ResourceKey
from argosy.web.serve_options import ServeOptions
from argosy.web.site_services import Site
from support.engine import CONTROL, Room, config_map, engine_room, shared_crew
from support.event_streams import Opened, opened

pytestmark = pytest.mark.anyio
TREE = "/api/v1/stream/applications/models/resource-tree"
APPS = "/api/v1/stream/applications"
ACCOUNTS = {"accounts.ann": "apiKey", "accounts.cid": "apiKey"}
POLICY = "g, ann, role:admin\np, cid, applications, get, default/*, allow\n"


@dataclass
class World:
    room: Room
    site: Site
    port: int

    async def token(self, name: str) -> str:
        new_token: str = await self.site.authenticator.account_store.add_token(name, token_id=f"of-{name}")  # type: ignore[attr-defined]
        return new_token


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with engine_room(tmp_path, ACCOUNTS) as room:
        metadata = {"name": "argocd-rbac-cm", "namespace": CONTROL}
        rules = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"policy.csv": POLICY}}
        await room.cluster.create(rules)
        room.repository.push({"app/settings.yaml": config_map(a="one")})
        await room.deliver(syncPolicy={"automated": {"prune": True}})
        await room.until_synced()
        repositories = Repositories(tmp_path / "lookout", SourceSettings())
        options = ServeOptions(version="1.2.3")
        async with (
            open_web_application(
                room.cluster, "a test", options, tmp_path / "own", CONTROL, repositories, shared_crew()
            ) as entry,
            serve_application(entry, [open_listener("127.0.0.1", 0)], on_closing=entry.close) as port,
        ):
            yield World(room, entry.site, port)


def names(frame: Any) -> list[str]:
    return sorted(node["name"] for node in frame["result"]["nodes"])


async def until_names(stream: Opened, expected_names: list[str]) -> None:
    while names(await stream.line()) != expected_names:
        pass


async def test_resource_tree_stream_follows_a_push(world: World) -> None:
    token = await world.token("ann")
    async with opened(world.port, TREE, token) as one, opened(world.port, TREE, token) as other:
        for stream in (one, other):
            assert names(await stream.line()) == ["settings"]
        world.room.repository.push({"app/more.yaml": config_map("more", a="one")})
        for stream in (one, other):
            await until_names(stream, ["more", "settings"])
        world.room.repository.push({"app/settings.yaml": None})
        for stream in (one, other):
            await until_names(stream, ["more"])


@pytest.mark.tier("all")
async def test_resource_tree_stream_ends_when_its_application_is_deleted(world: World) -> None:
    async with opened(world.port, TREE, await world.token("ann")) as stream:
        await stream.line()
        await world.room.cluster.delete(ResourceKey("argoproj.io", "Application", CONTROL, "models"))
        while await stream.line() is not None:
            pass


@pytest.mark.tier("all")
async def test_tree_of_a_missing_or_forbidden_application_gets_the_same_403(world: World) -> None:
    token = await world.token("cid")
    await world.room.project("team")
    await world.room.deliver("other", project="team")
    answers = []
    for name in ("absent", "other"):
        async with opened(world.port, TREE.replace("models", name), token) as stream:
            answers.append((stream.code, await stream.body()))
    assert answers[0] == answers[1] and answers[0][0] == 403


async def test_deleting_a_token_ends_only_its_own_streams(world: World) -> None:
    hers, his = await world.token("ann"), await world.token("cid")
    async with opened(world.port, APPS, hers) as first, opened(world.port, APPS, his) as second:
        async with opened(world.port, TREE, his) as third:
            for stream in (first, second, third):
                assert stream.code == 200
                await stream.line()
            await world.site.authenticator.account_store.remove_token("cid", "of-cid")  # type: ignore[attr-defined]
            for stream in (second, third):
                while await stream.line() is not None:
                    pass
        await world.room.annotate(anything="new")
        assert (await first.line())["result"]["type"] == "MODIFIED"
