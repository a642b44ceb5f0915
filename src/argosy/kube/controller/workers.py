"""Runs controllers: one informer per kind, one queue per controller, several workers per queue.

In: controllers, a cluster. Out: calls of `reconcile`. Never: knows a kind by name; cancels a running reconcile before
its grace period ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from argosy.errors import ArgosyError, Conflict, UserError
from argosy.kube.client import Cluster
from argosy.kube.controller.cache import Cache
from argosy.kube.controller.clock import SYSTEM_CLOCK, Clock, is_ended
from argosy.kube.controller.controller import Context, Controller, Watch
from argosy.kube.controller.informer import Informer, Listener
from argosy.kube.controller.log_context import about, about_object
from argosy.kube.controller.work_queue import WorkQueue
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

log = logging.getLogger(__name__)


async def run(
    controllers: Sequence[Controller],
    cluster: Cluster,
    *,
    workers: int = 4,
    clock: Clock = SYSTEM_CLOCK,
    cache: Cache | None = None,
    namespace: str = "",
    grace: float = 5.0,
) -> None:
    """Run controllers until cancelled; then every running reconcile has `grace` seconds to end.

    A controller starts when the caches of all its watched kinds are synced.
    """
    context = Context(cluster, cache or Cache(), clock)
    queues = [WorkQueue(clock=clock) for _ in controllers]
    informers = _informers(controllers, queues, context, namespace)
    watching = [asyncio.create_task(informer.run(), name=f"informer {kind}") for kind, informer in informers.items()]
    busy: set[asyncio.Task[None]] = set()
    working = [
        asyncio.create_task(_work(controller, queue, context, informers, busy), name=f"{controller.name} {number}")
        for controller, queue in zip(controllers, queues)
        for number in range(workers)
    ]
    try:
        # No task ends by itself, so the first that does has failed, and all others end too.
        # Not gather: if cancelled, it would cancel all tasks at once.
        forever = asyncio.get_running_loop().create_future()
        ended, _ = await asyncio.wait([forever, *watching, *working], return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        for queue in queues:
            queue.close()
        await _stop([*watching, *working], busy, grace)


async def attend(
    controller: Controller, queue: WorkQueue, context: Context, *, workers: int = 4, grace: float = 5.0
) -> None:
    """Process a queue that the caller fills, until cancelled; then running reconciles have `grace` seconds to end."""
    busy: set[asyncio.Task[None]] = set()
    working = [
        asyncio.create_task(_work(controller, queue, context, {}, busy), name=f"{controller.name} {number}")
        for number in range(workers)
    ]
    try:
        await asyncio.gather(*map(asyncio.shield, working))
    finally:
        queue.close()
        await _stop(working, busy, grace)


def _informers(
    controllers: Sequence[Controller], queues: Sequence[WorkQueue], context: Context, namespace: str
) -> dict[GroupKind, Informer]:
    watched = [(watch, queue) for controller, queue in zip(controllers, queues) for watch in controller.watches]
    informers: dict[GroupKind, Informer] = {}
    for watch, queue in watched:
        if watch.kind not in informers:
            whole = any(not other.metadata_only for other, _ in watched if other.kind == watch.kind)
            informers[watch.kind] = Informer(
                context.cluster,
                watch.kind,
                context.cache,
                namespace=namespace,
                metadata_only=not whole,
                clock=context.clock,
            )
        informers[watch.kind].listeners.append(_waker(watch, queue))
    return informers


def _waker(watch: Watch, queue: WorkQueue) -> Listener:
    def wake(before: Manifest | None, after: Manifest | None) -> None:
        for manifest in (before, after):
            try:
                for key in watch.to(manifest) if manifest is not None else ():
                    queue.add(key)
            except Exception:  # a manifest that a controller cannot map must not end the watch
                log.exception("cannot map a change to keys: kind=%s", watch.kind)

    return wake


async def _work(
    controller: Controller,
    queue: WorkQueue,
    context: Context,
    informers: dict[GroupKind, Informer],
    busy: set[asyncio.Task[None]],
) -> None:
    me = asyncio.current_task()
    assert me is not None
    for watch in controller.watches:
        await informers[watch.kind].synced.wait()
    while (key := await queue.take()) is not None:
        busy.add(me)
        try:
            with about(**about_object(key)):
                await _reconcile(controller, key, queue, context)
        finally:
            busy.discard(me)
            queue.done(key)


async def _reconcile(controller: Controller, key: ResourceKey, queue: WorkQueue, context: Context) -> None:
    try:
        requeue = await controller.reconcile(key, context)
    except UserError as error:
        log.warning("reconcile failed: controller=%s key=%s error=%s", controller.name, key, error)
        queue.succeeded(key)
    except Conflict as error:  # expected with several writers: read the newer object and reconcile again
        log.info(
            "write conflict, retrying: controller=%s key=%s error=%s seconds=%.1f",
            controller.name, key, error, queue.failed(key),
        )  # fmt: skip
    except ArgosyError as error:
        log.warning(
            "reconcile failed, retrying: controller=%s key=%s error=%s seconds=%.1f",
            controller.name, key, error, queue.failed(key),
        )  # fmt: skip
    except (Exception, asyncio.CancelledError) as error:  # an error of one key must not stop the others
        if isinstance(error, asyncio.CancelledError) and is_ended():
            raise
        log.exception(
            "reconcile crashed, retrying: controller=%s key=%s seconds=%.1f", controller.name, key, queue.failed(key)
        )
    else:
        queue.succeeded(key)
        if requeue:
            queue.add_after(key, requeue.after)


async def _stop(tasks: Sequence[asyncio.Task[None]], busy: set[asyncio.Task[None]], grace: float) -> None:
    """Cancel all tasks, busy ones after a grace period. No task is left running, even if this is cancelled."""
    try:
        for task in tasks:
            if task not in busy:
                task.cancel()
        if busy:
            await asyncio.wait(tuple(busy), timeout=grace)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
