"""Ask the person at the terminal.

In: nothing. Out: the line that was typed. Never: waits on when Ctrl-C was pressed.
"""

from __future__ import annotations

import signal
import sys


def read_line() -> str:
    """An empty text where nobody can answer. Ctrl-C ends the command here and now, inside an event loop too.

    (A loop takes the signal for itself and looks at it when it runs again: after the answer, and after the writes.)
    """
    if sys.stdin is None:
        return ""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, before)
