"""Base class of the controllers: a queue of unique keys, retries with backoff."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from argosy.errors import ArgosyError, ClusterError
from argosy.kube.client import Propagation, User
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.deletion import DeleteOptions, Deletion
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.registry_call import Call
from argosy.sandbox.apiserver.served_kind import Served
from argosy.sandbox.store import Entry, Event

log = logging.getLogger(__name__)
CONTROLLER = Call(User("system:kube-controller-manager", ("system:masters",)), "kube-controller-manager")
FIRST_RETRY, LONGEST_RETRY = 0.05, 30.0
Key = TypeVar("Key", bound=Hashable)


class Keeper(Generic[Key]):
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.deletion = Deletion(registry)
        self._waiting: dict[Key, None] = {}
        self._failures: dict[Key, int] = {}
        self._wake = asyncio.Event()

    def notice(self, events: Sequence[Event]) -> None:
        """Enqueue the keys that the committed events affect."""
        raise NotImplementedError

    async def keep(self, key: Key) -> None:
        raise NotImplementedError

    def add(self, key: Key) -> None:
        self._waiting[key] = None
        self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                key = next(iter(self._waiting))
                del self._waiting[key]
                await self._try(key)

    async def _try(self, key: Key) -> None:
        try:
            await self.keep(key)
            self._failures.pop(key, None)
        except ArgosyError as error:
            gone = isinstance(error, ClusterError) and error.code == 404
            if gone:
                self._failures.pop(key, None)
            else:
                self._again(key, str(error))
        except Exception:  # a bug with one key must not stop the controller
            log.exception("reconcile failed: controller=%s key=%s", type(self).__name__, key)
            self._again(key, "unexpected")

    def _again(self, key: Key, why: str) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        log.debug("reconcile failed, retrying: controller=%s key=%s error=%s", type(self).__name__, key, why)
        delay = min(FIRST_RETRY * 2 ** (failures - 1), LONGEST_RETRY)
        asyncio.get_running_loop().call_later(delay, self.add, key)

    async def delete(self, served: Served, entry: Entry, uid: str, propagation: Propagation | None) -> None:
        options = DeleteOptions(propagation, uid=uid)
        try:
            await self.deletion.delete(served, entry.namespace, entry.name, options, CONTROLLER)
        except ClusterError as error:
            if error.code not in (404, 409):  # already deleted, or replaced by another object
                raise

    async def rewrite(self, served: Served, namespace: str, name: str, manifest: Manifest, part: str = "") -> None:
        """Update an object from a manifest that was read before; a Conflict causes a retry."""
        await self.registry.update(served, namespace, name, manifest, CONTROLLER, subresource=part)
