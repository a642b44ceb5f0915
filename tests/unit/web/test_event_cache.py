"""Event cache of the pages: one list request serves many pages, and events are kept during an outage."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy.errors import TransientError
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.web import event_cache


class Watched(EmbeddedCluster):
    """A cluster that counts list requests and can be unavailable."""

    list_count = 0
    is_away = False

    async def list(self, *words: Any, **named: Any) -> Any:
        self.list_count += 1
        if self.is_away:
            raise TransientError("nobody answers; try again")
        return await super().list(*words, **named)


def an_event(name: str, namespace: str) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": namespace, "name": "web"}
    return {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": namespace}, "reason": "Seen",
        "involvedObject": about, "type": "Normal", "message": name,
    }  # fmt: skip


async def test_events_are_listed_once_and_kept_while_the_cluster_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ControlPlane.open(in_memory=True) as plane:
        cluster = Watched(plane)
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
        for name, namespace in (("one", "ml"), ("two", "default")):
            await cluster.create(an_event(name, namespace))
        events = event_cache.EventCache(cluster)
        listings = await asyncio.gather(*(events.list_namespace_events(["ml", ""]) for _ in range(5)))
        assert {event["message"] for event in listings[0].events} == {"one", "two"} and cluster.list_count == 2
        assert len((await events.list_all()).events) == 2
        cluster.is_away = True
        monkeypatch.setattr(event_cache, "MIN_CACHE_SECONDS", 0.0)
        monkeypatch.setattr(event_cache, "CACHE_SECONDS_PER_THOUSAND_EVENTS", 0.0)
        old = await events.list_namespace_events(["ml"])
        assert len(old.events) == 1 and "nobody answers" in old.error and "showing those read at" in old.error
        assert "showing none" in (await events.list_namespace_events(["other"])).error
        cluster.is_away = False
        assert (await events.list_namespace_events(["ml"])).error == ""
