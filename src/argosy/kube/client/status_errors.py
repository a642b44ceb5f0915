"""What an API server's answer of 400 and more means, as one of our errors. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from argosy.errors import ArgosyError, ClusterError, TransientError, cluster_error
from argosy.kube.names import ResourceKey

# Who asks again later may well get another answer. A 500 with a Status is a decision, such as a failed webhook.
PASSING = frozenset({429, 502, 503, 504, 507})
REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed",
           409: "Conflict", 410: "Expired", 413: "RequestEntityTooLarge", 415: "UnsupportedMediaType", 422: "Invalid"}


MAX_MESSAGE_CHARACTERS = 10_000  # of a server's message: it is written into conditions and logs
MAX_REASON_CHARACTERS = 100


class Unavailable(TransientError):
    """The server cannot be had now. `retry_after` is the seconds it asked for, if it did."""

    def __init__(self, message: str, *, code: int = 0, retry_after: float | None = None) -> None:
        wait = f"; try again in {retry_after:g} s" if retry_after is not None else ""
        super().__init__(message + (f" ({code})" if code else "") + wait)
        self.message = message
        self.code = code
        self.retry_after = retry_after


class Untrusted(Unavailable):
    """Somebody answers, and cannot show that it is the one that was asked for: somebody must act."""

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
    """A Status whose fields have the types that Kubernetes gives them, whoever sent it."""
    details, given = status.get("details"), status.get("code")
    return {
        "message": _message(status),
        "reason": plain_text(str(status.get("reason") or ""))[:MAX_REASON_CHARACTERS],
        "code": given if type(given) is int and 400 <= given < 600 else code,
        "details": details if isinstance(details, dict) else None,
    }


def plain_text(text: str) -> str:
    """Without characters that would forge lines of a log or steer a terminal; line breaks and tabs become spaces."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else " " if each in "\n\r\t" else "\ufffd" for each in text)


def answered_without_json(host: str, content: bytes) -> TransientError:
    return Unavailable(f"{host}: answered {len(content)} bytes that are not JSON; is this an API server?")


def not_served(kind: str, api_version: str = "", key: ResourceKey | None = None) -> ClusterError:
    """k8s: kubectl's words."""
    suffix = f' in version "{api_version}"' if api_version else ""
    return ClusterError(f'no matches for kind "{kind}"{suffix}', code=404, reason="NotFound", key=key)


def _status(content: bytes) -> dict[str, Any] | None:
    try:
        status = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return status if isinstance(status, dict) and status.get("kind") == "Status" else None


def _text(content: bytes) -> str:
    """The first line of a plain answer; a proxy's page tells nothing."""
    first = content[:300].decode(errors="replace").strip().partition("\n")[0]
    return "" if first.startswith("<") else plain_text(first)


def _message(status: Mapping[str, Any]) -> str:
    """Lines are kept: kubectl prints several for several faults."""
    message = str(status.get("message") or "")
    if len(message) > MAX_MESSAGE_CHARACTERS:
        message = f"{message[:MAX_MESSAGE_CHARACTERS]}… ({len(message)} characters)"
    return "\n".join(map(plain_text, message.split("\n")))


def _seconds(value: str | None) -> float | None:
    text = (value or "").strip()
    return float(text[:9]) if text.isascii() and text.isdigit() else None
