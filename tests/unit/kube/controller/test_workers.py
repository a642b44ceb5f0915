"""Controller workers: reconciles triggered by changes, retries, one reconcile per key at a time, clean shutdown."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from argosy.errors import Conflict, UserError
from argosy.kube.client import Cluster
from argosy.kube.controller import ControllerContext, InformerCache, Requeue, Watch, itself, map_to_owner, run
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP
from support.loop_clock import turns

pytestmark = pytest.mark.anyio


def config(namespace: str, name: str, **metadata: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, **metadata}}


class Doing:
    """Controller that runs a given function and records the names of its reconciled keys."""

    def __init__(
        self,
        do: Callable[[ResourceKey, ControllerContext], Awaitable[Requeue | None]],
        watches: Sequence[Watch] = (Watch(CONFIG_MAP, itself),),
        name: str = "doing",
    ) -> None:
        self.name, self.watches, self._do = name, watches, do
        self.woken: list[str] = []

    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        self.woken.append(key.name)
        return await self._do(key, context)


@contextlib.asynccontextmanager
async def running(
    cluster: Cluster, namespace: str, *controllers: Doing, **settings: Any
) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(run(controllers, cluster, namespace=namespace, **settings))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def nothing(key: ResourceKey, context: ControllerContext) -> Requeue | None:
    return None


async def test_controller_creates_and_restores_its_owned_objects(
    cluster: Cluster, namespace: str, eventually: Any
) -> None:
    cache = InformerCache()

    async def copy(key: ResourceKey, context: ControllerContext) -> Requeue | None:
        source = context.cache.get(key)
        if source and not source["metadata"].get("ownerReferences"):
            meta = source["metadata"]
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"]}
            await context.cluster.apply(
                config(namespace, f"{key.name}-copy", ownerReferences=[reference]), manager="copy"
            )
        return None

    controller = Doing(copy, [Watch(CONFIG_MAP, itself), Watch(CONFIG_MAP, map_to_owner(CONFIG_MAP))])
    await cluster.create(config(namespace, "early"))
    async with running(cluster, namespace, controller, cache=cache):
        late = await cluster.create(config(namespace, "late"))
        await eventually(lambda: {"early", "late", "early-copy", "late-copy"} <= names(cache))
        assert [manifest["metadata"]["name"] for manifest in cache.list_owned(late["metadata"]["uid"])] == ["late-copy"]
        await cluster.delete(ResourceKey("", "ConfigMap", namespace, "late-copy"))
        await eventually(lambda: controller.woken.count("late") >= 2)
        await eventually(lambda: "late-copy" in names(cache))


def names(cache: InformerCache) -> set[str]:
    return {manifest["metadata"]["name"] for manifest in cache.list(CONFIG_MAP)}


async def test_user_error_is_not_retried_until_the_input_changes(
    cluster: Cluster, namespace: str, eventually: Any, clock: Any
) -> None:
    async def refuse(key: ResourceKey, context: ControllerContext) -> Requeue | None:
        raise UserError("no image")

    config_map = await cluster.create(config(namespace, "a"))
    controller = Doing(refuse)
    async with running(cluster, namespace, controller, clock=clock):
        await eventually(lambda: controller.woken == ["a"])
        clock.advance(3600)
        await turns()
        assert controller.woken == ["a"]
        await cluster.patch(key_of(config_map), {"data": {"x": "1"}})
        await eventually(lambda: controller.woken == ["a", "a"])


async def test_other_errors_are_retried_with_growing_backoff(
    cluster: Cluster, namespace: str, eventually: Any, clock: Any
) -> None:
    errors: list[Exception] = [Conflict("stale"), RuntimeError("a bug"), KeyError("another")]

    async def fail(key: ResourceKey, context: ControllerContext) -> Requeue | None:
        if errors:
            raise errors.pop(0)
        return None

    await cluster.create(config(namespace, "a"))
    controller = Doing(fail)
    async with running(cluster, namespace, controller, clock=clock):
        waits = []
        for tries in range(1, 4):
            await eventually(lambda tries=tries: len(controller.woken) == tries and clock.waits())
            waits.append(clock.waits()[0])
            clock.advance(waits[-1])
        await eventually(lambda: len(controller.woken) == 4)
        assert waits[0] <= 0.1 < waits[1] <= 0.2 < waits[2] <= 0.4
        await turns()
        assert clock.waits() == []


async def test_cancelled_future_in_reconcile_does_not_end_the_worker(
    cluster: Cluster, namespace: str, eventually: Any
) -> None:
    async def wait_for_what_others_end(key: ResourceKey, context: ControllerContext) -> Requeue | None:
        if len(controller.woken) == 1:
            shared = asyncio.get_running_loop().create_future()
            shared.cancel()
            await shared
        return None

    await cluster.create(config(namespace, "a"))
    controller = Doing(wait_for_what_others_end)
    async with running(cluster, namespace, controller, workers=1) as task:
        await eventually(lambda: controller.woken == ["a", "a"] or task.done())
        await cluster.create(config(namespace, "b"))
        await eventually(lambda: controller.woken == ["a", "a", "b"] or task.done())
        assert not task.done()


async def test_requeue_runs_after_its_delay(cluster: Cluster, namespace: str, eventually: Any, clock: Any) -> None:
    async def again(key: ResourceKey, context: ControllerContext) -> Requeue | None:
        return Requeue(after=30)

    await cluster.create(config(namespace, "a"))
    controller = Doing(again)
    async with running(cluster, namespace, controller, clock=clock):
        for times in (1, 2, 3):
            await eventually(lambda times=times: len(controller.woken) == times and clock.waits() == [30])
            clock.advance(29)
            await turns()
            assert len(controller.woken) == times
            clock.advance(1)


async def test_one_key_is_never_reconciled_concurrently(cluster: Cluster, namespace: str, eventually: Any) -> None:
    busy: set[str] = set()
    most = 0
    last: dict[str, str] = {}

    async def slowly(key: ResourceKey, context: ControllerContext) -> Requeue | None:
        nonlocal most
        assert key.name not in busy
        busy.add(key.name)
        most = max(most, len(busy))
        cached = context.cache.get(key)
        await asyncio.sleep(0.005)
        last[key.name] = (cached or {}).get("data", {}).get("x", "")
        busy.discard(key.name)
        return None

    config_maps = [await cluster.create(config(namespace, name)) for name in "ab"]
    controller = Doing(slowly)
    async with running(cluster, namespace, controller, workers=4) as task:
        for number in range(20):
            for manifest in config_maps:
                await cluster.patch(key_of(manifest), {"data": {"x": str(number)}})
        await eventually(lambda: last == {"a": "19", "b": "19"})
        assert most == 2 and not task.done()


async def test_failing_watch_mapper_stops_no_other_watch(cluster: Cluster, namespace: str, eventually: Any) -> None:
    def broken(manifest: Manifest) -> list[ResourceKey]:
        return [manifest["metadata"]["annotations"]["wakes"]]

    controller = Doing(nothing, [Watch(CONFIG_MAP, broken), Watch(CONFIG_MAP, itself)])
    async with running(cluster, namespace, controller):
        await cluster.create(config(namespace, "a"))
        await eventually(lambda: controller.woken == ["a"])


async def test_controller_with_an_unserved_kind_does_not_block_reconciles(
    cluster: Cluster, namespace: str, eventually: Any
) -> None:
    one = Doing(nothing, name="one")
    two = Doing(nothing, [Watch(CONFIG_MAP, itself), Watch(GroupKind("never.example", "Never"), itself)], name="two")
    await cluster.create(config(namespace, "a"))
    async with running(cluster, namespace, one, two):
        await eventually(lambda: one.woken == ["a"] and two.woken == ["a"])


async def test_shutdown_waits_for_running_reconciles_and_starts_no_new_one(
    cluster: Cluster, namespace: str, eventually: Any
) -> None:
    ended, may_end = list[str](), asyncio.Event()

    async def slowly(key: ResourceKey, context: ControllerContext) -> Requeue | None:
        await may_end.wait()
        ended.append(key.name)
        return None

    for name in "abc":
        await cluster.create(config(namespace, name))
    controller = Doing(slowly)
    async with running(cluster, namespace, controller, workers=1) as task:
        await eventually(lambda: controller.woken)
        task.cancel()
        asyncio.get_running_loop().call_later(0.05, may_end.set)
        with pytest.raises(asyncio.CancelledError):
            await task
    assert ended == controller.woken and len(ended) == 1


async def test_shutdown_cancels_reconciles_after_a_timeout(cluster: Cluster, namespace: str, eventually: Any) -> None:
    cancelled: list[str] = []

    async def hang(key: ResourceKey, context: ControllerContext) -> Requeue | None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(key.name)
        return None

    await cluster.create(config(namespace, "a"))
    controller = Doing(hang)
    async with running(cluster, namespace, controller, grace_seconds=0.05) as task:
        await eventually(lambda: controller.woken)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert cancelled == ["a"]
