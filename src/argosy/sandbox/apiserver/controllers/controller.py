"""Base class of the controllers: a queue of unique keys, retries with backoff."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from argosy.errors import ArgosyError, ClusterError
from argosy.kube.client import Propagation, User
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.deletion import DeleteOptions, ObjectDeleter
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.write_call_and_result_types import RegistryCall
from argosy.sandbox.store import StoreEntry, StoreEvent

log = logging.getLogger(__name__)
CONTROLLER_CALL = RegistryCall(User("system:kube-controller-manager", ("system:masters",)), "kube-controller-manager")
MIN_RETRY_SECONDS, MAX_RETRY_SECONDS = 0.05, 30.0
Key = TypeVar("Key", bound=Hashable)


class KeyedController(Generic[Key]):
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.deleter = ObjectDeleter(registry)
        self._queue: dict[Key, None] = {}
        self._failures: dict[Key, int] = {}
        self._wake = asyncio.Event()

    def on_events(self, events: Sequence[StoreEvent]) -> None:
        """Enqueue the keys that the committed events affect."""
        raise NotImplementedError

    async def reconcile(self, key: Key) -> None:
        raise NotImplementedError

    def enqueue(self, key: Key) -> None:
        self._queue[key] = None
        self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                key = next(iter(self._queue))
                del self._queue[key]
                await self._reconcile_with_retry(key)

    async def _reconcile_with_retry(self, key: Key) -> None:
        try:
            await self.reconcile(key)
            self._failures.pop(key, None)
        except ArgosyError as error:
            is_not_found = isinstance(error, ClusterError) and error.code == 404
            if is_not_found:
                self._failures.pop(key, None)
            else:
                self._retry_later(key, str(error))
        except Exception:  # a bug with one key must not stop the controller
            log.exception("reconcile failed: controller=%s key=%s", type(self).__name__, key)
            self._retry_later(key, "unexpected")

    def _retry_later(self, key: Key, reason: str) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        log.debug("reconcile failed, retrying: controller=%s key=%s error=%s", type(self).__name__, key, reason)
        delay = min(MIN_RETRY_SECONDS * 2 ** (failures - 1), MAX_RETRY_SECONDS)
        asyncio.get_running_loop().call_later(delay, self.enqueue, key)

    async def delete_object(
        self, served: ApiKind, entry: StoreEntry, uid: str, propagation: Propagation | None
    ) -> None:
        options = DeleteOptions(propagation, uid=uid)
        try:
            await self.deleter.delete(served, entry.namespace, entry.name, options, CONTROLLER_CALL)
        except ClusterError as error:
            if error.code not in (404, 409):  # already deleted, or replaced by another object
                raise

    async def update_object(
        self, served: ApiKind, namespace: str, name: str, manifest: Manifest, subresource: str = ""
    ) -> None:
        """Update an object from a manifest that was read before; a Conflict causes a retry."""
        await self.registry.update(served, namespace, name, manifest, CONTROLLER_CALL, subresource=subresource)
