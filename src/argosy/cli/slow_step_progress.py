"""Progress message on stderr for slow steps. In: a description. Out: nothing. Never: prints into a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from argosy.cli.tables import drop_control_characters

PROGRESS_DELAY_SECONDS: Final = 1.0  # seconds before the message is printed


@contextmanager
def show_progress_if_slow(message: str) -> Iterator[None]:
    if not sys.stderr.isatty():
        yield
        return
    import threading

    timer = threading.Timer(PROGRESS_DELAY_SECONDS, _print_message, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _print_message(text: str) -> None:
    print(drop_control_characters(text), file=sys.stderr, flush=True)
