"""The web UI and the API read and change objects in the destination cluster of an Application, and nowhere else."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from argosy.cli.application_service_connection import open_cluster
from argosy.errors import PolicyError
from argosy.features.serve.web_application import open_web_application
from argosy.gitops.application import Application
from argosy.gitops.application_client.app_state_reader import (
    DestinationUnreadable,
    assess_or_empty,
    open_reader,
)
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.argocd_adoption import AdoptionDirection, plan_moves
from argosy.gitops.application_client.event_list import events_of
from argosy.gitops.application_client.object_operations import (
    delete_object,
    patch_object,
    read_objects,
    select_objects_to_change,
)
from argosy.gitops.application_client.project_validation_of_application import check_project_permits
from argosy.gitops.application_client.resource_actions_and_logs import ObjectSelector
from argosy.gitops.policy.application_delivery_engine_detection import ArgoCDController, DeliveryEngines
from argosy.kube.resource_key import ResourceKey
from argosy.web.auth.caller import Caller
from argosy.web.caller_application_service import build_reader
from argosy.web.request import QueryParameters
from argosy.web.serve_options import LOOPBACK_HOSTS, ServeOptions
from support.engine import CONTROL, Room, config_map, engine_room
from support.remote_clusters import Far, far_cluster

THERE = {"name": "far", "namespace": "ml"}
SETTINGS = ResourceKey("", "ConfigMap", "ml", "settings")


@contextlib.asynccontextmanager
async def delivered(folder: Path) -> AsyncIterator[tuple[Room, Far, ApplicationService, Application]]:
    """Deliver an Application to a remote cluster; the local object of the same name must stay unchanged."""
    async with engine_room(folder) as room, far_cluster(folder) as far:
        await room.cluster.create({**config_map(a="mine"), "metadata": {"name": "settings", "namespace": "ml"}})
        room.repository.push({"app/settings.yaml": config_map(a="1")})
        await far.declare(room)
        await room.deliver(destination=THERE, syncPolicy={"automated": {}})
        await room.until_synced()
        desk = ApplicationService(room.cluster, "a test", CONTROL, CONTROL, opener=open_cluster)
        yield room, far, desk, await desk.load_application("models")


async def test_objects_are_read_patched_compared_and_deleted_in_the_destination_cluster(tmp_path: Path) -> None:
    async with delivered(tmp_path) as (room, far, desk, app), open_reader(desk, app=app) as reader:
        (node,) = await reader.build_tree(app)
        assert node.key == SETTINGS and (reader.cache.get(SETTINGS) or {})["data"] == {"a": "1"}
        (manifest,) = await read_objects(reader, app, ObjectSelector())
        assert manifest["data"] == {"a": "1"}
        (live,) = await select_objects_to_change(reader, app, ObjectSelector(), on_all=False)
        await patch_object(reader, app, live, json.dumps({"data": {"a": "2"}}), "application/merge-patch+json")
        assert ((await far.get("ConfigMap", "settings")) or {})["data"] == {"a": "2"}
        async with open_reader(desk, app=app) as again:
            (pair,) = (await again.compare(app)).comparison.pairs
            assert pair.differs and pair.live is not None and pair.live["data"] == {"a": "2"}
        await delete_object(reader, app, live, orphan=False, force=True)
        await far.until("ConfigMap", "settings", gone=True)
        assert ((await room.get("ConfigMap", "settings")) or {})["data"] == {"a": "mine"}


@pytest.mark.tier("all")
async def test_adoption_plan_compares_with_the_destination_cluster(tmp_path: Path) -> None:
    async with delivered(tmp_path) as (_room, far, desk, app):
        engines = DeliveryEngines((ArgoCDController("StatefulSet", CONTROL, "c"),))
        (move,) = await plan_moves(desk, [app], AdoptionDirection.ADOPT, engines)
        assert (move.objects, move.status_changes, move.refusal) == (1, (), "")
        far.sandbox.kill()
        (move,) = await plan_moves(desk, [app], AdoptionDirection.ADOPT, engines)
        reason = (
            "models syncs by itself, and the comparison failed: adopt it with --hold, check the differences, then run: "
        )
        assert move.refusal == f"{reason}argosy app release models"
        assert any(note.startswith(f"the comparison failed: {far.server.partition('//')[2]}") for note in move.notes)


@pytest.mark.tier("all")
async def test_project_that_allows_a_server_address_allows_the_name_of_that_cluster(tmp_path: Path) -> None:
    async with delivered(tmp_path) as (room, far, desk, app):
        await room.project("team", destinations=[{"server": far.server, "namespace": "ml"}])
        spec = {**app.wire["spec"], "project": "team"}
        await check_project_permits(desk, {**app.wire, "spec": spec})
        other = {**spec, "destination": {"name": "in-cluster", "namespace": "ml"}}
        with pytest.raises(PolicyError, match="do not match any of the allowed destinations"):
            await check_project_permits(desk, {**app.wire, "spec": other})


@pytest.mark.tier("all")
async def test_reader_of_one_cluster_refuses_applications_of_another(tmp_path: Path) -> None:
    async with delivered(tmp_path) as (_room, far, desk, app), open_reader(desk) as reader:
        for work in (reader.build_tree, reader.assess_managed_objects, reader.list_orphans, reader.compare):
            with pytest.raises(DestinationUnreadable, match="goes to another cluster"):
                await work(app)  # type: ignore[operator]
        with pytest.raises(DestinationUnreadable):
            await select_objects_to_change(reader, app, ObjectSelector(), on_all=True)
        assert {event["involvedObject"]["kind"] for event in await events_of(desk, app, include_objects=True)} == {
            "Application"
        }
        there, health = await assess_or_empty(reader, app)
        assert not there.is_here
        far.sandbox.kill()
        assert await assess_or_empty(reader, app) == (reader, {})
        assert (await desk.load_application("models")).name == "models" and health is not None


@pytest.mark.tier("all")
async def test_web_server_reads_the_destination_cluster_of_an_application(tmp_path: Path) -> None:
    async with delivered(tmp_path) as (room, _far, _desk, app):
        options = ServeOptions(hosts=LOOPBACK_HOSTS)
        async with open_web_application(room.cluster, "a test", options, tmp_path / "site", CONTROL) as application:
            site = application.site
            context = application.build_request("GET", "/", {}, QueryParameters([]), {}, Caller("ann"), subject=app)
            reader = build_reader(context)
            assert not reader.is_here and site.cluster_view.reader is not reader
            (node,) = await reader.build_tree(app)
            assert (build_reader(context).cache.get(node.key) or {})["data"] == {"a": "1"}
            assert (site.cluster_view.cache.get(SETTINGS) or {})["data"] == {"a": "mine"}
