"""What all keepers share: a queue of keys, no key twice, failures tried again."""

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
        """Looks at what was committed and adds the keys that need work."""
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
        except Exception:  # a bug must not stop the upkeep of everything else
            log.exception("%s: %s", type(self).__name__, key)
            self._again(key, "unexpected")

    def _again(self, key: Key, why: str) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        log.debug("%s: %s: %s; trying again", type(self).__name__, key, why)
        delay = min(FIRST_RETRY * 2 ** (failures - 1), LONGEST_RETRY)
        asyncio.get_running_loop().call_later(delay, self.add, key)

    async def delete(self, served: Served, entry: Entry, uid: str, propagation: Propagation | None) -> None:
        options = DeleteOptions(propagation, uid=uid)
        try:
            await self.deletion.delete(served, entry.namespace, entry.name, options, CONTROLLER)
        except ClusterError as error:
            if error.code not in (404, 409):  # gone already, or another object by now
                raise

    async def rewrite(self, served: Served, namespace: str, name: str, manifest: Manifest, part: str = "") -> None:
        """Writes a manifest that was read before; a Conflict comes back as a retry."""
        await self.registry.update(served, namespace, name, manifest, CONTROLLER, subresource=part)
