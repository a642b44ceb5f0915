"""Runs an argosy command that appends its number of asyncio tasks to the file $ARGOSY_TASKS on each SIGUSR1.

In: command line arguments. Out: the command, and a number after each signal; garbage is collected first, so that only
reachable objects use memory. $ARGOSY_LEAKED_TASKS is the number of tasks to leak with each HTTP request of the command.
Never: adds a task of its own otherwise.
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
    """Write the number of tasks; runs between two iterations of the event loop, which the signal wakes."""
    gc.collect()
    try:
        count = len(asyncio.all_tasks())
    except RuntimeError:  # the event loop has not started, or has ended
        return
    with open(os.environ["ARGOSY_TASKS"], "a") as file:
        file.write(f"{count}\n")


def leak(count: int) -> None:
    """Make each HTTP request leak tasks that never end."""
    ask, leaked = ClientSession._request, []

    async def ask_and_leak(*words: Any, **named: Any) -> Any:
        leaked.extend(asyncio.ensure_future(asyncio.Event().wait()) for _ in range(count))
        return await ask(*words, **named)

    ClientSession._request = ask_and_leak  # type: ignore[method-assign]


if __name__ == "__main__":
    if leaked := int(os.environ.get("ARGOSY_LEAKED_TASKS") or 0):
        leak(leaked)
    signal.signal(signal.SIGUSR1, tell)
    sys.argv[0] = "argosy"
    sys.exit(main())
