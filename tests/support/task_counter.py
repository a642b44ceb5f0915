"""A command of argosy that tells how many asyncio tasks it has, whenever it gets SIGUSR1: a line in $ARGOSY_TASKS.

In: words as they are typed. Out: what the command does, and a number after each signal; garbage is collected before, so
that its memory is what it keeps. Never: a task of its own.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys

from argosy.cli import main


def tell(*_: object) -> None:
    """Between two steps of the loop, which a signal wakes."""
    gc.collect()
    try:
        count = len(asyncio.all_tasks())
    except RuntimeError:  # no loop yet, or none any more
        return
    with open(os.environ["ARGOSY_TASKS"], "a") as file:
        file.write(f"{count}\n")


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, tell)
    sys.argv[0] = "argosy"
    sys.exit(main())
