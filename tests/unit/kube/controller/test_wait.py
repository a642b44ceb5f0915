"""Waiting for an object ends when its condition is met or at the timeout, regardless of broken watches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.errors import ArgosyError, Forbidden, Gone, TransientError
from argosy.kube.client import Cluster, Listing, WatchEvent
from argosy.kube.controller.object_condition_wait import wait_for_object, wait_for_objects
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP
from support.loop_clock import LoopClock, turns

KEY = ResourceKey(*CONFIG_MAP, "default", "waited")
LONG = 20.0
pytestmark = pytest.mark.anyio


class Troubled:
    """Embedded cluster whose first watches end or fail."""

    def __init__(self, cluster: Cluster, *troubles: ArgosyError | None) -> None:
        self._cluster, self._troubles = cluster, list(troubles)
        self.watching = asyncio.Event()  # a lasting watch was started
        self.troubled = asyncio.Event()  # a watch ended or failed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def watch(self, kind: GroupKind, **options: Any) -> AsyncIterator[WatchEvent]:
        if self._troubles:
            self.troubled.set()
            if trouble := self._troubles.pop(0):
                raise trouble
            return
        self.watching.set()
        async for event in self._cluster.watch(kind, **options):
            yield event


class Limited:
    """Embedded cluster for a user with only some verbs, and those only on the awaited object."""

    def __init__(self, cluster: Cluster, *verbs: str) -> None:
        self._cluster, self._verbs = cluster, verbs
        self.looks = 0  # gets and lists

    async def get(self, key: ResourceKey) -> Manifest | None:
        self.looks += 1
        return await self._cluster.get(key)

    async def list(self, kind: GroupKind, *, fields: str = "", **options: Any) -> Listing:
        self.looks += 1
        if "list" not in self._verbs or fields != f"metadata.name={KEY.name}":
            raise Forbidden("configmaps is forbidden: cannot list")
        return await self._cluster.list(kind, fields=fields, **options)

    async def watch(self, kind: GroupKind, **options: Any) -> AsyncIterator[WatchEvent]:
        raise Forbidden("configmaps is forbidden: cannot watch")
        yield


def config(**data: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": KEY.name, "namespace": KEY.namespace},
        "data": data,
    }


def is_done(live: Manifest | None) -> bool:
    return live is not None and live["data"].get("done") == "yes"


async def test_wait_returns_at_once_if_the_condition_is_met(cluster: Cluster) -> None:
    await cluster.create(config(done="yes"))
    assert await wait_for_object(cluster, KEY, is_done, 0.0)


async def test_wait_gives_up_at_its_timeout(cluster: Cluster) -> None:
    await cluster.create(config(done="no"))
    async with asyncio.timeout(LONG):
        assert not await wait_for_object(cluster, KEY, is_done, 0.05)


async def test_wait_notices_a_created_and_changed_object(cluster: Cluster) -> None:
    watched = Troubled(cluster)
    waiting = asyncio.create_task(wait_for_object(watched, KEY, is_done, LONG))
    await watched.watching.wait()
    await cluster.create(config(done="no"))
    await cluster.patch(KEY, {"data": {"done": "yes"}})
    assert await waiting


async def test_wait_notices_a_deleted_object(cluster: Cluster) -> None:
    await cluster.create(config())
    watched = Troubled(cluster)
    waiting = asyncio.create_task(wait_for_object(watched, KEY, lambda live: live is None, LONG))
    await watched.watching.wait()
    await cluster.delete(KEY)
    assert await waiting


@pytest.mark.parametrize("trouble", [None, Gone("compacted"), TransientError("down")], ids=["end", "gone", "down"])
async def test_ended_watch_is_restarted(cluster: Cluster, trouble: ArgosyError | None) -> None:
    watched = Troubled(cluster, trouble, trouble)
    waiting = asyncio.create_task(wait_for_object(watched, KEY, is_done, LONG))
    await watched.watching.wait()
    await cluster.create(config(done="yes"))
    assert await waiting


@pytest.mark.parametrize("trouble", [None, Gone("compacted"), TransientError("down")], ids=["end", "gone", "down"])
async def test_change_between_two_watches_is_not_missed(cluster: Cluster, trouble: ArgosyError | None) -> None:
    watched = Troubled(cluster, trouble)
    waiting = asyncio.create_task(wait_for_object(watched, KEY, is_done, LONG))
    await watched.troubled.wait()
    await cluster.create(config(done="yes"))
    await cluster.patch(KEY, {"data": {"done": "yes", "late": "no"}})
    assert await waiting
    assert not watched.watching.is_set(), "a new list has it: nothing is left to watch for"


@pytest.mark.parametrize("verbs", [(), ("list",)], ids=["get", "get and list"])
async def test_wait_polls_without_watch_permission(cluster: Cluster, verbs: tuple[str, ...]) -> None:
    await cluster.create(config(done="no"))
    limited = Limited(cluster, *verbs)
    waiting = asyncio.create_task(wait_for_object(limited, KEY, is_done, LONG))  # type: ignore[arg-type]
    while not limited.looks:
        await asyncio.sleep(0)
    await cluster.patch(KEY, {"data": {"done": "yes"}})
    assert await waiting
    assert not await wait_for_object(limited, KEY, lambda live: live is None, 0.05)  # type: ignore[arg-type]


async def test_wait_for_objects_sees_only_objects_of_its_namespace(cluster: Cluster) -> None:
    await cluster.create(config(done="yes"))
    assert await wait_for_objects(
        cluster, CONFIG_MAP, "default", lambda objects_by_name: KEY.name in objects_by_name, 0.0
    )
    assert not await wait_for_objects(
        cluster, CONFIG_MAP, "kube-system", lambda objects_by_name: KEY.name in objects_by_name, 0.0
    )


@pytest.mark.parametrize("jump", [-86400.0, -3600.0, 3600.0, 86400.0])
async def test_wait_timeout_ignores_clock_jumps(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    """The `--timeout` flag of commands and `app wait` rely on this."""
    clock, wall, troubled = LoopClock(), time.time, Troubled(cluster)
    waiting = asyncio.create_task(wait_for_object(troubled, KEY, lambda manifest: manifest is not None, LONG))  # type: ignore[arg-type]
    await troubled.watching.wait()
    monkeypatch.setattr(time, "time", lambda: wall() + jump)
    await turns()
    assert not waiting.done()
    clock.leap(LONG)
    assert await waiting is False
