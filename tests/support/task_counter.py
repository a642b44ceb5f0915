"""A command of argosy that tells how many asyncio tasks it has, whenever it gets SIGUSR1: a line in $ARGOSY_TASKS.

In: words as they are typed. Out: what the command does, and a number after each signal; garbage is collected before, so
that its memory is what it keeps. With $ARGOSY_LEAKED_TASKS, so many more tasks after each request that it makes.
Never: another task of its own.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from typing import Any

from aiohttp import ClientSession

from argosy.main import main


def tell(*_: object) -> None:
    """Between two steps of the loop, which a signal wakes."""
    gc.collect()
    try:
        count = len(asyncio.all_tasks())
    except RuntimeError:  # no loop yet, or none any more
        return
    with open(os.environ["ARGOSY_TASKS"], "a") as file:
        file.write(f"{count}\n")


def leak(count: int) -> None:
    """From here on each request leaves tasks behind that wait for ever."""
    ask, kept = ClientSession._request, []

    async def ask_and_leak(*words: Any, **named: Any) -> Any:
        kept.extend(asyncio.ensure_future(asyncio.Event().wait()) for _ in range(count))
        return await ask(*words, **named)

    ClientSession._request = ask_and_leak  # type: ignore[method-assign]


if __name__ == "__main__":
    if leaked := int(os.environ.get("ARGOSY_LEAKED_TASKS") or 0):
        leak(leaked)
    signal.signal(signal.SIGUSR1, tell)
    sys.argv[0] = "argosy"
    sys.exit(main())
