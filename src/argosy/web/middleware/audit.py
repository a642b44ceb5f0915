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

from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.web.request import RequestContext

LOG: Final = logging.getLogger("argosy.audit")
MAX_RECENT_LINES: Final = 500
MAX_ANONYMOUS_LINES: Final = 100
MAX_PATH_CHARACTERS: Final = 512  # characters of a path
ANONYMOUS_NAME: Final = "nobody"
URL_CREDENTIALS: Final = re.compile(r"//[^/@\s]*@")  # credentials in a URL that is part of a path


class AuditTrail:
    """The latest audit lines of this server; the log has all. Strangers have a separate limit."""

    def __init__(self) -> None:
        self._user_lines: deque[dict[str, Any]] = deque(maxlen=MAX_RECENT_LINES)
        self._anonymous_lines: deque[dict[str, Any]] = deque(maxlen=MAX_ANONYMOUS_LINES)

    def add(self, line: Mapping[str, Any], time: str) -> None:
        """Add a line; a repeated line only increases its count."""
        recent = self._anonymous_lines if line["who"] == ANONYMOUS_NAME else self._user_lines
        last_line = recent[-1] if recent else {}
        if {**last_line, "time": "", "count": 0} == {**line, "time": "", "count": 0}:
            last_line |= {"time": time, "count": last_line["count"] + 1}
        else:
            recent.append({**line, "time": time, "count": 1})

    @property
    def lines(self) -> list[dict[str, Any]]:
        return sorted((*self._user_lines, *self._anonymous_lines), key=lambda line: str(line["time"]))


def write_audit_lines(request: RequestContext, code: int) -> None:
    """Write the audit line of a request, or one per object if the route recorded several."""
    for rbac_object, entry_code in request.state.get("noted") or ((request.rbac_object, 0),):
        _write_line(request, rbac_object, entry_code or code)


def _write_line(request: RequestContext, rbac_object: str, code: int) -> None:
    line = {
        "who": request.caller.name or ANONYMOUS_NAME,
        "how": request.caller.credential_kind,
        "from": request.peer,
        "what": f"{request.method} {URL_CREDENTIALS.sub('//', unquote(request.path))[:MAX_PATH_CHARACTERS]}",
        "object": URL_CREDENTIALS.sub("//", rbac_object),
        "result": "done" if code < 400 else "refused" if code < 500 else "failed",
        "code": code,
    }
    request.site.get_module_state(AuditTrail).add(line, format_timestamp(datetime.now(UTC)))
    LOG.info("%s", orjson.dumps(line).decode())
