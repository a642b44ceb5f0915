"""Audit log: one line per change or attempted change.

In: a request and its result. Out: one JSON line to the logger `argosy.audit`, and the latest lines for the audit page.
Never: the request body.
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
CREDENTIALS: Final = re.compile(r"//[^/@\s]*@")  # credentials in a URL that is part of a path


class Trail:
    """The latest audit lines of this server; the log has all. Strangers have a separate limit."""

    def __init__(self) -> None:
        self._known: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self._strangers: deque[dict[str, Any]] = deque(maxlen=OF_STRANGERS)

    def add(self, line: Mapping[str, Any], time: str) -> None:
        """Add a line; a repeated line only increases its count."""
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
    """Write the audit line of a request, or one per object if the route recorded several."""
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
