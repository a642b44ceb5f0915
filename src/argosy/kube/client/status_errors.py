"""Converts error responses of an API server to argosy's exceptions.

In: status code, body and headers of a response of 400 or more. Out: an ArgosyError. Never: does I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from argosy.errors import ArgosyError, ClusterError, TransientError, cluster_error
from argosy.kube.names import ResourceKey

# Retrying later may succeed. A 500 with a Status is a decision, such as that of a failing webhook.
PASSING = frozenset({429, 502, 503, 504, 507})
REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
}


MAX_MESSAGE_CHARACTERS = 10_000  # the server's message is written to conditions and logs
MAX_REASON_CHARACTERS = 100


class Unavailable(TransientError):
    """The API server is not available now. `retry_after` is the value of its Retry-After header, in seconds."""

    def __init__(self, message: str, *, code: int = 0, retry_after: float | None = None) -> None:
        wait = f"; try again in {retry_after:g} s" if retry_after is not None else ""
        super().__init__(message + (f" ({code})" if code else "") + wait)
        self.message = message
        self.code = code
        self.retry_after = retry_after


class Untrusted(Unavailable):
    """The server's certificate is not trusted: a person must act."""

    passes = False


def refusal(
    code: int, content: bytes, headers: Mapping[str, str], *, host: str, key: ResourceKey | None = None
) -> ArgosyError:
    status = _status(content)
    if code in PASSING or (code >= 500 and status is None):
        said = _message(status) if status and status.get("message") else _text(content) or "is not available"
        return Unavailable(f"{host}: {said}", code=code, retry_after=_seconds(headers.get("Retry-After")))
    if status is not None:
        return cluster_error(plain_status(status, code), key)
    return cluster_error(
        {"message": _text(content) or "the cluster gave no reason", "code": code, "reason": REASONS.get(code, "")}, key
    )


def plain_status(status: Mapping[str, Any], code: int) -> dict[str, Any]:
    """Return a Status with fields of the types that Kubernetes defines, from untrusted data."""
    details, given = status.get("details"), status.get("code")
    return {
        "message": _message(status),
        "reason": plain_text(str(status.get("reason") or ""))[:MAX_REASON_CHARACTERS],
        "code": given if type(given) is int and 400 <= given < 600 else code,
        "details": details if isinstance(details, dict) else None,
    }


def plain_text(text: str) -> str:
    """Replace characters that could forge log lines or control a terminal; line breaks and tabs become spaces."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else " " if each in "\n\r\t" else "\ufffd" for each in text)


def answered_without_json(host: str, content: bytes) -> TransientError:
    return Unavailable(f"{host}: the answer ({len(content)} bytes) is not JSON; is this an API server?")


def not_served(kind: str, api_version: str = "", key: ResourceKey | None = None) -> ClusterError:
    """k8s: kubectl's message."""
    suffix = f' in version "{api_version}"' if api_version else ""
    return ClusterError(f'no matches for kind "{kind}"{suffix}', code=404, reason="NotFound", key=key)


def _status(content: bytes) -> dict[str, Any] | None:
    try:
        status = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return status if isinstance(status, dict) and status.get("kind") == "Status" else None


def _text(content: bytes) -> str:
    """Return the first line of a plain-text body; empty for the HTML page of a proxy."""
    first = content[:300].decode(errors="replace").strip().partition("\n")[0]
    return "" if first.startswith("<") else plain_text(first)


def _message(status: Mapping[str, Any]) -> str:
    """Return the sanitized message. Line breaks are kept: kubectl prints one line per cause."""
    message = str(status.get("message") or "")
    if len(message) > MAX_MESSAGE_CHARACTERS:
        message = f"{message[:MAX_MESSAGE_CHARACTERS]}… ({len(message)} characters)"
    return "\n".join(map(plain_text, message.split("\n")))


def _seconds(value: str | None) -> float | None:
    text = (value or "").strip()
    return float(text[:9]) if text.isascii() and text.isdigit() else None
