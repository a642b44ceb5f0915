"""Fair-share scheduling: decides which tenant's work starts next.

In: waiting tenants, the start and end of each turn, a clock. Out: the tenant whose turn it is, or None.
Never: waits; lets a tenant hold every slot while another waits; leaves a slot empty that the only tenant could use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

MAX_TURNS: Final = 4  # starts for each waiting tenant, after which the tenant that waited longest goes first
MIN_CHARGE_SECONDS: Final = 0.001  # charged for every turn, so that many quick turns count too
MIN_KEPT_USAGE_SECONDS: Final = MIN_CHARGE_SECONDS / 2  # an idle tenant with less recent usage than this is dropped


@dataclass(frozen=True, slots=True)
class Budget:
    """Worker seconds that one tenant may use within a window (seconds) before other tenants go first."""

    seconds: float = 60.0
    window: float = 300.0


NO_BUDGET: Final = Budget(math.inf)


@dataclass(frozen=True, slots=True)
class Tenant:
    """The project that confined work is charged to, and its budget."""

    name: str = ""
    budget: Budget = field(default_factory=Budget)


_current_tenant: Final[ContextVar[Tenant]] = ContextVar("tenant", default=Tenant())  # noqa: B039 - frozen


def current_tenant() -> Tenant:
    return _current_tenant.get()


@contextmanager
def charge_work_to(tenant: Tenant) -> Iterator[None]:
    """Charge confined work of this task, and of tasks that it starts, to the tenant."""
    token = _current_tenant.set(tenant)
    try:
        yield
    finally:
        _current_tenant.reset(token)


@dataclass(slots=True)
class _Account:
    """Recent usage and running turns of one tenant."""

    budget: Budget
    running: int = 0
    used: float = 0.0  # seconds as of `updated_at`; they decay with the window
    updated_at: float = 0.0
    last_start: int = 0
    waiting_since: int | None = None  # the number of turns that had started when it began to wait

    def usage(self, now: float) -> float:
        return self.used * math.exp(-max(0.0, now - self.updated_at) / self.budget.window)

    def is_over_budget(self, now: float) -> bool:
        return self.usage(now) > self.budget.seconds


class FairShareScheduler:
    """Assigns slots to tenants.

    A tenant may use all `slots` while no other tenant has work. `reserve` additional slots are kept for tenants that
    have nothing running, so that no tenant waits for another's turn to end. A tenant over its budget gets one slot
    while others have work, and goes after them.
    """

    def __init__(self, slots: int, reserve: int, clock: Callable[[], float]) -> None:
        self._slots, self._max_running, self._clock = slots, slots + reserve, clock
        self._accounts: dict[str, _Account] = {}
        self._starts = 0

    @property
    def running(self) -> int:
        return sum(account.running for account in self._accounts.values())

    def resize(self, slots: int, max_running: int) -> None:
        """Change the number of slots, and of slots with the reserve. Running turns continue."""
        self._slots, self._max_running = slots, max_running

    def has_slot(self, name: str) -> bool:
        """True if a slot is free for the tenant, regardless of other waiting tenants."""
        self._get_or_create_account(name)
        return self._can_start(name, (name,), self.running, self._clock())

    def choose_next(self, waiting: Collection[str]) -> str | None:
        """Return the waiting tenant whose turn it is; None if no slot is free for any of them."""
        for name, account in self._accounts.items():
            if name not in waiting:
                account.waiting_since = None
        for name in waiting:
            account = self._get_or_create_account(name)
            if account.waiting_since is None:
                account.waiting_since = self._starts
        now, running = self._clock(), self.running
        free = [name for name in waiting if self._can_start(name, waiting, running, now)]
        return min(free, key=lambda name: self._sort_key(name, len(waiting), now), default=None)

    def start_turn(self, name: str, budget: Budget | None = None) -> None:
        account = self._get_or_create_account(name)
        account.budget = budget or account.budget
        account.running += 1
        self._starts += 1
        account.last_start = self._starts
        account.waiting_since = None

    def finish_turn(self, name: str, seconds: float) -> None:
        """End a turn and charge the time for which it held its slot, or its CPU time if that is more."""
        account, now = self._accounts[name], self._clock()
        account.used, account.updated_at = account.usage(now) + max(seconds, MIN_CHARGE_SECONDS), now
        account.running -= 1
        self._forget_idle(now)

    def is_over_budget(self, name: str) -> bool:
        account = self._accounts.get(name)
        return account is not None and account.is_over_budget(self._clock())

    def list_over_budget(self) -> Mapping[str, tuple[float, Budget]]:
        """Return recent worker seconds and the budget of each tenant over its budget."""
        now = self._clock()
        over = ((name, account) for name, account in self._accounts.items() if account.is_over_budget(now))
        return {name: (account.usage(now), account.budget) for name, account in over}

    def list_usages(self) -> Mapping[str, float]:
        """Return recent worker seconds by tenant."""
        now = self._clock()
        return {name: account.usage(now) for name, account in self._accounts.items()}

    def _get_or_create_account(self, name: str) -> _Account:
        return self._accounts.setdefault(name, _Account(NO_BUDGET, updated_at=self._clock()))

    def _can_start(self, name: str, waiting: Collection[str], running: int, now: float) -> bool:
        account = self._accounts[name]
        if account.running == 0:
            return running < self._max_running
        if running >= self._slots:
            return False
        has_rival = running > account.running or any(other != name for other in waiting)
        return not (has_rival and account.is_over_budget(now))

    def _sort_key(self, name: str, waiting_count: int, now: float) -> tuple[float, ...]:
        """Return the sort key of a waiting tenant; the lowest goes first."""
        account = self._accounts[name]
        assert account.waiting_since is not None
        if self._starts - account.waiting_since >= MAX_TURNS * waiting_count:
            return (0, account.waiting_since)
        return (1, account.is_over_budget(now), account.running, account.usage(now), account.last_start)

    def _forget_idle(self, now: float) -> None:
        """Drop accounts of idle tenants: users choose tenant names, so the map could grow without bound."""
        for name in [name for name, account in self._accounts.items() if self._is_idle(account, now)]:
            del self._accounts[name]

    @staticmethod
    def _is_idle(account: _Account, now: float) -> bool:
        return not account.running and account.waiting_since is None and account.usage(now) < MIN_KEPT_USAGE_SECONDS
