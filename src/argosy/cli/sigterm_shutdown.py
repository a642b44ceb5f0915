"""Graceful shutdown on SIGTERM: open resources are closed, workers and temporary folders are removed.

In: a block. Out: the block, ended by an exception on SIGTERM; then the process ends by the signal, at the latest
after a grace period, because an event loop waits indefinitely for blocked threads.
Never: affects a command that handles SIGTERM itself.
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

GRACE_SECONDS = 5.0  # grace period


class Terminated(SystemExit):
    """SIGTERM was received. A SystemExit, so that an event loop cancels its tasks and propagates it."""


@contextmanager
def raise_on_sigterm() -> Iterator[None]:
    """Raise Terminated in the block on the first SIGTERM; afterwards the process ends by the signal."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _handle_sigterm)
    try:
        yield
    except Terminated:
        os.kill(os.getpid(), signal.SIGTERM)
        raise
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _handle_sigterm(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second SIGTERM ends the process at once
    _thread.start_new_thread(_end_after_grace, ())  # threading.Timer needs a lock that the interrupted code may hold
    raise Terminated(128 + number)


def _end_after_grace() -> None:
    """End the process with the default action of SIGTERM, if it is still running."""
    time.sleep(GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
