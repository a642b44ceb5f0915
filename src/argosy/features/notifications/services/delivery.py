"""One message to a service, and the HTTP requests that send it.

In: a rendered notification and service options. Out: requests and their interpreted responses. Never: puts a URL into
an error message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from argosy.errors import TransientError, UserError
from argosy.http_client.allowed_hosts import ANYWHERE, HostRules
from argosy.http_client.checked_request import Request, send
from argosy.http_client.plain_request import Answered

AGAIN: Final = (408, 425, 429)
SHOWN: Final = 200  # characters of a response body
BOOLEANS: Final = {"true": True, "false": False}


@dataclass(frozen=True)
class Delivery:
    kind: str  # of the service
    service: str
    recipient: str
    options: Mapping[str, Any] = field(repr=False)
    notification: Mapping[str, Any]
    mark: str  # idempotency key: equal for the same message
    now: datetime
    hosts: HostRules = ANYWHERE

    @property
    def message(self) -> str:
        return str(self.notification.get("message") or "")

    def part(self, name: str) -> dict[str, Any]:
        """Return the template fields for one type of service."""
        found = self.notification.get(name)
        return found if isinstance(found, dict) else {}

    def option(self, name: str, default: str = "") -> str:
        value = self.options.get(name)
        return default if value is None else str(value)

    def is_on(self, *names: str) -> bool:
        return any(BOOLEANS.get(str(self.options.get(name)).lower(), False) for name in names)

    def ask(self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answered:
        insecure = self.is_on("insecureSkipVerify")
        given = tuple((headers or {}).items())
        return send(Request(method, url, given, body, insecure=insecure), self.hosts)

    def taken(self, answered: Answered, what: str) -> Answered:
        """Return the response if it is successful; raise TransientError or UserError otherwise."""
        if 200 <= answered.code < 300:
            return answered
        said = " ".join(answered.body.decode("utf-8", "replace").split())[:SHOWN]
        message = f"{what} answered {answered.code}{f' ({said})' if said else ''}"
        if answered.code >= 500 or answered.code in AGAIN:
            raise TransientError(f"{message}; check the service")
        raise UserError(f"{message}; fix service.{self.kind} or its secret")

    def post_json(self, url: str, document: Any, headers: Mapping[str, str], what: str) -> Answered:
        body = json.dumps(document).encode()
        return self.taken(self.ask("POST", url, body, {"Content-Type": "application/json", **headers}), what)


def json_part(text: str, what: str) -> Any:
    """Parse a rendered template as JSON; return None if it is empty."""
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{what} is not valid JSON ({error}); fix the template, toJson quotes a value") from error
