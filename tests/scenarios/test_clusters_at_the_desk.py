"""The desk and the API read and change what is in the cluster that an Application goes to, and nowhere else."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.cli.connection import opened
from argosy.errors import PolicyError
from argosy.features.serve.site_setup import opened_site
from argosy.gitops.application import Application
from argosy.gitops.application_client.adoption import Way, plan_moves
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.events import events_of
from argosy.gitops.application_client.objects import delete_object, objects_to_change, patch_object, read_objects
from argosy.gitops.application_client.reader import Unseen, fares, open_reader
from argosy.gitops.application_client.resource_actions import Choice
from argosy.gitops.application_client.validation import check_project
from argosy.gitops.policy.delivery_engine import Controller, Engines
from argosy.kube.names import ResourceKey
from argosy.web.auth.caller import Caller
from argosy.web.caller_clients import reader_of
from argosy.web.request import Asked, Query
from argosy.web.site import LOOPBACK_HOSTS, ServeOptions
from support.engine import CONTROL, Room, config_map, engine_room
from support.remote_clusters import Far, far_cluster

THERE = {"name": "far", "namespace": "ml"}
SETTINGS = ResourceKey("", "ConfigMap", "ml", "settings")


@contextlib.asynccontextmanager
async def delivered(folder: Path) -> AsyncIterator[tuple[Room, Far, Desk, Application]]:
    """An Application of another cluster; here, under the same names, is something that nobody may touch."""
    async with engine_room(folder) as room, far_cluster(folder) as far:
        await room.cluster.create({**config_map(a="mine"), "metadata": {"name": "settings", "namespace": "ml"}})
        room.repository.push({"app/settings.yaml": config_map(a="1")})
        await far.declare(room)
        await room.deliver(destination=THERE, syncPolicy={"automated": {}})
        await room.until_synced()
        desk = Desk(room.cluster, "a test", CONTROL, CONTROL, opener=opened)
        yield room, far, desk, await desk.find("models")


async def test_objects_are_read_patched_compared_and_deleted_where_the_application_goes(tmp_path: Path) -> None:
    async with delivered(tmp_path) as (room, far, desk, app), open_reader(desk, app=app) as reader:
        (node,) = await reader.tree(app)
        assert node.key == SETTINGS and (reader.cache.get(SETTINGS) or {})["data"] == {"a": "1"}
        (found,) = await read_objects(reader, app, Choice())
        assert found["data"] == {"a": "1"}
        (live,) = await objects_to_change(reader, app, Choice(), on_all=False)
        await patch_object(reader, app, live, json.dumps({"data": {"a": "2"}}), "application/merge-patch+json")
        assert ((await far.get("ConfigMap", "settings")) or {})["data"] == {"a": "2"}
        async with open_reader(desk, app=app) as again:
            (pair,) = (await again.look(app)).comparison.pairs
            assert pair.differs and pair.live is not None and pair.live["data"] == {"a": "2"}
        await delete_object(reader, app, live, orphan=False, force=True)
        await far.until("ConfigMap", "settings", gone=True)
        assert ((await room.get("ConfigMap", "settings")) or {})["data"] == {"a": "mine"}


@pytest.mark.tier("all")
async def test_one_that_goes_there_is_compared_there_before_it_is_adopted(tmp_path: Path) -> None:
    async with delivered(tmp_path) as (_room, far, desk, app):
        engines = Engines((Controller("StatefulSet", CONTROL, "c"),))
        (move,) = await plan_moves(desk, [app], Way.ADOPT, engines)
        assert (move.objects, move.compared, move.refusal) == (1, (), "")
        far.sandbox.kill()
        (move,) = await plan_moves(desk, [app], Way.ADOPT, engines)
        told = (
            "models syncs by itself, and the comparison failed: adopt it with --hold, check the differences, then run: "
        )
        assert move.refusal == f"{told}argosy app release models"
        assert any(each.startswith(f"the comparison failed: {far.server.partition('//')[2]}") for each in move.notes)


@pytest.mark.tier("all")
async def test_a_project_that_allows_an_address_allows_the_name_of_that_cluster(tmp_path: Path) -> None:
    async with delivered(tmp_path) as (room, far, desk, app):
        await room.project("team", destinations=[{"server": far.server, "namespace": "ml"}])
        spec = {**app.wire["spec"], "project": "team"}
        await check_project(desk, {**app.wire, "spec": spec})
        other = {**spec, "destination": {"name": "in-cluster", "namespace": "ml"}}
        with pytest.raises(PolicyError, match="do not match any of the allowed destinations"):
            await check_project(desk, {**app.wire, "spec": other})


@pytest.mark.tier("all")
async def test_a_reader_of_one_cluster_never_answers_for_another(tmp_path: Path) -> None:
    async with delivered(tmp_path) as (_room, far, desk, app), open_reader(desk) as reader:
        for work in (reader.tree, reader.health, reader.orphans, reader.look):
            with pytest.raises(Unseen, match="goes to another cluster"):
                await work(app)  # type: ignore[operator]
        with pytest.raises(Unseen):
            await objects_to_change(reader, app, Choice(), on_all=True)
        assert {each["involvedObject"]["kind"] for each in await events_of(desk, app, also_objects=True)} == {
            "Application"
        }
        there, health = await fares(reader, app)
        assert not there.is_here
        far.sandbox.kill()
        assert await fares(reader, app) == (reader, {})
        assert (await desk.find("models")).name == "models" and health is not None


@pytest.mark.tier("all")
async def test_the_server_reads_the_cluster_that_an_application_goes_to(tmp_path: Path) -> None:
    async with delivered(tmp_path) as (room, _far, _desk, app):
        options = ServeOptions(hosts=LOOPBACK_HOSTS)
        async with opened_site(room.cluster, "a test", options, tmp_path / "site", CONTROL) as site:
            asked: Any = Asked("GET", "/", {}, Query([]), {}, Caller("ann"), site, subject=app)
            reader = reader_of(asked)
            assert not reader.is_here and site.lookout.reader is not reader
            (node,) = await reader.tree(app)
            assert (reader_of(asked).cache.get(node.key) or {})["data"] == {"a": "1"}
            assert (site.lookout.cache.get(SETTINGS) or {})["data"] == {"a": "mine"}
