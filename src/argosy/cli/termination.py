"""SIGTERM ends a command in order: what it opened is closed, and its workers and temporary folders are removed.

In: a block. Out: the block, ended by an exception when SIGTERM comes; then the process ends by the signal.
Never: changes what a command does that handles SIGTERM itself.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(SystemExit):
    """SIGTERM came. A SystemExit, so that an event loop ends its tasks and passes it on."""


@contextmanager
def closed_on_sigterm() -> Iterator[None]:
    """Raise Terminated within the block on the first SIGTERM; the process ends by the signal after it."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    except Terminated:
        os.kill(os.getpid(), signal.SIGTERM)
        raise
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _raise(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends it at once
    raise Terminated(128 + number)
