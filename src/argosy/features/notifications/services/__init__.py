"""Notification services, one module per type.

In: service options, a rendered notification, a recipient. Out: nothing after the service accepted it. Never: knows the
trigger; reveals more of a URL than its host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from argosy.errors import UserError
from argosy.features.notifications.services.email import send_email
from argosy.features.notifications.services.github import send_github
from argosy.features.notifications.services.service_message_http_requests import MessageDelivery
from argosy.features.notifications.services.slack import send_slack
from argosy.features.notifications.services.teams import send_teams
from argosy.features.notifications.services.webhook import send_webhook

__all__ = ["SENDERS_BY_TYPE", "MessageDelivery", "deliver", "deliver_in_thread"]

MAX_CONCURRENT_DELIVERIES: Final = 8
_threads: Final = ThreadPoolExecutor(MAX_CONCURRENT_DELIVERIES, thread_name_prefix="notification")

SENDERS_BY_TYPE: Final[Mapping[str, Callable[[MessageDelivery], None]]] = {
    "webhook": send_webhook,
    "slack": send_slack,
    "email": send_email,
    "teams": send_teams,
    "github": send_github,
}


def deliver(delivery: MessageDelivery) -> None:
    """Send a message. Raise UserError if a user must act, TransientError to retry, DeliveryUnknown if unanswered."""
    if delivery.kind not in SENDERS_BY_TYPE:
        raise UserError(f"unknown service type {delivery.kind}; choose one of {', '.join(SENDERS_BY_TYPE)}")
    SENDERS_BY_TYPE[delivery.kind](delivery)


async def deliver_in_thread(delivery: MessageDelivery) -> None:
    """Deliver without the event loop's default thread pool, which Git fetches need: a receiver may be slow."""
    await asyncio.get_running_loop().run_in_executor(_threads, deliver, delivery)
