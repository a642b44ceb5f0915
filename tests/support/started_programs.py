"""Records the arguments of programs that this process starts, because other users of the machine can read them.

In: a `with` block. Out: the arguments of every program started in it. Never: those of another process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_listening: list[list[str]] = []


def _heard(event: str, args: tuple[Any, ...]) -> None:
    if _listening and event == "subprocess.Popen":
        for recorded in _listening:
            recorded += map(str, args[1])


sys.addaudithook(_heard)  # an audit hook cannot be removed; it does nothing outside of a `with` block


@contextmanager
def arguments_started() -> Iterator[list[str]]:
    recorded: list[str] = []
    _listening.append(recorded)
    try:
        yield recorded
    finally:
        _listening[:] = [listener for listener in _listening if listener is not recorded]
