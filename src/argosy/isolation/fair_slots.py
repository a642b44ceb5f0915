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

from argosy.fair_share import FairShareScheduler, Tenant, current_tenant

RESERVED_WORKERS: Final = 1  # additional workers for tenants that have none; only one, because each costs memory


class Slot:
    """One turn of a tenant. `cpu_seconds` is charged if it exceeds the time that the slot was held."""

    __slots__ = ("cpu_seconds", "held_since", "tenant")

    def __init__(self, tenant: Tenant, held_since: float) -> None:
        self.tenant, self.held_since, self.cpu_seconds = tenant, held_since, 0.0


class FairSlots:
    """A fixed number of slots, and reserved ones for tenants that hold none. Belongs to one event loop."""

    def __init__(self, size: int, reserve: int = RESERVED_WORKERS, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.scheduler = FairShareScheduler(size, reserve=reserve, clock=clock)
        self._waiting: dict[str, deque[tuple[Tenant, asyncio.Future[None]]]] = {}

    @property
    def running(self) -> int:
        return self.scheduler.running

    def list_depths(self) -> Mapping[str, int]:
        """Return the number of waiting callers by tenant."""
        return {name: len(callers) for name, callers in self._waiting.items()}

    def is_over_budget(self, tenant: str) -> bool:
        return self.scheduler.is_over_budget(tenant)

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[Slot]:
        """Wait for the tenant's turn, and hold a slot until the context exits."""
        tenant = current_tenant()
        await self._wait_for_turn(tenant)
        slot = Slot(tenant, self._clock())
        try:
            yield slot
        finally:
            self._release(slot)

    async def _wait_for_turn(self, tenant: Tenant) -> None:
        granted = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant.name, deque()).append((tenant, granted))
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._release(Slot(tenant, self._clock()))  # granted and cancelled at once: pass the slot on
            else:
                self._remove_waiting(tenant, granted)
            raise

    def _remove_waiting(self, tenant: Tenant, granted: asyncio.Future[None]) -> None:
        callers = self._waiting.get(tenant.name)
        if callers is not None and (tenant, granted) in callers:
            callers.remove((tenant, granted))
            if not callers:
                del self._waiting[tenant.name]
        self._grant()  # with one tenant less, a tenant over its budget may get more slots

    def _release(self, slot: Slot) -> None:
        seconds = self._clock() - slot.held_since
        self.scheduler.finish_turn(slot.tenant.name, max(seconds, slot.cpu_seconds))
        self._grant()

    def _grant(self) -> None:
        while self._waiting and (name := self.scheduler.choose_next(self._waiting)) is not None:
            callers = self._waiting[name]
            tenant, granted = callers.popleft()
            if not callers:
                del self._waiting[name]
            if not granted.done():  # else its caller was cancelled
                self.scheduler.start_turn(name, tenant.budget)
                granted.set_result(None)
