"""Runs controllers: one informer per kind, one queue per controller, several workers per queue.

In: controllers, a cluster. Out: calls of `reconcile`. Never: knows a kind by name; cancels a running reconcile before
its grace period ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence

from argosy.errors import ArgosyError, Conflict, UserError
from argosy.kube.client import Cluster
from argosy.kube.controller.cache import InformerCache
from argosy.kube.controller.clock import SYSTEM_CLOCK, Clock, is_being_cancelled
from argosy.kube.controller.controller_protocol import Controller, ControllerContext, KeyReconciler, Watch
from argosy.kube.controller.informer import ChangeListener, Informer
from argosy.kube.controller.log_context import build_object_field, with_log_fields
from argosy.kube.controller.work_queue import WorkQueue
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey

log = logging.getLogger(__name__)


async def run(
    controllers: Sequence[Controller],
    cluster: Cluster,
    *,
    workers: int = 4,
    clock: Clock = SYSTEM_CLOCK,
    cache: InformerCache | None = None,
    namespace: str = "",
    grace_seconds: float = 5.0,
) -> None:
    """Run controllers until cancelled; then every running reconcile has `grace` seconds to end.

    A controller starts when the caches of all its watched kinds are synced.
    """
    context = ControllerContext(cluster, cache or InformerCache(), clock)
    queues = [WorkQueue(clock=clock) for _ in controllers]
    informers = _build_informers(controllers, queues, context, namespace)
    informer_tasks = [
        asyncio.create_task(informer.run(), name=f"informer {kind}") for kind, informer in informers.items()
    ]
    busy: set[asyncio.Task[None]] = set()
    worker_tasks = [
        asyncio.create_task(
            _run_worker(
                controller, queue, context, busy, [informers[watch.kind].synced for watch in controller.watches]
            ),
            name=f"{controller.name} {number}",
        )
        for controller, queue in zip(controllers, queues)
        for number in range(workers)
    ]
    try:
        # No task ends by itself, so the first that does has failed, and all others end too.
        # Not gather: if cancelled, it would cancel all tasks at once.
        forever = asyncio.get_running_loop().create_future()
        ended, _ = await asyncio.wait([forever, *informer_tasks, *worker_tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        for queue in queues:
            queue.close()
        await _stop([*informer_tasks, *worker_tasks], busy, grace_seconds)


async def run_workers(
    controller: KeyReconciler,
    queue: WorkQueue,
    context: ControllerContext,
    *,
    workers: int = 4,
    grace_seconds: float = 5.0,
) -> None:
    """Process a queue that the caller fills, until cancelled; then running reconciles have `grace_seconds` to end."""
    busy: set[asyncio.Task[None]] = set()
    worker_tasks = [
        asyncio.create_task(_run_worker(controller, queue, context, busy), name=f"{controller.name} {number}")
        for number in range(workers)
    ]
    try:
        await asyncio.gather(*map(asyncio.shield, worker_tasks))
    finally:
        queue.close()
        await _stop(worker_tasks, busy, grace_seconds)


def _build_informers(
    controllers: Sequence[Controller], queues: Sequence[WorkQueue], context: ControllerContext, namespace: str
) -> dict[GroupKind, Informer]:
    watched = [(watch, queue) for controller, queue in zip(controllers, queues) for watch in controller.watches]
    informers: dict[GroupKind, Informer] = {}
    for watch, queue in watched:
        if watch.kind not in informers:
            is_full = any(not other.metadata_only for other, _ in watched if other.kind == watch.kind)
            informers[watch.kind] = Informer(
                context.cluster,
                watch.kind,
                context.cache,
                namespace=namespace,
                metadata_only=not is_full,
                clock=context.clock,
            )
        informers[watch.kind].listeners.append(_build_listener(watch, queue))
    return informers


def _build_listener(watch: Watch, queue: WorkQueue) -> ChangeListener:
    def enqueue_keys(before: Manifest | None, after: Manifest | None) -> None:
        for manifest in (before, after):
            try:
                for key in watch.to(manifest) if manifest is not None else ():
                    queue.add(key)
            except Exception:  # a manifest that a controller cannot map must not end the watch
                log.exception("cannot map a change to keys: kind=%s", watch.kind)

    return enqueue_keys


async def _run_worker(
    controller: KeyReconciler,
    queue: WorkQueue,
    context: ControllerContext,
    busy: set[asyncio.Task[None]],
    synced: Iterable[asyncio.Event] = (),
) -> None:
    task = asyncio.current_task()
    assert task is not None
    for kind_synced in synced:
        await kind_synced.wait()
    while (key := await queue.take()) is not None:
        busy.add(task)
        try:
            with with_log_fields(**build_object_field(key)):
                await _reconcile(controller, key, queue, context)
        finally:
            busy.discard(task)
            queue.done(key)


async def _reconcile(controller: KeyReconciler, key: ResourceKey, queue: WorkQueue, context: ControllerContext) -> None:
    try:
        requeue = await controller.reconcile(key, context)
    except UserError as error:
        log.warning("reconcile failed: controller=%s key=%s error=%s", controller.name, key, error)
        queue.forget_failures(key)
    except Conflict as error:  # expected with several writers: read the newer object and reconcile again
        log.info(
            "write conflict, retrying: controller=%s key=%s error=%s seconds=%.1f",
            controller.name, key, error, queue.retry_later(key),
        )  # fmt: skip
    except ArgosyError as error:
        log.warning(
            "reconcile failed, retrying: controller=%s key=%s error=%s seconds=%.1f",
            controller.name, key, error, queue.retry_later(key),
        )  # fmt: skip
    except (Exception, asyncio.CancelledError) as error:  # an error of one key must not stop the others
        if isinstance(error, asyncio.CancelledError) and is_being_cancelled():
            raise
        log.exception(
            "reconcile crashed, retrying: controller=%s key=%s seconds=%.1f",
            controller.name,
            key,
            queue.retry_later(key),
        )
    else:
        queue.forget_failures(key)
        if requeue:
            queue.add_after(key, requeue.after)


async def _stop(tasks: Sequence[asyncio.Task[None]], busy: set[asyncio.Task[None]], grace_seconds: float) -> None:
    """Cancel all tasks, busy ones after a grace period. No task is left running, even if this is cancelled."""
    try:
        for task in tasks:
            if task not in busy:
                task.cancel()
        if busy:
            await asyncio.wait(tuple(busy), timeout=grace_seconds)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
