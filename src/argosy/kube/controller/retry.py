"""Asks a cluster that is away until it answers, for who cannot begin without it.

In: a question. Out: its answer. Never: asks again where somebody must act first: what is refused stays so.
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
            log.warning("the API server is away, and asked again in %.1f s: %s", pause, error)
        await sleep(clock, pause)
