"""Error details: the code and the message of an exception, as REST, gRPC and streams report it.

In: an exception. Out: ErrorDetails. Never: the text of an exception that is not ours; a traceback.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.errors import ClusterError, Conflict, Forbidden, Invalid, PolicyError, TransientError, UserError
from argosy.web.auth.caller import BadCredential, RevokedCredential
from argosy.web.authorization import NotAuthenticated
from argosy.web.request import NotFoundOrForbidden, ObjectNotFound, PermissionMissing, RequestRejected
from argosy.web.request_limits import RequestLimitExceeded
from argosy.web.responses import Headers

log = logging.getLogger(__name__)
_QUOTED = re.compile(r"""'.*'|".*\"""", re.DOTALL)
GRPC_CODES = {
    400: 3,
    401: 16,
    403: 7,
    404: 5,
    405: 12,
    408: 4,
    409: 10,
    413: 8,
    414: 3,
    415: 3,
    421: 3,
    429: 8,
    431: 8,
    503: 14,
}


UNKNOWN_GRPC_CODE: Final = 2


class UncodedError(UserError):
    """argo: A mistake in a request whose gRPC code is Unknown, because Argo CD gives the error no code."""


@contextmanager
def report_without_code() -> Iterator[None]:
    """Report mistakes that the block finds as Argo CD does: without a gRPC code of their own."""
    try:
        yield
    except PolicyError:
        raise
    except UserError as error:
        raise UncodedError(error.message, where=error.where, line=error.line) from error


class RouteNotFound(Exception):
    """Unknown API path. Everyone may know that: all paths are in the OpenAPI document."""


@dataclass(frozen=True)
class ErrorDetails:
    code: int
    message: str
    next_step: str = ""
    headers: Headers = field(default=())
    is_not_found_or_forbidden: bool = False  # not found or forbidden: the same response
    own_grpc_code: int = 0  # 0: that of the HTTP code

    @property
    def grpc_code(self) -> int:
        return self.own_grpc_code or GRPC_CODES.get(self.code, 13)


PERMISSION_DENIED = ErrorDetails(403, "permission denied", is_not_found_or_forbidden=True)
NO_SESSION = ErrorDetails(401, "no session information")
REVOKED_SESSION = ErrorDetails(401, "invalid session: token is revoked, please re-login")  # argo


def describe_error(error: BaseException) -> ErrorDetails:
    match error:
        case PermissionMissing():
            return replace(PERMISSION_DENIED, message=error.message)
        case NotFoundOrForbidden():
            return PERMISSION_DENIED
        case RouteNotFound():
            return ErrorDetails(404, "Not Found")
        case RevokedCredential():
            return REVOKED_SESSION
        case NotAuthenticated() | BadCredential():
            return NO_SESSION
        case ObjectNotFound():
            return ErrorDetails(404, error.message)
        case RequestLimitExceeded():
            headers = (("retry-after", str(error.retry_after)),) if error.code == 429 else ()
            return ErrorDetails(error.code, error.message, headers=headers)
        case RequestRejected():
            return ErrorDetails(error.code, error.message)
        case TimeoutError():
            return ErrorDetails(503, "the request timed out; try again, or request less")
        case TransientError():
            return ErrorDetails(503, f"{error}", "Try again in a moment.")
        case PolicyError():
            return ErrorDetails(403, f"{error}")
        case UncodedError():
            return ErrorDetails(400, f"{error}", own_grpc_code=UNKNOWN_GRPC_CODE)
        case UserError():
            return ErrorDetails(400, f"{error}")
        case ClusterError():
            return _describe_cluster_error(error)
        case _:
            error_id = secrets.token_hex(6)
            log.error("request failed: error id %s", error_id, exc_info=error)
            return ErrorDetails(500, f"internal server error; see the server log for error id {error_id}")


def quotes_request(error: BaseException) -> bool:
    """True if the error message is about the request; other errors may quote values that were read."""
    if isinstance(error, ClusterError):
        return not isinstance(error, TransientError) and 400 <= error.code < 500
    return isinstance(
        error, UserError | PolicyError | RequestLimitExceeded | ObjectNotFound | NotFoundOrForbidden | RequestRejected
    )


def drop_quoted_input(details: ErrorDetails) -> ErrorDetails:
    """Remove quoted input: a redacted quote would confirm a guessed secret to an unauthenticated caller."""
    return replace(details, message=_QUOTED.sub("…", details.message))


def _describe_cluster_error(error: ClusterError) -> ErrorDetails:
    if isinstance(error, Forbidden):
        return ErrorDetails(403, f"the cluster refused the request: {error.message}")
    if isinstance(error, Conflict):
        return ErrorDetails(409, error.message, "Reload the page and try again.")
    if isinstance(error, Invalid) or 400 <= error.code < 500:
        return ErrorDetails(404 if error.code == 404 else 400, error.message)
    return ErrorDetails(503, f"the cluster failed: {error.message}")
