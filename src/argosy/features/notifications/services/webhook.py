"""Webhook service: sends a request with any method, path and body.

In: a delivery. Out: a request. Never: retries (the controller does).
"""

from __future__ import annotations

import base64
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.notifications.services.service_message_http_requests import MessageDelivery

IDEMPOTENCY_HEADER: Final = "Idempotency-Key"


def send_webhook(delivery: MessageDelivery) -> None:
    """Send the request. argo: GET with the message, unless the template configures this webhook."""
    url = delivery.get_option("url")
    if not url:
        raise UserError(f"service.webhook.{delivery.service} has no url; set one")
    fields = delivery.get_template_fields("webhook").get(delivery.service)
    method, body = "GET", delivery.message
    if isinstance(fields, dict):
        method, body = str(fields.get("method") or "GET"), str(fields.get("body") or "")
        if path := str(fields.get("path") or ""):
            url = f"{url.rstrip('/')}/{path.lstrip('/')}"
    delivery.check_response(
        delivery.send_request(method.upper(), url, body.encode(), _build_headers(delivery)),
        f"webhook {delivery.service}",
    )


def _build_headers(delivery: MessageDelivery) -> dict[str, str]:
    headers = {IDEMPOTENCY_HEADER: delivery.idempotency_key}
    for header in delivery.options.get("headers") or ():
        if isinstance(header, dict) and header.get("name"):
            headers[str(header["name"])] = str(header.get("value") or "")
    account: Any = delivery.options.get("basicAuth")
    if isinstance(account, dict):
        pair = f"{account.get('username') or ''}:{account.get('password') or ''}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return headers
