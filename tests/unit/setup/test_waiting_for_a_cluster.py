"""Waiting ends when it is so, and not before; what happens to a watch meanwhile does not matter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.cluster import Cluster, WatchEvent
from argosy.model.errors import ArgosyError, Gone, TransientError
from argosy.model.manifest import Manifest
from argosy.model.names import GroupKind, ResourceKey
from argosy.setup.waiting import until, until_all

KIND = GroupKind("", "ConfigMap")
KEY = ResourceKey(*KIND, "default", "waited")
LONG = 20.0
pytestmark = pytest.mark.anyio


class Troubled:
    """The embedded cluster, whose first watches end in trouble."""

    def __init__(self, cluster: Cluster, *troubles: ArgosyError | None) -> None:
        self._cluster, self._troubles = cluster, list(troubles)
        self.watching = asyncio.Event()  # the watch that lasts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def watch(self, kind: GroupKind, **options: Any) -> AsyncIterator[WatchEvent]:
        if self._troubles:
            if trouble := self._troubles.pop(0):
                raise trouble
            return
        self.watching.set()
        async for event in self._cluster.watch(kind, **options):
            yield event


def config(**data: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": KEY.name, "namespace": KEY.namespace},
        "data": data,
    }


def is_done(live: Manifest | None) -> bool:
    return live is not None and live["data"].get("done") == "yes"


async def test_what_is_so_already_needs_no_time(cluster: Cluster) -> None:
    await cluster.create(config(done="yes"))
    assert await until(cluster, KEY, is_done, 0.0)


async def test_what_never_comes_is_given_up_in_time(cluster: Cluster) -> None:
    await cluster.create(config(done="no"))
    async with asyncio.timeout(LONG):
        assert not await until(cluster, KEY, is_done, 0.05)


async def test_an_object_that_comes_and_changes_is_noticed(cluster: Cluster) -> None:
    watched = Troubled(cluster)
    waiting = asyncio.create_task(until(watched, KEY, is_done, LONG))
    await watched.watching.wait()
    await cluster.create(config(done="no"))
    await cluster.patch(KEY, {"data": {"done": "yes"}})
    assert await waiting


async def test_an_object_that_goes_is_noticed(cluster: Cluster) -> None:
    await cluster.create(config())
    watched = Troubled(cluster)
    waiting = asyncio.create_task(until(watched, KEY, lambda live: live is None, LONG))
    await watched.watching.wait()
    await cluster.delete(KEY)
    assert await waiting


@pytest.mark.parametrize("trouble", [None, Gone("compacted"), TransientError("down")], ids=["end", "gone", "down"])
async def test_a_watch_that_ends_is_begun_again(cluster: Cluster, trouble: ArgosyError | None) -> None:
    watched = Troubled(cluster, trouble, trouble)
    waiting = asyncio.create_task(until(watched, KEY, is_done, LONG))
    await watched.watching.wait()
    await cluster.create(config(done="yes"))
    assert await waiting


async def test_all_objects_of_a_namespace_are_seen_and_no_others(cluster: Cluster) -> None:
    await cluster.create(config(done="yes"))
    assert await until_all(cluster, KIND, "default", lambda found: KEY.name in found, 0.0)
    assert not await until_all(cluster, KIND, "kube-system", lambda found: KEY.name in found, 0.0)
