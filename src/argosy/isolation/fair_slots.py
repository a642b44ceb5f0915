"""Slots for confined work, assigned fairly among tenants.

In: callers that request a slot for the current tenant. Out: the slot, until the caller releases it.
Never: assigns more slots than exist; forgets a waiting caller.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from argosy.fair_share import Shares, Tenant, current_tenant

RESERVE: Final = 1  # additional workers for tenants that have none; only one, because each costs memory


class Slot:
    """One turn of a tenant. `cpu_seconds` is charged if it exceeds the time that the slot was held."""

    __slots__ = ("cpu_seconds", "since", "tenant")

    def __init__(self, tenant: Tenant, since: float) -> None:
        self.tenant, self.since, self.cpu_seconds = tenant, since, 0.0


class FairSlots:
    """A fixed number of slots, and reserved ones for tenants that hold none. Belongs to one event loop."""

    def __init__(self, size: int, reserve: int = RESERVE, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.shares = Shares(size, reserve=reserve, clock=clock)
        self._lines: dict[str, deque[tuple[Tenant, asyncio.Future[None]]]] = {}

    @property
    def running(self) -> int:
        return self.shares.running

    def depths(self) -> Mapping[str, int]:
        """Return the number of waiting callers by tenant."""
        return {name: len(line) for name, line in self._lines.items()}

    def is_over_budget(self, tenant: str) -> bool:
        return self.shares.is_over_budget(tenant)

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[Slot]:
        """Wait for the tenant's turn, and hold a slot until the context exits."""
        tenant = current_tenant()
        await self._turn(tenant)
        slot = Slot(tenant, self._clock())
        try:
            yield slot
        finally:
            self._release(slot)

    async def _turn(self, tenant: Tenant) -> None:
        granted = asyncio.get_running_loop().create_future()
        self._lines.setdefault(tenant.name, deque()).append((tenant, granted))
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._release(Slot(tenant, self._clock()))  # granted and cancelled at once: pass the slot on
            else:
                self._leave(tenant, granted)
            raise

    def _leave(self, tenant: Tenant, granted: asyncio.Future[None]) -> None:
        line = self._lines.get(tenant.name)
        if line is not None and (tenant, granted) in line:
            line.remove((tenant, granted))
            if not line:
                del self._lines[tenant.name]
        self._grant()  # with one tenant less, a tenant over its budget may get more slots

    def _release(self, slot: Slot) -> None:
        held = self._clock() - slot.since
        self.shares.finish(slot.tenant.name, max(held, slot.cpu_seconds))
        self._grant()

    def _grant(self) -> None:
        while self._lines and (name := self.shares.choose(self._lines)) is not None:
            line = self._lines[name]
            tenant, granted = line.popleft()
            if not line:
                del self._lines[name]
            if not granted.done():  # else its caller was cancelled
                self.shares.start(name, tenant.budget)
                granted.set_result(None)
