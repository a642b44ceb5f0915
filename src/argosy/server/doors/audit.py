"""A line for everything that changes something, or tried to.

In: a request and what came of it. Out: one line of JSON to the logger `argosy.audit`. Never: what was sent.
"""

from __future__ import annotations

import logging
from typing import Final

import orjson

from argosy.server.asked import Asked

LOG: Final = logging.getLogger("argosy.audit")
MOST: Final = 512  # characters of a path


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
    LOG.info("%s", orjson.dumps(line).decode())
