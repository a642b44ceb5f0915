"""Progress message on stderr for slow steps. In: a description. Out: nothing. Never: prints into a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from argosy.cli.tables import plain

PATIENCE: Final = 1.0  # seconds before the message is printed


@contextmanager
def patiently(doing: str) -> Iterator[None]:
    if not sys.stderr.isatty():
        yield
        return
    import threading

    timer = threading.Timer(PATIENCE, _tell, [doing])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _tell(text: str) -> None:
    print(plain(text), file=sys.stderr, flush=True)
