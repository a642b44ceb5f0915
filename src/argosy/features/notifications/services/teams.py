"""Microsoft Teams service: posts a card to the webhook of a channel.

In: a delivery. Out: a request. Never: puts the webhook URL into an error message, because it is a credential.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import UserError
from argosy.features.notifications.services.service_message_http_requests import MessageDelivery, parse_json_field

ACCEPTED_BODIES: Final = (b"1", b"")


def send_teams(delivery: MessageDelivery) -> None:
    urls = delivery.options.get("recipientUrls")
    url = urls.get(delivery.recipient) if isinstance(urls, dict) else None
    if not url:
        raise UserError(f"service.teams has no recipientUrls entry for {delivery.recipient}; add one")
    fields = delivery.get_template_fields("teams")
    headers = {"Content-Type": "application/json"}
    if template := str(fields.get("template") or ""):
        parse_json_field(template, "teams.template")
        response = delivery.check_response(delivery.send_request("POST", str(url), template.encode(), headers), "Teams")
    else:
        response = delivery.post_json(str(url), _build_card(delivery, fields), {}, "Teams")
    if response.code == 200 and response.body.strip() not in ACCEPTED_BODIES and not response.body.startswith(b"{"):
        raise UserError("Teams refused the card; check that the webhook still exists")


def _build_card(delivery: MessageDelivery, fields: dict[str, Any]) -> dict[str, Any]:
    text = str(fields.get("text") or delivery.message)
    card: dict[str, Any] = {
        "@type": "MessageCard",
        "context": "https://schema.org/extensions",
        "title": str(fields.get("title") or ""),
        "summary": str(fields.get("summary") or ""),
        "text": text,
    }
    if colour := str(fields.get("themeColor") or ""):
        card["themeColor"] = colour
    sections = parse_json_field(str(fields.get("sections") or ""), "teams.sections") or []
    if facts := parse_json_field(str(fields.get("facts") or ""), "teams.facts"):
        sections = [*sections, {"facts": facts}]
    if sections:
        card["sections"] = sections
    if actions := parse_json_field(str(fields.get("potentialAction") or ""), "teams.potentialAction"):
        card["potentialAction"] = actions
    return card
