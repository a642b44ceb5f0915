"""The Application for whose operation the running task sends requests to a cluster, for the metric of requests.

In: an Application. Out: the Application of the current context. Never: decides anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from argosy.gitops.application import Application

_OWNER: Final[ContextVar[Application | None]] = ContextVar("request_owner", default=None)


@contextmanager
def send_requests_for(app: Application) -> Iterator[None]:
    token = _OWNER.set(app)
    try:
        yield
    finally:
        _OWNER.reset(token)


def find_request_owner() -> Application | None:
    return _OWNER.get()
