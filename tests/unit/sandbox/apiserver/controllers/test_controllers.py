"""Controllers for namespaces, CRDs and event expiry, and their retries after failures."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from argosy.errors import ClusterError, TransientError
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.controllers import controller
from argosy.sandbox.apiserver.controllers import event_expiry as events
from argosy.sandbox.apiserver.controllers.controller import KeyedController
from argosy.sandbox.apiserver.controllers.event_expiry import EventAgeTracker, delete_expired_events, read_last_seen
from argosy.sandbox.store import StoreEvent
from support.api_client import (
    CONFIGS,
    DEFINITIONS,
    TOKEN,
    WIDGETS,
    Api,
    config,
    definition,
    eventually,
    named,
    pod,
    widget,
)
from support.deadlines import HANG_SECONDS, wait_until_async

pytestmark = pytest.mark.anyio
NAMESPACES = "/api/v1/namespaces"
EVENTS = "/api/v1/namespaces/default/events"


async def is_gone(api: Api, path: str) -> bool:
    return (await api.get(path)).code == 404


# -- namespaces ---------------------------------------------------------------------------------------------


async def test_new_namespace_is_active_labeled_and_gets_a_service_account(api: Api) -> None:
    namespace = await api.made(NAMESPACES, named("v1", "Namespace", "n"))
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}
    assert (namespace["spec"], namespace["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})

    async def furnished() -> bool:
        return (await api.get(f"{NAMESPACES}/n/serviceaccounts/default")).code == 200

    await eventually(furnished)


async def test_deleting_a_namespace_deletes_everything_in_it(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    await api.made(NAMESPACES, named("v1", "Namespace", "n"))
    await api.made(f"{NAMESPACES}/n/configmaps", config("a"))
    await api.made(f"{NAMESPACES}/n/pods", pod("unscheduled"))
    await api.made("/apis/argosy.dev/v1/namespaces/n/widgets", widget("w"))
    answer = await api.delete(f"{NAMESPACES}/n")
    assert answer.json["status"]["phase"] == "Terminating"
    await eventually(lambda: is_gone(api, f"{NAMESPACES}/n"))
    assert (await api.get("/apis/argosy.dev/v1/widgets")).json["items"] == []


async def test_terminating_namespace_reports_remaining_content_and_finalizers(api: Api) -> None:
    await api.made(NAMESPACES, named("v1", "Namespace", "n"))
    await api.made(f"{NAMESPACES}/n/configmaps", config("a", finalizers=["a.b/c"]))
    await api.delete(f"{NAMESPACES}/n")

    async def conditions() -> dict[str, Any]:
        all_conditions = (await api.get(f"{NAMESPACES}/n")).json["status"].get("conditions") or []
        return {condition["type"]: condition for condition in all_conditions if condition["status"] == "True"}

    async def said() -> bool:
        return "NamespaceFinalizersRemaining" in await conditions()

    await eventually(said)
    held = await conditions()
    assert held["NamespaceFinalizersRemaining"]["message"].endswith("a.b/c in 1 resource instances")
    assert held["NamespaceContentRemaining"]["message"].endswith("configmaps. has 1 resource instances")
    await api.patch(f"{NAMESPACES}/n/configmaps/a", {"metadata": {"finalizers": None}})
    await eventually(lambda: is_gone(api, f"{NAMESPACES}/n"))


async def test_terminating_namespace_waits_for_its_metadata_finalizers(api: Api) -> None:
    await api.made(NAMESPACES, {"metadata": {"name": "n", "finalizers": ["a.b/c"]}})
    await api.delete(f"{NAMESPACES}/n")

    async def finalized() -> bool:
        return "finalizers" not in (await api.get(f"{NAMESPACES}/n")).json["spec"]

    await eventually(finalized)
    await api.patch(f"{NAMESPACES}/n", {"metadata": {"finalizers": None}})
    assert await is_gone(api, f"{NAMESPACES}/n")


async def test_namespace_spec_finalizers_change_only_through_finalize(api: Api) -> None:
    namespace = await api.made(NAMESPACES, named("v1", "Namespace", "n"))
    patched = await api.patch(f"{NAMESPACES}/n", {"spec": {"finalizers": []}})
    assert patched.json["spec"] == {"finalizers": ["kubernetes"]}
    namespace["spec"] = {"finalizers": []}
    assert (await api.put(f"{NAMESPACES}/n/finalize", namespace)).json["spec"] == {}


# -- definitions ---------------------------------------------------------------------------------------------


async def test_new_crd_is_served_at_once_and_established(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    assert (await api.get(WIDGETS)).code == 200

    async def established() -> bool:
        conditions = (await api.get(f"{DEFINITIONS}/widgets.argosy.dev")).json["status"].get("conditions") or []
        return {condition["type"] for condition in conditions if condition["status"] == "True"} == {
            "NamesAccepted",
            "Established",
        }

    await eventually(established)
    live_definition = (await api.get(f"{DEFINITIONS}/widgets.argosy.dev")).json
    assert live_definition["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert live_definition["status"]["storedVersions"] == ["v1"]


async def test_terminating_crd_rejects_new_objects_and_waits_for_existing_ones(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    await api.made(WIDGETS, {**widget("held"), "metadata": {"name": "held", "finalizers": ["a.b/c"]}})

    async def guarded() -> bool:
        return "finalizers" in (await api.get(f"{DEFINITIONS}/widgets.argosy.dev")).json["metadata"]

    await eventually(guarded)
    await api.delete(f"{DEFINITIONS}/widgets.argosy.dev")
    refused = await api.post(WIDGETS, widget("new"))
    assert refused.code == 405
    assert refused.message == "create not allowed while custom resource definition is terminating"
    assert (await api.apply(f"{WIDGETS}/new", widget("new"))).code == 405
    await api.patch(f"{WIDGETS}/held", {"metadata": {"finalizers": None}})
    await eventually(lambda: is_gone(api, f"{DEFINITIONS}/widgets.argosy.dev"))
    answer = await api.get(WIDGETS)
    assert (answer.code, answer.body, answer.headers["content-type"]) == (
        404, b"404 page not found\n", "text/plain; charset=utf-8",
    )  # fmt: skip


async def test_recreated_crd_starts_without_objects(api: Api) -> None:
    for _ in range(2):
        await api.made(DEFINITIONS, definition())
        assert (await api.get(WIDGETS)).json["items"] == []
        await api.made(WIDGETS, widget("w"))
        await api.delete(f"{DEFINITIONS}/widgets.argosy.dev")
        await eventually(lambda: is_gone(api, f"{DEFINITIONS}/widgets.argosy.dev"))


# -- events ---------------------------------------------------------------------------------------------


async def test_events_expire_an_hour_after_they_were_last_seen() -> None:
    now = datetime(2030, 1, 1, 12, tzinfo=UTC)
    async with ControlPlane.open(admin_token=TOKEN, clock=lambda: now) as plane:
        api = Api(plane)
        about = {"kind": "Pod", "name": "p", "namespace": "default"}
        for name, last in (("old", None), ("again", "2030-01-01T12:30:00Z")):
            event = named("v1", "Event", name, involvedObject=about, lastTimestamp=last)
            await api.made(EVENTS, event)
        await api.made(CONFIGS, config("kept"))
        now += timedelta(minutes=61)
        await delete_expired_events(plane.registry)
        assert [listed_event["metadata"]["name"] for listed_event in (await api.get(EVENTS)).json["items"]] == ["again"]
        now += timedelta(minutes=30)
        await delete_expired_events(plane.registry)
        assert (await api.get(EVENTS)).json["items"] == []
        assert (await api.get(f"{CONFIGS}/kept")).code == 200


async def test_event_recreated_during_expiry_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2030, 1, 1, 12, tzinfo=UTC)
    async with ControlPlane.open(admin_token=TOKEN, clock=lambda: now) as plane:
        api = Api(plane)
        event = named("v1", "Event", "a", involvedObject={"kind": "Pod", "name": "p", "namespace": "default"})
        await api.made(EVENTS, event)
        now += timedelta(minutes=61)
        old_entries = list(plane.registry.store.list("events"))
        await api.delete(f"{EVENTS}/a")
        await api.made(EVENTS, event)
        with monkeypatch.context() as patched:
            patched.setattr(plane.registry.store, "list", lambda bucket: old_entries)
            await delete_expired_events(plane.registry)
        assert (await api.get(f"{EVENTS}/a")).code == 200


@pytest.mark.parametrize("jump", [timedelta(hours=-1), timedelta(hours=1), timedelta(days=-30), timedelta(days=30)])
async def test_events_expire_after_an_hour_despite_clock_changes(jump: timedelta) -> None:
    now, passed = datetime(2030, 1, 1, 12, tzinfo=UTC), 0.0
    async with ControlPlane.open(admin_token=TOKEN, clock=lambda: now) as plane:
        api, ages = Api(plane), EventAgeTracker(lambda: passed)

        async def names() -> list[str]:
            await delete_expired_events(plane.registry, ages)
            return [event["metadata"]["name"] for event in (await api.get(EVENTS)).json["items"]]

        async def happen(name: str) -> None:
            about = {"kind": "Pod", "name": "p", "namespace": "default"}
            await api.made(EVENTS, named("v1", "Event", name, involvedObject=about))

        assert await names() == []
        await happen("before")
        assert await names() == ["before"]
        now += jump
        assert await names() == ["before"]
        await happen("after")
        passed += 1800
        now += timedelta(seconds=1800)
        assert sorted(await names()) == ["after", "before"]
        passed += 1801
        now += timedelta(seconds=1801)
        assert await names() == ["after"]  # its age counts from the first check after its creation
        passed += 1800
        assert await names() == []


@pytest.mark.parametrize(
    ("event", "last"),
    [
        ({}, "2030-01-01T00:00:00Z"),
        ({"lastTimestamp": "2030-02-01T00:00:00Z"}, "2030-02-01T00:00:00Z"),
        ({"eventTime": "2030-03-01T00:00:00.000000Z"}, "2030-03-01T00:00:00Z"),
        ({"series": {"lastObservedTime": "2030-04-01T00:00:00.000000Z"}}, "2030-04-01T00:00:00Z"),
        ({"lastTimestamp": "2020-01-01T00:00:00Z"}, "2030-01-01T00:00:00Z"),
    ],
)
def test_last_seen_is_the_latest_timestamp_of_the_event(event: dict[str, Any], last: str) -> None:
    body = orjson.dumps({"metadata": {"creationTimestamp": "2030-01-01T00:00:00Z"}, **event})
    assert read_last_seen(body) == datetime.fromisoformat(last)


async def test_failure_does_not_stop_event_expiry(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    async def failing(registry: object, ages: object) -> None:
        tries.append(1)
        raise ValueError("a bug")

    monkeypatch.setattr(events, "CHECK_INTERVAL_SECONDS", 0.001)
    monkeypatch.setattr(events, "delete_expired_events", failing)
    task = asyncio.create_task(events.run_event_expiry(plane.registry))
    await wait_until_async(lambda: len(tries) > 1)
    task.cancel()


# -- controllers ---------------------------------------------------------------------------------------------


class Stumbling(KeyedController[str]):
    """Controller that raises the given exceptions for some keys."""

    def __init__(self, plane: ControlPlane, failures: dict[str, list[Exception]]) -> None:
        super().__init__(plane.registry)
        self.failures = failures
        self.kept: list[str] = []

    def on_events(self, events: Any) -> None:
        for event in events:
            assert isinstance(event, StoreEvent)

    async def reconcile(self, key: str) -> None:
        if self.failures.get(key):
            raise self.failures[key].pop()
        self.kept.append(key)


async def test_controller_retries_failed_keys_except_not_found(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "MIN_RETRY_SECONDS", 0.001)
    failures: dict[str, list[Exception]] = {
        "bug": [ValueError("a bug"), KeyError("another")],
        "conflict": [ClusterError("stale", code=409)],
        "busy": [TransientError("busy")],
        "gone": [ClusterError("gone", code=404)],
    }
    stumbling = Stumbling(plane, failures)
    for key in (*failures, "fine"):
        stumbling.enqueue(key)
    task = asyncio.create_task(stumbling.run())
    async with asyncio.timeout(HANG_SECONDS):
        while len(stumbling.kept) < 4:
            await asyncio.sleep(0.002)
    task.cancel()
    assert sorted(stumbling.kept) == ["bug", "busy", "conflict", "fine"]  # a 404 is not retried
