"""Timeouts of tests, and functions that wait for a state. No test asserts how long something takes.

In: ARGOSY_TEST_PATIENCE, a factor for slow machines. Out: limits in seconds, and waits for a state. Never: measures
speed; `bench/` does that.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

try:
    PATIENCE_FACTOR = float(os.environ.get("ARGOSY_TEST_PATIENCE") or 1)
except ValueError:
    sys.exit(f"ARGOSY_TEST_PATIENCE must be a number, such as 3, not {os.environ['ARGOSY_TEST_PATIENCE']!r}")
HANG_SECONDS = 120.0 * PATIENCE_FACTOR  # for one expected state
TEST_HANG_SECONDS = 5 * HANG_SECONDS  # for one test, which may wait for several states
PROOF_HANG_SECONDS = 30 * HANG_SECONDS  # for one proof in full, which may take half an hour
POLL_SECONDS = 0.01

Value = TypeVar("Value")


def wait_until(condition: Callable[[], Value], description: str = "", *, seconds: float = HANG_SECONDS) -> Value:
    """Poll until `condition` returns something true, and return that."""
    until = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < until, f"not within {seconds:g} s: {description or condition}"
        time.sleep(POLL_SECONDS)
    return value


async def wait_until_async(
    condition: Callable[[], Value | Awaitable[Value]], description: str = "", *, seconds: float = HANG_SECONDS
) -> Value:
    """Like `wait_until`, without blocking the event loop; `condition` may be a coroutine function."""
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if isinstance(value, Awaitable):
            value = await value
        if value:
            return value
        assert time.monotonic() < until, f"not within {seconds:g} s: {description or condition}"
        await asyncio.sleep(POLL_SECONDS)


if __name__ == "__main__":  # for the Makefile: the limit of one test, or of one proof with the argument `prove`
    print(f"{PROOF_HANG_SECONDS if sys.argv[1:] == ['prove'] else TEST_HANG_SECONDS:g}")
