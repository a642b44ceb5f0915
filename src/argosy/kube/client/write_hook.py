"""Who is asked just before a request that changes something leaves for a server.

In: a function, for the task that asks. Out: its exception instead of a request. Never: asked about what is only read.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

# Between the decision to write and the first byte there may be a sign-in, a new connection, and a process that sleeps.
BEFORE_SENDING: Final[ContextVar[Callable[[], None]]] = ContextVar("before sending", default=lambda: None)
