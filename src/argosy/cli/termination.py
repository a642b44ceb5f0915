"""SIGTERM ends a command in order: what it opened is closed, and its workers and temporary folders are removed.

In: a block. Out: the block, ended by an exception when SIGTERM comes; then the process ends by the signal, at the
latest after a time of grace: an event loop waits without limit for threads that block.
Never: changes what a command does that handles SIGTERM itself.
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

GRACE_SECONDS = 5.0  # to close what is open


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
    _thread.start_new_thread(_end_after_grace, ())  # threading.Timer needs a lock that the interrupted code may hold
    raise Terminated(128 + number)


def _end_after_grace() -> None:
    """End the process by the default action of SIGTERM, if it still runs then."""
    time.sleep(GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
