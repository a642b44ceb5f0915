"""A hook that runs immediately before a mutating request is sent.

In: a function, set for the current task. Out: its exception, instead of the request. Never: runs before a read.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

# Between the decision to write and the first byte, the process may renew credentials, open a connection or sleep.
BEFORE_WRITE: Final[ContextVar[Callable[[], None]]] = ContextVar("before sending", default=lambda: None)
