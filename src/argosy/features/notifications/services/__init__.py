"""Where notifications go: one module for each type of service.

In: a service's options, a filled notification, a recipient. Out: nothing, once it was taken there. Never: knows why;
says more of an address than its host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from argosy.errors import UserError
from argosy.features.notifications.services.delivery import Delivery
from argosy.features.notifications.services.email import send_email
from argosy.features.notifications.services.github import send_github
from argosy.features.notifications.services.slack import send_slack
from argosy.features.notifications.services.teams import send_teams
from argosy.features.notifications.services.webhook import send_webhook

__all__ = ["KINDS", "Delivery", "deliver"]

KINDS: Final[Mapping[str, Callable[[Delivery], None]]] = {
    "webhook": send_webhook,
    "slack": send_slack,
    "email": send_email,
    "teams": send_teams,
    "github": send_github,
}


def deliver(delivery: Delivery) -> None:
    """Raises UserError where somebody must act, TransientError where it may pass, Unanswered where nobody knows."""
    if delivery.kind not in KINDS:
        raise UserError(f"services of type {delivery.kind} are not known; choose among {', '.join(KINDS)}")
    KINDS[delivery.kind](delivery)
