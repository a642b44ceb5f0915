"""Webhook service: sends a request with any method, path and body.

In: a delivery. Out: a request. Never: retries (the controller does).
"""

from __future__ import annotations

import base64
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.notifications.services.delivery import Delivery

MARK: Final = "Idempotency-Key"


def send_webhook(delivery: Delivery) -> None:
    """Send the request. argo: GET with the message, unless the template configures this webhook."""
    url = delivery.option("url")
    if not url:
        raise UserError(f"service.webhook.{delivery.service} has no url; set one")
    own = delivery.part("webhook").get(delivery.service)
    method, body = "GET", delivery.message
    if isinstance(own, dict):
        method, body = str(own.get("method") or "GET"), str(own.get("body") or "")
        if path := str(own.get("path") or ""):
            url = f"{url.rstrip('/')}/{path.lstrip('/')}"
    delivery.taken(delivery.ask(method.upper(), url, body.encode(), _headers(delivery)), f"webhook {delivery.service}")


def _headers(delivery: Delivery) -> dict[str, str]:
    headers = {MARK: delivery.mark}
    for each in delivery.options.get("headers") or ():
        if isinstance(each, dict) and each.get("name"):
            headers[str(each["name"])] = str(each.get("value") or "")
    account: Any = delivery.options.get("basicAuth")
    if isinstance(account, dict):
        pair = f"{account.get('username') or ''}:{account.get('password') or ''}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return headers
