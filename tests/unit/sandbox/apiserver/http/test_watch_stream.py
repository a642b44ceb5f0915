"""Watches: order of events, selectors, bookmarks, resource versions and the end of the stream."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.http.watch_stream import LAST_BOOKMARK_LEAD_SECONDS
from support.api_client import (
    CONFIGS,
    DEFINITIONS,
    TABLE_OF,
    TOKEN,
    WIDGETS,
    Api,
    config,
    definition,
    eventually,
    pod,
    widget,
)
from support.loop_clock import LoopClock, turns

pytestmark = pytest.mark.anyio
PODS = "/api/v1/namespaces/default/pods"


async def test_watch_without_revision_starts_with_existing_objects(api: Api) -> None:
    await api.made(CONFIGS, config("a"))
    for query in ("", "?resourceVersion=0"):
        async with api.watch(CONFIGS + query) as watching:
            await watching.count(1)
            assert watching.told == [("ADDED", "a")] and watching.headers["content-type"] == "application/json"


async def test_watch_from_revision_sends_each_later_event_once_in_order(api: Api) -> None:
    await api.made(CONFIGS, config("before"))
    start = api.plane.store.revision
    await api.made(CONFIGS, config("a"))
    await api.patch(f"{CONFIGS}/a", {"data": {"x": "1"}})
    async with api.watch(f"{CONFIGS}?resourceVersion={start}") as watching:
        await api.delete(f"{CONFIGS}/a")
        await api.made(CONFIGS, config("b"))
        events = await watching.count(4)
    assert watching.told == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions)) and versions[0] > start
    async with api.watch(f"{CONFIGS}?resourceVersion={versions[2]}") as resumed:
        await resumed.count(1)
        assert resumed.told == [("ADDED", "b")]  # a watch can resume from the revision of a deletion


async def test_label_selector_watch_sends_added_and_deleted_as_matches_change(api: Api) -> None:
    await api.made(CONFIGS, config("in", {"x": "1"}, labels={"w": "1"}))
    await api.made(CONFIGS, config("out"))
    async with api.watch(f"{CONFIGS}?labelSelector=w%3D1&resourceVersion={api.plane.store.revision}") as watching:
        await api.patch(f"{CONFIGS}/in", {"data": {"x": "2"}})
        await api.patch(f"{CONFIGS}/in", {"metadata": {"labels": {"w": "2"}}, "data": {"x": "3"}})
        await api.patch(f"{CONFIGS}/in", {"data": {"x": "4"}})
        left = api.plane.store.revision - 1
        await api.patch(f"{CONFIGS}/out", {"metadata": {"labels": {"w": "1"}}})
        await api.patch(f"{CONFIGS}/in", {"metadata": {"labels": {"w": "1"}}})
        await api.delete(f"{CONFIGS}/in")
        events = await watching.count(5)
    assert watching.told == [
        ("MODIFIED", "in"), ("DELETED", "in"), ("ADDED", "out"), ("ADDED", "in"), ("DELETED", "in"),
    ]  # fmt: skip
    leaving = events[1]["object"]
    assert leaving["metadata"]["labels"] == {"w": "1"} and leaving["data"] == {"x": "2"}  # the last state that matched
    assert leaving["metadata"]["resourceVersion"] == str(left)


async def test_field_selector_watch_sends_added_and_deleted_as_matches_change(api: Api) -> None:
    await api.made(PODS, pod("p", "n1"))
    start = api.plane.store.revision
    async with api.watch(f"{PODS}?fieldSelector=status.phase%3DRunning&resourceVersion={start}") as watching:
        for phase in ("Running", "Failed"):
            await api.patch(f"{PODS}/p/status", {"status": {"phase": phase}})
        await watching.count(2)
    assert watching.told == [("ADDED", "p"), ("DELETED", "p")]


async def test_watch_of_one_namespace_excludes_other_namespaces(api: Api) -> None:
    await api.made("/api/v1/namespaces", {"metadata": {"name": "other"}})
    async with api.watch(f"{CONFIGS}?resourceVersion={api.plane.store.revision}") as watching:
        await api.made("/api/v1/namespaces/other/configmaps", config("far"))
        await api.made(CONFIGS, config("near"))
        await watching.count(1)
    assert watching.told == [("ADDED", "near")]


@pytest.mark.parametrize("path", ["/api/v1/watch/namespaces/default/configmaps", "/api/v1/watch/configmaps"])
async def test_deprecated_watch_path_is_served(api: Api, path: str) -> None:
    await api.made(CONFIGS, config("a"))
    async with api.watch(path) as watching:
        await watching.count(1)
    assert watching.told == [("ADDED", "a")]


async def test_single_object_can_be_watched_by_its_deprecated_path(api: Api) -> None:
    for name in ("a", "b"):
        await api.made(CONFIGS, config(name))
    async with api.watch("/api/v1/watch/namespaces/default/configmaps/b") as watching:
        await watching.count(1)
    assert watching.told == [("ADDED", "b")]


async def test_watch_sends_a_bookmark_before_its_timeout_ends_it(api: Api) -> None:
    await api.made(CONFIGS, config("a"))
    clock = LoopClock()
    async with api.watch(f"{CONFIGS}?timeoutSeconds=59&allowWatchBookmarks=true") as watching:
        await watching.count(1)
        await api.made("/api/v1/namespaces/default/secrets", {"metadata": {"name": "elsewhere"}})
        newest = api.plane.store.revision
        await turns()
        assert len(watching.events) == 1 and not watching.ended
        clock.leap(59 - LAST_BOOKMARK_LEAD_SECONDS)
        await watching.count(2)
        clock.leap(LAST_BOOKMARK_LEAD_SECONDS)
        await watching.until(lambda: watching.ended)
    _, bookmark = watching.events
    about = bookmark["object"]
    assert (bookmark["type"], about["kind"]) == ("BOOKMARK", "ConfigMap")
    assert set(about) == {"kind", "apiVersion", "metadata"}
    assert about["metadata"]["resourceVersion"] == str(newest)


async def test_watch_that_did_not_allow_bookmarks_gets_none(api: Api) -> None:
    await api.made(CONFIGS, config("a"))
    clock = LoopClock()
    async with api.watch(f"{CONFIGS}?timeoutSeconds=59") as watching:
        await watching.count(1)
        clock.leap(59 - LAST_BOOKMARK_LEAD_SECONDS)
        await turns()
        clock.leap(LAST_BOOKMARK_LEAD_SECONDS)
        await watching.until(lambda: watching.ended)
    assert [event["type"] for event in watching.events] == ["ADDED"]


INITIAL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


async def test_streaming_list_ends_with_annotated_bookmark(api: Api) -> None:
    for name in ("a", "b"):
        await api.made(CONFIGS, config(name))
    revision = api.plane.store.revision
    async with api.watch(f"{CONFIGS}?{INITIAL}&resourceVersion=") as watching:
        await watching.count(3)
        await api.made(CONFIGS, config("c"))
        events = await watching.count(4)
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK", "ADDED"]
    mark = events[2]["object"]["metadata"]
    assert mark["annotations"]["k8s.io/initial-events-end"] == "true" and mark["resourceVersion"] == str(revision)


REFUSED = [
    ("sendInitialEvents=true", 422),
    ("sendInitialEvents=true&resourceVersionMatch=Exact", 422),
    ("resourceVersionMatch=NotOlderThan", 422),
    ("resourceVersion=abc", 500),
    ("labelSelector=a+b+c", 400),
    ("fieldSelector=spec.x%3D1", 400),
    ("timeoutSeconds=abc", 400),
]


@pytest.mark.parametrize(("query", "code"), REFUSED)
async def test_invalid_watch_query_is_rejected(api: Api, query: str, code: int) -> None:
    assert (await api.get(f"{CONFIGS}?watch=true&{query}")).code == code


async def test_watch_from_compacted_revision_sends_only_expired_error(api: Api) -> None:
    await api.made(CONFIGS, config("a"))
    await api.plane.store.compact(api.plane.store.revision)
    async with api.watch(f"{CONFIGS}?resourceVersion=1") as watching:
        await watching.until(lambda: watching.ended)
    (event,) = watching.events
    assert (watching.code, event["type"]) == (200, "ERROR")
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith("too old resource version: 1 (")


async def test_watch_from_future_revision_sends_only_later_events(api: Api) -> None:
    ahead = api.plane.store.revision + 2
    async with api.watch(f"{CONFIGS}?resourceVersion={ahead}") as watching:
        for name in ("a", "b", "c"):
            await api.made(CONFIGS, config(name))
        await watching.count(1)
    assert watching.told == [("ADDED", "c")]


async def test_watch_of_deleted_crd_ends_after_its_deleted_events(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    await api.made(WIDGETS, widget("w"))

    async def guarded() -> bool:
        return "finalizers" in (await api.get(f"{DEFINITIONS}/widgets.argosy.dev")).json["metadata"]

    await eventually(guarded)
    async with api.watch(WIDGETS) as watching, api.watch(CONFIGS) as other:
        await watching.count(1)
        await api.delete(f"{DEFINITIONS}/widgets.argosy.dev")
        await watching.until(lambda: watching.ended)
        assert not other.ended
    assert watching.told == [("ADDED", "w"), ("DELETED", "w")]


async def test_table_watch_sends_column_definitions_once(api: Api) -> None:
    for name in ("a", "b"):
        await api.made(CONFIGS, config(name))
    async with api.watch(CONFIGS, TABLE_OF) as watching:
        await watching.count(2)
        await api.made(CONFIGS, config("c"))
        events = await watching.count(3)
    assert [len(event["object"]["columnDefinitions"]) > 0 for event in events] == [True, False, False]
    assert [event["object"]["rows"][0]["cells"][0] for event in events] == ["a", "b", "c"]


async def test_batched_table_events_have_column_definitions_once(api: Api) -> None:
    start = api.plane.store.revision
    for name in ("a", "b", "c"):
        await api.made(CONFIGS, config(name))
    async with api.watch(f"{CONFIGS}?resourceVersion={start}", TABLE_OF) as watching:
        events = await watching.count(3)
    assert [len(event["object"]["columnDefinitions"]) > 0 for event in events] == [True, False, False]


async def test_removing_the_last_finalizer_sends_a_deleted_event(api: Api) -> None:
    await api.made(CONFIGS, config("a", finalizers=["a.b/c"]))
    async with api.watch(f"{CONFIGS}?resourceVersion={api.plane.store.revision}") as watching:
        await api.delete(f"{CONFIGS}/a")
        await api.patch(f"{CONFIGS}/a", {"metadata": {"finalizers": None}})
        await watching.count(2)
    assert watching.told == [("MODIFIED", "a"), ("DELETED", "a")]


async def test_table_watch_shows_age_as_of_the_event() -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    async with ControlPlane.open(admin_token=TOKEN, clock=lambda: now[0]) as plane:
        api = Api(plane)
        async with api.watch(f"{CONFIGS}?resourceVersion={plane.store.revision}", TABLE_OF) as watching:
            now[0] += timedelta(minutes=10)
            await api.made(CONFIGS, config("later"))
            events = await watching.count(1)
    assert events[-1]["object"]["rows"][0]["cells"][-1] == "0s"
