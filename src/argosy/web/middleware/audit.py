"""Audit log: one line per change or attempted change.

In: a request and its result. Out: one JSON line to the logger `argosy.audit`, and the same line in the audit trail.
Never: the request body.
"""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote

import orjson

from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.web.recent_audit_lines import ANONYMOUS_NAME, AuditTrail
from argosy.web.request import RequestContext

LOG: Final = logging.getLogger("argosy.audit")
MAX_PATH_CHARACTERS: Final = 512  # characters of a path
URL_CREDENTIALS: Final = re.compile(r"//[^/@\s]*@")  # credentials in a URL that is part of a path


def write_audit_lines(request: RequestContext, code: int, trail: AuditTrail) -> None:
    """Write the audit line of a request, or one per object if the route recorded several."""
    for rbac_object, entry_code in request.memory.audit_entries or ((request.rbac_object, 0),):
        _write_line(request, rbac_object, entry_code or code, trail)


def _write_line(request: RequestContext, rbac_object: str, code: int, trail: AuditTrail) -> None:
    line = {
        "who": request.caller.name or ANONYMOUS_NAME,
        "how": request.caller.credential_kind,
        "from": request.peer,
        "what": f"{request.method} {URL_CREDENTIALS.sub('//', unquote(request.path))[:MAX_PATH_CHARACTERS]}",
        "object": URL_CREDENTIALS.sub("//", rbac_object),
        "result": "done" if code < 400 else "refused" if code < 500 else "failed",
        "code": code,
    }
    trail.add(line, format_timestamp(datetime.now(UTC)))
    LOG.info("%s", orjson.dumps(line).decode())
