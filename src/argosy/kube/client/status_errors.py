"""Converts error responses of an API server to argosy's exceptions.

In: status code, body and headers of a response of 400 or more. Out: an ArgosyError. Never: does I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from argosy.errors import ArgosyError, ClusterError, TransientError, cluster_error_from_status
from argosy.kube.resource_key import ResourceKey

# Retrying later may succeed. A 500 with a Status is a decision, such as that of a failing webhook.
RETRYABLE_CODES = frozenset({429, 502, 503, 504, 507})
REASON_BY_CODE = {
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


class ApiServerUnavailable(TransientError):
    """The API server is not available now. `retry_after` is the value of its Retry-After header, in seconds."""

    def __init__(self, message: str, *, code: int = 0, retry_after: float | None = None) -> None:
        wait = f"; try again in {retry_after:g} s" if retry_after is not None else ""
        super().__init__(message + (f" ({code})" if code else "") + wait)
        self.message = message
        self.code = code
        self.retry_after = retry_after


class ApiServerNotTrusted(ApiServerUnavailable):
    """The server's certificate is not trusted: a person must act."""

    clears_by_itself = False


def error_from_response(
    code: int, content: bytes, headers: Mapping[str, str], *, host: str, key: ResourceKey | None = None
) -> ArgosyError:
    status = _read_status(content)
    if code in RETRYABLE_CODES or (code >= 500 and status is None):
        message = (
            _format_message(status)
            if status and status.get("message")
            else _read_first_line(content) or "is not available"
        )
        return ApiServerUnavailable(
            f"{host}: {message}", code=code, retry_after=_parse_retry_after(headers.get("Retry-After"))
        )
    if status is not None:
        return cluster_error_from_status(sanitize_status(status, code), key)
    return cluster_error_from_status(
        {
            "message": _read_first_line(content) or "the cluster gave no reason",
            "code": code,
            "reason": REASON_BY_CODE.get(code, ""),
        },
        key,
    )


def sanitize_status(status: Mapping[str, Any], code: int) -> dict[str, Any]:
    """Return a Status with fields of the types that Kubernetes defines, from untrusted data."""
    details, status_code = status.get("details"), status.get("code")
    return {
        "message": _format_message(status),
        "reason": sanitize_text(str(status.get("reason") or ""))[:MAX_REASON_CHARACTERS],
        "code": status_code if type(status_code) is int and 400 <= status_code < 600 else code,
        "details": details if isinstance(details, dict) else None,
    }


def sanitize_text(text: str) -> str:
    """Replace characters that could forge log lines or control a terminal; line breaks and tabs become spaces."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else " " if character in "\n\r\t" else "\ufffd" for character in text
    )


def build_not_json_error(host: str, content: bytes) -> TransientError:
    return ApiServerUnavailable(f"{host}: the answer ({len(content)} bytes) is not JSON; is this an API server?")


def build_not_served_error(kind: str, api_version: str = "", key: ResourceKey | None = None) -> ClusterError:
    """k8s: kubectl's message."""
    suffix = f' in version "{api_version}"' if api_version else ""
    return ClusterError(f'no matches for kind "{kind}"{suffix}', code=404, reason="NotFound", key=key)


def _read_status(content: bytes) -> dict[str, Any] | None:
    try:
        status = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return status if isinstance(status, dict) and status.get("kind") == "Status" else None


def _read_first_line(content: bytes) -> str:
    """Return the first line of a plain-text body; empty for the HTML page of a proxy."""
    first = content[:300].decode(errors="replace").strip().partition("\n")[0]
    return "" if first.startswith("<") else sanitize_text(first)


def _format_message(status: Mapping[str, Any]) -> str:
    """Return the sanitized message. Line breaks are kept: kubectl prints one line per cause."""
    message = str(status.get("message") or "")
    if len(message) > MAX_MESSAGE_CHARACTERS:
        message = f"{message[:MAX_MESSAGE_CHARACTERS]}… ({len(message)} characters)"
    return "\n".join(map(sanitize_text, message.split("\n")))


def _parse_retry_after(value: str | None) -> float | None:
    text = (value or "").strip()
    return float(text[:9]) if text.isascii() and text.isdigit() else None
