"""Error responses: JSON in Argo CD's format for programs, a page with the next step for people.

In: an exception. Out: an ErrorDetails value. Never: the text of an exception that is not ours; a traceback.
"""

from __future__ import annotations

import logging
import re
import secrets
from dataclasses import dataclass, field, replace

from argosy.errors import ClusterError, Conflict, Forbidden, Invalid, PolicyError, TransientError, UserError
from argosy.web.auth.caller import BadCredential
from argosy.web.middleware.authorization import Unknown
from argosy.web.middleware.csrf_check import Foreign
from argosy.web.middleware.request_limits import TooMuch
from argosy.web.request import Absent, Refused
from argosy.web.responses import Answer, Headers, Json, Page, Redirect

log = logging.getLogger(__name__)
TITLES = {
    400: "Bad request", 401: "Sign in first", 403: "Forbidden", 404: "Not found",
    405: "Method not allowed", 409: "Conflict", 413: "Request too large", 415: "Unsupported media type",
    421: "Unknown host", 429: "Too many requests", 500: "Internal server error", 503: "Service unavailable",
}  # fmt: skip
_QUOTED = re.compile(r"""'.*'|".*\"""", re.DOTALL)
GRPC = {400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 409: 10, 413: 8, 414: 3, 415: 3, 421: 3, 429: 8, 431: 8, 503: 14}


@dataclass(frozen=True)
class Told:
    code: int
    message: str
    next: str = ""
    headers: Headers = field(default=())
    is_refusal: bool = False  # not found or forbidden: the same response


REFUSED = Told(403, "permission denied", is_refusal=True)
NO_ROUTE = Told(404, "Not Found")
UNKNOWN = Told(401, "no session information")


def told_of(error: BaseException) -> Told:
    match error:
        case Refused():
            return REFUSED
        case Unknown() | BadCredential():
            return UNKNOWN
        case Absent():
            return Told(404, error.message)
        case TooMuch():
            again = (("retry-after", str(error.retry_after)),) if error.code == 429 else ()
            return Told(error.code, error.message, headers=again)
        case Foreign():
            return Told(error.code, error.message)
        case TimeoutError():
            return Told(503, "the request timed out; try again, or request less")
        case TransientError():
            return Told(503, f"{error}", "Try again in a moment.")
        case PolicyError():
            return Told(403, f"{error}")
        case UserError():
            return Told(400, f"{error}")
        case ClusterError():
            return _of_cluster(error)
        case _:
            name = secrets.token_hex(6)
            log.error("request failed: error id %s", name, exc_info=error)
            return Told(500, f"internal server error; see the server log for error id {name}")


def quotes_sent(error: BaseException) -> bool:
    """True if the error message is about the request; other errors may quote values that were read."""
    if isinstance(error, ClusterError):
        return not isinstance(error, TransientError) and 400 <= error.code < 500
    return isinstance(error, UserError | PolicyError | TooMuch | Absent | Refused | Foreign)


def to_stranger(told: Told) -> Told:
    """Remove quoted input: a redacted quote would confirm a guessed secret to an unauthenticated caller."""
    return replace(told, message=_QUOTED.sub("…", told.message))


def _of_cluster(error: ClusterError) -> Told:
    if isinstance(error, Forbidden):
        return Told(403, f"the cluster refused the request: {error.message}")
    if isinstance(error, Conflict):
        return Told(409, error.message, "Reload the page and try again.")
    if isinstance(error, Invalid) or 400 <= error.code < 500:
        return Told(404 if error.code == 404 else 400, error.message)
    return Told(503, f"the cluster failed: {error.message}")


def as_answer(told: Told, *, is_api: bool, is_reading: bool, path: str) -> Answer:
    if is_api:
        grpc = GRPC.get(told.code, 13)
        document = {"error": told.message, "code": grpc, "message": told.message}
        return Json(document, code=told.code, headers=told.headers)
    if told.code == 401 and is_reading:
        from urllib.parse import quote

        return Redirect(f"/login?next={quote(path, safe='')}")
    code = 404 if told.is_refusal else told.code
    shown = "Not found, or you do not have permission to see it." if told.is_refusal else told.message
    values = {"code": code, "title": TITLES.get(code, "Error"), "message": shown, "next": told.next}
    return Page("error.html", values, code=code, headers=told.headers)
