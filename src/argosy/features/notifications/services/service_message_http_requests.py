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
from argosy.http_client.allowed_host_request import OutboundRequest, send_request
from argosy.http_client.allowed_hosts import ALLOW_ALL_HOSTS, HostRules
from argosy.http_client.anonymous_request import PlainResponse

RETRY_STATUS_CODES: Final = (408, 425, 429)
MAX_BODY_CHARACTERS: Final = 200  # characters of a response body
BOOLEAN_TEXTS: Final = {"true": True, "false": False}


@dataclass(frozen=True)
class MessageDelivery:
    kind: str  # of the service
    service: str
    recipient: str
    options: Mapping[str, Any] = field(repr=False)
    notification: Mapping[str, Any]
    idempotency_key: str  # idempotency key: equal for the same message
    now: datetime
    hosts: HostRules = ALLOW_ALL_HOSTS

    @property
    def message(self) -> str:
        return str(self.notification.get("message") or "")

    def get_template_fields(self, name: str) -> dict[str, Any]:
        """Return the template fields for one type of service."""
        fields = self.notification.get(name)
        return fields if isinstance(fields, dict) else {}

    def get_option(self, name: str, default: str = "") -> str:
        value = self.options.get(name)
        return default if value is None else str(value)

    def is_enabled(self, *names: str) -> bool:
        return any(BOOLEAN_TEXTS.get(str(self.options.get(name)).lower(), False) for name in names)

    def send_request(
        self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> PlainResponse:
        insecure = self.is_enabled("insecureSkipVerify")
        header_items = tuple((headers or {}).items())
        return send_request(OutboundRequest(method, url, header_items, body, insecure=insecure), self.hosts)

    def check_response(self, response: PlainResponse, receiver: str) -> PlainResponse:
        """Return the response if it is successful; raise TransientError or UserError otherwise."""
        if 200 <= response.code < 300:
            return response
        body_text = " ".join(response.body.decode("utf-8", "replace").split())[:MAX_BODY_CHARACTERS]
        message = f"{receiver} answered {response.code}{f' ({body_text})' if body_text else ''}"
        if response.code >= 500 or response.code in RETRY_STATUS_CODES:
            raise TransientError(f"{message}; check the service")
        raise UserError(f"{message}; fix service.{self.kind} or its secret")

    def post_json(self, url: str, document: Any, headers: Mapping[str, str], receiver: str) -> PlainResponse:
        body = json.dumps(document).encode()
        return self.check_response(
            self.send_request("POST", url, body, {"Content-Type": "application/json", **headers}), receiver
        )


def parse_json_field(text: str, field_name: str) -> Any:
    """Parse a rendered template as JSON; return None if it is empty."""
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{field_name} is not valid JSON ({error}); fix the template, toJson quotes a value") from error
