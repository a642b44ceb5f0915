"""A line for everything that changes something, or tried to.

In: a request and what came of it. Out: one line of JSON to the logger `argosy.audit`, and the last of them to who may
see them. Never: what was sent.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from argosy.model.times import written
from argosy.server.asked import Asked

LOG: Final = logging.getLogger("argosy.audit")
RECENT: Final = 500
MOST: Final = 512  # characters of a path


class Trail:
    """The last ones of this server, for its page; the log has all."""

    def __init__(self) -> None:
        self.lines: deque[Mapping[str, Any]] = deque(maxlen=RECENT)


def note(asked: Asked, code: int) -> None:
    line = {
        "who": asked.caller.name or "nobody",
        "how": asked.caller.how,
        "from": asked.peer,
        "what": f"{asked.method} {asked.path[:MOST]}",
        "object": asked.thing,
        "result": "done" if code < 400 else "refused" if code < 500 else "failed",
        "code": code,
    }
    asked.site.part(Trail).lines.append({**line, "time": written(datetime.now(UTC))})
    LOG.info("%s", orjson.dumps(line).decode())
