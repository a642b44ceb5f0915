"""A line for everything that changes something, or tried to.

In: a request and what came of it. Out: one line of JSON to the logger `argosy.audit`, and the last of them to who may
see them. Never: what was sent.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote

import orjson

from argosy.kube.objects.timestamps import written
from argosy.web.request import Asked

LOG: Final = logging.getLogger("argosy.audit")
RECENT: Final = 500
OF_STRANGERS: Final = 100
MOST: Final = 512  # characters of a path
NOBODY: Final = "nobody"
CREDENTIALS: Final = re.compile(r"//[^/@\s]*@")  # of an address that is part of a path


class Trail:
    """The last ones of this server, for its page; the log has all. Strangers cannot push out what others did."""

    def __init__(self) -> None:
        self._known: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self._strangers: deque[dict[str, Any]] = deque(maxlen=OF_STRANGERS)

    def add(self, line: Mapping[str, Any], time: str) -> None:
        """What comes again and again is one line that counts."""
        kept = self._strangers if line["who"] == NOBODY else self._known
        last = kept[-1] if kept else {}
        if {**last, "time": "", "count": 0} == {**line, "time": "", "count": 0}:
            last |= {"time": time, "count": last["count"] + 1}
        else:
            kept.append({**line, "time": time, "count": 1})

    @property
    def lines(self) -> list[dict[str, Any]]:
        return sorted((*self._known, *self._strangers), key=lambda each: str(each["time"]))


def note(asked: Asked, code: int) -> None:
    """One line; where the route has noted several things, one for each."""
    for thing, own in asked.kept.get("noted") or ((asked.thing, 0),):
        _write(asked, thing, own or code)


def _write(asked: Asked, thing: str, code: int) -> None:
    line = {
        "who": asked.caller.name or NOBODY,
        "how": asked.caller.how,
        "from": asked.peer,
        "what": f"{asked.method} {CREDENTIALS.sub('//', unquote(asked.path))[:MOST]}",
        "object": CREDENTIALS.sub("//", thing),
        "result": "done" if code < 400 else "refused" if code < 500 else "failed",
        "code": code,
    }
    asked.site.part(Trail).add(line, written(datetime.now(UTC)))
    LOG.info("%s", orjson.dumps(line).decode())
