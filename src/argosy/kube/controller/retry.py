"""Retries a call until the API server is reachable, for startup code that needs an answer.

In: a call. Out: its result. Never: retries after a refusal, which lasts until a person acts.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from argosy.errors import TransientError
from argosy.kube.client.status_errors import Untrusted
from argosy.kube.controller.clock import SYSTEM_CLOCK, Backoff, Clock, sleep

T = TypeVar("T")
AWAY: Final = Backoff(first=0.5, most=15.0)
log = logging.getLogger(__name__)


async def insist(ask: Callable[[], Awaitable[T]], clock: Clock = SYSTEM_CLOCK) -> T:
    failures = 0
    while True:
        try:
            return await ask()
        except Untrusted:
            raise
        except TransientError as error:
            failures += 1
            pause = AWAY.delay(failures)
            log.warning("API server is not reachable, retrying: seconds=%.1f error=%s", pause, error)
        await sleep(clock, pause)
