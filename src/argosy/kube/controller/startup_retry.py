"""Retries a call until the API server is reachable, for startup code that needs an answer.

In: a call. Out: its result. Never: retries after a refusal, which lasts until a person acts.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from argosy.errors import TransientError
from argosy.kube.client.status_errors import ApiServerNotTrusted
from argosy.kube.controller.clock import SYSTEM_CLOCK, Backoff, Clock, sleep

T = TypeVar("T")
UNREACHABLE_BACKOFF: Final = Backoff(first_seconds=0.5, max_seconds=15.0)
log = logging.getLogger(__name__)


async def retry_until_reachable(call: Callable[[], Awaitable[T]], clock: Clock = SYSTEM_CLOCK) -> T:
    failures = 0
    while True:
        try:
            return await call()
        except ApiServerNotTrusted:
            raise
        except TransientError as error:
            failures += 1
            seconds = UNREACHABLE_BACKOFF.delay(failures)
            log.warning("API server is not reachable, retrying: seconds=%.1f error=%s", seconds, error)
        await sleep(clock, seconds)
