"""Streams of Applications and ApplicationSets over HTTP, in the frames that Argo CD clients read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from argosy.features.applications.streams import api
from argosy.kube.objects import Manifest, key_of
from argosy.web.api import stream_frames
from argosy.web.live_updates import cluster_view_change_feed
from support.deadlines import HANG_SECONDS
from support.event_streams import opened
from support.page_site import CONTROL, Client, KnownPeople, StillLookout, a_site, anything, nothing, on_a_socket

pytestmark = pytest.mark.anyio
PATH = "/api/v1/stream/applications"


def app(name: str, version: int = 1, project: str = "default", **metadata: Any) -> Manifest:
    full_metadata = {"name": name, "namespace": CONTROL, "resourceVersion": str(version), "uid": name, **metadata}
    spec = {"project": project}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": full_metadata, "spec": spec}


def app_set(name: str, project: str = "default") -> Manifest:
    metadata = {"name": name, "namespace": CONTROL, "resourceVersion": "1"}
    spec = {"template": {"spec": {"project": project}}}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": metadata, "spec": spec}


@dataclass
class World:
    lookout: StillLookout
    people: KnownPeople
    client: Client

    def drop(self, manifest: Manifest) -> None:
        gone = self.lookout.cache.drop(key_of(manifest))
        for listener in tuple(self.lookout._listeners):
            listener(gone, None)


def his_own(resource: str, action: str, thing: str) -> bool:
    return action == "get" and thing.startswith("mine/")


SECRET = {
    "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": CONTROL},
    "data": {"password": "czNjcjN0LXZhbHVlLTRjMmUyNzEwMGY="},  # s3cr3t-value-4c2e27100f
}  # fmt: skip


@pytest.fixture
async def world() -> AsyncIterator[World]:
    people = KnownPeople({"ann": anything, "ben": anything, "bob": nothing, "cid": his_own})
    things = [app("a"), app("b", 5, labels={"team": "x"}), app("m", project="mine"), app_set("s"), SECRET]
    elsewhere = app("e", namespace="elsewhere")
    site = a_site([*things, elsewhere], people)
    async with on_a_socket(site, api.ROUTES) as (client, _):
        yield World(site.cluster_view, people, client)


def read_event(frame: Any) -> tuple[str, str]:
    result = frame["result"]
    return result["type"], result["application"]["metadata"]["name"]


async def test_stream_starts_with_added_events_and_then_sends_changes(world: World) -> None:
    async with opened(world.client.port, PATH) as stream:
        assert stream.headers["content-type"] == "application/json"
        assert [read_event(await stream.line()) for _ in range(3)] == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "m")]
        world.lookout.put(app("n"))
        world.lookout.put(app("n", 2))
        world.drop(app("n"))
        assert [read_event(await stream.line()) for _ in range(3)] == [
            ("ADDED", "n"),
            ("MODIFIED", "n"),
            ("DELETED", "n"),
        ]


async def test_browser_gets_server_sent_events(world: World) -> None:
    async with opened(world.client.port, PATH, headers={"Accept": "text/event-stream"}) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        event = await stream.event()
        assert event is not None and read_event(event.data) == ("ADDED", "a")


@pytest.mark.parametrize(
    ("query", "first", "later"),
    [
        ("name=b", "b", "b"),
        ("projects=mine&projects=other", "m", "m"),
        ("project=mine", "m", "m"),
        ("selector=team%3Dx", "b", "b"),
        ("selector=team%21%3Dx", "am", "am"),
        ("resourceVersion=4", "b", "abm"),
        ("resourceVersion=1&name=a", "a", "a"),
        ("resourceVersion=9&name=a", "", "a"),
        ("appNamespace=argocd&name=m", "m", "m"),
        ("resourceVersion=9", "", "abm"),
    ],
)
async def test_filters_apply_to_initial_and_later_events(world: World, query: str, first: str, later: str) -> None:
    async with opened(world.client.port, f"{PATH}?{query}") as stream:
        assert [read_event(await stream.line())[1] for _ in first] == list(first)
        while len(world.lookout._listeners) < 2:  # the redaction has one
            await asyncio.sleep(0.01)
        if "resourceVersion=9" in query:
            world.lookout.put(app("a", 8))  # older than what the caller knows
        for application in (app("a", 20), app("b", 21, labels={"team": "x"}), app("m", 22, "mine")):
            world.lookout.put(application)
        assert [read_event(await stream.line()) for _ in later] == [("MODIFIED", name) for name in later]


@pytest.mark.parametrize("query", ["selector=((", "resourceVersion=x"])
async def test_invalid_filter_is_a_400(world: World, query: str) -> None:
    async with opened(world.client.port, f"{PATH}?{query}") as stream:
        assert stream.code == 400 and json.loads(await stream.body())["code"] == 3


async def test_caller_gets_only_applications_that_are_visible_at_the_time(world: World) -> None:
    async with opened(world.client.port, PATH, "cid") as stream:
        assert read_event(await stream.line()) == ("ADDED", "m")
        world.lookout.put(app("a", 2))
        world.lookout.put(app("m", 2, "others"))  # the caller may no longer see it
        world.lookout.put(app("m", 3, "mine"))
        frame = await stream.line()
        assert frame["result"]["application"]["metadata"]["resourceVersion"] == "3"


async def test_revoked_token_ends_the_stream_without_a_change(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "HEARTBEAT_SECONDS", 9000.0)  # no heartbeat either
    async with opened(world.client.port, PATH, "ben") as his, opened(world.client.port, PATH) as hers:
        for stream in (his, hers):
            for _ in range(3):
                await stream.line()
        world.people.gone.add("ben")
        assert (await his.line())["error"]["grpc_code"] == 16
        assert await his.line() is None
        world.lookout.put(app("a", 2))
        assert read_event(await hers.line()) == ("MODIFIED", "a")


@pytest.mark.tier("all")
async def test_slow_client_is_disconnected_and_does_not_delay_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_view_change_feed, "MAX_BUFFERED_CHANGES", 20)
    port = world.client.port
    async with opened(port, f"{PATH}?name=a", window=4096) as slow, opened(port, f"{PATH}?name=a") as quick:
        await slow.line(), await quick.line()
        for number in range(2, 80):
            world.lookout.put(app("a", number, annotations={"long": "x" * 200_000}))
            frame = await quick.line()
            assert frame["result"]["application"]["metadata"]["resourceVersion"] == str(number)
        frame_count = 0
        while await slow.line() is not None:
            frame_count += 1
        assert frame_count < 77


async def test_secret_values_are_redacted_in_frames(world: World) -> None:
    async with opened(world.client.port, f"{PATH}?name=a") as stream:
        await stream.line()
        world.lookout.put(app("a", 2, annotations={"note": "it is s3cr3t-value-4c2e27100f"}))
        assert "s3cr3t" not in json.dumps(await stream.line())


async def test_change_is_encoded_once_for_all_streams(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    encode_calls = []
    frame = stream_frames.encode_frame
    monkeypatch.setattr(
        stream_frames, "encode_frame", lambda *words, **more: encode_calls.append(words) or frame(*words, **more)
    )
    port = world.client.port
    async with opened(port, f"{PATH}?name=a") as one, opened(port, f"{PATH}?name=a") as other:
        await one.line(), await other.line()
        encode_calls.clear()
        world.lookout.put(app("a", 2))
        assert await one.line() == await other.line()
    assert len(encode_calls) == 1


async def test_application_sets_are_streamed(world: World) -> None:
    async with opened(world.client.port, "/api/v1/stream/applicationsets") as stream:
        frame = await stream.line()
        assert frame["result"]["applicationSet"]["metadata"]["name"] == "s"
    async with opened(world.client.port, "/api/v1/stream/applicationsets", "cid") as stream:
        world.lookout.put(app_set("mine", "mine"))
        frame = await stream.line()
        assert frame["result"]["applicationSet"]["metadata"]["name"] == "mine"


async def test_closed_stream_removes_its_listener(world: World) -> None:
    before = len(world.lookout._listeners)
    async with opened(world.client.port, PATH) as stream:
        await stream.line()
        assert len(world.lookout._listeners) == before + 1
    async with asyncio.timeout(HANG_SECONDS):
        while len(world.lookout._listeners) > before:
            world.lookout.put(app("a", 3))
            await asyncio.sleep(0.02)
